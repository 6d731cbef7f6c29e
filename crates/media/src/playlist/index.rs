//! A segment index (ISO/IEC 14496-12, section 8.16.3): which parts of a file follow each other, and how long
//! each plays.

use anabranch_units::Bytes;

use super::listed::{MOST_LISTED, Place, Segment, play_time};

/// An index of more bytes is not read.
pub const LARGEST_INDEX: u64 = 1 << 20;

/// The segments that an index lists which is at this place, with their places in the same file; `None`: there
/// is none, or it leads to further ones.
pub fn segments_of_index(index: &[u8], place: &Place) -> Option<Vec<Segment>> {
    let mut rest = index;
    loop {
        let mut head = Fields(rest);
        let (size, kind) = (head.number(4)?, head.take(4)?);
        let size = match size {
            1 => head.number(8)?,
            size => size,
        };
        // One that is longer than what there is, or lasts to the end of the file, is none that can be read.
        let length = usize::try_from(size).ok().filter(|length| *length >= 8 && *length <= rest.len())?;
        if kind != b"sidx" {
            rest = &rest[length..];
            continue;
        }
        let header = rest.len() - head.0.len();
        let content = rest.get(header..length)?;
        let start = place.bytes.as_ref().map_or(0, |bytes| bytes.start);
        let end = Bytes::of(index.len() - rest.len() + length).get();
        return segments(Fields(content), start.checked_add(end)?, place);
    }
}

/// What a box lists whose first byte behind it is at `anchor`.
fn segments(mut fields: Fields<'_>, anchor: u64, place: &Place) -> Option<Vec<Segment>> {
    // Before 64-bit times there were those of 32 bits.
    let width = if fields.number(1)? == 0 { 4 } else { 8 };
    // Flags, and whose index it is.
    fields.take(3 + 4)?;
    let timescale = fields.number(4).filter(|scale| *scale > 0)?;
    let _earliest = fields.number(width)?;
    let mut start = anchor.checked_add(fields.number(width)?)?;
    fields.take(2)?;
    let count = usize::try_from(fields.number(2)?).ok()?;
    let mut segments = Vec::new();
    for _ in 0..count.min(MOST_LISTED) {
        let (reference, duration) = (fields.number(4)?, fields.number(4)?);
        fields.take(4)?;
        let (leads_to_another, size) = (reference >> 31 == 1, reference & 0x7FFF_FFFF);
        if leads_to_another || size == 0 {
            return None;
        }
        let end = start.checked_add(size)?;
        let place = Place { url: place.url.clone(), bytes: Some(start..end) };
        let seconds = Bytes::new(duration).as_f64() / Bytes::new(timescale).as_f64();
        segments.push(Segment { place, play_time: play_time(seconds) });
        start = end;
    }
    Some(segments)
}

/// What has not been read.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(field)
    }

    /// A big-endian number of at most eight bytes.
    fn number(&mut self, length: usize) -> Option<u64> {
        Some(self.take(length)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}
