//! `anabranch demo` does what it says, within a minute.

use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn the_demonstration_shows_it() {
    let began = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_anabranch")).arg("demo").output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}\n{said}", began.elapsed());
    let row = |name: &str| -> Vec<String> {
        let line =
            said.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_else(|| panic!("{said}"));
        line.split_whitespace().rev().take(2).map(str::to_owned).collect()
    };
    assert_eq!(row("every byte right"), ["yes", "yes"], "{said}");
    let stalls = row("stalls");
    assert_eq!(stalls[0], "0", "{said}");
    assert_ne!(stalls[1], "0", "{said}");
}
