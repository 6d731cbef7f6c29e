//! A script in namespaces of its own.

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
