//! The engine against our own server, on loopback.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anabranch_client::{Film, RateControl, Settings, Storage};
use anabranch_film::session::Pace;
use anabranch_protocol::ranges::RangeSet;
use anabranch_server::{Config, Server, Shape};
use anabranch_units::{Bytes, Rate};
use tokio::task::JoinHandle;
use url::Url;

/// A server in a task; aborting it cuts its connections.
async fn serve(root: &Path, rate: Option<Rate>) -> (SocketAddr, JoinHandle<()>) {
    let mut config = Config::new(root, SocketAddr::from(([127, 0, 0, 1], 0)));
    config.shape =
        rate.map(|rate| Shape { rate: Some(rate), first_byte_delay: std::time::Duration::from_millis(5) });
    let server = Server::bind(config).expect("it binds");
    let address = server.local_addr().expect("it has an address");
    (address, tokio::spawn(server.run(std::future::pending())))
}

fn url(address: SocketAddr) -> Url {
    format!("http://{address}/film.bin").parse().expect("a URL")
}

fn film(root: &Path, size: usize) -> Vec<u8> {
    let content = anabranch_testkit::film(size);
    std::fs::write(root.join("film.bin"), &content).expect("written");
    content
}

#[tokio::test]
async fn a_file_from_two_replicas_of_which_one_dies() {
    let root = tempfile::tempdir().unwrap();
    let content = film(root.path(), 6_000_000);
    let (one, server) = serve(root.path(), Some(Rate::from_mbps(10))).await;
    let (two, _server) = serve(root.path(), Some(Rate::from_mbps(10))).await;
    let path = root.path().join("out");
    let file = std::fs::File::options().create_new(true).read(true).write(true).open(&path).unwrap();
    let settings = Settings::new(vec![url(one), url(two)]);
    let film =
        Film::open(settings, Storage::File { file: Arc::new(file), have: RangeSet::new(), in_doubt: false })
            .await
            .unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    server.abort();
    film.complete().await.unwrap();
    let status = film.status();
    assert!(std::fs::read(&path).unwrap() == content, "{status:?}");
    assert!(status.replicas.iter().all(|replica| replica.bytes > 0), "{status:?}");
}

#[tokio::test]
async fn readers_anywhere_at_once_get_the_right_bytes_in_bounded_memory() {
    let root = tempfile::tempdir().unwrap();
    let content = film(root.path(), 8_000_000);
    let (address, _server) = serve(root.path(), None).await;
    let mut settings = Settings::new(vec![url(address)]);
    settings.memory = Bytes::mib(1);
    settings.pace = Pace::Media(Some(Rate::from_mbps(50)));
    let film = Film::open(settings, Storage::Memory).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for start in [0u64, 7_900_000, 3_000_000, 2_999_990] {
        let mut reader = film.reader(start..start + 1_500_000);
        tasks.spawn(async move {
            let mut got = Vec::new();
            while let Some(piece) = reader.next().await.unwrap() {
                got.write_all(&piece).unwrap();
            }
            (start as usize, got)
        });
    }
    for (start, got) in tasks.join_all().await {
        assert_eq!(got.len(), 1_500_000.min(content.len() - start));
        assert!(got == content[start..start + got.len()], "from {start}");
    }
}

#[tokio::test]
async fn a_limit_is_held_by_every_algorithm() {
    let root = tempfile::tempdir().unwrap();
    film(root.path(), 2_500_000);
    let (address, _server) = serve(root.path(), None).await;
    for algorithm in [
        RateControl::Auto(anabranch_film::auto::Parameters::default()),
        RateControl::Basic(anabranch_film::multitcp::Parameters::default()),
    ] {
        let mut settings = Settings::new(vec![url(address)]);
        settings.pace = Pace::Limit(Rate::from_mbps(10));
        settings.algorithm = algorithm;
        let begin = std::time::Instant::now();
        let film = Film::open(settings, Storage::Memory).await.unwrap();
        let mut reader = film.reader(0..u64::MAX);
        while reader.next().await.unwrap().is_some() {}
        let seconds = begin.elapsed().as_secs_f64();
        assert!(seconds > 1.8, "{seconds} s for two seconds' worth");
    }
}

#[tokio::test]
async fn no_url_that_works_is_said_at_once() {
    let error = Film::open(Settings::new(vec!["http://127.0.0.1:1/x".parse().unwrap()]), Storage::Memory);
    let error = error.await.err().expect("nobody listens there").to_string();
    assert!(error.contains("127.0.0.1:1"), "{error}");
}

#[tokio::test]
async fn with_nobody_watching_one_connection_waits_and_then_a_new_request_comes_first() {
    let root = tempfile::tempdir().unwrap();
    let content = film(root.path(), 40_000_000);
    let (address, _server) = serve(root.path(), None).await;
    let pace = Pace::Media(Some(Rate::from_mbps(2)));
    let settings = Settings { pace, stripe: false, ..Settings::new(vec![url(address)]) };
    let film = Film::open(settings, Storage::Memory).await.unwrap();
    // Long enough for many a measurement.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    assert_eq!(film.status().session.totals.connections_most, 1);
    let mut head = film.reader(0..u64::MAX);
    while head.position() < 500_000 {
        head.next().await.unwrap().expect("more of the film");
    }
    let before = film.status().bytes;
    let tail = content.len() as u64 - 50_000;
    let mut index = film.reader(tail..u64::MAX);
    let mut got = Vec::new();
    while let Some(piece) = index.next().await.unwrap() {
        got.extend_from_slice(&piece);
    }
    assert!(got == content[content.len() - 50_000..]);
    // At three times the film's rate it would take seconds until what was queued for the head has come.
    let meanwhile = film.status().bytes - before;
    assert!(meanwhile < 2_500_000, "{meanwhile} bytes came before");
}
