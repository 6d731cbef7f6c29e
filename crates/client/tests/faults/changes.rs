//! Films that change on the server while they are got: never a file of two versions.

use std::sync::Arc;
use std::time::Duration;

use anabranch_client::{Cure, Storage};
use anabranch_testkit::{Answer, Asked, ScriptedServer, film};

use crate::viewer::{Fetch, in_time, open, read, settings};

/// A range with these lines in its head, of a film that has become another one from request `from` on.
fn of_version(x: &Asked, lines: &[&str], changed: bool) -> Answer {
    let mut all = x.lines_for(x.within())[..2].to_vec();
    all.extend(lines.iter().map(ToString::to_string));
    let body = x.bytes().iter().map(|byte| if changed { !byte } else { *byte }).collect::<Vec<_>>();
    Answer::head("206 Partial Content", &all).send(body)
}

const OLD: &str = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nDate: Sun, 06 Nov 1994 09:00:00 GMT";
const NEW: &str = "Last-Modified: Sun, 06 Nov 1994 08:59:00 GMT\r\nDate: Sun, 06 Nov 1994 09:00:00 GMT";

#[tokio::test]
async fn a_film_that_changes_on_the_way_is_not_mixed_whatever_its_server_tells_of_it() {
    for (then, now) in [
        ("ETag: W/\"one\"", "ETag: W/\"two\""),
        ("ETag: \"one\"", "ETag: W/\"two\""),
        (OLD, NEW),
        ("ETag: W/\"one\"\r\nLast-Modified: x", "ETag: W/\"two\""),
    ] {
        let content = film(900_000);
        let server = ScriptedServer::of(&content, move |x| {
            if x.number < 2 { of_version(x, &[then], false) } else { of_version(x, &[now], true) }
        });
        let fetch = Fetch::begin(settings(&[server.film_url()])).await;
        let error = in_time(fetch.film.complete()).await.unwrap_err();
        assert!(error.message.contains("the film changed on the server: its "), "{then} {now}: {error}");
        assert_eq!(error.cure, Cure::StartOver);
    }
}

#[tokio::test]
async fn a_server_that_dates_every_answer_anew_still_brings_the_film() {
    let content = film(900_000);
    let server = ScriptedServer::of(&content, |x| {
        let date = format!("Sun, 06 Nov 1994 08:49:{:02} GMT", x.number.min(59));
        of_version(x, &[&format!("Last-Modified: {date}\r\nDate: {date}")], false)
    });
    Fetch::begin(settings(&[server.film_url()])).await.comes_right(&content).await;
}

/// Half of the film, and then the connection is cut.
fn half(x: &Asked) -> Answer {
    let (length, half) = (x.film.len(), x.film[..x.film.len() / 2].to_vec());
    Answer::head("200 OK", &[format!("Content-Length: {length}")]).send(half).reset()
}

#[tokio::test]
async fn a_film_without_ranges_and_validators_that_changed_before_the_second_try_is_not_mixed() {
    let content = film(1_000_000);
    let server = ScriptedServer::of(&content, |x| {
        if x.number == 0 {
            return half(x);
        }
        let other: Vec<u8> = x.film.iter().map(|byte| !byte).collect();
        Answer::head("200 OK", &[format!("Content-Length: {}", other.len())]).send(other)
    });
    let error = Fetch::begin(settings(&[server.film_url()])).await.fails().await;
    assert!(error.contains("came a second time and is another one"), "{error}");
}

#[tokio::test]
async fn a_film_without_ranges_that_became_shorter_does_not_end_in_the_middle_of_the_old_one() {
    let content = film(1_000_000);
    let server = ScriptedServer::of(&content, |x| {
        let (length, whole) = if x.number == 0 { (600_000, false) } else { (400_000, true) };
        let part = x.film[..length].to_vec();
        let x = Answer::head("200 OK", &["Transfer-Encoding: chunked".into()]);
        let x = x.send(format!("{length:x}\r\n")).send(part);
        if whole {
            return x.send("\r\n0\r\n\r\n");
        }
        // A reset throws away what has not left yet.
        x.wait(Duration::from_secs(2)).reset()
    });
    let error = Fetch::begin(settings(&[server.film_url()])).await.fails().await;
    assert!(error.contains("it had 600000 bytes and has 400000 now"), "{error}");
}

#[tokio::test]
async fn two_replicas_that_differ_where_no_sample_was_taken_are_noticed_where_both_bring_it() {
    let content = film(800_000);
    let mut other = content.to_vec();
    other[10] = !other[10];
    let server = ScriptedServer::of(&content, Asked::good);
    // A file of which a part is there already, from the other one.
    let file = tempfile::tempfile().unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &other[..200_000], 0).unwrap();
    let mut have = anabranch_protocol::ranges::RangeSet::new();
    have.insert(0..200_000);
    let storage = Storage::File { file: Arc::new(file), have, in_doubt: false };
    let opened = in_time(anabranch_client::Film::open(settings(&[server.film_url()]), storage)).await;
    let error = opened.err().expect("it is refused").to_string();
    assert!(error.contains("the byte at 10 came a second time"), "{error}");
}

#[tokio::test]
async fn a_file_that_may_be_of_another_film_is_compared_before_it_is_gone_on_with() {
    let content = film(2_000_000);
    for (changed_at, goes_on) in [(None, true), (Some(1_000_000), false), (Some(999_999), false)] {
        let server = ScriptedServer::of(&content, Asked::good);
        let mut there = content[..1_000_000].to_vec();
        if let Some(byte) = changed_at.and_then(|at| there.get_mut(at)) {
            *byte = !*byte;
        }
        let file = tempfile::tempfile().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &there, 0).unwrap();
        let mut have = anabranch_protocol::ranges::RangeSet::new();
        have.insert(0..1_000_000);
        let storage = Storage::File { file: Arc::new(file), have, in_doubt: true };
        let opened = in_time(anabranch_client::Film::open(settings(&[server.film_url()]), storage)).await;
        match opened {
            Ok(film) => {
                assert!(goes_on || changed_at == Some(1_000_000), "{changed_at:?}");
                in_time(film.complete()).await.unwrap();
            }
            Err(error) => {
                assert!(!goes_on, "{error}");
                assert!(error.to_string().contains("the bytes from 937500 on are other ones"), "{error}");
            }
        }
    }
}

/// The beginning of an MP4 file whose index is at its end: the container has to be asked there.
#[tokio::test]
async fn an_answer_that_the_probing_gave_up_is_no_part_of_the_film() {
    let mut content = film(2_000_000).to_vec();
    content[..24].copy_from_slice(b"\0\0\0\x18ftypisom\0\0\0\0isommp42");
    content[24..32].copy_from_slice(&[0, 0x1d, 0, 0, b'm', b'd', b'a', b't']);
    let server = ScriptedServer::of(&content, |x| {
        if x.number != 1 {
            return x.good();
        }
        let page = "<html>not now</html>".repeat(5_000);
        Answer::head("500 Internal Server Error", &[format!("Content-Length: {}", page.len())]).send(page)
    });
    let mut settings = settings(&[server.film_url()]);
    settings.probe_media = true;
    let film = open(settings).await;
    assert!(server.requests() > 1, "the container was asked");
    assert!(read(&mut film.reader(0..u64::MAX)).await.unwrap() == *content, "wrong bytes");
}
