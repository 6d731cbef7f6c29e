//! What happens on this side: readers that go away or take nothing, and a disk that is full.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use anabranch_client::{Film, Storage};
use anabranch_protocol::ranges::RangeSet;
use anabranch_testkit::{Asked, ScriptedServer, film};
use anabranch_units::Bytes;

use crate::viewer::{events, in_time, is_left, open, read, settings};

#[tokio::test]
async fn a_full_disk() {
    let Ok(full) = File::options().read(true).write(true).open("/dev/full") else { return };
    // What is read from this device is zeros: so the film begins with them.
    let mut content = film(2_000_000).to_vec();
    content[..65_536].fill(0);
    let server = ScriptedServer::of(&content, Asked::good);
    let storage =
        Storage::File { file: Arc::new(full.try_clone().unwrap()), have: RangeSet::new(), in_doubt: false };
    let error = match in_time(Film::open(settings(&[server.film_url()]), storage)).await {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it opens"),
    };
    assert!(error.starts_with("cannot write: No space left on device"), "{error}");
    // The same when the film's beginning is there already.
    let have = std::iter::once(0..65_536).fold(RangeSet::new(), |mut have, range| {
        have.insert(range);
        have
    });
    let film = in_time(Film::open(
        settings(&[server.film_url()]),
        Storage::File { file: Arc::new(full), have, in_doubt: false },
    ))
    .await;
    let error = match film {
        Err(error) => error.to_string(),
        Ok(film) => in_time(film.complete()).await.unwrap_err().to_string(),
    };
    assert!(error.starts_with("cannot write: No space left on device"), "{error}");
    is_left(&server).await;
}

#[tokio::test]
async fn nobody_reads_any_more() {
    let content = film(20_000_000);
    let server = ScriptedServer::of(&content, |x| x.paced(2_000_000));
    let film = open(settings(&[server.film_url()])).await;
    let mut reader = film.reader(0..u64::MAX);
    for _ in 0..4 {
        in_time(reader.next()).await.unwrap().unwrap();
    }
    drop(reader);
    // What is on its way still comes.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let requests = server.requests();
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(server.requests(), requests, "nothing is asked for on nobody's behalf");
    let got = read(&mut film.reader(19_000_000..u64::MAX)).await.unwrap();
    assert!(got == content[19_000_000..]);
}

#[tokio::test]
async fn a_player_that_pauses_costs_nothing_and_goes_on() {
    let content = film(6_000_000);
    // Closes what is idle at once, as some servers do.
    let server = ScriptedServer::of(&content, |x| if x.number > 8 { x.good().hang_up() } else { x.good() });
    let mut settings = settings(&[server.film_url()]);
    settings.memory = Bytes::mib(2);
    settings.give_up_after = crate::viewer::millis(1000);
    let film = open(settings).await;
    let mut notices = film.notices();
    let mut reader = film.reader(0..u64::MAX);
    let mut got = in_time(reader.next()).await.unwrap().unwrap().to_vec();
    tokio::time::sleep(Duration::from_millis(700)).await;
    let before = (server.connections().len(), server.requests());
    events(&mut notices);
    tokio::time::sleep(Duration::from_millis(2000)).await;
    assert_eq!((server.connections().len(), server.requests()), before);
    let told = events(&mut notices);
    assert!(told.len() < 5, "{told:?}");
    got.extend(read(&mut reader).await.unwrap());
    assert!(got == *content);
}
