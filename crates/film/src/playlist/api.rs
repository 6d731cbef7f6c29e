//! What a session of a playlist is told.

use anabranch_units::{Bytes, Duration, Rate, Ratio};

/// A rung, or a rendition of another kind of media.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrackId(pub u32);

/// A kind of media, of which one rung is played at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

/// A segment, by its place in its track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId {
    /// Its track.
    pub track: TrackId,
    /// Its number, which it keeps when the playlist moves on (HLS: the media sequence number, RFC 8216,
    /// section 3).
    pub number: u64,
}

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// How much play time is fetched ahead.
    pub ahead: Duration,
    /// Most bytes that are kept of what was fetched ahead.
    pub memory: Bytes,
    /// Most segments that are kept, of all kinds of media together: each is open as long.
    pub segments: usize,
    /// Whoever has asked for nothing for so long is gone.
    pub forgotten_after: Duration,
    /// Nothing is fetched ahead of a player that adapts where the paths give so many times what it plays: a rung is
    /// near where it is not so.
    pub near: Ratio,
    /// Most connections to a host.
    pub most: usize,
    /// What is there is delivered at so many times the rate of the paths: a limit at the mean would hold back
    /// what comes faster for a moment.
    pub headroom: Ratio,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            ahead: Duration::from_secs(30),
            memory: Bytes::mib(32),
            segments: 12,
            forgotten_after: Duration::from_secs(15),
            near: Ratio::new(2, 1),
            most: 6,
            headroom: Ratio::new(6, 5),
        }
    }
}

/// What a player says of itself with a request (CTA-5004). Nobody vouches for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// How much it has to play.
    pub buffer: Option<Duration>,
    /// What it asks for next.
    pub next: Option<SegmentId>,
    /// What the highest rung needs that it may go to.
    pub top: Option<Rate>,
}
