//! Scripts in namespaces of their own, and programs that share one.

use std::process::{Command, Output, Stdio};

use crate::skipped;

/// Namespaces in which a script of bash is root: what it makes there is gone with it.
#[derive(Clone, Copy, Debug)]
pub struct Namespaces {
    kind: &'static str,
    possible: &'static str,
}

impl Namespaces {
    /// A network of its own. `possible` is a script that fails where something else that is needed is not
    /// there.
    pub const fn network(possible: &'static str) -> Self {
        Self { kind: "--net", possible }
    }

    /// Mounts of its own.
    pub const fn mounts(possible: &'static str) -> Self {
        Self { kind: "--mount", possible }
    }

    /// Runs a script, which `prepare` adds to the command as its last argument, with what else it needs;
    /// `None`, and why is told, where there are no such namespaces.
    ///
    /// # Panics
    /// The command cannot be started although such a one could.
    pub fn run(self, prepare: impl Fn(&mut Command) -> &mut Command) -> Option<Output> {
        let command = || {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user", self.kind, "bash", "-c"]).stdin(Stdio::null());
            command
        };
        match command().arg(self.possible).output() {
            Ok(output) if output.status.success() => {
                Some(prepare(&mut command()).output().expect("what could be started just now"))
            }
            Ok(output) => {
                let told = String::from_utf8_lossy(&output.stderr);
                skipped(format_args!("no namespaces here, or not what is needed in them: {}", told.trim()));
                None
            }
            Err(error) => {
                skipped(format_args!("no unshare here: {error}"));
                None
            }
        }
    }
}

/// A network of a test's own with loopback, for several programs, of which some are root; gone when dropped.
/// Only root can make one.
#[derive(Debug)]
pub struct Network(String);

impl Network {
    /// One that is empty but for loopback. Its name says what it is for.
    ///
    /// # Panics
    /// It cannot be made.
    pub fn new(purpose: &str) -> Self {
        let name = format!("anabranch-{purpose}-{}", std::process::id());
        let made = Command::new("ip").args(["netns", "add", &name]).status();
        assert!(made.is_ok_and(|status| status.success()), "ip makes no namespace {name}");
        let network = Self(name);
        let up = network.command("ip").args(["link", "set", "lo", "up"]).status();
        assert!(up.is_ok_and(|status| status.success()), "loopback does not come up");
        network
    }

    /// A program in it.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0, program]);
        command
    }

    /// Its name, as `ip` knows it.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // One that stays is empty.
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}
