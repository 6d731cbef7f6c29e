//! The name of a stripe group, and what comes over its connections.

use std::ops::Range;

use ::http::HeaderValue;
use bytes::BytesMut;

/// The name of a path's group.
#[derive(Clone, Debug)]
pub(super) struct GroupName {
    /// The session's groups of this path that ended before it.
    pub(super) number: u32,
    pub(super) token: HeaderValue,
    /// Striping has worked on its path before.
    pub(super) has_worked: bool,
}

impl GroupName {
    /// Draws a token; `None`: the system has no randomness to give.
    pub(super) fn draw(number: u32) -> Option<Self> {
        let mut random = [0; 16];
        rustls::crypto::ring::default_provider().secure_random.fill(&mut random).ok()?;
        let token = HeaderValue::try_from(format!("{:032x}", u128::from_be_bytes(random))).ok()?;
        Some(Self { number, token, has_worked: false })
    }
}

/// What came over a member.
pub(super) enum Brought {
    Block { sequence: u64, offset: u64, payload: BytesMut },
    Synced { mark: u64, queued: Vec<Range<u64>> },
}
