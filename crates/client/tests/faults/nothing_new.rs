//! Servers that send, but bring nothing that was not there: they are asked ever less often, and given up in
//! time.

use crate::server::{Answered, Exchange, Server, film};
use crate::viewer::{Fetch, millis, settings};

/// The stream is given up after two seconds without anything new, and not for want of tries.
async fn is_given_up(server: &Server, last_error: &str) {
    let mut settings = settings(vec![server.url()]);
    settings.give_up_after = millis(2000);
    let fetch = Fetch::begin(settings).await;
    let error = fetch.fails().await;
    assert!(error.starts_with("nothing new arrived for 2.0 s; the last error: "), "{error}");
    assert!(error.ends_with(last_error), "{error}");
    let requests = server.record.requests();
    assert!((3..=8).contains(&requests), "{requests} requests");
    server.is_left().await;
}

async fn cut_off(x: Exchange, head: &str) -> Answered {
    let part = x.film[..600_000].to_vec();
    let x = x.head("200 OK", &[head.into()]).await?;
    if head.starts_with("Transfer") {
        return x.raw("f4240\r\n").await?.raw(part).await?.hang_up();
    }
    x.raw(part).await?.hang_up()
}

#[tokio::test]
async fn a_body_in_chunks_that_is_always_cut_off() {
    let content = film(1_000_000);
    let server = Server::start(&content, async |x| cut_off(x, "Transfer-Encoding: chunked").await).await;
    is_given_up(&server, "the server closed the connection in the middle of a response").await;
}

#[tokio::test]
async fn a_body_that_always_ends_before_its_length() {
    let content = film(1_000_000);
    let server = Server::start(&content, async |x| cut_off(x, "Content-Length: 1000000").await).await;
    is_given_up(&server, "before the end of a response").await;
}
