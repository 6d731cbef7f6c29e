//! `anabranch fetch` of a film that is overwritten while it is got, or goes on being written.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use anabranch_testkit::{Answer, Asked, ScriptedServer, part, status, whole};
use std::fs::{self, File};
use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use common::{World, ends_with, film, saved, sha256, text, wait_until};

const LENGTH: usize = 3_000_000;

/// A server without ranges whose film is overwritten in place while it is read: what it sends is half of the
/// old one and half of the new one. What it says before and afterwards, and how it takes `HEAD`.
fn overwritten(
    before: &'static str,
    after: &'static str,
    later_length: usize,
    knows_head: bool,
) -> ScriptedServer {
    let (old, new) = (film(LENGTH, 1), film(LENGTH, 2));
    let mixed = [&old[..LENGTH / 2], &new[LENGTH / 2..]].concat();
    ScriptedServer::start(move |asked| {
        let said = if asked.number == 0 { before } else { after };
        let length = if asked.number == 0 { LENGTH } else { later_length };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{said}\r\n");
        if asked.head.starts_with("HEAD ") {
            return if knows_head {
                Answer::default().send(head)
            } else {
                status("405 Method Not Allowed", "")
            };
        }
        let body = if asked.number == 0 { &mixed } else { &new };
        Answer::default().send(head).send(&body[..length.min(LENGTH)])
    })
}

const DATED: &str = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nDate: Sun, 06 Nov 1994 09:00:00 GMT\r\n";
const LATER: &str = "Last-Modified: Sun, 06 Nov 1994 09:00:01 GMT\r\nDate: Sun, 06 Nov 1994 09:00:01 GMT\r\n";

#[test]
fn a_film_without_ranges_that_was_overwritten_while_it_was_read_is_no_success() {
    let world = World::new(b"");
    for (before, after, later_length, knows_head) in [
        (DATED, LATER, LENGTH, true),
        (DATED, LATER, LENGTH, false),
        ("ETag: \"one\"\r\n", "ETag: \"two\"\r\n", LENGTH, true),
        ("ETag: W/\"one\"\r\n", "ETag: W/\"two\"\r\n", LENGTH, false),
        ("", "", LENGTH - 1, true),
    ] {
        for output in ["film", "-"] {
            let origin = overwritten(before, after, later_length, knows_head);
            let run = world.fetch(&["--force", "--restart", "-o", output]).arg(&origin.url).output().unwrap();
            let said = ends_with(&run, 1);
            assert!(said.contains("the film changed on the server while it was got: it"), "{said}");
            assert_eq!(said.contains("--restart starts film over"), output == "film", "{said}");
        }
    }
}

#[test]
fn a_film_without_ranges_is_complete_where_nothing_speaks_against_it() {
    let world = World::new(b"");
    for (said, knows_head) in [(DATED, true), (DATED, false), ("ETag: \"one\"\r\n", true), ("", false)] {
        let origin = overwritten(said, said, LENGTH, knows_head);
        ends_with(&world.fetch(&["--force", "-o", "film"]).arg(&origin.url).output().unwrap(), 0);
        assert!(!world.path("film.anabranch").exists());
    }
    // Who told nothing is asked nothing more.
    let origin = ScriptedServer::start(|_| {
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nall\r\n0\r\n\r\n";
        head.to_vec()
    });
    ends_with(&world.fetch(&["--force", "-o", "film"]).arg(&origin.url).output().unwrap(), 0);
    assert_eq!((fs::read(world.path("film")).unwrap(), origin.heads().len()), (b"all".to_vec(), 1));
    // Nor does anything where the server has ended, or the digest says more than it.
    let bytes = film(LENGTH, 3);
    let origin =
        ScriptedServer::start(
            move |asked| if asked.number == 0 { whole(&bytes) } else { Answer::default().hang_up() },
        );
    ends_with(&world.fetch(&["--force", "-o", "film"]).arg(&origin.url).output().unwrap(), 0);
    let origin = overwritten("ETag: \"one\"\r\n", "ETag: \"two\"\r\n", LENGTH, true);
    let mixed = [&film(LENGTH, 1)[..LENGTH / 2], &film(LENGTH, 2)[LENGTH / 2..]].concat();
    let digest = format!("sha-256={}", sha256(&mixed));
    let run = world.fetch(&["--force", "-o", "film", "--digest", &digest]).arg(&origin.url).output().unwrap();
    ends_with(&run, 0);
}

/// What a server says as nginx does: another tag for every size, and all of it where the tag is another one.
fn as_it_is(asked: &Asked, film: &[u8]) -> Answer {
    let tag = format!("\"{}\"", film.len());
    let wanted = asked.head.lines().find_map(|line| line.strip_prefix("if-range: "));
    if wanted.is_some_and(|wanted| wanted != tag) {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: {tag}\r\n\r\n", film.len());
        return Answer::default().send(head).send(film);
    }
    part(asked, film, &format!("ETag: {tag}\r\n"))
}

/// A film that is longer at every request, up to all of it.
fn recording(bytes: &Arc<Vec<u8>>, from: usize) -> ScriptedServer {
    let bytes = bytes.clone();
    ScriptedServer::start(move |asked| {
        as_it_is(asked, &bytes[..bytes.len().min(from + asked.number * 10_000)])
    })
}

#[test]
fn a_recording_that_goes_on_is_got_as_it_was_and_the_same_command_gets_the_rest() {
    let world = World::new(b"");
    let bytes = Arc::new(film(9_000_000, 4));
    let origin = recording(&bytes, 8_000_000);
    let fetch = || world.fetch(&["-o", "film"]).arg(&origin.url).output().unwrap();
    let said = ends_with(&fetch(), 0);
    assert!(said.contains("it has grown to ") && said.contains("the same command gets the rest"), "{said}");
    assert!(fs::read(world.path("film")).unwrap() == bytes[..8_000_000], "the bytes differ");
    // Until the recording has ended.
    let mut runs = 0;
    while fs::metadata(world.path("film")).unwrap().len() < 9_000_000 && runs < 200 {
        ends_with(&fetch(), 0);
        runs += 1;
    }
    assert!(fs::read(world.path("film")).unwrap() == *bytes, "the bytes differ after {runs} runs");
    assert!(!world.path("film.anabranch").exists());
    // In order, to somebody who plays it.
    let origin = recording(&bytes, 8_000_000);
    let run = world.fetch(&["-o", "-"]).arg(&origin.url).output().unwrap();
    let said = ends_with(&run, 0);
    assert!(run.stdout == bytes[..8_000_000], "the bytes differ");
    assert!(said.contains("it has grown to "), "{said}");
}

#[test]
fn a_longer_film_in_place_of_the_one_that_is_got_is_not_taken_for_its_rest() {
    let world = World::new(b"");
    let (one, other) = (film(8_000_000, 5), film(9_000_000, 6));
    let origin =
        ScriptedServer::start(move |asked| as_it_is(asked, if asked.number < 4 { &one } else { &other }));
    let said = ends_with(&world.fetch(&["-o", "film"]).arg(&origin.url).output().unwrap(), 1);
    assert!(said.contains("it had 8000000 bytes and has 9000000 now, and the bytes from "), "{said}");
    assert!(said.contains("--restart starts film over"), "{said}");
}

#[test]
fn a_recording_at_a_server_of_ours_is_got_with_and_without_striping() {
    let bytes = film(10_000_000, 7);
    for options in [&[][..], &["--no-stripe"]] {
        let world = World::new(&bytes[..5_000_000]);
        let server = world.serve(&["--shape-rate", "20M"]);
        let child = world.fetch(options).arg(server.film()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("a saved state", || saved(&world.path("film.bin.anabranch"), 1_000_000));
        let mut recorded = File::options().append(true).open(world.path("served/film.bin")).unwrap();
        for piece in bytes[5_000_000..].chunks(500_000) {
            recorded.write_all(piece).unwrap();
            std::thread::sleep(Duration::from_millis(50));
        }
        let run = child.wait_with_output().unwrap();
        let said = ends_with(&run, 0);
        assert!(said.contains("it has grown to 9.5 MiB since"), "{options:?} {said}");
        assert!(fs::read(world.path("film.bin")).unwrap() == bytes[..5_000_000], "the bytes differ");
        let run = world.fetch(options).arg(server.film()).output().unwrap();
        let said = text(&run.stderr);
        assert!(said.contains("goes on with film.bin: 4.8 MiB are there"), "{said}");
        assert!(fs::read(world.path("film.bin")).unwrap() == bytes, "the bytes differ");
        assert!(!world.path("film.bin.anabranch").exists());
    }
}
