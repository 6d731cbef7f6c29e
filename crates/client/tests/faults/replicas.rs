//! Replicas that die, hang and come back.

use std::time::Duration;

use anabranch_client::Event;

use crate::server::{Exchange, Server, film};
use crate::viewer::{Fetch, comes_right, events, in_time, millis, notice, open, read, settings};

#[tokio::test]
async fn one_of_two_dies() {
    let content = film(3_000_000);
    let one = Server::start(&content, async |x| x.paced(800_000).await).await;
    let two = Server::start(&content, async |x| x.paced(800_000).await).await;
    let fetch = Fetch::begin(settings(vec![one.url(), two.url()])).await;
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
        let silent = Server::start(
            &content,
            async |x| {
                if x.request == 0 { x.good().await } else { x.silence().await }
            },
        )
        .await;
        let good = Server::start(&content, async |x| x.paced(1_000_000).await).await;
        let urls = [silent.url(), good.url()];
        comes_right(settings(order.map(|index: usize| urls[index].clone()).to_vec()), &content).await;
    }
}

#[tokio::test]
async fn the_only_one_stalls_in_the_middle_of_a_body() {
    let content = film(900_000);
    let server = Server::start(&content, async |x| {
        if x.request != 2 {
            return x.good().await;
        }
        let bytes = x.bytes();
        x.good_head().await?.raw(&bytes[..1000]).await?.silence().await
    })
    .await;
    let mut settings = settings(vec![server.url()]);
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
        Server::start(&content, async |x| if x.request == 0 { x.good().await } else { x.silence().await })
            .await;
    let mut settings = settings(vec![server.url()]);
    settings.give_up_after = millis(3000);
    let error = Fetch::begin(settings).await.fails().await;
    assert!(error.contains("for 3.0 s; the last error: the server has been silent for too long"), "{error}");
    server.is_left().await;
}

#[tokio::test]
async fn all_die_and_one_comes_back() {
    let content = film(2_000_000);
    let one = Server::start(&content, async |x| x.paced(600_000).await).await;
    let two = Server::start(&content, async |x| x.paced(600_000).await).await;
    let film = open(settings(vec![one.url(), two.url()])).await;
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
    let back = Server::start_at(address, &content, Exchange::good).await;
    assert!(in_time(reading).await.unwrap().unwrap() == *content);
    assert!(back.record.requests() > 0);
    let waits = events(&mut notices).iter().filter(|event| matches!(event, Event::Waiting { .. })).count();
    assert!(waits < 5, "it says once that it waits");
}

#[tokio::test]
async fn all_die_for_good() {
    let content = film(2_000_000);
    let one = Server::start(&content, async |x| x.paced(400_000).await).await;
    let two = Server::start(&content, async |x| x.paced(400_000).await).await;
    let mut settings = settings(vec![one.url(), two.url()]);
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
