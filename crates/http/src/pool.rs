//! Connections that wait to be asked for something else: what belongs to one session, such as the segments of
//! a playlist, goes on over the connections that are there.
//!
//! A connection waits under what decides where it leads and whose it is. One that its server has ended, or
//! that has waited for long, is not given out. A pool can be bounded: where there are enough connections to a
//! place, one more waits until another one is given back or closed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anabranch_sockets::Interface;
use anabranch_units::Duration;
use tokio::sync::Notify;

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
    shared: Arc<Shared>,
    /// Whose they are.
    owner: u64,
    /// Most connections to a place; `None`: as many as are wanted.
    most: Option<usize>,
}

#[derive(Debug, Default)]
struct Shared {
    connections: Mutex<Connections>,
    /// One was given back or closed.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Connections {
    idle: Vec<Idle>,
    /// Where those lead that are in use or being set up.
    used: Vec<Key>,
}

/// Where a connection belongs that is in use or being set up; it counts as such until this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    pool: Pool,
    key: Key,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut connections = self.pool.lock();
        if let Some(index) = connections.used.iter().position(|key| *key == self.key) {
            connections.used.swap_remove(index);
        }
        drop(connections);
        self.pool.shared.changed.notify_waiters();
    }
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
        Self { shared: self.shared.clone(), owner, ..*self }
    }

    /// The same pool, in which connections that can wait are no more than so many to a place, at least one.
    #[must_use]
    pub fn bounded(&self, most: usize) -> Self {
        Self { shared: self.shared.clone(), most: Some(most.max(1)), ..*self }
    }

    /// Closes what has waited for long.
    pub fn sweep(&self) {
        self.lock().idle.retain(|idle| Duration::from(idle.since.elapsed()) < IDLE);
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.lock().idle.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A place for one more connection, whatever the bound.
    pub(super) fn place(&self, origin: &Origin, interface: Option<&Interface>, http3: bool) -> Place {
        let key = self.key(origin, interface, http3);
        self.lock().used.push(key.clone());
        Place { pool: self.clone(), key }
    }

    fn key(&self, origin: &Origin, interface: Option<&Interface>, http3: bool) -> Key {
        Key { owner: self.owner, origin: origin.clone(), interface: interface.cloned(), http3 }
    }

    /// The same, once one waits in the pool or there are fewer than the bound.
    pub(super) async fn place_within(
        &self,
        origin: &Origin,
        interface: Option<&Interface>,
        http3: bool,
    ) -> Place {
        let key = self.key(origin, interface, http3);
        loop {
            let changed = self.shared.changed.notified();
            if self.lock().use_one(&key, self.most) {
                return Place { pool: self.clone(), key };
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.shared.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connections {
    /// Counts one more as used, unless there are enough. Those that wait are used first.
    fn use_one(&mut self, key: &Key, most: Option<usize>) -> bool {
        let used = self.used.iter().filter(|used| *used == key).count();
        let has_room = most.is_none_or(|most| used < most);
        if has_room {
            self.used.push(key.clone());
        }
        has_room
    }
}

impl Place {
    /// The connection that was used last: the sender knows most about its path.
    pub(super) fn take(&self) -> Option<Wire> {
        self.pool.sweep();
        let mut connections = self.pool.lock();
        let idle = &mut connections.idle;
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
        let mut connections = self.pool.lock();
        let idle = &mut connections.idle;
        let of_place = idle.iter().filter(|idle| idle.key == self.key).count();
        let oldest = match (of_place >= MOST_OF_A_PLACE, idle.len() >= MOST) {
            (true, _) => idle.iter().position(|idle| idle.key == self.key),
            (false, true) => Some(0),
            (false, false) => None,
        };
        if let Some(oldest) = oldest {
            idle.remove(oldest);
        }
        idle.push(Idle { key: self.key.clone(), wire, since: Instant::now() });
    }
}
