//! How a command ends when it is not done.

use std::fmt;
use std::io;

use crate::stop::Signal;

/// Something that a program cannot go on with: what to tell the user, and the exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    message: String,
    exit_code: u8,
    /// Lines below the message.
    details: String,
}

impl Failure {
    fn new(message: impl fmt::Display, exit_code: u8) -> Self {
        Self { message: message.to_string(), exit_code, details: String::new() }
    }

    /// It did not work (exit code 1). The message is one line, says what went wrong, and where it helps what
    /// to do.
    pub fn failed(message: impl fmt::Display) -> Self {
        Self::new(message, 1)
    }

    /// It was asked for in a way that makes no sense (exit code 2).
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::new(message, 2)
    }

    /// A signal ended it (exit code 130 for SIGINT, 143 for SIGTERM).
    pub fn stopped(signal: Signal, message: impl fmt::Display) -> Self {
        Self::new(message, signal.exit_code())
    }

    /// Writing to standard output failed. A reader that has seen enough is no failure: the program ends
    /// without a word.
    pub fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::new("", 0)
        } else {
            Self::failed(format_args!("cannot write to standard output: {error}"))
        }
    }

    /// The same with more to tell.
    #[must_use]
    pub fn with(self, more: impl fmt::Display) -> Self {
        Self { message: format!("{}; {more}", self.message), ..self }
    }

    /// The same with lines below the message.
    #[cfg(feature = "sim")]
    #[must_use]
    pub fn with_details(self, details: &str) -> Self {
        Self { details: details.into(), ..self }
    }

    /// The lines below the message.
    pub fn details(&self) -> &str {
        &self.details
    }

    /// What to tell the user; empty: nothing.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What the program ends with.
    pub fn exit_code(&self) -> u8 {
        self.exit_code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
