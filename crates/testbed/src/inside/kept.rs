//! A live client's program, which may be killed in mid-stream, and is started again where its client says so.

use std::path::PathBuf;
use std::process::ExitStatus;

use anabranch_units::Duration;

use crate::Error;
use crate::programs::{Program, Stdout};

/// One that runs, or waits until it is started again.
pub(super) struct Kept {
    namespace: String,
    command: Vec<String>,
    log: PathBuf,
    program: Program,
    /// How long after its end it is started again.
    restart: Option<Duration>,
    /// Since when it is gone.
    gone: Option<Duration>,
    /// How often it was started again.
    pub(super) restarts: usize,
    /// CPU time of those that were killed.
    used_s: f64,
}

impl Kept {
    /// Starts it; what it says goes to the file `log`.
    pub(super) fn start(
        namespace: String,
        command: Vec<String>,
        log: PathBuf,
        restart: Option<Duration>,
    ) -> Result<Self, Error> {
        let program = Program::start(&namespace, &command, Stdout::Log, &log)?;
        Ok(Self { namespace, command, log, program, restart, gone: None, restarts: 0, used_s: 0.0 })
    }

    /// Waits until this UDP port of its namespace is taken.
    pub(super) fn wait_bound(&mut self, port: u16) -> Result<(), Error> {
        self.program.wait_bound(port)
    }

    /// Ends it at once, as a crash would.
    pub(super) fn kill(&mut self) {
        self.used_s += self.program.cpu_seconds();
        self.program.kill();
    }

    /// Starts it again, killed if it runs.
    pub(super) fn start_again(&mut self) -> Result<(), Error> {
        self.kill();
        self.program = Program::start(&self.namespace, &self.command, Stdout::Log, &self.log)?;
        self.restarts += 1;
        self.gone = None;
        Ok(())
    }

    /// Starts it again when it is time to. Answers whether it is gone for good.
    pub(super) fn tend(&mut self, now: Duration) -> Result<bool, Error> {
        if self.program.ended().is_none() {
            return Ok(false);
        }
        let Some(restart) = self.restart else { return Ok(true) };
        let gone = *self.gone.get_or_insert(now);
        if now - gone >= restart {
            self.start_again()?;
        }
        Ok(false)
    }

    /// How it has ended, `None` while it runs.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.program.ended()
    }

    /// CPU time of all that ran, without those that ended by themselves.
    pub(super) fn cpu_seconds(&self) -> f64 {
        self.used_s + self.program.cpu_seconds()
    }

    /// Asks it to end, and insists after two seconds.
    pub(super) fn end(&mut self) {
        self.program.end();
    }
}
