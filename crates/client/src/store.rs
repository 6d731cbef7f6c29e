//! Where received bytes are kept: in memory, around the readers, or where the film is written.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use anabranch_protocol::ranges::RangeSet;
use bytes::{Bytes, BytesMut};

use super::disk::{Disk, Medium, Place};
use super::error::EngineError;

/// Where the film goes.
#[derive(Debug)]
pub enum Storage {
    /// In memory, bounded by [`Settings::memory`](super::Settings::memory): what is around the readers.
    Memory,
    /// In a file, every byte at its offset.
    File {
        /// Open for reading and writing.
        file: Arc<dyn Medium>,
        /// What is in it already.
        have: RangeSet,
        /// Whether it is in doubt that this is of the same film: then samples of it are compared before
        /// anything is added.
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
    File(Disk),
}

/// Where bytes were found.
pub(super) enum Found {
    Here(Bytes),
    /// So many of them have to be read there, which may take its time.
    There(Arc<dyn Medium>, usize),
}

impl Found {
    /// The bytes, which begin at `position`.
    ///
    /// # Errors
    /// They cannot be read.
    pub(super) async fn get(self, position: u64) -> io::Result<Bytes> {
        match self {
            Self::Here(bytes) => Ok(bytes),
            Self::There(medium, count) => {
                let reading = move || {
                    let mut bytes = BytesMut::zeroed(count);
                    medium.read(&mut bytes, position).map(|()| bytes.freeze())
                };
                tokio::task::spawn_blocking(reading)
                    .await
                    .unwrap_or_else(|error| Err(io::Error::other(error)))
            }
        }
    }
}

impl Store {
    /// # Errors
    /// There is no thread to write a file.
    pub(super) fn new(storage: Storage) -> io::Result<(Self, RangeSet)> {
        Ok(match storage {
            Storage::Memory => (Self::Memory { pieces: BTreeMap::new(), total: 0 }, RangeSet::new()),
            Storage::File { file, have, .. } => (Self::File(Disk::start(file)?), have),
        })
    }

    /// The worker that writes, where it goes into a file.
    pub(super) fn disk(&self) -> Option<&Disk> {
        match self {
            Self::Memory { .. } => None,
            Self::File(disk) => Some(disk),
        }
    }

    pub(super) fn is_file(&self) -> bool {
        self.disk().is_some()
    }

    /// Takes what has arrived for `offset`, leaving the buffer empty; `have` is there already.
    ///
    /// # Errors
    /// It is not what came for the same place before. Of a file the worker tells that, and what cannot be
    /// written.
    pub(super) fn take(
        &mut self,
        offset: u64,
        buffer: &mut BytesMut,
        have: &RangeSet,
    ) -> Result<(), EngineError> {
        let range = offset..offset + anabranch_units::Bytes::of(buffer.len()).get();
        let there: Vec<_> = have.iter_within(range.clone()).collect();
        if let Some(position) = self.contradiction(offset, buffer, &there) {
            return Err(EngineError::another_byte(position));
        }
        let (arrived, gaps) = (buffer.split().freeze(), have.gaps(range));
        match self {
            Self::Memory { pieces, total } => {
                for gap in gaps {
                    let piece = arrived.slice(index(gap.start - offset)..index(gap.end - offset));
                    *total += gap.end - gap.start;
                    pieces.insert(gap.start, piece);
                }
            }
            Self::File(disk) => {
                disk.write(offset, arrived, there, gaps.collect());
            }
        }
        Ok(())
    }

    /// The position of the first byte of `arrived`, which belongs at `offset`, that is another one `there` in
    /// memory.
    fn contradiction(&self, offset: u64, arrived: &[u8], there: &[Range<u64>]) -> Option<u64> {
        let Self::Memory { .. } = self else { return None };
        for &Range { start: mut position, end } in there {
            while position < end {
                let Some(Found::Here(old)) = self.find(position, index(end - position)) else { break };
                let new = &arrived[index(position - offset)..];
                if let Some(at) = old.iter().zip(new).position(|(old, new)| old != new) {
                    return Some(position + anabranch_units::Bytes::of(at).get());
                }
                position += anabranch_units::Bytes::of(old.len()).get();
            }
        }
        None
    }

    /// Up to `most` bytes at `position`, which have arrived; `None`: they are not kept any more.
    pub(super) fn find(&self, position: u64, most: usize) -> Option<Found> {
        match self {
            Self::Memory { pieces, .. } => {
                let (start, piece) = pieces.range(..=position).next_back()?;
                let from = index(position - start);
                (from < piece.len()).then(|| Found::Here(piece.slice(from..piece.len().min(from + most))))
            }
            Self::File(disk) => Some(match disk.find(position, most) {
                Place::Memory(bytes) => Found::Here(bytes),
                Place::Disk(count) => Found::There(disk.medium.clone(), count),
            }),
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

    async fn read(store: &Store, position: u64, most: usize) -> Option<Bytes> {
        Some(store.find(position, most)?.get(position).await.unwrap())
    }

    #[tokio::test]
    async fn overlapping_arrivals_are_kept_once() {
        let (mut store, mut have) = Store::new(Storage::Memory).unwrap();
        write(&mut store, &mut have, 4, "efgh");
        write(&mut store, &mut have, 0, "abcdef");
        assert_eq!(store.in_memory(), 8);
        assert_eq!(read(&store, 0, 100).await.unwrap(), "abcd");
        assert_eq!(read(&store, 5, 2).await.unwrap(), "fg");
        assert_eq!(read(&store, 8, 2).await, None);
    }

    #[tokio::test]
    async fn other_bytes_for_a_place_that_has_some_are_refused() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        for storage in [Storage::Memory, Storage::File { file, have: RangeSet::new(), in_doubt: false }] {
            let (mut store, mut have) = Store::new(storage).unwrap();
            write(&mut store, &mut have, 2, "cde");
            write(&mut store, &mut have, 6, "gh");
            write(&mut store, &mut have, 0, "abcdefghij");
            let taken = store.take(5, &mut BytesMut::from("fgHi"), &have);
            let error = match store.disk() {
                Some(disk) => taken.and(disk.backlog.flushed().await),
                None => taken,
            };
            let error = error.unwrap_err();
            assert!(error.message.contains("the byte at 7 "), "{error}");
            assert_eq!(read(&store, 0, 2).await.unwrap(), "ab");
        }
    }

    #[test]
    fn what_no_reader_is_near_goes() {
        let (mut store, mut have) = Store::new(Storage::Memory).unwrap();
        for offset in 0..10 {
            write(&mut store, &mut have, offset * 2, "xy");
        }
        let gone: u64 = store.evict(&[6..8, 8..9]).into_iter().map(|range| range.end - range.start).sum();
        assert_eq!((gone, store.in_memory()), (16, 4));
        assert!(store.find(6, 1).is_some() && store.find(0, 1).is_none());
    }
}
