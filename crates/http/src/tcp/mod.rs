//! Receive windows and path figures of a TCP socket, or of a connection of QUIC.
//!
//! A receiver that advertises a window of w bytes gets at most w / RTT bytes per second. On Linux
//! [`SocketControl`] sets that window (`TCP_WINDOW_CLAMP`) and reads the kernel's view of the path
//! (`TCP_INFO`). Elsewhere both answer "not supported", and the caller has to pace its reading instead.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "other.rs"]
mod system;

mod path_info;

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use anabranch_units::{Bytes, Duration};
use tokio::net::TcpStream;

pub use anabranch_quic::Arrivals;
pub use path_info::PathInfo;
#[cfg(target_os = "linux")]
pub use system::unacknowledged;

/// The smallest clamp that Linux takes: half of its smallest receive buffer.
pub const SMALLEST_WINDOW: Bytes = Bytes::new(1152);

/// A clamp that does not limit; zero would be refused on an established connection.
const UNLIMITED: u32 = 0x3fff_ffff;

/// A socket whose window is controlled: owned by the connection, so that [`SocketControl`]s never keep it
/// open.
#[derive(Debug)]
pub(crate) struct ControlledSocket {
    descriptor: system::Descriptor,
    /// The clamp that was asked for, `UNLIMITED` without one.
    wanted: AtomicU32,
}

impl ControlledSocket {
    /// Controls the socket of `stream`.
    pub(crate) fn new(stream: &TcpStream) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self { descriptor: system::Descriptor::of(stream)?, wanted: AtomicU32::new(UNLIMITED) }))
    }

    /// A handle on the socket.
    pub(crate) fn control(self: &Arc<Self>) -> SocketControl {
        SocketControl(Handle::Tcp(Arc::downgrade(self)))
    }
}

/// A handle on the TCP socket of a connection. Cheap to clone; when the connection is gone it answers "not
/// connected".
#[derive(Clone, Debug)]
pub struct SocketControl(Handle);

#[derive(Clone, Debug)]
enum Handle {
    Tcp(Weak<ControlledSocket>),
    Quic(Weak<QuicWindow>),
}

/// The window of a connection of QUIC (RFC 9000, section 4.1): owned by the connection, as a
/// [`ControlledSocket`] is.
#[derive(Debug)]
pub(crate) struct QuicWindow {
    connection: quinn::Connection,
    arrivals: Arc<Arrivals>,
    /// The window where none is asked for.
    unlimited: quinn::VarInt,
}

impl QuicWindow {
    pub(crate) fn new(
        connection: quinn::Connection,
        arrivals: Arc<Arrivals>,
        unlimited: quinn::VarInt,
    ) -> Arc<Self> {
        Arc::new(Self { connection, arrivals, unlimited })
    }

    pub(crate) fn connection(&self) -> &quinn::Connection {
        &self.connection
    }

    /// A handle on the window.
    pub(crate) fn control(self: &Arc<Self>) -> SocketControl {
        SocketControl(Handle::Quic(Arc::downgrade(self)))
    }

    fn set(&self, window: Option<Bytes>) {
        let wanted =
            window.and_then(|window| quinn::VarInt::from_u64(window.max(SMALLEST_WINDOW).get()).ok());
        self.connection
            .set_receive_window(wanted.map_or(self.unlimited, |wanted| wanted.min(self.unlimited)));
    }

    fn info(&self) -> PathInfo {
        let (came, lost) = self.arrivals.came_and_lost();
        PathInfo {
            rtt: self.connection.rtt().into(),
            mss: Bytes::new(self.connection.stats().path.current_mtu.into()),
            out_of_order: Some(lost),
            window: None,
            last_data_received: Duration::ZERO,
            data_segments_received: came,
        }
    }
}

impl SocketControl {
    /// That of a connection that is gone.
    pub(crate) fn of_none() -> Self {
        Self(Handle::Tcp(Weak::new()))
    }

    fn socket(&self) -> io::Result<Arc<ControlledSocket>> {
        match &self.0 {
            Handle::Tcp(socket) => socket.upgrade().ok_or_else(|| io::ErrorKind::NotConnected.into()),
            Handle::Quic(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn quic(&self) -> Option<io::Result<Arc<QuicWindow>>> {
        match &self.0 {
            Handle::Tcp(_) => None,
            Handle::Quic(window) => Some(window.upgrade().ok_or_else(|| io::ErrorKind::NotConnected.into())),
        }
    }

    /// Whether windows can be set on this system at all.
    pub const fn is_supported() -> bool {
        system::SUPPORTED
    }

    /// Limits the window that is advertised to the sender, at least [`SMALLEST_WINDOW`]; `None`: no limit.
    ///
    /// A smaller window takes effect as data arrives, since what was advertised is never taken back; a larger
    /// one grows less than twofold per round trip. The kernel may overwrite it: see
    /// [`SocketControl::keep_window`]. The window limits what is on its way, not what waits to be read: for
    /// that there is only the size of the receive buffer.
    ///
    /// # Errors
    /// `NotConnected` when the connection is gone, `Unsupported` where the system cannot do it.
    pub fn set_window(&self, window: Option<Bytes>) -> io::Result<()> {
        if let Some(quic) = self.quic() {
            quic?.set(window);
            return Ok(());
        }
        let socket = self.socket()?;
        let wanted = window.map_or(UNLIMITED, |window| {
            let window = window.max(SMALLEST_WINDOW).get();
            u32::try_from(window).unwrap_or(UNLIMITED).min(UNLIMITED)
        });
        socket.wanted.store(wanted, Ordering::Relaxed);
        socket.descriptor.set_window_clamp(wanted)
    }

    /// Sets the window again when the kernel changed it, and tells whether it had. The kernel's buffer tuning
    /// does so during the first data; call this right after those and then at every control interval.
    ///
    /// # Errors
    /// As [`SocketControl::set_window`].
    pub fn keep_window(&self) -> io::Result<bool> {
        if let Some(quic) = self.quic() {
            // Nobody else sets it.
            return quic.map(|_| false);
        }
        let socket = self.socket()?;
        let wanted = socket.wanted.load(Ordering::Relaxed);
        let changed = wanted != UNLIMITED && socket.descriptor.window_clamp()? != wanted;
        if changed {
            socket.descriptor.set_window_clamp(wanted)?;
        }
        Ok(changed)
    }

    /// What the kernel knows about the path; `None` when the connection is gone or the system does not tell.
    pub fn info(&self) -> Option<PathInfo> {
        if let Some(quic) = self.quic() {
            return quic.ok().map(|quic| quic.info());
        }
        self.socket().ok()?.descriptor.path_info()
    }

    /// Bytes that have arrived and wait to be read; zero when the connection is gone or the system does not
    /// tell.
    pub fn unread(&self) -> Bytes {
        self.socket().map_or(Bytes::ZERO, |socket| socket.descriptor.unread())
    }
}
