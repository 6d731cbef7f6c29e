//! Matroska and WebM (RFC 9559): the duration is in the Info element, the place of the Cues in the SeekHead.
//!
//! The segment's children are walked here, because a reader of whole files wants all of them; what is in Info
//! and SeekHead is decoded by `mkv_element` from a slice that holds the element and nothing else.

use anabranch_units::{Bytes, Duration};
use mkv_element::io::blocking_impl::{ReadElement, ReadFrom};
use mkv_element::prelude::{Cluster, Cues, Ebml, Element, Header, Info, SeekHead, Segment};

use super::film::{Chunk, Container, Film, Step};

/// One read of an element's header, with the small elements that follow it.
const READ: u64 = 16 << 10;
/// Info and SeekHead are some hundred bytes long; a longer one is not read.
const LONGEST_ELEMENT: u64 = 256 << 10;
/// The longest header: an identifier of four bytes and a size of eight.
const LONGEST_HEADER: u64 = 12;

/// The way along the elements of a film.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// Where the next element begins.
    position: u64,
    /// Where the segment's payload begins, once it was entered: positions in the SeekHead count from there.
    segment: Option<u64>,
    /// Where the SeekHead says that the Cues are.
    cues: Option<u64>,
    /// What Info says, once it was read.
    duration: Option<Duration>,
}

/// Whether a film begins like this: with the header of an EBML document.
pub(super) fn begins(head: &[u8]) -> bool {
    head.starts_with(&[0x1a, 0x45, 0xdf, 0xa3])
}

impl Walk {
    pub(super) fn step(&mut self, chunk: Chunk<'_>, film: Film) -> Step {
        if let Some(duration) = self.duration {
            return self.finish(duration, chunk, film);
        }
        while let Some((header, payload)) = header_at(self.position, chunk) {
            let size = header.size.value;
            match (header.id, self.segment) {
                (Ebml::ID, None) => {}
                (Segment::ID, None) => {
                    // Its size does not matter (a live film's is not known): what is wanted lies before the
                    // media.
                    self.segment = Some(payload);
                    self.position = payload;
                    continue;
                }
                (Cluster::ID, _) | (_, None) => return Step::NOTHING,
                (SeekHead::ID | Info::ID, Some(segment)) => {
                    if size > LONGEST_ELEMENT {
                        return Step::NOTHING;
                    }
                    let mut bytes = chunk.from(payload);
                    if Bytes::of(bytes.len()).get() < size {
                        if self.position == chunk.offset {
                            return Step::NOTHING;
                        }
                        return film.need(self.position, LONGEST_HEADER + size);
                    }
                    if header.id == SeekHead::ID {
                        self.cues = SeekHead::read_element(&header, &mut bytes)
                            .ok()
                            .and_then(|seek_head| position_of_cues(&seek_head)?.checked_add(segment));
                    } else {
                        let info = Info::read_element(&header, &mut bytes).ok();
                        let Some(duration) = info.as_ref().and_then(duration) else { return Step::NOTHING };
                        self.duration = Some(duration);
                        return self.look_for_cues(duration, film);
                    }
                }
                _ => {}
            }
            let Some(end) = payload.checked_add(size) else { return Step::NOTHING };
            self.position = end;
        }
        if self.position == chunk.offset {
            // These very bytes were fetched, and they are too few.
            return Step::NOTHING;
        }
        film.need(self.position, READ)
    }

    /// Cues in the second half of the film are worth a look; others arrive early anyway.
    fn look_for_cues(&self, duration: Duration, film: Film) -> Step {
        match self.cues.filter(|cues| film.size.is_some_and(|size| *cues > size / 2 && *cues < size)) {
            Some(cues) => film.need(cues, LONGEST_HEADER),
            None => film.facts(Container::Matroska, duration, None),
        }
    }

    /// Ends with the Cues as the film's index, when they are where the SeekHead said.
    fn finish(&self, duration: Duration, chunk: Chunk<'_>, film: Film) -> Step {
        let index = self.cues.and_then(|cues| {
            let (header, payload) = header_at(cues, chunk)?;
            let end = payload.checked_add(header.size.value)?;
            (header.id == Cues::ID && film.size.is_some_and(|size| end <= size)).then_some(cues..end)
        });
        film.facts(Container::Matroska, duration, index)
    }
}

/// The element header at `position`, if it is here, and where its payload begins.
fn header_at(position: u64, chunk: Chunk<'_>) -> Option<(Header, u64)> {
    let bytes = chunk.from(position);
    let mut rest = bytes;
    let header = Header::read_from(&mut rest).ok()?;
    Some((header, position.checked_add(Bytes::of(bytes.len() - rest.len()).get())?))
}

/// Where the Cues are, counted from the segment's payload (RFC 9559, section 5.1.1).
fn position_of_cues(seek_head: &SeekHead) -> Option<u64> {
    const CUES: [u8; 4] = [0x1c, 0x53, 0xbb, 0x6b];
    seek_head.seek.iter().find(|seek| seek.seek_id[..] == CUES).map(|seek| *seek.seek_position)
}

/// Duration in units of the timestamp scale, which is in nanoseconds (RFC 9559, section 5.1.2).
fn duration(info: &Info) -> Option<Duration> {
    let units = **info.duration.as_ref()?;
    let seconds = units * Bytes::new(*info.timestamp_scale).as_f64() / 1e9;
    Some(Duration::from_secs_f64(seconds)).filter(|duration| !duration.is_zero())
}
