//! A file that is being sent, as long as it is the one that was promised.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};

/// An open file and what it was when a response or a group began with it. Each part that is read is looked at
/// again before it is sent: the answer's validators promise one version, and a mix of two is none. A file may
/// grow, as a recording does that goes on.
#[derive(Debug)]
pub(super) struct Source {
    file: File,
    size: u64,
    modified: (i64, i64),
}

impl Source {
    pub(super) fn new(file: File, metadata: &Metadata) -> Self {
        Self { file, size: metadata.len(), modified: modified(metadata) }
    }

    /// Reads at `offset` without waiting for a disk: `None` when that cannot be done, because the bytes are
    /// not in memory or the file system cannot tell. Short only where the memory ends or the file does.
    ///
    /// # Errors
    /// The file cannot be read, or is another one by now.
    pub(super) fn read_cached(&self, out: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        let read = read_cached(&self.file, out, offset)?;
        if read.is_some() {
            self.check()?;
        }
        Ok(read)
    }

    /// Reads at `offset`, and waits for the disk.
    ///
    /// # Errors
    /// The file cannot be read, or is another one by now.
    pub(super) fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.file.read_at(out, offset)?;
        self.check()?;
        Ok(read)
    }

    /// Whether both ends of a range are in memory; then what lies between them is too, as a rule.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn is_cached(&self, range: &Range<u64>) -> io::Result<bool> {
        for at in [range.start, range.end.saturating_sub(1)] {
            if read_cached(&self.file, &mut [0], at)? != Some(1) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sends from `offset` without a copy; waits for the disk where the bytes are not in memory. What a
    /// socket holds is the file's own memory: whoever overwrites the file in place changes that as well.
    ///
    /// # Errors
    /// The socket takes nothing, the file cannot be read, or it is another one by now.
    pub(super) fn send(&self, socket: impl AsFd, offset: u64, length: usize) -> io::Result<usize> {
        let sent = rustix::fs::sendfile(socket, &self.file, Some(&mut { offset }), length)?;
        self.check()?;
        if sent == 0 { Err(truncated()) } else { Ok(sent) }
    }

    /// Behind the read: the system notes a change before it can be read.
    fn check(&self) -> io::Result<()> {
        let metadata = self.file.metadata()?;
        let is_longer = metadata.len() > self.size;
        if is_longer || (metadata.len() == self.size && modified(&metadata) == self.modified) {
            return Ok(());
        }
        if metadata.len() < self.size {
            Err(truncated())
        } else {
            Err(io::Error::other("the file was changed while it was sent"))
        }
    }
}

fn modified(metadata: &Metadata) -> (i64, i64) {
    (metadata.mtime(), metadata.mtime_nsec())
}

/// The file ended before the bytes that were promised. Nothing may be sent in their place.
pub(super) fn truncated() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter while it was sent")
}

fn read_cached(file: &File, out: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
    #[cfg(target_os = "linux")]
    {
        use rustix::io::{Errno, ReadWriteFlags, preadv2};
        match preadv2(file, &mut [io::IoSliceMut::new(out)], offset, ReadWriteFlags::NOWAIT) {
            Ok(length) => Ok(Some(length)),
            // tmpfs does not know the flag, and has no disk to wait for.
            Err(Errno::OPNOTSUPP) if rustix::fs::fstatfs(file)?.f_type == libc::TMPFS_MAGIC => {
                file.read_at(out, offset).map(Some)
            }
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (file, out, offset);
        Ok(None)
    }
}
