//! A browser before a page under test.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// Chromium without a window; it ends when this is dropped.
pub struct Browser {
    child: Child,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// At this address; where there is no Chromium the test says that it was skipped.
    pub fn open(url: &str) -> Option<Self> {
        if Command::new("chromium").arg("--version").output().is_err() {
            anabranch_testkit::skipped("there is no chromium (Debian's package chromium)");
            return None;
        }
        let profile = tempfile::tempdir().unwrap();
        let child = Command::new("chromium")
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--disable-background-networking",
            ])
            // The names of hosts far away, which are here; a name that is not that of this machine makes a
            // page foreign.
            .arg("--host-resolver-rules=MAP *.example 127.0.0.1")
            .args(["--autoplay-policy=no-user-gesture-required", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(url)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Some(Self { child, _profile: profile })
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}
