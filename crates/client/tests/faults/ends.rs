//! Connections that end before their time.

use std::time::{Duration, Instant};

use crate::viewer::{comes_right, in_time, is_left, open, settings};
use anabranch_testkit::{Answer, Asked, ScriptedServer, film};

/// Reproducible random numbers (xorshift, Marsaglia 2003).
fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    }
}

#[tokio::test]
async fn a_reset_at_any_byte() {
    let mut random = random(0x5eed);
    let mut cases = tokio::task::JoinSet::new();
    for case in 0..40 {
        let content = film(150_000 + random(250_000));
        // Counted over head and body of the answers after the probe's; the first ones are the most
        // interesting.
        let offsets: Vec<_> =
            (0..3).map(|_| if random(2) == 0 { random(400) } else { random(140_000) }).collect();
        let reset = random(4) > 0;
        cases.spawn(async move {
            let told = format!("case {case}: {} bytes, cut at {offsets:?}", content.len());
            let offsets = std::sync::Mutex::new(offsets);
            let server = ScriptedServer::of(&content, move |x| {
                let cut = if x.number == 0 { None } else { offsets.lock().unwrap().pop() };
                let Some(cut) = cut else { return x.good() };
                let mut answer = b"HTTP/1.1 206 Partial Content\r\n".to_vec();
                for line in x.lines_for(x.within()) {
                    answer.extend_from_slice(format!("{line}\r\n").as_bytes());
                }
                answer.extend_from_slice(b"\r\n");
                answer.extend(x.bytes());
                let x = Answer::default().send(&answer[..cut.min(answer.len())]);
                if reset { x.reset() } else { x.hang_up() }
            });
            println!("{told}");
            comes_right(settings(&[server.film_url()]), &content).await;
        });
    }
    cases.join_all().await;
}

#[tokio::test]
async fn a_connection_for_every_answer() {
    let content = film(3_000_000);
    let server = ScriptedServer::of(&content, |x| {
        let mut lines = x.lines_for(x.within());
        lines.push("Connection: close".into());
        let bytes = x.bytes();
        Answer::head("206 Partial Content", &lines).send(bytes).hang_up()
    });
    comes_right(settings(&[server.film_url()]), &content).await;
    assert!(server.connections().len() <= 60, "{}", server.connections().len());
}

#[tokio::test]
async fn so_many_answers_to_a_connection() {
    for polite in [true, false] {
        let content = film(2_000_000);
        let server = ScriptedServer::of(&content, move |x| {
            if x.nth < 2 {
                return x.good();
            }
            let mut lines = x.lines_for(x.within());
            if polite {
                lines.push("Connection: close".into());
            }
            let bytes = x.bytes();
            Answer::head("206 Partial Content", &lines).send(bytes).hang_up()
        });
        comes_right(settings(&[server.film_url()]), &content).await;
    }
}

#[tokio::test]
async fn a_server_that_only_accepts_and_closes() {
    let content = film(300_000);
    let server = ScriptedServer::of(&content, |x| match x.connection {
        0 if x.number == 0 => x.good(),
        _ => Answer::default().hang_up(),
    });
    let mut settings = settings(&[server.film_url()]);
    settings.give_up_after = crate::viewer::millis(2500);
    let fetch = crate::viewer::Fetch::begin(settings).await;
    let error = fetch.fails().await;
    assert!(error.contains("; the last error: the server "), "{error}");
    let connections = server.connections().len();
    assert!(connections <= 8, "{connections} connections in 2.5 s to a server that closes them");
}

#[tokio::test]
async fn a_film_that_is_dropped_in_the_middle_leaves_nothing() {
    let content = film(5_000_000);
    let one = ScriptedServer::of(&content, |x| x.paced(200_000));
    let two = ScriptedServer::of(&content, Asked::good);
    let film = open(settings(&[one.film_url(), two.film_url()])).await;
    let mut reader = film.reader(0..u64::MAX);
    for _ in 0..3 {
        in_time(reader.next()).await.unwrap().unwrap();
    }
    assert!(one.open() > 0 && two.open() > 0);
    drop(film);
    // The reader keeps it alive.
    in_time(reader.next()).await.unwrap().unwrap();
    assert!(one.open() + two.open() > 0);
    let dropped = Instant::now();
    drop(reader);
    is_left(&one).await;
    is_left(&two).await;
    assert!(dropped.elapsed() < Duration::from_secs(2));
    let requests = one.requests() + two.requests();
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(one.requests() + two.requests(), requests, "nobody asks any more");
}

#[tokio::test]
async fn an_opening_that_is_dropped_leaves_nothing() {
    let server = ScriptedServer::of(&film(1), |_| Answer::default().silence());
    let opening =
        anabranch_client::Film::open(settings(&[server.film_url()]), anabranch_client::Storage::Memory);
    assert!(tokio::time::timeout(Duration::from_millis(200), opening).await.is_err(), "it waits");
    assert_eq!(server.connections().len(), 1);
    is_left(&server).await;
}
