//! What is on a terminal, and what is kept from it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use common::{World, ends_with, film, text, wait_until};

/// A terminal without anybody in front of it.
struct Terminal {
    /// The side where a person would sit.
    person: File,
    /// The side of the programs.
    programs: File,
}

impl Terminal {
    fn new(columns: u16) -> Self {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&person).unwrap();
        unlockpt(&person).unwrap();
        let name = ptsname(&person, Vec::new()).unwrap().into_string().unwrap();
        let programs = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let terminal = Self { person: person.into(), programs };
        terminal.resize(columns);
        terminal
    }

    fn resize(&self, columns: u16) {
        tcsetwinsize(&self.person, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })
            .unwrap();
    }

    fn for_a_program(&self) -> Stdio {
        self.programs.try_clone().unwrap().into()
    }
}

#[test]
fn media_is_not_written_to_a_terminal() {
    let world = World::new(&film(1000, 1));
    let server = world.serve(&[]);
    let terminal = Terminal::new(80);
    let run = |options: &[&str]| {
        let mut command = world.fetch(options);
        command.arg(server.film()).stdout(terminal.for_a_program()).stderr(Stdio::piped());
        command.spawn().unwrap().wait_with_output().unwrap()
    };
    let said = ends_with(&run(&["-o", "-"]), 2);
    assert!(said.contains("terminal") && said.contains("--output FILE"), "{said}");
    // The same by another name.
    let said = ends_with(&run(&["-o", "/dev/stdout"]), 1);
    assert!(said.contains("terminal"), "{said}");
    ends_with(&run(&["-o", "film"]), 0);
}

#[test]
fn a_terminal_that_becomes_narrower_keeps_no_stale_line() {
    let world = World::new(&film(4_000_000, 1));
    let server = world.serve(&["--shape-rate", "800k"]);
    let terminal = Terminal::new(120);
    let mut command = world.fetch(&["-o", "film"]);
    let mut run = command.arg(server.film()).stderr(terminal.for_a_program()).spawn().unwrap();
    let seen = Arc::new(Mutex::new(String::new()));
    let (mut person, sees) = (terminal.person.try_clone().unwrap(), seen.clone());
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = person.read(&mut bytes) {
            sees.lock().unwrap().push_str(&text(&bytes[..length]));
        }
    });
    let now = || seen.lock().unwrap().clone();
    wait_until("the progress", || now().contains("left"));
    terminal.resize(20);
    // From here on nothing wider than that is drawn.
    let before = now().len();
    let redrawn = || now()[before..].contains("\x1b[1A");
    wait_until("a row above the last to be cleared", redrawn);
    run.kill().unwrap();
    run.wait().unwrap();
    let all = now();
    let (upto, _) = all[before..].split_once("\x1b[1A").unwrap();
    let line = all[..before + upto.len()].rsplit("\x1b[2K").find(|line| line.contains("left")).unwrap();
    // As many rows as the line had become are cleared: the cursor goes up one by one.
    let folds = (line.trim_end_matches('\r').chars().count() - 1) / 20;
    assert!(folds >= 2, "{line:?}");
    assert_eq!(all[before..].matches("\x1b[1A").count(), folds, "{:?}", &all[before..]);
}
