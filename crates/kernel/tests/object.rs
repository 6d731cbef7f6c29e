//! The object in the repository is what its source gives.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use sha2::{Digest, Sha256};

const SOURCES: [&str; 10] = [
    "control.bpf.c",
    "fixed.h",
    "flow.h",
    "group.h",
    "group_control.h",
    "members.h",
    "multcp.h",
    "tcp.h",
    "tfwc.h",
    "weights.h",
];

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf")
}

/// The digest of the sources that `make bpf` writes beside the object.
fn digest() -> String {
    let mut digest = Sha256::new();
    for source in SOURCES {
        digest.update(fs::read(folder().join(source)).unwrap());
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_object_is_of_these_sources() {
    let kept = fs::read_to_string(folder().join("control.bpf.o.sources")).unwrap();
    assert_eq!(kept.trim(), digest(), "the sources have changed since: run 'make bpf'");
    let names: Vec<_> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let is_listed = |name: &str| SOURCES.contains(&name) || name.starts_with("control.bpf.o");
    for name in names {
        assert!(is_listed(&name.to_string_lossy()), "{}: not in the digest", name.display());
    }
}

/// With the same compiler the object comes out the same, byte by byte.
#[test]
fn the_sources_give_the_object() {
    let version = Command::new("clang").arg("--version").output();
    let version =
        version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let kept = fs::read_to_string(folder().join("control.bpf.o.compiler")).unwrap();
    if !version.starts_with(kept.trim()) {
        anabranch_testkit::skipped(format_args!(
            "the object was made by '{}', which is not here",
            kept.trim()
        ));
        return;
    }
    let fresh = tempfile::tempdir().unwrap();
    let object = fresh.path().join("control.bpf.o");
    let made = Command::new(folder().join("../build-object")).arg(&object).status().unwrap();
    assert!(made.success());
    assert!(
        fs::read(&object).unwrap() == fs::read(folder().join("control.bpf.o")).unwrap(),
        "the object in the repository is not what its sources give: run 'make bpf'"
    );
}
