//! What a connection has in flight.
//!
//! quinn tells a controller of packets that have nothing but acknowledgements as of any others, and those are
//! never acknowledged themselves. Counted as in flight they would be waited for, where nothing else is on its
//! way for ever. So the [keys](super::keys) that encrypt a packet show whether it is one of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quinn_proto::crypto::ServerConfig;

use super::keys::{Watch, shown_by_server};
use super::{LEAST_SEND_WINDOW, SEND_WINDOW, frames};

/// What a connection has in flight, as its controller counts it, for those who want to know whether all has
/// arrived or how much it should keep.
#[derive(Clone, Debug, Default)]
pub struct InFlight(Arc<Figures>);

#[derive(Debug)]
struct Figures {
    bytes: AtomicU64,
    /// What quinn has made ready of packets that are never acknowledged, and has not told of.
    unacknowledged: AtomicU64,
    /// What quinn was told to keep at the most.
    send_window: AtomicU64,
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            bytes: AtomicU64::new(0),
            unacknowledged: AtomicU64::new(0),
            send_window: AtomicU64::new(SEND_WINDOW),
        }
    }
}

impl Watch for Figures {
    fn sends(&self, frames: &[u8], bytes: u64) {
        if !frames::are_acknowledged(frames) {
            self.unacknowledged.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

impl InFlight {
    pub(super) fn set(&self, bytes: u64) {
        self.0.bytes.store(bytes, Ordering::Relaxed);
    }

    /// What `inner` does for the one connection that is accepted with it, whose controllers learn in this way
    /// which packets are acknowledged.
    pub fn told_by(&self, inner: Arc<dyn ServerConfig>) -> Arc<dyn ServerConfig> {
        shown_by_server(self.0.clone(), inner)
    }

    /// How much is in flight of what quinn says that it sent: without the packets that have nothing but
    /// acknowledgements (RFC 9002, section 2).
    pub(super) fn acknowledged_of(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(self.0.unacknowledged.swap(0, Ordering::Relaxed))
    }

    /// Whether everything that was sent is acknowledged or given up.
    pub fn is_nothing(&self) -> bool {
        self.0.bytes.load(Ordering::Relaxed) == 0
    }

    /// What the connection keeps at the most of what is sent until it is acknowledged.
    pub fn send_window(&self) -> u64 {
        self.0.send_window.load(Ordering::Relaxed)
    }

    /// What it should keep from now on, where that is something else: twice what is in flight, so that there
    /// is always something to send; much more would have what becomes urgent wait behind it. In powers of
    /// two, so that it changes seldom.
    pub fn new_send_window(&self) -> Option<u64> {
        let bytes = self.0.bytes.load(Ordering::Relaxed);
        let wanted = bytes.saturating_mul(2).clamp(LEAST_SEND_WINDOW, SEND_WINDOW).next_power_of_two();
        (self.0.send_window.swap(wanted, Ordering::Relaxed) != wanted).then_some(wanted)
    }
}
