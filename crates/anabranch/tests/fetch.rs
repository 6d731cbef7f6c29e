//! `anabranch fetch` against `anabranch serve`: where the bytes go, and how it ends.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::io::Read;
use std::process::Stdio;

use anabranch_testkit::Namespaces;
use serde_json::Value;

use common::{World, anabranch, ends_with, film, sha256, text};

#[test]
fn a_file_gets_its_name_from_the_url_and_is_not_overwritten() {
    let bytes = film(3_000_000, 1);
    let world = World::new(&bytes);
    let server = world.serve(&[]);
    let run = |options: &[&str]| world.fetch(options).arg(server.film()).output().unwrap();
    let said = ends_with(&run(&[]), 0);
    assert!(said.contains("film.bin is complete"), "{said}");
    assert_eq!(fs::read(world.path("film.bin")).unwrap(), bytes);
    assert!(!world.path("film.bin.anabranch").exists());

    let said = ends_with(&run(&[]), 1);
    assert!(said.contains("film.bin is there already; --force overwrites it"), "{said}");
    // A longer one, so that its end would show.
    fs::write(world.path("film.bin"), film(4_000_000, 2)).unwrap();
    ends_with(&run(&["--force", "--quiet"]), 0);
    assert_eq!(fs::read(world.path("film.bin")).unwrap(), bytes);
}

#[test]
fn digests_are_checked_in_a_file_and_on_the_way() {
    let bytes = film(1_000_000, 3);
    let world = World::new(&bytes);
    let server = world.serve(&[]);
    let right = format!("sha-256={}", sha256(&bytes));
    let wrong = format!("sha-256={}", sha256(b"another film"));
    for (output, digest, code) in [("a", &right, 0), ("b", &wrong, 1), ("-", &right, 0), ("-", &wrong, 1)] {
        let run = world.fetch(&["-o", output, "--digest", digest]).arg(server.film()).output().unwrap();
        let said = ends_with(&run, code);
        if code == 1 {
            let found = sha256(&bytes);
            assert!(said.contains(&found) && said.contains("not what was wanted"), "{said}");
        }
        if output == "-" {
            assert!(run.stdout == bytes, "the bytes differ");
        }
    }
    assert!(fs::read(world.path("b.mismatch")).unwrap() == bytes, "the file is kept under another name");
}

#[test]
fn standard_output_is_in_order_over_several_connections() {
    let bytes = film(8_000_000, 4);
    let world = World::new(&bytes);
    let server = world.serve(&["--shape-delay", "20ms"]);
    for options in [&["--no-stripe"][..], &[]] {
        let mut command =
            world.fetch(&["-o", "-", "--algorithm", "basic", "--connections", "4", "--memory", "2MiB"]);
        let run = command.args(options).arg(server.film()).output().unwrap();
        ends_with(&run, 0);
        assert!(run.stdout == bytes, "the bytes differ");
    }
}

/// How its number of connections grows on a lossy path is simulated; here is that it runs over real ones.
#[test]
fn mul_fetches_with_windows_left_to_tcp() {
    let bytes = film(8_000_000, 14);
    let world = World::new(&bytes);
    let server = world.serve(&["--shape-rate", "16M"]);
    let options = ["--algorithm", "mul", "--connections", "3", "--stats", "run.jsonl"];
    ends_with(&world.fetch(&options).arg(server.film()).output().unwrap(), 0);
    assert!(fs::read(world.path("film.bin")).unwrap() == bytes, "the bytes differ");
    let lines = world.stats("run.jsonl");
    let of = |event: &str| lines.iter().filter(|line| line["event"] == event).collect::<Vec<_>>();
    let is_mul = |line: &Value| line["why"].as_str().is_some_and(|why| why.contains("MULTFRC"));
    assert!(of("open").into_iter().chain(of("window")).any(is_mul), "{lines:?}");
    assert!(of("window").iter().all(|line| line["bytes"].is_null()), "{:?}", of("window"));
    let most = of("summary")[0]["connections_max"].as_u64();
    assert!((1..=3).contains(&most.unwrap()), "{most:?}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let world = World::new(&film(20_000_000, 5));
    let server = world.serve(&[]);
    let mut child = world
        .fetch(&["-o", "-"])
        .arg(server.film())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 1000];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let run = child.wait_with_output().unwrap();
    assert_eq!(ends_with(&run, 0), "");
}

#[test]
fn a_device_that_is_full_is_said_to_be() {
    let world = World::new(&film(1_000_000, 6));
    let server = world.serve(&[]);
    let run = world.fetch(&["-o", "/dev/full"]).arg(server.film()).output().unwrap();
    let said = ends_with(&run, 1);
    assert!(said.contains("cannot write to /dev/full") && said.contains("No space left"), "{said}");
    assert!(!std::path::Path::new("/dev/full.anabranch").exists());
}

/// On a file system of its own, which needs a namespace.
#[test]
fn a_full_disk_keeps_what_is_there() {
    let bytes = film(8_000_000, 7);
    let world = World::new(&bytes);
    let server = world.serve(&["--shape-rate", "20M"]);
    fs::create_dir(world.path("small")).unwrap();
    let script = "mount -t tmpfs -o size=4m none small && cd small && \"$program\" fetch \"$film\"; code=$?; \
                  mount -o remount,size=64m . 2>/dev/null || mount -o remount,size=64m ../small; \
                  cat film.bin.anabranch; \"$program\" fetch \"$film\" || exit 99; sha256sum \
                  film.bin; exit $code";
    let mounts = Namespaces::mounts("mount -t tmpfs -o size=4m none /mnt");
    let run = mounts
        .run(|command| common::script(command, world.directory.path(), script).env("film", server.film()));
    let Some(run) = run else { return };
    let said = ends_with(&run, 1);
    assert!(said.contains("No space left"), "{said}");
    assert!(said.contains("goes on with film.bin: "), "{said}");
    assert!(text(&run.stdout).contains(&sha256(&bytes)), "{}", text(&run.stdout));
}

#[test]
fn wrong_usage_is_told_before_anything_is_done() {
    let world = World::new(b"");
    for (options, hint) in [
        (&["-o", "-", "--stats", "-", "http://127.0.0.1:1/film"][..], "cannot both go to standard output"),
        (&["http://127.0.0.1:1/"], "name one with --output"),
        (&["-o", ".", "http://127.0.0.1:1/film"], "is a directory"),
        (&["--cf", "5", "http://127.0.0.1:1/film"], "--cf needs --algorithm advanced"),
        (&[], "<URL>"),
    ] {
        let said = ends_with(&world.fetch(options).output().unwrap(), 2);
        assert!(said.starts_with("anabranch: ") && said.contains(hint), "{said}");
    }
    assert_eq!(fs::read_dir(world.directory.path()).unwrap().count(), 1, "only what was there");
}

#[test]
fn failures_have_one_line_and_exit_code_1_and_leave_nothing() {
    let world = World::new(b"film");
    let server = world.serve(&[]);
    let missing = format!("{}none.bin", server.url);
    for (url, hint) in [
        (missing.as_str(), "404"),
        ("http://127.0.0.1:1/film", "refused"),
        ("http://none.invalid/film", "none.invalid"),
    ] {
        let run = world.fetch(&["-o", "x", "--timeout", "2s", url]).output().unwrap();
        let said = ends_with(&run, 1);
        assert!(said.starts_with("anabranch: ") && said.lines().count() == 1, "{said}");
        assert!(said.contains(hint), "{said}");
        assert!(!world.path("x").exists() && !world.path("x.anabranch").exists());
    }
}

#[test]
fn an_empty_film_is_a_film() {
    let world = World::new(b"");
    let server = world.serve(&[]);
    ends_with(&world.fetch(&[]).arg(server.film()).output().unwrap(), 0);
    assert_eq!(fs::read(world.path("film.bin")).unwrap(), b"");
}

#[test]
fn help_is_complete_and_plain_on_a_pipe() {
    for command in ["play", "fetch", "proxy", "serve", "demo", "completions"] {
        let run = anabranch().args([command, "--help"]).output().unwrap();
        ends_with(&run, 0);
        let help = text(&run.stdout);
        assert!(
            help.contains("Examples:") && help.contains("Exit codes:") && !help.contains('\x1b'),
            "{help}"
        );
    }
    let run = anabranch().arg("--version").output().unwrap();
    assert_eq!(text(&run.stdout), format!("anabranch {}\n", env!("CARGO_PKG_VERSION")));
    ends_with(&anabranch().output().unwrap(), 2);
}

#[test]
fn completions_know_the_options() {
    for shell in ["bash", "zsh", "fish"] {
        let run = anabranch().args(["completions", shell]).output().unwrap();
        ends_with(&run, 0);
        assert!(text(&run.stdout).contains("segment-size"), "{shell}");
    }
}
