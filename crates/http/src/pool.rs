//! Connections that wait to be asked for something else: what belongs to one session, such as the segments of
//! a playlist, goes on over the connections that are there.
//!
//! A connection waits under what decides where it leads and whose it is. One that its server has ended, or
//! that has waited for long, is not given out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anabranch_sockets::Interface;
use anabranch_units::Duration;

use super::target::Origin;
use super::wire::Wire;

/// Most connections that wait in a pool.
const MOST: usize = 64;
/// Most of them to one place.
const MOST_OF_A_PLACE: usize = 16;
/// So long a connection waits. Servers keep one for some seconds to some minutes, and count those that they
/// keep.
const IDLE: Duration = Duration::from_secs(20);

/// Connections without anything to do, shared by all clones. They are closed when the last one is dropped.
/// The options that connections are made with (whom to trust, through which proxies) are to be the same for
/// all of a pool.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    idle: Arc<Mutex<Vec<Idle>>>,
    /// Whose they are.
    owner: u64,
}

/// Where a connection belongs.
#[derive(Debug)]
pub(super) struct Place {
    pool: Pool,
    key: Key,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    owner: u64,
    origin: Origin,
    interface: Option<Interface>,
    http3: bool,
}

#[derive(Debug)]
struct Idle {
    key: Key,
    wire: Wire,
    since: Instant,
}

impl Pool {
    /// The same pool for the connections of this owner: no other one gets them. It stands for what is said
    /// over them that not everybody may say.
    #[must_use]
    pub fn of(&self, owner: u64) -> Self {
        Self { idle: self.idle.clone(), owner }
    }

    /// Closes what has waited for long.
    pub fn sweep(&self) {
        self.lock().retain(|idle| Duration::from(idle.since.elapsed()) < IDLE);
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn place(&self, origin: &Origin, interface: Option<&Interface>, http3: bool) -> Place {
        let key = Key { owner: self.owner, origin: origin.clone(), interface: interface.cloned(), http3 };
        Place { pool: self.clone(), key }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// The connection that was used last: the sender knows most about its path.
    pub(super) fn take(&self) -> Option<Wire> {
        self.pool.sweep();
        let mut idle = self.pool.lock();
        while let Some(index) = idle.iter().rposition(|idle| idle.key == self.key) {
            let mut wire = idle.remove(index).wire;
            if wire.is_quiet() {
                return Some(wire);
            }
        }
        None
    }

    /// Keeps a connection, if it can be used again.
    pub(super) fn keep(self, mut wire: Wire) {
        // Where it cannot be set it was not.
        let _ = wire.control().set_window(None);
        if !wire.is_clean() {
            return;
        }
        let mut idle = self.pool.lock();
        let of_place = idle.iter().filter(|idle| idle.key == self.key).count();
        let oldest = match (of_place >= MOST_OF_A_PLACE, idle.len() >= MOST) {
            (true, _) => idle.iter().position(|idle| idle.key == self.key),
            (false, true) => Some(0),
            (false, false) => None,
        };
        if let Some(oldest) = oldest {
            idle.remove(oldest);
        }
        idle.push(Idle { key: self.key, wire, since: Instant::now() });
    }
}
