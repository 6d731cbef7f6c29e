//! MP4: the duration is in the movie header (`mvhd`), for a fragmented film in the movie extends header
//! (`mehd`).
//!
//! A film's boxes are walked here, header by header, because they lie far apart and only the headers are
//! fetched; the two boxes that matter are decoded by `re_mp4`. Its own reader of whole files cannot be used
//! on what a server sends: it indexes its sample tables without a check.

use std::io::Cursor;
use std::ops::Range;

use anabranch_units::{Bytes, Duration};
use re_mp4::{MehdBox, MvhdBox, ReadBox};

use super::film::{Chunk, Container, Film, Step};

/// One read of a box header, with the small boxes that follow it.
const READ: u64 = 4 << 10;
/// A header box is some hundred bytes long; a longer one is not read.
const LONGEST_HEADER_BOX: u64 = 1 << 10;
/// What `re_mp4` takes for the header of a box whose payload it reads.
const SHORT_HEADER: u64 = 8;

/// The way along the boxes of a film.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// Where the next box begins.
    position: u64,
    /// The movie box.
    movie: Option<Range<u64>>,
    /// Units per second of the film's clock, once the movie header was read.
    timescale: Option<u32>,
    /// Whether media data lay before the movie box.
    media_first: bool,
}

/// A box: its type, and where its payload lies.
struct BoxHeader {
    kind: [u8; 4],
    payload: Range<u64>,
}

/// Whether a film begins like this: with a box that can be a film's first.
pub(super) fn begins(head: &[u8]) -> bool {
    const FIRST: [&[u8]; 8] = [b"ftyp", b"styp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot"];
    head.get(4..8).is_some_and(|kind| FIRST.contains(&kind))
}

impl Walk {
    pub(super) fn step(&mut self, chunk: Chunk<'_>, film: Film) -> Step {
        let Some(size) = film.size else { return Step::NOTHING };
        while let Some(header) = BoxHeader::read(chunk.from(self.position), self.position, size) {
            let Some(header) = header else { return Step::NOTHING };
            if self.movie.as_ref().is_some_and(|movie| self.position >= movie.end) {
                // The movie box ended without a duration: a live film, or one that is not described.
                return Step::NOTHING;
            }
            let start = self.position;
            self.position = header.payload.end;
            match (&header.kind, &self.movie) {
                (b"moov", None) => {
                    self.movie = Some(start..header.payload.end.min(size));
                    self.position = header.payload.start;
                }
                (b"mdat", None) => self.media_first = true,
                (b"mvex", Some(_)) => self.position = header.payload.start,
                (b"mvhd" | b"mehd", Some(movie)) => {
                    let Some(payload) = header.whole_payload(chunk) else {
                        self.position = start;
                        break;
                    };
                    let index = self.media_first.then(|| movie.clone());
                    if let Some(duration) = self.duration(&header.kind, payload) {
                        return film.facts(Container::Mp4, duration, index);
                    }
                }
                _ => {}
            }
        }
        if self.position == chunk.offset {
            // These very bytes were fetched, and they are too few.
            return Step::NOTHING;
        }
        film.need(self.position, READ)
    }

    /// The duration that a header box tells, if it does.
    fn duration(&mut self, kind: &[u8; 4], payload: &[u8]) -> Option<Duration> {
        let (units, version) = if kind == b"mvhd" {
            let header: MvhdBox = decode(payload)?;
            self.timescale = Some(header.timescale);
            (header.duration, header.version)
        } else {
            let header: MehdBox = decode(payload)?;
            (header.fragment_duration, header.version)
        };
        // All ones: not known (ISO/IEC 14496-12, 8.2.2.3).
        let unknown = if version == 0 { u64::from(u32::MAX) } else { u64::MAX };
        let timescale = self.timescale.filter(|timescale| *timescale > 0)?;
        let duration = Duration::from_secs_f64(Bytes::new(units).as_f64() / f64::from(timescale));
        (units != unknown && !duration.is_zero()).then_some(duration)
    }
}

/// Has `re_mp4` decode the payload of a box. It takes the eight bytes before the payload for the box's
/// header, so they are put there, whatever the header was.
fn decode<T>(payload: &[u8]) -> Option<T>
where
    T: for<'r> ReadBox<&'r mut Cursor<Vec<u8>>>,
{
    let whole = [&[0; 8], payload].concat();
    let size = Bytes::of(whole.len()).get();
    let mut reader = Cursor::new(whole);
    reader.set_position(SHORT_HEADER);
    T::read_box(&mut reader, size).ok()
}

impl BoxHeader {
    /// Reads the header at `position` of a film of `size` bytes. The outer `None`: it is not here; the inner:
    /// it is wrong.
    fn read(bytes: &[u8], position: u64, size: u64) -> Option<Option<Self>> {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (kind, rest) = rest.split_first_chunk::<4>()?;
        let (header, length) = match u32::from_be_bytes(*length) {
            // To the end of the film.
            0 => (SHORT_HEADER, size.saturating_sub(position)),
            1 => (16, u64::from_be_bytes(*rest.first_chunk::<8>()?)),
            length => (SHORT_HEADER, u64::from(length)),
        };
        let end = position.checked_add(length).filter(|_| length >= header);
        Some(end.map(|end| Self { kind: *kind, payload: position + header..end }))
    }

    /// The payload, when it is short and all of it is here.
    fn whole_payload<'a>(&self, chunk: Chunk<'a>) -> Option<&'a [u8]> {
        let length = self.payload.end - self.payload.start;
        let length = Bytes::new(length.min(LONGEST_HEADER_BOX)).as_usize();
        chunk.from(self.payload.start).get(..length)
    }
}
