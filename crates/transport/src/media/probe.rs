//! The dialogue with the one who fetches, and what all containers share.

use std::ops::Range;

use units::{Bytes, Duration, Rate};

use super::{matroska, mp4, mpeg_ts};

/// What the first request asks for: enough for the head of an MP4 or Matroska film.
const HEAD: u64 = 64 << 10;
/// No request asks for more than this.
const LARGEST_REQUEST: u64 = 1 << 20;
/// After this many answers the probe gives up.
const MOST_ANSWERS: u32 = 16;

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

/// What a [`MediaProbe`] wants next.
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

/// Finds a film's duration and mean rate in a few small reads, at most 16 of at most 1 MiB.
///
/// ```
/// use transport::media::{MediaProbe, Step};
///
/// fn facts_of(film: &[u8]) -> Option<transport::media::MediaFacts> {
///     let mut probe = MediaProbe::new(Some(film.len() as u64), None);
///     loop {
///         match probe.next() {
///             Step::Need { offset, length } => {
///                 let range = offset as usize..(offset + length).min(film.len() as u64) as usize;
///                 probe.provide(offset, &film[range]);
///             }
///             Step::Done(facts) => return facts,
///         }
///     }
/// }
/// assert_eq!(facts_of(b"not a film"), None);
/// ```
#[derive(Debug)]
pub struct MediaProbe {
    film: Film,
    walk: Walk,
    next: Step,
    answers: u32,
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

#[derive(Debug)]
enum Walk {
    /// The format is not known yet.
    Start,
    Mp4(mp4::Walk),
    Matroska(matroska::Walk),
    MpegTs(mpeg_ts::Walk),
}

impl MediaProbe {
    /// A probe of a film of `total_size` bytes, if that is known, which its server calls `content_type`. What the
    /// server calls it decides only how the probe begins: the format is told by the film's own bytes.
    pub fn new(total_size: Option<u64>, content_type: Option<&str>) -> Self {
        let film = Film { size: total_size };
        let essence = content_type.and_then(|name| name.split(';').next()).unwrap_or_default().trim();
        let next = if essence.eq_ignore_ascii_case("text/html") || playlist_type(essence) {
            Step::NOTHING
        } else if essence.eq_ignore_ascii_case("video/mp2t") {
            film.need(0, LARGEST_REQUEST)
        } else {
            film.need(0, HEAD)
        };
        Self { film, walk: Walk::Start, next, answers: 0 }
    }

    /// What the probe wants now; the same until it was given.
    pub fn next(&self) -> Step {
        self.next.clone()
    }

    /// Gives the bytes from `offset` on that were asked for. Fewer than that mean that there are no more, none that
    /// they could not be had; bytes that were not asked for are ignored.
    pub fn provide(&mut self, offset: u64, bytes: &[u8]) {
        let Step::Need { offset: wanted, length } = self.next else { return };
        self.answers += 1;
        if offset != wanted {
            if self.answers >= MOST_ANSWERS {
                self.next = Step::NOTHING;
            }
            return;
        }
        let bytes = &bytes[..bytes.len().min(Bytes::new(length).as_usize())];
        let chunk = Chunk { offset, bytes };
        if matches!(self.walk, Walk::Start) {
            match recognise(bytes) {
                Some(walk) => self.walk = walk,
                None => {
                    self.next = Step::NOTHING;
                    return;
                }
            }
        }
        self.next = match &mut self.walk {
            Walk::Start => Step::NOTHING,
            Walk::Mp4(walk) => walk.step(chunk, self.film),
            Walk::Matroska(walk) => walk.step(chunk, self.film),
            Walk::MpegTs(walk) => walk.step(chunk, self.film),
        };
        if self.answers >= MOST_ANSWERS && matches!(self.next, Step::Need { .. }) {
            self.next = Step::NOTHING;
        }
    }
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

fn playlist_type(essence: &str) -> bool {
    super::playlist::PlaylistKind::of_type(essence).is_some()
}

/// Tells the format by the film's first bytes.
fn recognise(head: &[u8]) -> Option<Walk> {
    if mp4::begins(head) {
        Some(Walk::Mp4(mp4::Walk::default()))
    } else if matroska::begins(head) {
        Some(Walk::Matroska(matroska::Walk::default()))
    } else if mpeg_ts::begins(head) {
        Some(Walk::MpegTs(mpeg_ts::Walk::default()))
    } else {
        None
    }
}
