//! Socket options of Linux that no safe wrapper offers.
#![allow(unsafe_code, reason = "getsockopt, setsockopt and ioctl on a descriptor that is owned here")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use anabranch_units::{Bytes, Duration};
use libc::{c_int, c_void, socklen_t};
use tokio::net::TcpStream;

use super::path_info::PathInfo;

pub(super) const SUPPORTED: bool = true;

/// Room for `struct tcp_info` and for what later kernels add to it.
const TCP_INFO_ROOM: usize = 512;

/// Where the fields of `struct tcp_info` are (linux/tcp.h). The layout is part of the kernel's interface and
/// only ever grows at its end; libc's own definition stops before the last of these.
mod offset {
    pub(super) const RCV_MSS: usize = 20;
    pub(super) const LAST_DATA_RECV_MS: usize = 52;
    pub(super) const RTT_US: usize = 68;
    pub(super) const RCV_RTT_US: usize = 92;
    pub(super) const DATA_SEGS_IN: usize = 152;
    pub(super) const RCV_OOOPACK: usize = 224;
    pub(super) const RCV_WND: usize = 232;
}

/// What was given to a socket of TCP and has not been acknowledged by the other end; nothing where it is
/// closed.
pub fn unacknowledged(socket: BorrowedFd<'_>) -> Bytes {
    let mut count: c_int = 0;
    // SAFETY: the descriptor is open while it is borrowed; TIOCOUTQ, which is SIOCOUTQ, writes one int.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut count) };
    if result == 0 { Bytes::new(u64::try_from(count).unwrap_or(0)) } else { Bytes::ZERO }
}

/// A second descriptor of the socket, so that its options can be used whoever reads and writes.
#[derive(Debug)]
pub(super) struct Descriptor(OwnedFd);

impl Descriptor {
    pub(super) fn of(stream: &TcpStream) -> io::Result<Self> {
        stream.as_fd().try_clone_to_owned().map(Self)
    }

    pub(super) fn set_window_clamp(&self, window: u32) -> io::Result<()> {
        self.set(libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, window)
    }

    fn set(&self, level: c_int, name: c_int, value: u32) -> io::Result<()> {
        let value = c_int::try_from(value).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the descriptor is open as long as `self` lives; the pointer and the length are those of
        // `value`.
        let result = unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                level,
                name,
                (&raw const value).cast::<c_void>(),
                size_of::<c_int>() as socklen_t,
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    pub(super) fn window_clamp(&self) -> io::Result<u32> {
        let mut value = [0; 4];
        self.option(libc::TCP_WINDOW_CLAMP, &mut value)?;
        Ok(u32::from_ne_bytes(value))
    }

    pub(super) fn path_info(&self) -> Option<PathInfo> {
        let mut room = [0; TCP_INFO_ROOM];
        let length = self.option(libc::TCP_INFO, &mut room).ok()?;
        // An older kernel fills less.
        let info = room.get(..length)?;
        let field = |offset: usize| info.get(offset..offset + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let rtt = field(offset::RCV_RTT_US).filter(|rtt| *rtt > 0).or_else(|| field(offset::RTT_US))?;
        Some(PathInfo {
            rtt: Duration::from_micros(rtt.into()),
            mss: Bytes::new(field(offset::RCV_MSS)?.into()),
            out_of_order: field(offset::RCV_OOOPACK).map(u64::from),
            window: field(offset::RCV_WND).map(|window| Bytes::new(window.into())),
            last_data_received: Duration::from_millis(field(offset::LAST_DATA_RECV_MS)?.into()),
            data_segments_received: field(offset::DATA_SEGS_IN).unwrap_or(0).into(),
        })
    }

    pub(super) fn unread(&self) -> Bytes {
        let mut count: c_int = 0;
        // SAFETY: the descriptor is open as long as `self` lives; FIONREAD writes one int.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), libc::FIONREAD, &raw mut count) };
        if result == 0 { Bytes::new(u64::try_from(count).unwrap_or(0)) } else { Bytes::ZERO }
    }

    /// Reads a TCP option into `value`; returns how much of it was filled.
    fn option(&self, name: c_int, value: &mut [u8]) -> io::Result<usize> {
        let mut length = socklen_t::try_from(value.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the descriptor is open as long as `self` lives; the kernel writes at most `length` bytes to
        // `value`, whose length it is.
        let result = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::IPPROTO_TCP,
                name,
                value.as_mut_ptr().cast::<c_void>(),
                &raw mut length,
            )
        };
        if result == 0 { Ok(length as usize) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn what_nobody_has_taken_is_unacknowledged() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut taker, _) = listener.accept().unwrap();
        assert_eq!(unacknowledged(sender.as_fd()), Bytes::ZERO);
        sender.set_nonblocking(true).unwrap();
        let mut sent = 0;
        while let Ok(length) = sender.write(&[7; 100_000]) {
            sent += length;
        }
        assert!(unacknowledged(sender.as_fd()) > Bytes::ZERO);
        taker.read_exact(&mut vec![0; sent]).unwrap();
        while unacknowledged(sender.as_fd()) > Bytes::ZERO {
            std::thread::yield_now();
        }
    }
}
