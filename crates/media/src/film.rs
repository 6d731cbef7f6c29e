//! What is known of a film, and what is wanted of it next.

use std::ops::Range;

use anabranch_units::{Bytes, Duration, Rate};

/// No request asks for more than this.
pub(super) const LARGEST_REQUEST: u64 = 1 << 20;

/// The format that holds a film's streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// ISO base media file format (ISO/IEC 14496-12), QuickTime included.
    Mp4,
    /// MPEG-2 transport stream (ISO/IEC 13818-1).
    MpegTs,
    /// Matroska (RFC 9559) and WebM.
    Matroska,
}

/// What a film says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaFacts {
    /// Its format.
    pub container: Container,
    /// How long it plays; `None` for a transport stream whose size is not known.
    pub duration: Option<Duration>,
    /// Its size over its duration, never zero.
    pub mean_rate: Rate,
    /// Bytes of an index at the film's end, which a player reads before it plays anything.
    pub index: Option<Range<u64>>,
}

/// What a [`MediaProbe`](super::MediaProbe) wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// These bytes of the film, at most 1 MiB; fewer when the film ends before.
    Need {
        /// Position of the first byte.
        offset: u64,
        /// Number of bytes, never zero.
        length: u64,
    },
    /// Nothing more. `None`: the film does not say how long it is, or in no way that is understood here.
    Done(Option<MediaFacts>),
}

impl Step {
    pub(super) const NOTHING: Self = Self::Done(None);
}

/// What is known of the film before any byte of it was seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Film {
    /// Its size in bytes.
    pub(super) size: Option<u64>,
}

/// Bytes of the film that were fetched.
#[derive(Clone, Copy)]
pub(super) struct Chunk<'a> {
    /// Position of the first byte.
    pub(super) offset: u64,
    /// The bytes.
    pub(super) bytes: &'a [u8],
}

impl Film {
    /// Asks for `length` bytes at `offset`, as far as the film goes; past its end there is nothing to learn.
    pub(super) fn need(self, offset: u64, length: u64) -> Step {
        let left = self.size.map_or(u64::MAX, |size| size.saturating_sub(offset));
        match length.min(left).min(LARGEST_REQUEST) {
            0 => Step::NOTHING,
            length => Step::Need { offset, length },
        }
    }

    /// The facts of a film that plays for `duration`.
    pub(super) fn facts(self, container: Container, duration: Duration, index: Option<Range<u64>>) -> Step {
        let mean_rate = Rate::of(Bytes::new(self.size.unwrap_or_default()), duration);
        if mean_rate.is_zero() || duration == Duration::MAX {
            return Step::NOTHING;
        }
        Step::Done(Some(MediaFacts { container, duration: Some(duration), mean_rate, index }))
    }
}

impl<'a> Chunk<'a> {
    /// The bytes from `offset` on, as far as they are here.
    pub(super) fn from(self, offset: u64) -> &'a [u8] {
        offset
            .checked_sub(self.offset)
            .and_then(|skipped| usize::try_from(skipped).ok())
            .and_then(|skipped| self.bytes.get(skipped..))
            .unwrap_or_default()
    }
}
