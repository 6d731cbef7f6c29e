//! Where receive windows cannot be controlled: every setter says so, every figure is unknown.

use std::io;

use anabranch_units::Bytes;
use tokio::net::TcpStream;

use super::path_info::PathInfo;

pub(super) const SUPPORTED: bool = false;

#[derive(Debug)]
pub(super) struct Descriptor;

impl Descriptor {
    pub(super) fn of(_stream: &TcpStream) -> io::Result<Self> {
        Ok(Self)
    }

    pub(super) fn set_window_clamp(&self, _window: u32) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn window_clamp(&self) -> io::Result<u32> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn path_info(&self) -> Option<PathInfo> {
        None
    }

    pub(super) fn unread(&self) -> Bytes {
        Bytes::ZERO
    }
}
