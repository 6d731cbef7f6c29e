//! From the page cache to the socket without a copy in between, by sendfile(2).
//!
//! hyper writes slices of memory. So a part of a file goes through it as a slice of the same length that is
//! never read ([`BLANK`]), and where the connection finds such a slice among what it is to write, it sends the
//! file's bytes in its place. All else of HTTP stays as it is.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::ops::Range;
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
/// What stands in for the bytes of files. Only its addresses are used, so that it takes no memory.
static BLANK: [u8; PART_BYTES] = [0; PART_BYTES];

/// Whether this stands in for a part of a file.
pub(super) fn stands_in(slice: &[u8]) -> bool {
    !slice.is_empty() && BLANK.as_ptr_range().contains(&slice.as_ptr())
}

/// The parts of files that a connection is still to send. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Passage(Arc<Mutex<VecDeque<Part>>>);

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
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(part);
        Ok(Some(Bytes::from_static(&BLANK[..length])))
    }

    /// Writes the first of these to the socket, which stand in for a part of a file somewhere.
    pub(super) fn poll_write(
        &self,
        socket: &TcpStream,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let before = slices.iter().take_while(|slice| !stands_in(slice)).count();
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

    /// Sends of the first part, of which so many bytes are left.
    fn send(&self, socket: &TcpStream, left: usize) -> io::Result<usize> {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
