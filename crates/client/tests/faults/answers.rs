//! Statuses in mid-stream: a server that wants fewer connections, has trouble, or has the film no more.

use std::time::Duration;

use anabranch_client::{Algorithm, Event, Settings};
use anabranch_film::multitcp;

use crate::server::{Answered, Exchange, Server, film};
use crate::viewer::{Fetch, comes_right, millis, notice, open, read, settings};

/// Settings with so many connections from the start.
fn with_connections(count: u32, server: &Server) -> Settings {
    let mut settings = settings(vec![server.url()]);
    let parameters = multitcp::Parameters { connections: count, ..multitcp::Parameters::default() };
    settings.algorithm = Algorithm::Basic(parameters);
    settings
}

/// Answers on the connection that came first, and on the others with this.
async fn only_first(x: Exchange, status: &str, lines: &[&str]) -> Answered {
    if x.connection == 0 { x.paced(400_000).await } else { x.status(status, lines).await?.hang_up() }
}

#[tokio::test]
async fn forbidden_from_the_second_connection_on() {
    let content = film(1_000_000);
    let server = Server::start(&content, async |x| only_first(x, "403 Forbidden", &[]).await).await;
    comes_right(with_connections(4, &server), &content).await;
    let connections = server.record.connections().len();
    assert!(connections > 1, "it tried");
    assert!(connections <= 8, "{connections} connections in two seconds to a server that wants one");
}

#[tokio::test]
async fn too_many_requests_leaves_the_server_alone_as_long_as_it_says() {
    for status in ["429 Too Many Requests", "503 Service Unavailable"] {
        let content = film(900_000);
        let server = Server::start(&content, move |x| only_first(x, status, &["Retry-After: 30"])).await;
        comes_right(with_connections(4, &server), &content).await;
        // The first and those that were on their way when the first of them was refused.
        let connections = server.record.connections().len();
        assert!((2..=4).contains(&connections), "{connections} connections");
    }
}

#[tokio::test]
async fn too_many_requests_on_the_only_connection_waits_and_goes_on() {
    let content = film(600_000);
    let server = Server::start(&content, async |x| match (x.connection, x.nth) {
        (0, 1) => x.status("429 Too Many Requests", &["Retry-After: 1"]).await?.hang_up(),
        (1, _) => x.status("503 Service Unavailable", &[]).await?.hang_up(),
        _ => x.good().await,
    })
    .await;
    let film = open(settings(vec![server.url()])).await;
    let mut notices = film.notices();
    let mut reader = film.reader(0..u64::MAX);
    let reading = tokio::spawn(async move { read(&mut reader).await });
    let waiting = notice(&mut notices, |event| matches!(event, Event::Waiting { .. })).await;
    let Event::Waiting { error } = waiting else { unreachable!() };
    assert_eq!(error, "the server answers with status 429 (Too Many Requests)");
    assert!(reading.await.unwrap().unwrap() == *content);
    let came = server.record.connections();
    assert!(came[1] - came[0] >= Duration::from_millis(990), "{:?}", came[1] - came[0]);
    assert!(came[2] - came[1] >= Duration::from_millis(990), "{:?}", came[2] - came[1]);
}

#[tokio::test]
async fn trouble_of_the_server_passes() {
    let content = film(600_000);
    let server = Server::start(&content, async |x| match x.request {
        1 | 3 => x.status("500 Internal Server Error", &[]).await,
        2 => x.status("502 Bad Gateway", &[]).await,
        _ => x.good().await,
    })
    .await;
    comes_right(settings(vec![server.url()]), &content).await;
}

#[tokio::test]
async fn trouble_that_stays_ends_with_its_name() {
    let content = film(600_000);
    let server = Server::start(&content, async |x| match x.request {
        0 => x.good().await,
        _ => x.status("500 Internal Server Error", &[]).await,
    })
    .await;
    let mut settings = settings(vec![server.url()]);
    settings.give_up_after = millis(2000);
    let fetch = Fetch::begin(settings).await;
    let error = fetch.fails().await;
    assert!(error.contains("for 2.0 s;"), "{error}");
    assert!(
        error.ends_with("the last error: the server answers with status 500 (Internal Server Error)"),
        "{error}"
    );
    let connections = server.record.connections().len();
    assert!(connections <= 5, "{connections} connections in two seconds");
    server.is_left().await;
}

#[tokio::test]
async fn a_film_that_is_gone_in_mid_stream() {
    for (status, said) in [
        ("404 Not Found", "404 (Not Found)"),
        ("410 Gone", "410 (Gone)"),
        ("403 Forbidden", "403 (Forbidden)"),
    ] {
        let content = film(600_000);
        let server = Server::start(&content, move |x| async move {
            if x.request < 2 { x.good().await } else { x.status(status, &[]).await }
        })
        .await;
        let error = Fetch::begin(settings(vec![server.url()])).await.fails().await;
        assert_eq!(error, format!("the server answers with status {said}"));
        let good = Server::start(&content, Exchange::good).await;
        comes_right(settings(vec![server.url(), good.url()]), &content).await;
    }
}
