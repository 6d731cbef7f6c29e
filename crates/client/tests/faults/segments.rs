//! Films that are segments of a playlist: their connections go on, and their first bytes are not waited for.

use anabranch_client::{PlaylistSegment, Settings};
use anabranch_film::auto::Lasting;
use anabranch_film::session::Pace;
use anabranch_http::Pool;
use anabranch_testkit::{ScriptedServer, film};
use anabranch_units::Time;

use crate::viewer::{comes_right, in_time, millis, open, read, settings};

fn segment(server: &ScriptedServer, pool: &Pool) -> Settings {
    Settings {
        pace: Pace::Media(None),
        pool: Some(pool.clone()),
        segment: Some(PlaylistSegment::alone(millis(4000), millis(0))),
        ..settings(&[server.film_url()])
    }
}

/// Connections come back when what they brought is there.
async fn is_back(pool: &Pool) {
    in_time(async {
        while pool.is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_connection_goes_on_from_segment_to_segment() {
    let content = film(300_000);
    let server = ScriptedServer::of(&content, |x| x.good());
    let pool = Pool::default();
    for _ in 0..5 {
        comes_right(segment(&server, &pool), &content).await;
        is_back(&pool).await;
    }
    assert_eq!(server.connections().len(), 1);
}

#[tokio::test]
async fn a_connection_is_for_its_owner_alone() {
    let content = film(100_000);
    let server = ScriptedServer::of(&content, |x| x.good());
    let pool = Pool::default();
    for owner in [1, 2, 1] {
        comes_right(segment(&server, &pool.of(owner)), &content).await;
        is_back(&pool).await;
    }
    assert_eq!(server.connections().len(), 2);
}

#[tokio::test]
async fn a_connection_that_its_server_ended_meanwhile_is_no_failure() {
    let content = film(50_000);
    let server = ScriptedServer::of(&content, |x| x.good().hang_up());
    let pool = Pool::default();
    for _ in 0..3 {
        comes_right(segment(&server, &pool), &content).await;
    }
    assert_eq!(server.connections().len(), 3);
}

#[tokio::test]
async fn first_bytes_reach_a_reader_before_the_rest_of_their_answer() {
    let content = film(200_000);
    let begun = content[..1000].to_vec();
    let server = ScriptedServer::of(&content, move |x| match x.number {
        0 => x.good_head().send(begun.clone()).silence(),
        _ => x.good(),
    });
    let film = open(segment(&server, &Pool::default())).await;
    let mut reader = film.reader(0..u64::MAX);
    let first = in_time(reader.next()).await.unwrap().unwrap();
    assert!(first == content[..1000] && server.requests() <= 2, "{}", first.len());
    // The rest is asked for elsewhere once it has not come for a while.
    assert!(read(&mut reader).await.unwrap() == content[1000..]);
}

#[tokio::test]
async fn a_first_answer_that_breaks_off_is_asked_for_again() {
    let content = film(200_000);
    let begun = content[..1000].to_vec();
    let server = ScriptedServer::of(&content, move |x| match x.number {
        0 => x.good_head().send(begun.clone()).hang_up(),
        _ => x.good(),
    });
    comes_right(segment(&server, &Pool::default()), &content).await;
}

/// A connection that has nothing to do any more brings the next segment while the last bytes of this one come.
#[tokio::test]
async fn what_is_idle_at_the_end_is_for_others_at_once() {
    let content = film(600_000);
    // The first connection is asked for the first bytes, and brings them slowly; the second one the rest.
    let server = ScriptedServer::of(&content, |x| match x.connection {
        0 => x.paced(100_000),
        _ => x.good(),
    });
    let pool = Pool::default();
    let control = Lasting::default();
    let known = |ahead| {
        let control = Some((control.clone(), Time::ZERO));
        let told = PlaylistSegment { most: 2, control, ..PlaylistSegment::alone(millis(4000), ahead) };
        Settings { segment: Some(told), ..segment(&server, &pool) }
    };
    let film = open(known(millis(4900))).await;
    let mut reader = film.reader(0..u64::MAX);
    in_time(film.lends()).await;
    assert_eq!((pool.len(), film.have().contains(&(0..600_000))), (1, false));
    assert!(read(&mut reader).await.unwrap() == content);
}
