//! One connection of a stripe group.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use anabranch_protocol::stripe::frame::{Frame, MAX_FRAME_BYTES};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::io_guard::Stream;
use crate::limits::Permit;
use crate::log::Entry;
use crate::tcp_sharing::Counting;

/// What a connection reads at a time. Control frames are short.
const READ_BYTES: usize = 1024;

/// A connection that sends blocks and brings orders.
#[derive(Debug)]
pub(crate) struct Member {
    stream: Stream,
    /// What has arrived and is no whole frame yet; shorter than a frame.
    input: Vec<u8>,
    /// The frame that is being written, and how much of it was.
    output: Vec<u8>,
    written: usize,
    /// A SYNC to answer as soon as the output is empty; a later one replaces it.
    pub(super) sync: Option<u64>,
    entry: Entry,
    _permit: Permit,
    /// It counts as long as it is here.
    _counting: Option<Counting>,
}

impl Member {
    /// A connection that just changed over, with what it had read too far.
    ///
    /// # Errors
    /// The socket is broken.
    pub(crate) fn new(
        stream: Stream,
        input: Vec<u8>,
        permit: Permit,
        entry: Entry,
        counting: Option<Counting>,
    ) -> io::Result<Self> {
        // "Blocked" (MultiTCP section 7.3) must mean the network, not a large buffer in front of it.
        #[cfg(target_os = "linux")]
        socket2::SockRef::from(stream.socket()).set_tcp_notsent_lowat(
            u32::try_from(anabranch_protocol::stripe::MAX_BLOCK_BYTES).unwrap_or(u32::MAX),
        )?;
        Ok(Self {
            stream,
            input,
            output: Vec::new(),
            written: 0,
            sync: None,
            entry,
            _permit: permit,
            _counting: counting,
        })
    }

    /// Reads what is there and hands every frame to `take`; `Pending` when all is read.
    ///
    /// # Errors
    /// The connection is closed or broken, or brings something that is no order.
    pub(super) fn poll_orders(
        &mut self,
        cx: &mut Context<'_>,
        mut take: impl FnMut(Frame<'_>) -> io::Result<()>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut at = 0;
            while let Some((frame, length)) = Frame::decode(&self.input[at..]).map_err(io::Error::other)? {
                take(frame)?;
                at += length;
            }
            self.input.drain(..at);
            let mut space = [0; READ_BYTES];
            let mut read = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            self.input.extend_from_slice(read.filled());
            debug_assert!(self.input.len() <= MAX_FRAME_BYTES + READ_BYTES);
        }
    }

    /// The buffer of the last frame, for the next one, which is to be given back by [`Self::send`].
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        self.written = 0;
        std::mem::take(&mut self.output)
    }

    /// Takes a frame to send; the one before must be written.
    pub(super) fn send(&mut self, frame: Vec<u8>) {
        debug_assert!(self.is_written());
        self.output = frame;
        self.written = 0;
    }

    /// Whether every frame was handed to the connection.
    pub(super) fn is_written(&self) -> bool {
        self.written == self.output.len()
    }

    /// Writes until all is written (`Ready`) or the connection takes no more; adds what it took to `moved`.
    pub(super) fn poll_written(&mut self, cx: &mut Context<'_>, moved: &mut usize) -> Poll<io::Result<()>> {
        while !self.is_written() {
            let length = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.output[self.written..]))?;
            if length == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += length;
            self.entry.sent += length as u64;
            *moved += length;
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Whether the socket takes data now, asked of the system itself: tokio remembers only that the last
    /// write was not refused.
    pub(super) fn poll_available(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = self.stream.socket();
        loop {
            ready!(socket.poll_write_ready(cx))?;
            #[cfg(target_os = "linux")]
            {
                use rustix::event::{PollFd, PollFlags, Timespec, poll};
                let asked = socket.try_io(tokio::io::Interest::WRITABLE, || {
                    let mut fds = [PollFd::new(socket, PollFlags::OUT)];
                    let ready = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
                    // An error or a hang-up is ready too: the write that follows says which.
                    if ready > 0 { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
                });
                match asked {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                    result => return Poll::Ready(result),
                }
            }
            #[cfg(not(target_os = "linux"))]
            return Poll::Ready(Ok(()));
        }
    }

    /// Says good-bye as far as the connection takes it.
    pub(super) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
