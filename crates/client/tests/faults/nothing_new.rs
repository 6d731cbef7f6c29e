//! Servers that send, but bring nothing that was not there: they are asked ever less often, and given up in
//! time.

use crate::viewer::{Fetch, is_left, millis, settings};
use anabranch_testkit::{Answer, Asked, ScriptedServer, film};

/// The stream is given up after two seconds without anything new, and not for want of tries.
async fn is_given_up(server: &ScriptedServer, last_error: &str) {
    let mut settings = settings(&[server.film_url()]);
    settings.give_up_after = millis(2000);
    let fetch = Fetch::begin(settings).await;
    let error = fetch.fails().await;
    assert!(error.starts_with("nothing new arrived for 2.0 s; the last error: "), "{error}");
    assert!(error.ends_with(last_error), "{error}");
    let requests = server.requests();
    assert!((3..=8).contains(&requests), "{requests} requests");
    is_left(server).await;
}

fn cut_off(x: &Asked, head: &str) -> Answer {
    let part = x.film[..600_000].to_vec();
    let x = Answer::head("200 OK", &[head.into()]);
    if head.starts_with("Transfer") {
        return x.send("f4240\r\n").send(part).hang_up();
    }
    x.send(part).hang_up()
}

#[tokio::test]
async fn a_body_in_chunks_that_is_always_cut_off() {
    let content = film(1_000_000);
    let server = ScriptedServer::of(&content, |x| cut_off(x, "Transfer-Encoding: chunked"));
    is_given_up(&server, "the server closed the connection in the middle of a response").await;
}

#[tokio::test]
async fn a_body_that_always_ends_before_its_length() {
    let content = film(1_000_000);
    let server = ScriptedServer::of(&content, |x| cut_off(x, "Content-Length: 1000000"));
    is_given_up(&server, "before the end of a response").await;
}
