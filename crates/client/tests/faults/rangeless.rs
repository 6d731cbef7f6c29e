//! Servers without ranges, and films without a size, of size zero or of a few bytes.

use std::time::Duration;

use anabranch_units::Bytes;

use crate::viewer::{Fetch, comes_right, in_time, is_left, open, read, settings};
use anabranch_testkit::{Answer, Asked, ScriptedServer, film, status};

#[tokio::test]
async fn everything_instead_of_a_range() {
    let content = film(2_000_000);
    let server = ScriptedServer::of(&content, Asked::whole);
    comes_right(settings(&[server.film_url()]), &content).await;
    assert_eq!((server.connections().len(), server.requests()), (1, 1));
    is_left(&server).await;
    let fetch = Fetch::begin(settings(&[server.film_url()])).await;
    fetch.comes_right(&content).await;
    assert!(!fetch.film.info().accepts_ranges);
    assert_eq!((server.most_open(), server.requests()), (1, 2));
}

#[tokio::test]
async fn a_slow_reader_holds_the_server_back_and_the_film_comes_once() {
    let content = film(40_000_000);
    let server = ScriptedServer::of(&content, Asked::whole);
    let mut settings = settings(&[server.film_url()]);
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
    assert_eq!(server.requests(), 1, "it is not fetched again when it was read");
}

#[tokio::test]
async fn a_reader_that_goes_back() {
    let content = film(12_000_000);
    let server = ScriptedServer::of(&content, Asked::whole);
    let mut settings = settings(&[server.film_url()]);
    settings.memory = Bytes::mib(2);
    let film = open(settings).await;
    for start in [0, 9_000_000, 1_000_000] {
        let mut reader = film.reader(start..start + 1_500_000);
        let got = read(&mut reader).await.unwrap();
        assert!(got == content[start as usize..start as usize + 1_500_000], "from {start}");
    }
    assert_eq!((server.most_open(), server.requests()), (1, 2), "one goes back");
}

#[tokio::test]
async fn a_connection_that_breaks_without_ranges() {
    let content = film(1_000_000);
    let server = ScriptedServer::of(&content, |x| {
        if x.number > 1 {
            return x.whole();
        }
        Answer::head("200 OK", &["Content-Length: 1000000".into()]).send(&x.film[..600_000]).reset()
    });
    comes_right(settings(&[server.film_url()]), &content).await;
}

#[tokio::test]
async fn a_film_whose_end_is_the_connections() {
    let content = film(700_000);
    let server = ScriptedServer::of(&content, |x| {
        let film = x.film.clone();
        Answer::default().send("HTTP/1.0 200 OK\r\n\r\n").send(&film[..]).hang_up()
    });
    comes_right(settings(&[server.film_url()]), &content).await;
    Fetch::begin(settings(&[server.film_url()])).await.comes_right(&content).await;
}

#[tokio::test]
async fn ranges_of_a_film_of_unknown_size() {
    let content = film(700_000);
    let server = ScriptedServer::of(&content, |x| {
        if x.range.is_none() {
            let film = x.film.clone();
            let x = Answer::head("200 OK", &["ETag: \"one\"".into(), "Transfer-Encoding: chunked".into()]);
            let x = x.send(format!("{:x}\r\n", film.len())).send(&film[..]);
            return x.send("\r\n0\r\n\r\n");
        }
        let range = x.within();
        let mut lines = x.lines_for(range.clone());
        lines[1] = format!("Content-Range: bytes {}-{}/*", range.start, range.end - 1);
        let bytes = x.bytes();
        Answer::head("206 Partial Content", &lines).send(bytes)
    });
    comes_right(settings(&[server.film_url()]), &content).await;
    Fetch::begin(settings(&[server.film_url()])).await.comes_right(&content).await;
}

#[tokio::test]
async fn an_empty_film() {
    let empty = film(0);
    let with_ranges =
        ScriptedServer::of(&empty, |_| status("416 Range Not Satisfiable", "Content-Range: bytes */0\r\n"));
    let without = ScriptedServer::of(&empty, Asked::whole);
    let endless = ScriptedServer::of(&empty, |_| Answer::default().send("HTTP/1.0 200 OK\r\n\r\n").hang_up());
    for server in [&with_ranges, &without, &endless] {
        comes_right(settings(&[server.film_url()]), &empty).await;
        Fetch::begin(settings(&[server.film_url()])).await.comes_right(&empty).await;
    }
}

#[tokio::test]
async fn films_of_a_few_bytes() {
    for size in [1, 1000, 65_535, 65_536, 65_537] {
        let content = film(size);
        let server = ScriptedServer::of(&content, Asked::good);
        let other = ScriptedServer::of(&content, Asked::good);
        comes_right(settings(&[server.film_url(), other.film_url()]), &content).await;
        Fetch::begin(settings(&[server.film_url()])).await.comes_right(&content).await;
        let film = open(settings(&[server.film_url()])).await;
        let last = film.reader(size as u64 - 1..u64::MAX);
        let behind = film.reader(size as u64 + 5..u64::MAX);
        for (mut reader, expected) in [(last, &content[size - 1..]), (behind, &[][..])] {
            assert!(read(&mut reader).await.unwrap() == expected);
        }
    }
}
