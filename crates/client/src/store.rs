//! Where received bytes are kept: in memory, around the readers, or where the film is written.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_protocol::ranges::RangeSet;
use anabranch_units::Bytes as Bytes64;
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

/// The bytes of a film. Connections add them, readers take them, the owner drops them.
#[derive(Debug)]
pub(super) struct Store {
    kept: Mutex<Kept>,
    disk: Option<Disk>,
}

#[derive(Debug, Default)]
struct Kept {
    /// What has come and is not dropped.
    have: RangeSet,
    /// What of it is in memory, by position, where it does not go into a file. They do not overlap.
    pieces: BTreeMap<u64, Bytes>,
    total: u64,
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
    pub(super) fn new(storage: Storage) -> io::Result<Self> {
        let (have, disk) = match storage {
            Storage::Memory => (RangeSet::new(), None),
            Storage::File { file, have, .. } => (have, Some(Disk::start(file)?)),
        };
        Ok(Self { kept: Mutex::new(Kept { have, ..Kept::default() }), disk })
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The worker that writes, where it goes into a file.
    pub(super) fn disk(&self) -> Option<&Disk> {
        self.disk.as_ref()
    }

    pub(super) fn is_file(&self) -> bool {
        self.disk.is_some()
    }

    /// What has come and is not dropped.
    pub(super) fn have(&self) -> RangeSet {
        self.lock().have.clone()
    }

    /// What of a range is not there.
    pub(super) fn missing(&self, range: Range<u64>) -> Vec<Range<u64>> {
        self.lock().have.gaps(range).collect()
    }

    /// Takes what has arrived for `offset`; tells how much of it is new.
    ///
    /// # Errors
    /// It is not what came for the same place before. Of a file the worker tells that, and what cannot be
    /// written.
    pub(super) fn take(&self, offset: u64, arrived: Bytes) -> Result<u64, EngineError> {
        let range = offset..offset + length(&arrived);
        let mut kept = self.lock();
        let there: Vec<_> = kept.have.iter_within(range.clone()).collect();
        let gaps: Vec<_> = kept.have.gaps(range.clone()).collect();
        if self.disk.is_none() {
            if let Some(position) = kept.contradiction(offset, &arrived, &there) {
                return Err(EngineError::another_byte(position));
            }
            for gap in &gaps {
                let piece = arrived.slice(index(gap.start - offset)..index(gap.end - offset));
                kept.total += gap.end - gap.start;
                kept.pieces.insert(gap.start, piece);
            }
        }
        let new = kept.have.insert(range);
        // Readers look for it where it waits to be written, as soon as it is there.
        if let Some(disk) = &self.disk {
            disk.write(offset, arrived, there, gaps);
        }
        Ok(new)
    }

    /// Up to `most` bytes at `position`; `None`: none are there.
    pub(super) fn find(&self, position: u64, most: usize) -> Option<Found> {
        let kept = self.lock();
        let Some(disk) = &self.disk else { return kept.find(position, most).map(Found::Here) };
        let there = Bytes64::new(kept.have.run_end(position) - position).as_usize();
        (there > 0).then(|| match disk.find(position, most.min(there)) {
            Place::Memory(bytes) => Found::Here(bytes),
            Place::Disk(count) => Found::There(disk.medium.clone(), count),
        })
    }

    /// Bytes in memory.
    pub(super) fn in_memory(&self) -> u64 {
        self.lock().total
    }

    /// Drops the pieces that touch none of the `wanted` ranges; tells which bytes are gone.
    pub(super) fn evict(&self, wanted: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut kept = self.lock();
        let Kept { have, pieces, total } = &mut *kept;
        let mut gone = Vec::new();
        pieces.retain(|start, piece| {
            let range = *start..start + length(piece);
            let keep = wanted.iter().any(|wanted| range.start < wanted.end && range.end > wanted.start);
            if !keep {
                *total -= range.end - range.start;
                have.remove(range.clone());
                gone.push(range);
            }
            keep
        });
        gone
    }
}

impl Kept {
    /// The position of the first byte of `arrived`, which belongs at `offset`, that is another one `there`.
    fn contradiction(&self, offset: u64, arrived: &[u8], there: &[Range<u64>]) -> Option<u64> {
        for &Range { start: mut position, end } in there {
            while position < end {
                let Some(old) = self.find(position, index(end - position)) else { break };
                let new = &arrived[index(position - offset)..];
                if let Some(at) = old.iter().zip(new).position(|(old, new)| old != new) {
                    return Some(position + Bytes64::of(at).get());
                }
                position += length(&old);
            }
        }
        None
    }

    /// Up to `most` bytes in memory at `position`.
    fn find(&self, position: u64, most: usize) -> Option<Bytes> {
        let (start, piece) = self.pieces.range(..=position).next_back()?;
        let from = index(position - start);
        (from < piece.len()).then(|| piece.slice(from..piece.len().min(from.saturating_add(most))))
    }
}

fn length(bytes: &Bytes) -> u64 {
    Bytes64::of(bytes.len()).get()
}

/// A distance within one piece, which is in memory and so fits.
fn index(distance: u64) -> usize {
    Bytes64::new(distance).as_usize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(store: &Store, offset: u64, text: &'static str) {
        store.take(offset, Bytes::from_static(text.as_bytes())).unwrap();
    }

    async fn read(store: &Store, position: u64, most: usize) -> Option<Bytes> {
        Some(store.find(position, most)?.get(position).await.unwrap())
    }

    #[tokio::test]
    async fn overlapping_arrivals_are_kept_once() {
        let store = Store::new(Storage::Memory).unwrap();
        write(&store, 4, "efgh");
        write(&store, 0, "abcdef");
        assert_eq!(store.in_memory(), 8);
        assert_eq!(read(&store, 0, 100).await.unwrap(), "abcd");
        assert_eq!(read(&store, 5, 2).await.unwrap(), "fg");
        assert_eq!(read(&store, 8, 2).await, None);
    }

    #[tokio::test]
    async fn other_bytes_for_a_place_that_has_some_are_refused() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        for storage in [Storage::Memory, Storage::File { file, have: RangeSet::new(), in_doubt: false }] {
            let store = Store::new(storage).unwrap();
            write(&store, 2, "cde");
            write(&store, 6, "gh");
            write(&store, 0, "abcdefghij");
            let taken = store.take(5, Bytes::from_static(b"fgHi")).map(|_| ());
            let error = match store.disk() {
                Some(disk) => taken.and(disk.backlog.flushed().await),
                None => taken,
            };
            let error = error.unwrap_err();
            assert!(error.message.contains("the byte at 7 "), "{error}");
            assert_eq!(read(&store, 0, 2).await.unwrap(), "ab");
        }
    }

    #[tokio::test]
    async fn of_a_file_only_what_has_come_is_found() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let mut have = RangeSet::new();
        have.insert(0..2);
        let store = Store::new(Storage::File { file, have, in_doubt: false }).unwrap();
        write(&store, 4, "efgh");
        assert!(store.find(2, 10).is_none() && store.find(8, 1).is_none());
        assert_eq!(read(&store, 6, 10).await.unwrap(), "gh");
        assert!(matches!(store.find(1, 10), Some(Found::There(_, 1))));
    }

    #[test]
    fn what_no_reader_is_near_goes() {
        let store = Store::new(Storage::Memory).unwrap();
        for offset in 0..10 {
            write(&store, offset * 2, "xy");
        }
        let gone: u64 = store.evict(&[6..8, 8..9]).into_iter().map(|range| range.end - range.start).sum();
        assert_eq!((gone, store.in_memory()), (16, 4));
        assert!(store.find(6, 1).is_some() && store.find(0, 1).is_none());
        assert_eq!(store.have().total(), 4);
    }
}
