//! Statuses in mid-stream: a server that wants fewer connections, has trouble, or has the film no more.

use std::time::Duration;

use anabranch_client::{Event, RateControl, Settings};
use anabranch_film::multitcp;
use anabranch_testkit::{Answer, Asked, ScriptedServer, film, status};

use crate::viewer::{Fetch, comes_right, is_left, millis, notice, open, read, settings};

/// Settings with so many connections from the start.
fn with_connections(count: u32, server: &ScriptedServer) -> Settings {
    let mut settings = settings(&[server.film_url()]);
    let parameters = multitcp::Parameters { connections: count, ..multitcp::Parameters::default() };
    settings.algorithm = RateControl::Basic(parameters);
    settings
}

/// Answers on the connection that came first, and on the others with this.
fn only_first(x: &Asked, said: &str, lines: &str) -> Answer {
    if x.connection == 0 { x.paced(400_000) } else { status(said, lines).hang_up() }
}

#[tokio::test]
async fn forbidden_from_the_second_connection_on() {
    let content = film(1_000_000);
    let server = ScriptedServer::of(&content, |x| only_first(x, "403 Forbidden", ""));
    comes_right(with_connections(4, &server), &content).await;
    let connections = server.connections().len();
    assert!(connections > 1, "it tried");
    assert!(connections <= 8, "{connections} connections in two seconds to a server that wants one");
}

#[tokio::test]
async fn too_many_requests_leaves_the_server_alone_as_long_as_it_says() {
    for said in ["429 Too Many Requests", "503 Service Unavailable"] {
        let content = film(900_000);
        let server = ScriptedServer::of(&content, move |x| only_first(x, said, "Retry-After: 30\r\n"));
        comes_right(with_connections(4, &server), &content).await;
        // The first and those that were on their way when the first of them was refused.
        let connections = server.connections().len();
        assert!((2..=4).contains(&connections), "{connections} connections");
    }
}

#[tokio::test]
async fn too_many_requests_on_the_only_connection_waits_and_goes_on() {
    let content = film(600_000);
    let server = ScriptedServer::of(&content, |x| match (x.connection, x.nth) {
        (0, 1) => status("429 Too Many Requests", "Retry-After: 1\r\n").hang_up(),
        (1, _) => status("503 Service Unavailable", "").hang_up(),
        _ => x.good(),
    });
    let film = open(settings(&[server.film_url()])).await;
    let mut notices = film.notices();
    let mut reader = film.reader(0..u64::MAX);
    let reading = tokio::spawn(async move { read(&mut reader).await });
    let waiting = notice(&mut notices, |event| matches!(event, Event::Waiting { .. })).await;
    let Event::Waiting { error } = waiting else { unreachable!() };
    assert_eq!(error, "the server answers with status 429 (Too Many Requests)");
    assert!(reading.await.unwrap().unwrap() == *content);
    let came = server.connections();
    assert!(came[1] - came[0] >= Duration::from_millis(990), "{:?}", came[1] - came[0]);
    assert!(came[2] - came[1] >= Duration::from_millis(990), "{:?}", came[2] - came[1]);
}

#[tokio::test]
async fn trouble_of_the_server_passes() {
    let content = film(600_000);
    let server = ScriptedServer::of(&content, |x| match x.number {
        1 | 3 => status("500 Internal Server Error", ""),
        2 => status("502 Bad Gateway", ""),
        _ => x.good(),
    });
    comes_right(settings(&[server.film_url()]), &content).await;
}

#[tokio::test]
async fn trouble_that_stays_ends_with_its_name() {
    let content = film(600_000);
    let server = ScriptedServer::of(&content, |x| match x.number {
        0 => x.good(),
        _ => status("500 Internal Server Error", ""),
    });
    let mut settings = settings(&[server.film_url()]);
    settings.give_up_after = millis(2000);
    let fetch = Fetch::begin(settings).await;
    let error = fetch.fails().await;
    assert!(error.contains("for 2.0 s;"), "{error}");
    assert!(
        error.ends_with("the last error: the server answers with status 500 (Internal Server Error)"),
        "{error}"
    );
    let connections = server.connections().len();
    assert!(connections <= 5, "{connections} connections in two seconds");
    is_left(&server).await;
}

#[tokio::test]
async fn a_film_that_is_gone_in_mid_stream() {
    for (answer, said) in [
        ("404 Not Found", "404 (Not Found)"),
        ("410 Gone", "410 (Gone)"),
        ("403 Forbidden", "403 (Forbidden)"),
    ] {
        let content = film(600_000);
        let server =
            ScriptedServer::of(&content, move |x| if x.number < 2 { x.good() } else { status(answer, "") });
        let error = Fetch::begin(settings(&[server.film_url()])).await.fails().await;
        assert_eq!(error, format!("the server answers with status {said}"));
        let good = ScriptedServer::of(&content, Asked::good);
        comes_right(settings(&[server.film_url(), good.film_url()]), &content).await;
    }
}
