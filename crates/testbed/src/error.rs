//! What can go wrong in a run.

use std::io;

/// Why a run could not be made; its text says what to do where something can be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario file is wrong: where, and what would be right.
    #[error("{0}")]
    Scenario(String),
    /// The kernel does not let this user make network namespaces.
    #[error(
        "network namespaces are not allowed here ({0}); run as root, or allow unprivileged user namespaces \
         (sysctl kernel.unprivileged_userns_clone=1)"
    )]
    NotAllowed(String),
    /// A program that the testbed needs failed, or is not there.
    #[error("{program}: {cause}")]
    Program {
        /// The program, with its arguments.
        program: String,
        /// What it said, or why it did not start.
        cause: String,
    },
    /// The path emulator refused.
    #[error("path emulator: {0}")]
    Emulator(String),
    /// A file or a system call.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// Wraps a system error with what was tried.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// Wraps an error of the path emulator.
    pub(crate) fn emulator(cause: impl std::fmt::Display) -> Self {
        Self::Emulator(cause.to_string())
    }
}
