//! Replicas that die, hang and come back.

use std::time::Duration;

use anabranch_client::Event;
use anabranch_testkit::{Answer, Asked, ScriptedServer, film};

use crate::viewer::{Fetch, comes_right, events, in_time, is_left, millis, notice, open, read, settings};

#[tokio::test]
async fn one_of_two_dies() {
    let content = film(3_000_000);
    let one = ScriptedServer::of(&content, |x| x.paced(800_000));
    let two = ScriptedServer::of(&content, |x| x.paced(800_000));
    let fetch = Fetch::begin(settings(&[one.film_url(), two.film_url()])).await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    drop(one);
    fetch.comes_right(&content).await;
    let status = fetch.film.status();
    assert!(status.replicas.iter().all(|replica| replica.bytes > 0), "{:?}", status.replicas);
    assert!(status.replicas[0].errors > 0 && status.replicas[0].errors < 10, "{:?}", status.replicas);
}

#[tokio::test]
async fn one_accepts_and_says_nothing() {
    let content = film(2_000_000);
    for order in [[0, 1], [1, 0]] {
        let silent =
            ScriptedServer::of(
                &content,
                |x| {
                    if x.number == 0 { x.good() } else { Answer::default().silence() }
                },
            );
        let good = ScriptedServer::of(&content, |x| x.paced(1_000_000));
        let urls = [silent.film_url(), good.film_url()];
        comes_right(settings(&order.map(|index: usize| urls[index].clone())), &content).await;
    }
}

#[tokio::test]
async fn the_only_one_stalls_in_the_middle_of_a_body() {
    let content = film(900_000);
    let server = ScriptedServer::of(&content, |x| {
        if x.number != 2 {
            return x.good();
        }
        let bytes = x.bytes();
        x.good_head().send(&bytes[..1000]).silence()
    });
    let mut settings = settings(&[server.film_url()]);
    settings.per_host = 1;
    let film = open(settings).await;
    let mut notices = film.notices();
    assert!(read(&mut film.reader(0..u64::MAX)).await.unwrap() == *content);
    let silent = "the server has been silent for too long";
    let told = events(&mut notices);
    assert!(told.iter().any(|event| matches!(event, Event::Close { why, .. } if *why == silent)), "{told:?}");
}

#[tokio::test]
async fn the_only_one_hangs_for_ever() {
    let content = film(900_000);
    let server =
        ScriptedServer::of(&content, |x| if x.number == 0 { x.good() } else { Answer::default().silence() });
    let mut settings = settings(&[server.film_url()]);
    settings.give_up_after = millis(3000);
    let error = Fetch::begin(settings).await.fails().await;
    assert!(error.contains("for 3.0 s; the last error: the server has been silent for too long"), "{error}");
    is_left(&server).await;
}

#[tokio::test]
async fn all_die_and_one_comes_back() {
    let content = film(2_000_000);
    let one = ScriptedServer::of(&content, |x| x.paced(600_000));
    let two = ScriptedServer::of(&content, |x| x.paced(600_000));
    let film = open(settings(&[one.film_url(), two.film_url()])).await;
    let mut notices = film.notices();
    let mut reader = film.reader(0..u64::MAX);
    let reading = tokio::spawn(async move { read(&mut reader).await });
    tokio::time::sleep(Duration::from_millis(400)).await;
    let address = one.address;
    drop((one, two));
    let waiting = notice(&mut notices, |event| matches!(event, Event::Waiting { .. })).await;
    let Event::Waiting { error } = waiting else { unreachable!() };
    assert!(error.contains("refused the connection") || error.contains("the server"), "{error}");
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let back = ScriptedServer::at(address, &content, Asked::good);
    assert!(in_time(reading).await.unwrap().unwrap() == *content);
    assert!(back.requests() > 0);
    let waits = events(&mut notices).iter().filter(|event| matches!(event, Event::Waiting { .. })).count();
    assert!(waits < 5, "it says once that it waits");
}

#[tokio::test]
async fn all_die_for_good() {
    let content = film(2_000_000);
    let one = ScriptedServer::of(&content, |x| x.paced(400_000));
    let two = ScriptedServer::of(&content, |x| x.paced(400_000));
    let mut settings = settings(&[one.film_url(), two.film_url()]);
    settings.give_up_after = millis(3000);
    let fetch = Fetch::begin(settings).await;
    let mut notices = fetch.film.notices();
    tokio::time::sleep(Duration::from_millis(400)).await;
    let addresses = [one.address, two.address];
    drop((one, two));
    let error = fetch.fails().await;
    assert!(error.starts_with("no replica could be reached for 3.0 s; the last error: "), "{error}");
    for address in addresses {
        assert!(error.contains(&format!("{address} refused the connection")), "{error}");
    }
    assert!(events(&mut notices).iter().any(|event| matches!(event, Event::Waiting { .. })));
    let again = in_time(fetch.film.complete()).await.unwrap_err().to_string();
    assert_eq!(again, error, "it stays failed");
}
