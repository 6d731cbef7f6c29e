//! Why a stream cannot go on, and what helps.

use std::sync::Arc;

/// The stream cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct EngineError {
    /// Why, for the user.
    pub message: Arc<str>,
    /// What helps.
    pub cure: Cure,
}

/// What helps when a stream could not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cure {
    /// The same again, later or when something here was put right.
    Again,
    /// Another URL of the same film: this one is refused, or leads to something that cannot be used.
    OtherUrl,
    /// To begin at the start: the film is another one now, and what has come is of the old one.
    StartOver,
}

impl EngineError {
    pub(super) fn new(message: impl Into<Arc<str>>, cure: Cure) -> Self {
        Self { message: message.into(), cure }
    }

    /// Nobody wants the film any more.
    pub(super) fn ended() -> Self {
        Self::new("the stream was ended", Cure::Again)
    }

    /// A byte came again and is another one.
    pub(super) fn another_byte(position: u64) -> Self {
        Self::new(
            format!(
                "the byte at {position} came a second time and is another one: the film changed on the \
                 server, \
                 or not all servers have the same one"
            ),
            Cure::StartOver,
        )
    }
}
