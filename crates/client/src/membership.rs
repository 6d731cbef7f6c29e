//! The names of stripe groups, and what comes over their connections.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use ::http::HeaderValue;
use anabranch_film::control::PathId;
use bytes::BytesMut;

/// The stripe groups by path.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) names: BTreeMap<PathId, GroupName>,
    /// Paths on which striping does not work, whatever the server says.
    pub(super) refused: BTreeSet<PathId>,
    /// Paths on which it has worked.
    pub(super) worked: BTreeSet<PathId>,
}

/// The name of a path's group.
#[derive(Clone, Debug)]
pub(super) struct GroupName {
    /// The session's groups of this path that ended before it.
    pub(super) number: u32,
    pub(super) token: HeaderValue,
}

impl GroupName {
    /// Draws a token; `None`: the system has no randomness to give.
    pub(super) fn draw(number: u32) -> Option<Self> {
        let mut random = [0; 16];
        rustls::crypto::ring::default_provider().secure_random.fill(&mut random).ok()?;
        let token = HeaderValue::try_from(format!("{:032x}", u128::from_be_bytes(random))).ok()?;
        Some(Self { number, token })
    }
}

/// What came over a member.
pub(super) enum Brought {
    Block { sequence: u64, offset: u64, payload: BytesMut },
    Synced { mark: u64, queued: Vec<Range<u64>> },
}
