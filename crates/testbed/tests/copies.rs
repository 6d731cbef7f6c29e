//! Several copies of a client share a path, and each has a player of its own.
//!
//! It needs network namespaces (root, or unprivileged user namespaces), nginx, ffmpeg and curl, and skips without,
//! saying so.
#![allow(clippy::unwrap_used, reason = "in a test a failed call is a failed test, also in its helpers")]

mod common;

use common::{network, possible, run};

/// A path for a film and a half, and so many curls.
fn scenario(copies: u32) -> String {
    let programs = format!(
        r#"
        [run]
        duration = "14s"
        [film]
        rate = "800k"
        duration = "10s"
        [[server]]
        node = "origin"
        [[client]]
        name = "curl"
        copies = {copies}
        command = ["curl", "-sS", "{{url1}}"]
        "#
    );
    network("1100k", "20ms", 30, "") + &programs
}

#[test]
fn two_viewers_stall_where_one_plays() {
    if !possible(&["nginx", "ffmpeg", "curl"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let alone = run(directory.path(), &scenario(1));
    assert_eq!((alone.viewers.len(), alone.playback.stalls, alone.complete), (1, 0, true), "{alone:?}");
    let both = run(directory.path(), &scenario(2));
    assert_eq!((both.viewers.len(), both.right, both.complete), (2, true, false), "{both:?}");
    assert!(both.viewers.iter().any(|viewing| viewing.stalls > 0), "{:?}", both.viewers);
    let longest = both.viewers.iter().map(|viewing| viewing.stall_s).fold(0.0, f64::max);
    assert_eq!(both.playback.stall_s, longest, "the summary tells of who fared worst");
    assert!(both.received_bytes > alone.film_bytes, "{both:?}");
    assert_eq!(both.film_bytes, alone.film_bytes * 2);
}
