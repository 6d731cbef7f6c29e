//! The player that `--player` starts, when the program that started it is killed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{World, anabranch, film, wait_until};

/// Whether the process runs: one that nobody waited for has only its exit code left.
fn runs(id: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{id}/stat")) else { return false };
    let (_, state) = stat.rsplit_once(") ").unwrap();
    !state.starts_with(['Z', 'X'])
}

fn player(directory: &Path, words: &str) -> String {
    let note = directory.join("player").display().to_string();
    format!("sh -c \"({words}) > {note}.new && mv {note}.new {note}; exec sleep 1000\" {{}}")
}

/// What the player noted of itself.
fn note(directory: &Path) -> String {
    let note = directory.join("player");
    wait_until("the player", || note.exists());
    fs::read_to_string(note).unwrap().trim().to_owned()
}

#[track_caller]
fn assert_killed_with_its_player(mut command: Command, directory: &Path) {
    let mut program = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let id: u32 = note(directory).parse().unwrap();
    assert!(runs(id));
    program.kill().unwrap();
    program.wait().unwrap();
    wait_until("the end of the player", || !runs(id));
}

#[test]
fn a_killed_play_takes_its_player_along() {
    let world = World::new(&film(100_000, 1));
    let server = world.serve(&[]);
    let mut play = anabranch();
    play.args(["play", &server.film(), "--player", &player(world.directory.path(), "echo \\$\\$")]);
    assert_killed_with_its_player(play, world.directory.path());
}

#[test]
fn a_killed_receive_takes_its_player_along() {
    let world = World::new(&[]);
    let mut receive = anabranch();
    let player = player(world.directory.path(), "echo \\$\\$");
    receive.args(["receive", "--listen", "127.0.0.1:0", "--player", &player]);
    assert_killed_with_its_player(receive, world.directory.path());
}

#[test]
fn a_player_has_the_limit_of_open_files_that_it_would_have_by_itself() {
    let world = World::new(&film(100_000, 1));
    let server = world.serve(&[]);
    let note_of = |command: &mut Command| {
        let player = player(world.directory.path(), "ulimit -Sn");
        let mut play = command.args(["play", &server.film(), "--player", &player]).spawn().unwrap();
        let noted = note(world.directory.path());
        play.kill().unwrap();
        play.wait().unwrap();
        noted
    };
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -Sn 300 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_anabranch")]);
    assert_eq!(note_of(&mut limited), "300");
}
