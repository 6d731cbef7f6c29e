//! The dialogue with the one who fetches.

use anabranch_units::Bytes;

use super::film::{Chunk, Film, LARGEST_REQUEST, Step};
use super::{matroska, mp4, mpeg_ts};

/// What the first request asks for: enough for the head of an MP4 or Matroska film.
const HEAD: u64 = 64 << 10;
/// After this many answers the probe gives up.
const MOST_ANSWERS: u32 = 16;

/// Finds a film's duration and mean rate in a few small reads, at most 16 of at most 1 MiB.
///
/// ```
/// use anabranch_media::{MediaProbe, Step};
///
/// fn facts_of(film: &[u8]) -> Option<anabranch_media::MediaFacts> {
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

#[derive(Debug)]
enum Walk {
    /// The format is not known yet.
    Start,
    Mp4(mp4::Walk),
    Matroska(matroska::Walk),
    MpegTs(mpeg_ts::Walk),
}

impl MediaProbe {
    /// A probe of a film of `total_size` bytes, if that is known, which its server calls `content_type`. What
    /// the server calls it decides only how the probe begins: the format is told by the film's own bytes.
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

    /// Gives the bytes from `offset` on that were asked for. Fewer than that mean that there are no more,
    /// none that they could not be had; bytes that were not asked for are ignored.
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
