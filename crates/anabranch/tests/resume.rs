//! A run that ends before its time, and the one that goes on.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::process::{Child, Stdio};

use rustix::process::Signal;

use common::{Server, World, ends_with, film, kill, saved, sha256, wait_until};

const SIZE: usize = 10_000_000;

/// A run that has got so much of the film and goes on getting it.
fn started(world: &World, server: &Server, least: u64) -> Child {
    let child = world.fetch(&[]).arg(server.film()).stderr(Stdio::piped()).spawn().unwrap();
    let state = world.path("film.bin.anabranch");
    wait_until("a saved state", || saved(&state, least));
    child
}

fn slow(world: &World) -> Server {
    world.serve(&["--shape-rate", "20M"])
}

#[test]
fn a_killed_run_goes_on_where_it_was() {
    let bytes = film(SIZE, 1);
    let world = World::new(&bytes);
    let server = slow(&world);
    let mut child = started(&world, &server, 1_000_000);
    kill(&child, Signal::KILL);
    child.wait().unwrap();
    let digest = format!("sha-256={}", sha256(&bytes));
    let run = world.fetch(&["--digest", &digest, "--stats", "s"]).arg(server.film()).output().unwrap();
    let said = ends_with(&run, 0);
    assert!(said.contains("goes on with film.bin"), "{said}");
    let got = world.stats("s").last().unwrap()["bytes"].as_u64().unwrap();
    assert!(got > 0 && got < 9_100_000, "{got} bytes were got again");
    assert!(!world.path("film.bin.anabranch").exists());
}

#[test]
fn signals_end_it_in_order() {
    let bytes = film(SIZE, 2);
    let world = World::new(&bytes);
    let server = slow(&world);
    for (signal, code, least) in [(Signal::INT, 130, 1_000_000), (Signal::TERM, 143, 6_000_000)] {
        let child = started(&world, &server, least);
        kill(&child, signal);
        let said = ends_with(&child.wait_with_output().unwrap(), code);
        assert!(said.contains("the same command goes on from there"), "{said}");
    }
    ends_with(&world.fetch(&[]).arg(server.film()).output().unwrap(), 0);
    assert!(fs::read(world.path("film.bin")).unwrap() == bytes, "the bytes differ");
}

#[test]
fn a_film_that_has_changed_is_noticed() {
    let world = World::new(&film(SIZE, 3));
    let server = slow(&world);
    let mut child = started(&world, &server, 1_000_000);
    kill(&child, Signal::KILL);
    child.wait().unwrap();
    let before = fs::read(world.path("film.bin")).unwrap();
    // Another film of the same size: only the validator tells.
    let other = film(SIZE, 4);
    fs::write(world.path("served/new"), &other).unwrap();
    fs::rename(world.path("served/new"), world.path("served/film.bin")).unwrap();
    let said = ends_with(&world.fetch(&[]).arg(server.film()).output().unwrap(), 1);
    assert!(said.contains("the film has changed") && said.contains("--restart"), "{said}");
    assert!(fs::read(world.path("film.bin")).unwrap() == before, "what was there is touched");
    assert!(world.path("film.bin.anabranch").exists());
    ends_with(&world.fetch(&["--restart"]).arg(server.film()).output().unwrap(), 0);
    assert!(fs::read(world.path("film.bin")).unwrap() == other, "the bytes differ");
}

#[test]
fn a_film_that_comes_at_once_leaves_no_state_of_an_unfinished_run() {
    let world = World::new(b"film");
    let server = world.serve(&[]);
    for run in 0..40 {
        ends_with(&world.fetch(&["--force"]).arg(server.film()).output().unwrap(), 0);
        assert!(!world.path("film.bin.anabranch").exists(), "after run {run}");
    }
}

#[test]
fn two_runs_do_not_write_one_file() {
    let world = World::new(&film(SIZE, 5));
    let server = slow(&world);
    let mut child = started(&world, &server, 1_000_000);
    let said = ends_with(&world.fetch(&[]).arg(server.film()).output().unwrap(), 1);
    assert!(said.contains("another program writes film.bin"), "{said}");
    kill(&child, Signal::KILL);
    child.wait().unwrap();
}

#[test]
fn a_damaged_state_is_refused() {
    let bytes = film(100_000, 6);
    let world = World::new(&bytes);
    let server = world.serve(&[]);
    fs::write(world.path("film.bin"), b"half").unwrap();
    fs::write(world.path("film.bin.anabranch"), b"{\"version\":1").unwrap();
    let said = ends_with(&world.fetch(&[]).arg(server.film()).output().unwrap(), 1);
    assert!(said.contains("film.bin.anabranch") && said.contains("--restart"), "{said}");
    ends_with(&world.fetch(&["--restart"]).arg(server.film()).output().unwrap(), 0);
    assert!(fs::read(world.path("film.bin")).unwrap() == bytes, "the bytes differ");
}

#[test]
fn a_server_that_dies_and_returns_is_waited_for() {
    let bytes = film(SIZE, 7);
    let world = World::new(&bytes);
    let mut server = slow(&world);
    let child = started(&world, &server, 1_000_000);
    let address = server.url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    assert_eq!(server.stop(Signal::KILL), None);
    std::thread::sleep(std::time::Duration::from_millis(500));
    let _again = Server::start(&world.path("served"), &["--http", &address]);
    ends_with(&child.wait_with_output().unwrap(), 0);
    assert!(fs::read(world.path("film.bin")).unwrap() == bytes, "the bytes differ");
}
