//! `anabranch fetch` from servers that are busy, refuse, change their film or know little of HTTP; and what
//! it keeps secret.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use anabranch_testkit::{ScriptedServer, part, status, whole};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;

use common::{World, ends_with, film, sha256, text};

fn busy_once(retry_after: &'static str) -> ScriptedServer {
    let bytes = film(300_000, 1);
    ScriptedServer::start(move |asked| match asked.number {
        0 => status("503 Service Unavailable", retry_after),
        _ => part(asked, &bytes, "ETag: \"one\"\r\n"),
    })
}

#[test]
fn a_server_that_is_busy_at_first_is_asked_again() {
    let world = World::new(b"");
    for retry_after in ["Retry-After: 1\r\n", ""] {
        let origin = busy_once(retry_after);
        let run = world.fetch(&["--force", "-o", "film"]).arg(&origin.url).output().unwrap();
        let said = ends_with(&run, 0);
        assert!(said.contains("503 (Service Unavailable); asks again after 1.0 s"), "{said}");
        assert!(fs::read(world.path("film")).unwrap() == film(300_000, 1), "the bytes differ");
    }
    let origin = busy_once("Retry-After: 60\r\n");
    let run = world.fetch(&["-o", "late", "--timeout", "20s"]).arg(&origin.url).output().unwrap();
    let said = ends_with(&run, 1);
    assert!(said.contains("after 60.0 s, which is not within --timeout 20.0 s"), "{said}");
    assert_eq!(origin.heads().len(), 1);
    assert!(!world.path("late").exists());
}

/// A film behind signed URLs: those of path /1 are refused after some requests.
fn signed(bytes: &Arc<Vec<u8>>) -> ScriptedServer {
    let bytes = bytes.clone();
    ScriptedServer::start(move |asked| match &asked.target {
        target if target.starts_with("/1") && asked.number > 3 => status("403 Forbidden", ""),
        target => part(asked, &bytes, &format!("ETag: \"{}\"\r\n", &target[1..2])),
    })
}

#[test]
fn a_url_that_has_expired_is_replaced_by_a_fresh_one() {
    let world = World::new(b"");
    let bytes = Arc::new(film(8_000_000, 2));
    let origin = signed(&bytes);
    let url = |name: &str| format!("{}{name}/film.bin?signature=SECRET", origin.url);
    let fetch = |name: &str| world.fetch(&["--connections", "1"]).arg(url(name)).output().unwrap();
    let said = ends_with(&fetch("1"), 1);
    assert!(said.contains("403 (Forbidden)") && !said.contains("same command"), "{said}");
    assert!(
        said.contains("--output film.bin with another URL of the same film goes on from there"),
        "{said}"
    );
    let state = fs::read_to_string(world.path("film.bin.anabranch")).unwrap();
    assert!(!state.contains("SECRET"), "{state}");
    // Refused from the beginning, what is there stays.
    let said = ends_with(&fetch("1"), 1);
    assert!(said.contains("with another URL of the same film goes on with what is there"), "{said}");
    let said = ends_with(&fetch("2"), 0);
    assert!(said.contains("goes on with film.bin: "), "{said}");
    assert!(
        said.contains("its entity tag was \"1\" and is \"2\" now, but samples of the content agree"),
        "{said}"
    );
    assert!(fs::read(world.path("film.bin")).unwrap() == *bytes, "the bytes differ");
    assert!(!world.path("film.bin.anabranch").exists());
}

#[test]
fn another_film_behind_the_fresh_url_is_refused_and_what_is_there_stays() {
    let world = World::new(b"");
    let bytes = Arc::new(film(8_000_000, 3));
    let origin = signed(&bytes);
    let first = format!("{}1/film.bin", origin.url);
    ends_with(&world.fetch(&["--connections", "1"]).arg(first).output().unwrap(), 1);
    let (before, state) = (fs::read(world.path("film.bin")).unwrap(), world.path("film.bin.anabranch"));
    let known = fs::read_to_string(&state).unwrap();
    let mut other = bytes.to_vec();
    // Behind what the opening asks for, and within what is there.
    other[70_000..90_000].fill(0);
    let other = signed(&Arc::new(other));
    let said = ends_with(&world.fetch(&[]).arg(format!("{}2/film.bin", other.url)).output().unwrap(), 1);
    assert!(said.contains("the film has changed since the last run") && said.contains("--restart"), "{said}");
    assert!(fs::read(world.path("film.bin")).unwrap() == before, "what was there is touched");
    assert_eq!(fs::read_to_string(&state).unwrap(), known, "it still is the first one's");
}

#[test]
fn a_film_that_changes_on_the_way_is_not_said_to_go_on() {
    let world = World::new(b"");
    let bytes = film(8_000_000, 4);
    let origin = ScriptedServer::start(move |asked| {
        part(asked, &bytes, if asked.number > 3 { "ETag: \"two\"\r\n" } else { "ETag: \"one\"\r\n" })
    });
    let run = world.fetch(&["-o", "film"]).arg(&origin.url).output().unwrap();
    let said = ends_with(&run, 1);
    assert!(said.contains("its entity tag was \"one\" and is \"two\" now"), "{said}");
    assert!(said.contains("--restart starts film over") && !said.contains("goes on"), "{said}");
}

#[test]
fn secrets_of_urls_stay_out_of_all_that_is_written() {
    let world = World::new(b"");
    let bytes = film(2_000_000, 5);
    let origin = ScriptedServer::start(move |asked| match asked.target.as_str() {
        "/film.bin?token=SECRET" => status("302 Found", "Location: /there/film.bin?signature=SECRET\r\n"),
        _ if asked.number > 3 => status("404 Not Found", ""),
        _ => part(asked, &bytes, ""),
    });
    let url = format!("{}film.bin?token=SECRET", origin.url.replace("://", "://user:PASSWORD@"));
    let run = world.fetch(&["--verbose", "--stats", "stats", "-o", "film", &url]).output().unwrap();
    let said = ends_with(&run, 1);
    let state = world.path("film.anabranch");
    for (what, text) in [
        ("standard error", said),
        ("the statistics", fs::read_to_string(world.path("stats")).unwrap()),
        ("the state", fs::read_to_string(&state).unwrap()),
    ] {
        assert!(!text.contains("SECRET") && !text.contains("PASSWORD"), "{what}: {text}");
        assert!(text.contains("there/film.bin?..."), "{what}: {text}");
    }
    assert_eq!(fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn what_is_mistyped_is_shown_without_its_secrets() {
    let world = World::new(b"");
    for options in [
        &["htp://user:PASSWORD@host/film?token=SECRET"][..],
        &["user:PASSWORD@host/film"],
        &["--header", "Authorization SECRET", "http://host/film"],
    ] {
        let said = ends_with(&world.fetch(options).output().unwrap(), 2);
        assert!(!said.contains("PASSWORD") && !said.contains("SECRET"), "{said}");
        assert!(said.contains("invalid value '"), "{said}");
    }
}

#[test]
fn a_link_to_nowhere_is_not_followed() {
    let world = World::new(&film(1000, 6));
    let server = world.serve(&[]);
    symlink(world.path("elsewhere"), world.path("film.bin")).unwrap();
    let said = ends_with(&world.fetch(&[]).arg(server.film()).output().unwrap(), 1);
    assert!(said.contains("cannot write film.bin"), "{said}");
    assert!(!world.path("elsewhere").exists());
}

#[test]
fn a_file_with_the_wrong_digest_does_not_keep_its_name() {
    let bytes = film(200_000, 7);
    let world = World::new(&bytes);
    let server = world.serve(&[]);
    fs::write(world.path("film.bin.mismatch"), "of an earlier run").unwrap();
    let digest = format!("sha-256={}", sha256(b"another"));
    let run = world.fetch(&["--digest", &digest]).arg(server.film()).output().unwrap();
    let said = ends_with(&run, 1);
    assert!(said.contains("not what was wanted") && said.contains("kept as film.bin.mismatch.1"), "{said}");
    assert!(!world.path("film.bin").exists() && !world.path("film.bin.anabranch").exists());
    assert!(fs::read(world.path("film.bin.mismatch.1")).unwrap() == bytes, "the bytes differ");
    assert_eq!(fs::read(world.path("film.bin.mismatch")).unwrap(), b"of an earlier run");
}

#[test]
fn a_server_without_ranges_is_named_and_an_empty_film_needs_none() {
    let world = World::new(b"");
    for (length, is_told) in [(1000, true), (0, false)] {
        let bytes = film(length, 8);
        let origin = ScriptedServer::start(move |_| whole(&bytes));
        let run = world.fetch(&["-o", "-"]).arg(format!("{}film?x", origin.url)).output().unwrap();
        let said = text(&run.stderr);
        let told = format!("{}film?... knows no ranges", origin.url);
        assert_eq!(said.contains(&told), is_told, "{said}");
        assert_eq!(said.contains("ranges"), is_told, "{said}");
    }
}

#[test]
fn who_may_not_read_it_is_told_how_to_say_who_one_is() {
    let world = World::new(b"");
    let origin = ScriptedServer::start(|_| status("401 Unauthorized", "WWW-Authenticate: Basic\r\n"));
    let said = ends_with(&world.fetch(&["-o", "film"]).arg(&origin.url).output().unwrap(), 1);
    assert!(said.contains("http://USER:PASSWORD@HOST/") && said.contains("--header"), "{said}");
}

#[test]
fn the_proxy_of_the_environment_is_used_for_other_machines() {
    let bytes = film(300_000, 9);
    let world = World::new(b"");
    let served = bytes.clone();
    let proxy = ScriptedServer::start(move |asked| part(asked, &served, "ETag: \"one\"\r\n"));
    let through = |url: &str, no_proxy: &str| {
        let mut command = world.fetch(&["-o", "film", "--force", "--connect-timeout", "5s", url]);
        command.env("http_proxy", proxy.url.replace("://", "://user:PASSWORD@")).env("no_proxy", no_proxy);
        command.output().unwrap()
    };
    ends_with(&through("http://film.example/a/film.bin?x=1", ""), 0);
    assert!(fs::read(world.path("film")).unwrap() == bytes, "the bytes differ");
    let heads = proxy.heads();
    for head in &heads {
        assert!(head.starts_with("GET http://film.example/a/film.bin?x=1 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("\r\nhost: film.example\r\n"), "{head}");
        assert!(head.contains("proxy-authorization: Basic dXNlcjpQQVNTV09SRA=="), "{head}");
    }
    // This machine, and what is left out, is reached without it.
    let direct = ScriptedServer::start(|_| status("404 Not Found", ""));
    ends_with(&through(&direct.url, ""), 1);
    let said = ends_with(&through("http://film.invalid/film.bin", ".invalid"), 1);
    assert!(said.contains("cannot find the host film.invalid"), "{said}");
    assert_eq!((direct.heads().len(), proxy.heads().len()), (1, heads.len()));
}

#[test]
fn a_cookie_that_comes_with_the_film_is_shown_from_then_on() {
    let bytes = film(8_000_000, 11);
    let world = World::new(b"");
    let served = bytes.clone();
    let origin = ScriptedServer::start(move |asked| match asked.number {
        0 => part(asked, &served, "ETag: \"one\"\r\nSet-Cookie: visit=1; Path=/\r\n"),
        _ if !asked.head.contains("visit=") => status("403 Forbidden", ""),
        1 => part(asked, &served, "ETag: \"one\"\r\nSet-Cookie: visit=2; Path=/; HttpOnly\r\n"),
        _ => part(asked, &served, "ETag: \"one\"\r\n"),
    });
    let run = world
        .fetch(&["-o", "film", "--connections", "1", "-H", "Cookie: mine=1"])
        .arg(&origin.url)
        .output()
        .unwrap();
    ends_with(&run, 0);
    assert!(fs::read(world.path("film")).unwrap() == bytes, "the bytes differ");
    let heads = origin.heads();
    assert!(heads[1].contains("cookie: mine=1; visit=1\r\n"), "{heads:?}");
    assert!(heads.last().unwrap().contains("cookie: mine=1; visit=2\r\n"), "{heads:?}");
}

#[test]
fn a_cookie_that_is_set_on_the_way_is_shown_at_every_request() {
    let bytes = film(2_000_000, 10);
    let world = World::new(b"");
    let served = bytes.clone();
    let origin = ScriptedServer::start(move |asked| {
        if asked.head.contains("pass=SECRET") {
            part(asked, &served, "ETag: \"one\"\r\n")
        } else {
            status("302 Found", &format!("Set-Cookie: pass=SECRET; Path=/\r\nLocation: {}\r\n", asked.target))
        }
    });
    let run = world.fetch(&["-o", "film", "-v", "-H", "Cookie: mine=1"]).arg(&origin.url).output().unwrap();
    let said = ends_with(&run, 0);
    assert!(!said.contains("SECRET"), "{said}");
    assert!(fs::read(world.path("film")).unwrap() == bytes, "the bytes differ");
    let heads = origin.heads();
    assert!(heads.len() > 2 && heads[0].contains("cookie: mine=1\r\n"), "{heads:?}");
    assert!(heads[1..].iter().all(|head| head.contains("cookie: mine=1; pass=SECRET\r\n")), "{heads:?}");
}
