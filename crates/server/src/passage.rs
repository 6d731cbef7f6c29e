//! From the page cache to the socket without a copy in between, by sendfile(2).
//!
//! hyper writes slices of memory. So a part of a file goes through it as a slice of the same length that is
//! never read ([`BLANK`]), and where the connection finds such a slice among what it is to write, it sends the
//! file's bytes in its place. All else of HTTP stays as it is.
//!
//! A longer part takes the system several rounds. There the last segment waits for more where it is not full
//! (TCP_CORK), until what was written is flushed. Otherwise each acknowledgement in the middle of a part sends what
//! the round before left over, in a segment of its own: MSG_MORE holds it back for that round only.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::source::Source;

/// Most that goes in one part: what a socket takes at a time is less, and the others have their turn.
const PART_BYTES: usize = 512 * 1024;
/// What is shorter is copied: its bytes and the response's head then leave in one call.
const SHORTEST_PART: usize = 24 * 1024;
/// What sendfile hands to the socket in one round at the least: the 16 pages of its pipe, of which the first may
/// hold a single byte.
const ROUND_BYTES: usize = 15 * 4096;
/// What stands in for the bytes of files. Only its addresses are used, so that it takes no memory.
static BLANK: [u8; PART_BYTES] = [0; PART_BYTES];

/// Whether this stands in for a part of a file.
pub(super) fn stands_in(slice: &[u8]) -> bool {
    !slice.is_empty() && BLANK.as_ptr_range().contains(&slice.as_ptr())
}

/// The parts of files that a connection is still to send. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Passage(Arc<Way>);

#[derive(Debug, Default)]
struct Way {
    parts: Mutex<VecDeque<Part>>,
    is_corked: AtomicBool,
}

#[derive(Debug)]
struct Part {
    source: Arc<Source>,
    range: Range<u64>,
}

impl Passage {
    /// What stands in for the first part of the range, if that can be sent without waiting for a disk.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn stand_in(&self, source: &Arc<Source>, range: &Range<u64>) -> io::Result<Option<Bytes>> {
        let length = usize::try_from(range.end - range.start).map_or(PART_BYTES, |all| all.min(PART_BYTES));
        if length < SHORTEST_PART {
            return Ok(None);
        }
        let range = range.start..range.start + length as u64;
        if !source.is_cached(&range)? {
            return Ok(None);
        }
        let part = Part { source: source.clone(), range };
        self.0.parts.lock().unwrap_or_else(PoisonError::into_inner).push_back(part);
        Ok(Some(Bytes::from_static(&BLANK[..length])))
    }

    /// Writes the first of these to the socket, which stand in for a part of a file somewhere. What comes
    /// last may wait for [`Self::flush`].
    pub(super) fn poll_write(
        &self,
        socket: &TcpStream,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let before = slices.iter().take_while(|slice| !stands_in(slice)).count();
        let is_long = slices.get(before).is_some_and(|part| part.len() > ROUND_BYTES);
        if is_long && !self.0.is_corked.swap(true, Ordering::Relaxed) {
            SockRef::from(socket).set_tcp_cork(true)?;
        }
        loop {
            ready!(socket.poll_write_ready(cx))?;
            let written = socket.try_io(Interest::WRITABLE, || match slices.first() {
                Some(stand_in) if before == 0 => self.send(socket, stand_in.len()),
                // The head of a response leaves with the first bytes of its file.
                _ => SockRef::from(socket).send_vectored_with_flags(&slices[..before], libc::MSG_MORE),
            });
            match written {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    /// Lets all leave that was written.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn flush(&self, socket: &TcpStream) -> io::Result<()> {
        if self.0.is_corked.swap(false, Ordering::Relaxed) {
            SockRef::from(socket).set_tcp_cork(false)?;
        }
        Ok(())
    }

    /// Sends of the first part, of which so many bytes are left.
    fn send(&self, socket: &TcpStream, left: usize) -> io::Result<usize> {
        let mut parts = self.0.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let part = parts.front_mut().filter(|part| part.range.end - part.range.start == left as u64);
        let part = part.ok_or_else(|| io::Error::other("a part of a file lost its place"))?;
        let sent = part.source.send(socket, part.range.start, left)?;
        part.range.start += sent as u64;
        if part.range.is_empty() {
            parts.pop_front();
        }
        Ok(sent)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::future::poll_fn;

    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;

    /// Sends a head and a part of this length; whether its end waited, and whether it does after a flush.
    async fn waits(length: usize) -> (bool, bool) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("film");
        std::fs::write(&path, vec![7; length]).unwrap();
        let file = File::open(path).unwrap();
        let metadata = file.metadata().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (socket, _) = listener.accept().await.unwrap();
        let passage = Passage::default();
        let range = 0..length as u64;
        let part = passage.stand_in(&Arc::new(Source::new(file, &metadata)), &range).unwrap().unwrap();
        let write = async {
            let (mut head, mut part) = (&b"head"[..], &part[..]);
            while !part.is_empty() {
                let slices = [IoSlice::new(head), IoSlice::new(part)];
                let first = usize::from(head.is_empty());
                let sent = poll_fn(|cx| passage.poll_write(&socket, cx, &slices[first..])).await.unwrap();
                let of_head = sent.min(head.len());
                (head, part) = (&head[of_head..], &part[sent - of_head..]);
            }
            let is_corked = || SockRef::from(&socket).tcp_cork().unwrap();
            let waited = is_corked();
            passage.flush(&socket).unwrap();
            (waited, is_corked())
        };
        let mut got = vec![0; 4 + length];
        let (waits, read) = tokio::join!(write, client.read_exact(&mut got));
        read.unwrap();
        assert!(got.starts_with(b"head") && got[4..].iter().all(|byte| *byte == 7));
        waits
    }

    #[tokio::test]
    async fn the_end_of_a_long_part_waits_until_it_is_flushed() {
        assert_eq!(waits(ROUND_BYTES).await, (false, false), "the system takes it in one round");
        assert_eq!(waits(PART_BYTES).await, (true, false));
    }
}
