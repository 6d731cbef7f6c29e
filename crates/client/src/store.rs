//! Where received bytes are kept: in memory, around the readers, or in a file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use anabranch_protocol::ranges::RangeSet;
use bytes::{Bytes, BytesMut};

use super::{Cure, EngineError};

/// Where the film goes.
#[derive(Debug)]
pub enum Storage {
    /// In memory, bounded by [`Settings::memory`](super::Settings::memory): what is around the readers.
    Memory,
    /// In a file, every byte at its offset.
    File {
        /// Open for reading and writing.
        file: File,
        /// What is in it already.
        have: RangeSet,
        /// Whether it is in doubt that this is of the same film: then samples of it are compared before anything is added.
        in_doubt: bool,
    },
}

#[derive(Debug)]
pub(super) enum Store {
    /// Pieces by their position; they do not overlap.
    Memory {
        pieces: BTreeMap<u64, Bytes>,
        total: u64,
    },
    File(File),
}

impl Store {
    pub(super) fn new(storage: Storage) -> (Self, RangeSet) {
        match storage {
            Storage::Memory => (Self::Memory { pieces: BTreeMap::new(), total: 0 }, RangeSet::new()),
            Storage::File { file, have, .. } => (Self::File(file), have),
        }
    }

    pub(super) fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// Takes what has arrived for `offset`, leaving the buffer empty; `have` is there already.
    ///
    /// # Errors
    /// It cannot be written, or is not what came for the same place before.
    pub(super) fn take(
        &mut self,
        offset: u64,
        buffer: &mut BytesMut,
        have: &RangeSet,
    ) -> Result<(), EngineError> {
        let failed = |what: &str, error| EngineError::new(format!("cannot {what}: {error}"), Cure::Again);
        let range = offset..offset + anabranch_units::Bytes::of(buffer.len()).get();
        let there = have.iter_within(range.clone());
        let other = self.contradiction(offset, buffer, there).map_err(|error| failed("read again", error))?;
        if let Some(position) = other {
            return Err(EngineError::new(
                format!(
                    "the byte at {position} came a second time and is another one: the film changed on the server, \
                     or not all servers have the same one"
                ),
                Cure::StartOver,
            ));
        }
        self.write(offset, buffer, have.gaps(range)).map_err(|error| failed("write", error))
    }

    /// The position of the first byte of `arrived`, which belongs at `offset`, that is another one `there`.
    fn contradiction(
        &self,
        offset: u64,
        arrived: &[u8],
        there: impl Iterator<Item = Range<u64>>,
    ) -> io::Result<Option<u64>> {
        for Range { start: mut position, end } in there {
            while position < end {
                let Some(old) = self.read(position, index(end - position))? else { break };
                let new = &arrived[index(position - offset)..];
                if let Some(at) = old.iter().zip(new).position(|(old, new)| old != new) {
                    return Ok(Some(position + anabranch_units::Bytes::of(at).get()));
                }
                position += anabranch_units::Bytes::of(old.len()).get();
            }
        }
        Ok(None)
    }

    /// Writes what has arrived for `offset`. `gaps` are the parts that are not there yet.
    fn write(
        &mut self,
        offset: u64,
        buffer: &mut BytesMut,
        gaps: impl Iterator<Item = Range<u64>>,
    ) -> io::Result<()> {
        match self {
            Self::Memory { pieces, total } => {
                let arrived = buffer.split().freeze();
                for gap in gaps {
                    let piece = arrived.slice(index(gap.start - offset)..index(gap.end - offset));
                    *total += gap.end - gap.start;
                    pieces.insert(gap.start, piece);
                }
            }
            Self::File(file) => {
                file.write_all_at(buffer, offset)?;
                buffer.clear();
            }
        }
        Ok(())
    }

    /// Up to `most` bytes at `position`, which have arrived.
    pub(super) fn read(&self, position: u64, most: usize) -> io::Result<Option<Bytes>> {
        match self {
            Self::Memory { pieces, .. } => {
                let Some((start, piece)) = pieces.range(..=position).next_back() else { return Ok(None) };
                let from = index(position - start);
                if from >= piece.len() {
                    return Ok(None);
                }
                Ok(Some(piece.slice(from..piece.len().min(from + most))))
            }
            Self::File(file) => {
                let mut buffer = BytesMut::zeroed(most);
                file.read_exact_at(&mut buffer, position)?;
                Ok(Some(buffer.freeze()))
            }
        }
    }

    /// Bytes in memory.
    pub(super) fn in_memory(&self) -> u64 {
        match self {
            Self::Memory { total, .. } => *total,
            Self::File(_) => 0,
        }
    }

    /// Drops the pieces that touch none of the `wanted` ranges; tells which bytes are gone.
    pub(super) fn evict(&mut self, wanted: &[Range<u64>]) -> Vec<Range<u64>> {
        let Self::Memory { pieces, total } = self else { return Vec::new() };
        let mut gone = Vec::new();
        pieces.retain(|start, piece| {
            let end = start + anabranch_units::Bytes::of(piece.len()).get();
            let keep = wanted.iter().any(|wanted| *start < wanted.end && end > wanted.start);
            if !keep {
                *total -= end - start;
                gone.push(*start..end);
            }
            keep
        });
        gone
    }
}

/// A distance within one piece, which is in memory and so fits.
fn index(distance: u64) -> usize {
    anabranch_units::Bytes::new(distance).as_usize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(store: &mut Store, have: &mut RangeSet, offset: u64, text: &str) {
        let range = offset..offset + text.len() as u64;
        store.take(offset, &mut BytesMut::from(text), have).unwrap();
        have.insert(range);
    }

    #[test]
    fn overlapping_arrivals_are_kept_once() {
        let (mut store, mut have) = Store::new(Storage::Memory);
        write(&mut store, &mut have, 4, "efgh");
        write(&mut store, &mut have, 0, "abcdef");
        assert_eq!(store.in_memory(), 8);
        assert_eq!(store.read(0, 100).unwrap().unwrap(), "abcd");
        assert_eq!(store.read(5, 2).unwrap().unwrap(), "fg");
        assert_eq!(store.read(8, 2).unwrap(), None);
    }

    #[test]
    fn other_bytes_for_a_place_that_has_some_are_refused() {
        let file = tempfile::tempfile().unwrap();
        for storage in [Storage::Memory, Storage::File { file, have: RangeSet::new(), in_doubt: false }] {
            let (mut store, mut have) = Store::new(storage);
            write(&mut store, &mut have, 2, "cde");
            write(&mut store, &mut have, 6, "gh");
            write(&mut store, &mut have, 0, "abcdefghij");
            let error = store.take(5, &mut BytesMut::from("fgHi"), &have).unwrap_err();
            assert!(error.message.contains("the byte at 7 "), "{error}");
            assert_eq!(store.read(0, 10).unwrap().unwrap()[..2], *b"ab");
        }
    }

    #[test]
    fn what_no_reader_is_near_goes() {
        let (mut store, mut have) = Store::new(Storage::Memory);
        for offset in 0..10 {
            write(&mut store, &mut have, offset * 2, "xy");
        }
        let gone: u64 = store.evict(&[6..8, 8..9]).into_iter().map(|range| range.end - range.start).sum();
        assert_eq!((gone, store.in_memory()), (16, 4));
        assert!(store.read(6, 1).unwrap().is_some() && store.read(0, 1).unwrap().is_none());
    }
}
