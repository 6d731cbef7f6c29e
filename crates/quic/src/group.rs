//! Connections that share their credit by weights: a group of [`anabranch_congestion::vps`] over quinn.
//!
//! Each connection is a member of the group from when its handshake is done. quinn asks a member for its
//! window whenever it has something to send: that is how the group learns that it wants to, and a member that
//! has sent all it has says so with the next acknowledgement. Who may send more because of another one's
//! acknowledgement is woken by a task, never from within a controller, which quinn calls while it holds the
//! connection.

mod waits;
mod weighted;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anabranch_congestion::algorithm::Algorithm;
use anabranch_congestion::clients::{Client, Clients};
use anabranch_congestion::vps::settings::Settings;
use anabranch_congestion::vps::{Grant, Group, MemberId, Place, Weight};
use anabranch_units::{Bytes, Duration, Time};
use quinn::Connection;
use tokio::sync::Notify;

use super::places::Places;
use super::{Epoch, InFlight, start};
pub use weighted::WeightedFactory;

/// How often unused credit is taken back and bottlenecks are looked at.
pub const ROUND: std::time::Duration = std::time::Duration::from_millis(25);
/// Credit that was not used for so long goes to others: longer than pacing holds it back, and short enough
/// that what one leaves is another one's within a fraction of a second.
const UNUSED: Duration = Duration::from_millis(100);

/// What has a connection look whether it may send more: its group may have granted it something meanwhile.
pub trait Wakeable: Send + Sync {
    /// Has it look. `send_window`: what it keeps at the most of what is sent, in bytes.
    fn wake(&self, send_window: u64);
}

impl Wakeable for Connection {
    /// The same window again: what that does is to wake the connection's driver, which quinn offers no other
    /// way for.
    fn wake(&self, send_window: u64) {
        self.set_send_window(send_window);
    }
}

/// What tells the time of quinn's connections.
pub type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// A group, and the connections that it wakes.
pub struct Sharing {
    epoch: Epoch,
    clock: Clock,
    inner: Mutex<Inner>,
    /// Somebody is to be woken.
    woken: Notify,
    /// Somebody is there.
    occupied: Notify,
}

/// A connection's place in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SlotId(u64);

struct Inner {
    group: Group,
    slots: BTreeMap<SlotId, Seat>,
    /// What they count for.
    clients: Clients<SlotId>,
    /// Of which connection a member is; one has two while its path changes.
    members: BTreeMap<MemberId, SlotId>,
    to_wake: BTreeSet<SlotId>,
    departing: Vec<Departing>,
    /// Where clients were that have gone.
    places: Places,
    next_slot: u64,
}

/// A member whose connection has ended. What it had in flight is in the network still: the others take its
/// place as it leaves, over a round trip, as they would have by its acknowledgements. All at once it would be
/// a burst that a full queue drops.
struct Departing {
    member: MemberId,
    each_round: Bytes,
}

/// What is known of a connection.
struct Seat {
    client: Client<SlotId>,
    connection: Arc<dyn Wakeable>,
    weight: Weight,
    srtt: Duration,
    in_flight: InFlight,
}

impl std::fmt::Debug for Sharing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sharing").field("group", &self.lock().group).finish_non_exhaustive()
    }
}

impl Sharing {
    /// A group without members, whose virtual flows run `algorithm`.
    /// Those that join are taken to share a bottleneck until their delays say otherwise.
    pub fn declared(algorithm: Algorithm) -> Arc<Self> {
        Self::declared_by(algorithm, Arc::new(Instant::now))
    }

    /// The same for connections whose times are another clock's.
    pub fn declared_by(algorithm: Algorithm, clock: Clock) -> Arc<Self> {
        Self::watching(algorithm, Settings::default().declared(), clock)
    }

    /// The same where each client begins alone, and shares with others when their delays say that they are
    /// behind one bottleneck.
    pub fn found(algorithm: Algorithm) -> Arc<Self> {
        Self::watching(algorithm, Settings::default(), Arc::new(Instant::now))
    }

    fn watching(algorithm: Algorithm, settings: Settings, clock: Clock) -> Arc<Self> {
        let inner = Inner {
            group: Group::new(algorithm, start()).watching(settings),
            places: Places::default(),
            slots: BTreeMap::new(),
            clients: Clients::default(),
            members: BTreeMap::new(),
            to_wake: BTreeSet::new(),
            departing: Vec::new(),
            next_slot: 0,
        };
        Arc::new(Self {
            epoch: Epoch(clock()),
            clock,
            inner: Mutex::new(inner),
            woken: Notify::new(),
            occupied: Notify::new(),
        })
    }

    fn now(&self) -> Time {
        self.epoch.time((self.clock)())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands out the credit there is. Whoever gets some is woken, but the one that asked.
    fn hand_out(&self, inner: &mut Inner, asking: Option<MemberId>) {
        let grants = inner.group.allocate(self.now());
        let others =
            grants.into_iter().map(|Grant { member, .. }| member).filter(|member| Some(*member) != asking);
        let before = inner.to_wake.len();
        let slots: Vec<_> = others.filter_map(|member| inner.members.get(&member).copied()).collect();
        inner.to_wake.extend(slots);
        if inner.to_wake.len() > before {
            self.woken.notify_one();
        }
    }

    /// Wakes members and keeps the group in order, for as long as it is awaited.
    pub async fn run(&self) {
        tokio::join!(self.wake(), self.keep());
    }

    async fn wake(&self) {
        loop {
            self.woken.notified().await;
            let connections: Vec<_> = {
                let mut inner = self.lock();
                let slots = std::mem::take(&mut inner.to_wake);
                slots
                    .iter()
                    .filter_map(|slot| inner.slots.get(slot))
                    .map(|seat| (seat.connection.clone(), seat.in_flight.send_window()))
                    .collect()
            };
            for (connection, send_window) in connections {
                connection.wake(send_window);
            }
        }
    }

    async fn keep(&self) {
        loop {
            let occupied = self.occupied.notified();
            let is_empty = {
                let inner = self.lock();
                inner.slots.is_empty() && inner.departing.is_empty()
            };
            if is_empty {
                occupied.await;
            }
            tokio::time::sleep(ROUND).await;
            self.look_after();
        }
    }

    /// Keeps the group in order: to be called every [`ROUND`], as [`run`](Self::run) does.
    pub fn look_after(&self) {
        let now = self.now();
        let mut inner = self.lock();
        inner.group.reclaim(now, UNUSED);
        inner.let_go();
        inner.arrived();
        for moved in inner.group.regroup(now) {
            tracing::debug!(?moved, "a connection shares credit with others from now on");
        }
        self.hand_out(&mut inner, None);
    }
}

impl Inner {
    /// Sets the weights of connections.
    fn weigh(&mut self, parts: Vec<(SlotId, Weight)>) {
        for (slot, part) in parts {
            let Some(seat) = self.slots.get_mut(&slot) else { continue };
            seat.weight = part;
            let members: Vec<_> =
                self.members.iter().filter(|(_, of)| **of == slot).map(|(member, _)| *member).collect();
            members.into_iter().for_each(|member| self.group.set_weight(member, part));
        }
    }

    /// A connection has ended: its members depart.
    fn depart(&mut self, slot: SlotId, srtt: Duration) {
        let members: Vec<_> =
            self.members.iter().filter(|(_, of)| **of == slot).map(|(member, _)| *member).collect();
        for member in members {
            self.members.remove(&member);
            self.group.want(member, Bytes::ZERO);
            let rounds = srtt.as_nanos().div_ceil(Duration::from(ROUND).as_nanos()).max(1);
            let each_round = Bytes::new(self.group.in_flight(member).get().div_ceil(rounds));
            self.departing.push(Departing { member, each_round });
        }
    }

    /// Where a client's connections are.
    fn place_of(&self, client: Client<SlotId>) -> Option<Place> {
        let (slot, _) = self
            .slots
            .iter()
            .find(|(slot, seat)| seat.client == client && self.members.values().any(|of| of == *slot))?;
        let (member, _) = self.members.iter().find(|(_, of)| *of == slot)?;
        self.group.place(*member)
    }

    /// Divides the weights of clients anew where what was answered has arrived: quinn keeps some of it until it
    /// may be sent.
    fn arrived(&mut self) {
        let Self { clients, members, group, .. } = self;
        let parts = clients.arrived(|slot| {
            members.iter().any(|(member, of)| *of == slot && group.in_flight(*member) > Bytes::ZERO)
        });
        self.weigh(parts);
    }

    /// Takes what departing members had in flight out of the books, for a round.
    fn let_go(&mut self) {
        let Self { departing, group, .. } = self;
        departing.retain(|Departing { member, each_round }| {
            group.release_oldest(*member, *each_round);
            let is_over = group.in_flight(*member) == Bytes::ZERO;
            if is_over {
                group.leave(*member);
            }
            !is_over
        });
    }
}

/// A connection is in a group while this lives.
pub struct Membership {
    sharing: Arc<Sharing>,
    slot: SlotId,
}

impl Membership {
    /// The connection counts for this much from now on; for what is still on its way where it has nothing
    /// more to send.
    pub fn count(&self, weight: Option<Weight>) {
        let mut inner = self.sharing.lock();
        if let Some(client) = inner.slots.get(&self.slot).map(|seat| seat.client) {
            let parts = inner.clients.count(client, self.slot, weight);
            inner.weigh(parts);
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut inner = self.sharing.lock();
        if let Some(Client::Address(address)) = inner.slots.get(&self.slot).map(|seat| seat.client)
            && let Some(place) = inner.place_of(Client::Address(address))
        {
            inner.places.remember(address, place, self.sharing.now());
        }
        let seat = inner.slots.remove(&self.slot);
        if let Some(seat) = &seat {
            inner.depart(self.slot, seat.srtt);
            let parts = inner.clients.leave(seat.client, self.slot);
            inner.weigh(parts);
        }
        self.sharing.hand_out(&mut inner, None);
        // The connection goes when nobody is locked out: quinn has a lock of its own.
        drop(inner);
        drop(seat);
    }
}

#[cfg(test)]
mod tests;
