//! Servers without ranges, and films without a size, of size zero or of a few bytes.

use std::time::Duration;

use anabranch_units::Bytes;

use crate::server::{Exchange, Server, film};
use crate::viewer::{Fetch, comes_right, in_time, open, read, settings};

#[tokio::test]
async fn everything_instead_of_a_range() {
    let content = film(2_000_000);
    let server = Server::start(&content, Exchange::whole).await;
    comes_right(settings(vec![server.url()]), &content).await;
    assert_eq!((server.record.connections().len(), server.record.requests()), (1, 1));
    let fetch = Fetch::begin(settings(vec![server.url()])).await;
    fetch.comes_right(&content).await;
    assert!(!fetch.film.info().accepts_ranges);
    assert_eq!((server.record.most_open(), server.record.requests()), (1, 2));
}

#[tokio::test]
async fn a_slow_reader_holds_the_server_back_and_the_film_comes_once() {
    let content = film(40_000_000);
    let server = Server::start(&content, Exchange::whole).await;
    let mut settings = settings(vec![server.url()]);
    settings.memory = Bytes::mib(2);
    // Shorter than the pauses: a reader that takes nothing is no reason to give up.
    settings.give_up_after = crate::viewer::millis(600);
    let film = open(settings).await;
    let mut reader = film.reader(0..u64::MAX);
    let mut got = Vec::new();
    for _ in 0..2 {
        for _ in 0..10 {
            got.extend_from_slice(&in_time(reader.next()).await.unwrap().unwrap());
        }
        tokio::time::sleep(Duration::from_millis(900)).await;
        let there = film.status().bytes;
        assert!(there < 4 << 20, "{there} bytes are held");
    }
    got.extend(read(&mut reader).await.unwrap());
    assert!(got == *content);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(server.record.requests(), 1, "it is not fetched again when it was read");
}

#[tokio::test]
async fn a_reader_that_goes_back() {
    let content = film(12_000_000);
    let server = Server::start(&content, Exchange::whole).await;
    let mut settings = settings(vec![server.url()]);
    settings.memory = Bytes::mib(2);
    let film = open(settings).await;
    for start in [0, 9_000_000, 1_000_000] {
        let mut reader = film.reader(start..start + 1_500_000);
        let got = read(&mut reader).await.unwrap();
        assert!(got == content[start as usize..start as usize + 1_500_000], "from {start}");
    }
    assert_eq!((server.record.most_open(), server.record.requests()), (1, 2), "one goes back");
}

#[tokio::test]
async fn a_connection_that_breaks_without_ranges() {
    let content = film(1_000_000);
    let server = Server::start(&content, async |x| {
        if x.request > 1 {
            return x.whole().await;
        }
        let x = x.head("200 OK", &["Content-Length: 1000000".into()]).await?;
        let half = x.film[..600_000].to_vec();
        x.raw(half).await?.reset().await
    })
    .await;
    comes_right(settings(vec![server.url()]), &content).await;
}

#[tokio::test]
async fn a_film_whose_end_is_the_connections() {
    let content = film(700_000);
    let server = Server::start(&content, async |x| {
        let film = x.film.clone();
        x.raw("HTTP/1.0 200 OK\r\n\r\n").await?.raw(&film[..]).await?.hang_up()
    })
    .await;
    comes_right(settings(vec![server.url()]), &content).await;
    Fetch::begin(settings(vec![server.url()])).await.comes_right(&content).await;
}

#[tokio::test]
async fn ranges_of_a_film_of_unknown_size() {
    let content = film(700_000);
    let server = Server::start(&content, async |x| {
        let Some(range) = x.range.clone() else {
            let film = x.film.clone();
            let x = x.head("200 OK", &["ETag: \"one\"".into(), "Transfer-Encoding: chunked".into()]).await?;
            let x = x.raw(format!("{:x}\r\n", film.len())).await?.raw(&film[..]).await?;
            return x.raw("\r\n0\r\n\r\n").await;
        };
        let mut lines = x.lines_for(range.clone());
        lines[1] = format!("Content-Range: bytes {}-{}/*", range.start, range.end - 1);
        let bytes = x.bytes();
        x.head("206 Partial Content", &lines).await?.raw(bytes).await
    })
    .await;
    comes_right(settings(vec![server.url()]), &content).await;
    Fetch::begin(settings(vec![server.url()])).await.comes_right(&content).await;
}

#[tokio::test]
async fn an_empty_film() {
    let empty = film(0);
    let with_ranges = Server::start(&empty, async |x| {
        x.status("416 Range Not Satisfiable", &["Content-Range: bytes */0"]).await
    })
    .await;
    let without = Server::start(&empty, Exchange::whole).await;
    let endless = Server::start(&empty, async |x| x.raw("HTTP/1.0 200 OK\r\n\r\n").await?.hang_up()).await;
    for server in [&with_ranges, &without, &endless] {
        comes_right(settings(vec![server.url()]), &empty).await;
        Fetch::begin(settings(vec![server.url()])).await.comes_right(&empty).await;
    }
}

#[tokio::test]
async fn films_of_a_few_bytes() {
    for size in [1, 1000, 65_535, 65_536, 65_537] {
        let content = film(size);
        let server = Server::start(&content, Exchange::good).await;
        let other = Server::start(&content, Exchange::good).await;
        comes_right(settings(vec![server.url(), other.url()]), &content).await;
        Fetch::begin(settings(vec![server.url()])).await.comes_right(&content).await;
        let film = open(settings(vec![server.url()])).await;
        let last = film.reader(size as u64 - 1..u64::MAX);
        let behind = film.reader(size as u64 + 5..u64::MAX);
        for (mut reader, expected) in [(last, &content[size - 1..]), (behind, &[][..])] {
            assert!(read(&mut reader).await.unwrap() == expected);
        }
    }
}
