//! How much of the film a client has, in order, over time.
//!
//! A client that writes to standard output has what it wrote. One that writes a file in any order has what is
//! before the file's first hole (`SEEK_HOLE`; the file is on a tmpfs, whose holes are whole pages), less a
//! page that may be there in part: so it is up to a page too little, and more where the client keeps data in
//! a cache of its own.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ChildStdout;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::fs::{SeekFrom, seek};

/// The page size of the tmpfs, as far as partial pages matter.
const PAGE: u64 = 4096;
/// How long a full player waits before it looks for room again.
const FULL_WAIT: Duration = Duration::from_millis(5);

/// Where a client's media can be seen.
pub enum Source {
    /// A thread reads its standard output.
    Pipe(Arc<PipeCount>, Option<JoinHandle<()>>),
    /// It writes this file; so much of it is there in order.
    File(PathBuf, u64),
    /// It has none.
    Nothing,
}

/// What a pipe carried.
#[derive(Debug, Default)]
pub struct PipeCount {
    bytes: AtomicU64,
    readable: AtomicU64,
    differs: AtomicBool,
}

impl Source {
    /// Reads standard output to its end and compares it with the film.
    pub fn pipe(stdout: ChildStdout, film: Option<&Path>) -> Self {
        let count = Arc::new(PipeCount::default());
        let film = film.and_then(|film| File::open(film).ok()).map(BufReader::new);
        let counter = Arc::clone(&count);
        let reader = thread::spawn(move || read_all(stdout, film, &counter));
        Self::Pipe(count, Some(reader))
    }

    /// Lets the reader of standard output read so far; it starts with nothing.
    pub fn allow(&self, readable: u64) {
        if let Self::Pipe(count, _) = self {
            count.readable.store(readable, Relaxed);
        }
    }

    /// How many bytes are there in order.
    pub fn in_order(&mut self) -> u64 {
        match self {
            Self::Pipe(count, _) => count.bytes.load(Relaxed),
            Self::File(path, known) => {
                *known = prefix(path, *known);
                *known
            }
            Self::Nothing => 0,
        }
    }

    /// After the client's end: whether what is there in order is the film's beginning.
    pub fn is_right(&mut self, film: &Path) -> bool {
        match self {
            Self::Pipe(count, reader) => {
                if let Some(reader) = reader.take() {
                    // A panic of the reader ends the run; see `inside`.
                    let _ = reader.join();
                }
                !count.differs.load(Relaxed)
            }
            Self::File(path, known) => match (File::open(path), File::open(film)) {
                (Ok(file), Ok(film)) => same(file.take(*known), film.take(*known)),
                _ => *known == 0,
            },
            Self::Nothing => true,
        }
    }
}

fn read_all(mut stdout: impl Read, mut film: Option<impl Read>, count: &PipeCount) {
    let mut got = vec![0; 1 << 16];
    let mut expected = vec![0; 1 << 16];
    loop {
        let room = count.readable.load(Relaxed).saturating_sub(count.bytes.load(Relaxed));
        if room == 0 {
            thread::sleep(FULL_WAIT);
            continue;
        }
        let room = usize::try_from(room).unwrap_or(usize::MAX).min(got.len());
        let Ok(length @ 1..) = stdout.read(&mut got[..room]) else { return };
        if let Some(film) = &mut film {
            let right =
                film.read_exact(&mut expected[..length]).is_ok() && expected[..length] == got[..length];
            count.differs.fetch_or(!right, Relaxed);
        }
        count.bytes.fetch_add(length as u64, Relaxed);
    }
}

fn same(one: impl Read, other: impl Read) -> bool {
    let mut other = BufReader::new(other).bytes();
    BufReader::new(one).bytes().all(|byte| matches!((byte, other.next()), (Ok(a), Some(Ok(b))) if a == b))
}

/// How much of a file is there for sure before its first hole, of which `known` bytes are.
fn prefix(path: &Path, known: u64) -> u64 {
    let end = || {
        let file = File::open(path).ok()?;
        let hole = seek(&file, SeekFrom::Hole(known)).ok()?;
        Some(if hole < file.metadata().ok()?.len() { hole.saturating_sub(PAGE) } else { hole })
    };
    // Not there yet, or nothing after `known`: nothing new.
    end().unwrap_or(known).max(known)
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::*;

    #[test]
    fn a_file_with_a_hole_is_there_up_to_the_hole() {
        // Like the run's scratch space, this must be a tmpfs.
        let mut file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        let path = file.path().to_owned();
        assert_eq!(prefix(&path, 0), 0);
        file.write_all(&[1; 8192]).unwrap();
        assert_eq!(prefix(&path, 0), 8192);
        file.seek(std::io::SeekFrom::Start(65536)).unwrap();
        file.write_all(&[1; 4096]).unwrap();
        assert_eq!(prefix(&path, 0), 4096);
        file.seek(std::io::SeekFrom::Start(8192)).unwrap();
        file.write_all(&[1; 65536 - 8192]).unwrap();
        assert_eq!(prefix(&path, 8192), 69632);
        assert_eq!(prefix(&path, 69632), 69632);
    }

    #[test]
    fn what_a_pipe_carries_is_compared() {
        let film = [1, 2, 3, 4];
        for (got, right) in [(&[1, 2, 3][..], true), (&[1, 9][..], false), (&[1, 2, 3, 4, 5][..], false)] {
            let count = PipeCount { readable: 1000.into(), ..PipeCount::default() };
            read_all(got, Some(&film[..]), &count);
            assert_eq!(!count.differs.load(Relaxed), right);
            assert_eq!(count.bytes.load(Relaxed), got.len() as u64);
        }
    }
}
