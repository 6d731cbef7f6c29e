//! What the tests of the testbed share.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs;
use std::path::Path;

use anabranch_testbed::isolate::{self, Options};
use anabranch_testbed::report::Summary;

/// The testbed's program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_anabranch-testbed");

/// Whether a run with these programs is possible here; says why not past the harness's capture.
pub fn possible(programs: &[&str]) -> bool {
    let missing = |name: &&&str| {
        !["/usr/bin", "/usr/sbin", "/bin"].iter().any(|dir| Path::new(dir).join(name).exists())
    };
    let reason = match (isolate::allowed(), programs.iter().find(missing)) {
        (Err(error), _) => error.to_string(),
        (_, Some(program)) => format!("{program} is not installed"),
        (Ok(()), None) => return true,
    };
    anabranch_testkit::skipped(reason);
    false
}

/// Options for a run into this directory.
pub fn options(out: &Path) -> Options {
    Options {
        program: PROGRAM.into(),
        anabranch: "anabranch".into(),
        out: out.into(),
        film: None,
        keep: false,
    }
}

/// Two nodes, and a link between them with these and more keys.
pub fn network(rate: &str, delay: &str, queue: u32, more: &str) -> String {
    format!(
        r#"
        [[node]]
        name = "origin"
        [[node]]
        name = "client"
        [[link]]
        name = "main"
        from = "origin"
        to = "client"
        rate = "{rate}"
        delay = "{delay}"
        queue = "{queue} packets"
        {more}
        "#
    )
}

/// Runs a scenario's first client.
pub fn run(directory: &Path, scenario: &str) -> Summary {
    run_with(directory, scenario, &options(&directory.join("out")))
}

/// The same with these options.
pub fn run_with(directory: &Path, scenario: &str, options: &Options) -> Summary {
    let file = directory.join("scenario.toml");
    fs::write(&file, scenario).unwrap();
    isolate::run(&file, None, options).unwrap()
}
