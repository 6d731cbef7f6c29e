//! The frames of `anabranch-stripe/1`: encode, and decode from whatever has arrived so far.
//!
//! Every frame begins with type (1 byte), flags (1), reserved (2, zero) and the length of the rest (4);
//! integers are big endian.

use std::ops::Range;

use super::{MAX_BLOCK_BYTES, MAX_QUEUED_RANGES, QueueEnd};

/// Length of the part that all frames have in common.
pub const HEADER_BYTES: usize = 8;
/// What a DATA frame has in front of its payload, the common part included.
pub const DATA_HEADER_BYTES: usize = HEADER_BYTES + 16;
/// No frame is longer than this: a DATA frame with a full block.
pub const MAX_FRAME_BYTES: usize = DATA_HEADER_BYTES + MAX_BLOCK_BYTES as usize;

const DATA: u8 = 1;
const WANT: u8 = 2;
const CANCEL: u8 = 3;
const END: u8 = 4;
const SYNC: u8 = 5;
const SYNCED: u8 = 6;

/// Flag of WANT: before everything that is queued.
const FRONT: u8 = 1;

/// One frame; a DATA frame borrows its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Server to client: a block of the file.
    Data {
        /// Number of the block in its group, from 0; it rises on every connection.
        sequence: u64,
        /// Position of the payload in the file.
        offset: u64,
        /// 1 to [`MAX_BLOCK_BYTES`] bytes.
        payload: &'a [u8],
    },
    /// Client to server: send these bytes.
    Want {
        /// Not empty.
        range: Range<u64>,
        /// Where in the queue.
        priority: QueueEnd,
    },
    /// Client to server: do not send these bytes, unless they are on their way.
    Cancel {
        /// Not empty.
        range: Range<u64>,
    },
    /// Client to server: close the group.
    End,
    /// Client to server: say on every connection what is still queued.
    Sync {
        /// Chosen by the client.
        mark: u64,
    },
    /// Server to client: the answer to SYNC, on every connection, behind all blocks that were cut before.
    Synced {
        /// The mark of the SYNC.
        mark: u64,
        /// What is not cut yet, at most [`MAX_QUEUED_RANGES`] ranges.
        queued: Vec<Range<u64>>,
    },
}

/// Why bytes are no frame. The connection cannot be used any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// No such type in this version.
    #[error("frame of unknown type {0}")]
    Type(u8),
    /// A flag or reserved bit that this version does not have.
    #[error("frame of type {0} with unknown flags")]
    Flags(u8),
    /// A length that its type cannot have.
    #[error("frame of type {kind} with {length} bytes")]
    Length {
        /// Type of the frame.
        kind: u8,
        /// Bytes behind the common part.
        length: u32,
    },
    /// A range that is empty or goes beyond the largest position.
    #[error("frame with an empty or impossible range")]
    Range,
}

impl<'a> Frame<'a> {
    /// Appends the frame to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Data { sequence, offset, payload } => {
                out.extend_from_slice(&data_header(*sequence, *offset, payload.len()));
                out.extend_from_slice(payload);
            }
            Self::Want { range, priority } => {
                let flags = match priority {
                    QueueEnd::Front => FRONT,
                    QueueEnd::Back => 0,
                };
                out.extend_from_slice(&header(WANT, flags, 16));
                put_range(out, range);
            }
            Self::Cancel { range } => {
                out.extend_from_slice(&header(CANCEL, 0, 16));
                put_range(out, range);
            }
            Self::End => out.extend_from_slice(&header(END, 0, 0)),
            Self::Sync { mark } => {
                out.extend_from_slice(&header(SYNC, 0, 8));
                out.extend_from_slice(&mark.to_be_bytes());
            }
            Self::Synced { mark, queued } => {
                let queued = &queued[..queued.len().min(MAX_QUEUED_RANGES)];
                out.extend_from_slice(&header(SYNCED, 0, 8 + 16 * queued.len()));
                out.extend_from_slice(&mark.to_be_bytes());
                queued.iter().for_each(|range| put_range(out, range));
            }
        }
    }

    /// The frame at the start of `input` and its length, `None` when more has to arrive first. A caller that
    /// reads at least [`MAX_FRAME_BYTES`] never waits in vain.
    ///
    /// # Errors
    /// The bytes are no frame; said as soon as the common part shows it.
    pub fn decode(input: &'a [u8]) -> Result<Option<(Self, usize)>, FrameError> {
        let Some((&[kind, flags, reserved @ .., a, b, c, d], rest)) =
            input.split_first_chunk::<HEADER_BYTES>()
        else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([a, b, c, d]);
        let known_flags = if kind == WANT { FRONT } else { 0 };
        let fits = match kind {
            DATA => (17..=16 + MAX_BLOCK_BYTES).contains(&u64::from(length)),
            WANT | CANCEL => length == 16,
            END => length == 0,
            SYNC => length == 8,
            SYNCED => length % 16 == 8 && u64::from(length) <= 8 + 16 * MAX_QUEUED_RANGES as u64,
            _ => return Err(FrameError::Type(kind)),
        };
        if flags & !known_flags != 0 || reserved != [0, 0] {
            return Err(FrameError::Flags(kind));
        }
        if !fits {
            return Err(FrameError::Length { kind, length });
        }
        let Some(body) = rest.get(..length as usize) else { return Ok(None) };
        let frame = match kind {
            DATA => {
                let (sequence, body) = take_integer(body);
                let (offset, payload) = take_integer(body);
                offset.checked_add(payload.len() as u64).ok_or(FrameError::Range)?;
                Self::Data { sequence, offset, payload }
            }
            WANT => {
                let priority = if flags & FRONT == 0 { QueueEnd::Back } else { QueueEnd::Front };
                Self::Want { range: range_of(body)?, priority }
            }
            CANCEL => Self::Cancel { range: range_of(body)? },
            SYNC => Self::Sync { mark: take_integer(body).0 },
            SYNCED => {
                let (mark, ranges) = take_integer(body);
                Self::Synced {
                    mark,
                    queued: ranges.chunks_exact(16).map(range_of).collect::<Result<_, _>>()?,
                }
            }
            _ => Self::End,
        };
        Ok(Some((frame, HEADER_BYTES + body.len())))
    }
}

/// What a DATA frame with `length` bytes of payload begins with, for a sender that reads the payload into
/// place.
pub fn data_header(sequence: u64, offset: u64, length: usize) -> [u8; DATA_HEADER_BYTES] {
    let mut out = [0; DATA_HEADER_BYTES];
    out[..8].copy_from_slice(&header(DATA, 0, 16 + length));
    out[8..16].copy_from_slice(&sequence.to_be_bytes());
    out[16..].copy_from_slice(&offset.to_be_bytes());
    out
}

/// The common part. No frame of ours is longer than [`MAX_FRAME_BYTES`], so the length fits.
fn header(kind: u8, flags: u8, length: usize) -> [u8; HEADER_BYTES] {
    let [a, b, c, d] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    [kind, flags, 0, 0, a, b, c, d]
}

fn put_range(out: &mut Vec<u8>, range: &Range<u64>) {
    out.extend_from_slice(&range.start.to_be_bytes());
    out.extend_from_slice(&range.end.saturating_sub(range.start).to_be_bytes());
}

/// The first eight bytes as an integer, and the rest; zero when there are fewer, which the checked lengths
/// exclude.
fn take_integer(input: &[u8]) -> (u64, &[u8]) {
    input.split_first_chunk().map_or((0, input), |(bytes, rest)| (u64::from_be_bytes(*bytes), rest))
}

fn range_of(input: &[u8]) -> Result<Range<u64>, FrameError> {
    let (start, rest) = take_integer(input);
    let (length, _) = take_integer(rest);
    match start.checked_add(length) {
        Some(end) if length > 0 => Ok(start..end),
        _ => Err(FrameError::Range),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range() -> impl Strategy<Value = Range<u64>> {
        (any::<u64>(), 1..=u64::MAX)
            .prop_filter_map("overflow", |(start, length)| start.checked_add(length).map(|end| start..end))
    }

    proptest! {
        #[test]
        fn frames_survive_the_wire(
            sequence: u64, offset in 0..u64::MAX / 2, payload in prop::collection::vec(any::<u8>(), 1..2000),
            wanted in range(), queued in prop::collection::vec(range(), 0..20), mark: u64, cut in 1_usize..3000,
        ) {
            let frames = [
                Frame::Data { sequence, offset, payload: &payload },
                Frame::Want { range: wanted.clone(), priority: QueueEnd::Front },
                Frame::Want { range: wanted.clone(), priority: QueueEnd::Back },
                Frame::Cancel { range: wanted },
                Frame::End,
                Frame::Sync { mark },
                Frame::Synced { mark, queued },
            ];
            let mut wire = Vec::new();
            frames.iter().for_each(|frame| frame.encode(&mut wire));
            let mut at = 0;
            for frame in &frames {
                let (decoded, length) = Frame::decode(&wire[at..]).unwrap().unwrap();
                prop_assert_eq!(&decoded, frame);
                prop_assert_eq!(Frame::decode(&wire[at..at + cut.min(length - 1)]), Ok(None));
                at += length;
            }
            prop_assert_eq!(at, wire.len());
        }

        #[test]
        fn garbage_is_an_error_or_a_frame_never_a_panic(input in prop::collection::vec(any::<u8>(), 0..64), kind in 0_u8..9) {
            let mut framed = vec![kind, input.first().copied().unwrap_or(0) & 1, 0, 0, 0, 0, 0, 24];
            framed.extend_from_slice(&input);
            for input in [&input, &framed] {
                if let Ok(Some((frame, length))) = Frame::decode(input) {
                    let mut again = Vec::new();
                    frame.encode(&mut again);
                    prop_assert_eq!(&again[..], &input[..length]);
                }
            }
        }
    }

    #[test]
    fn lengths_are_refused_before_their_bytes_arrive() {
        for (kind, length) in
            [(DATA, 16), (DATA, 16 + 16 * 1024 + 1), (WANT, 17), (END, 1), (SYNC, 0), (SYNCED, 9)]
        {
            assert_eq!(
                Frame::decode(&header(kind, 0, length)),
                Err(FrameError::Length { kind, length: u32::try_from(length).unwrap() })
            );
        }
        assert_eq!(Frame::decode(&header(SYNCED, 0, 8 + 16 * 1025)).map_err(|_| ()), Err(()));
        assert_eq!(Frame::decode(&header(9, 0, 0)), Err(FrameError::Type(9)));
        assert_eq!(Frame::decode(&header(DATA, 1, 17)), Err(FrameError::Flags(DATA)));
    }
}
