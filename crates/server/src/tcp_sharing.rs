//! Connections of TCP that share by weights. The kernel divides; what is decided here is who shares, and
//! what each connection counts for, by the same file and the same rules as for HTTP/3.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_congestion::clients::{Client, Clients};
use anabranch_congestion::vps::Weight;
use anabranch_sockets::client_of;
use http::Request;
use tokio::sync::{Notify, watch};
use tokio::time::{Duration, interval, sleep};

use super::weights::Weights;

/// How often it is looked whether what was answered has arrived, where several connections may be one
/// client's.
const ARRIVES: Duration = Duration::from_millis(50);
/// How often it is looked whether there are groups.
const LOOK: Duration = Duration::from_secs(1);

/// Groups of sockets that share by weights: the kernel's.
pub trait SocketGroups: Send + Sync {
    /// Has a socket share in the group of this name. `None`: it cannot, and sends on its own.
    fn join(&self, socket: OwnedFd, pool: &str, weight: Weight) -> Option<Box<dyn SocketMember>>;

    /// Called once a second: groups may come and go.
    fn look(&self);
}

/// A socket that shares. It stays open while this lives.
pub trait SocketMember: Send {
    /// It counts for this much from now on.
    fn weigh(&self, weight: Weight);

    /// Whether something that was handed to it has not arrived yet.
    fn is_sending(&self) -> bool;
}

/// Which connections of TCP share, and what they count for. One for all servers whose clients share.
pub struct TcpSharing {
    weights: watch::Receiver<Arc<Weights>>,
    groups: Box<dyn SocketGroups>,
    inner: Mutex<Inner>,
    /// An answer has ended.
    answered: Notify,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SeatId(u64);

#[derive(Default)]
struct Inner {
    /// The clients of each pool.
    pools: BTreeMap<Arc<str>, Clients<SeatId>>,
    seats: BTreeMap<SeatId, Seat>,
    next_seat: u64,
}

/// A connection that shares.
struct Seat {
    pool: Arc<str>,
    address: IpAddr,
    client: Client<SeatId>,
    member: Box<dyn SocketMember>,
    weight: Weight,
    /// The head of the request that is being answered, for other weights.
    request: Option<Request<()>>,
}

impl fmt::Debug for TcpSharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpSharing").field("connections", &self.lock().seats.len()).finish_non_exhaustive()
    }
}

impl TcpSharing {
    /// Nobody shares yet. Other weights hold for running answers too, other pools for the connections that
    /// begin.
    pub fn new(weights: watch::Receiver<Arc<Weights>>, groups: Box<dyn SocketGroups>) -> Arc<Self> {
        Arc::new(Self { weights, groups, inner: Mutex::default(), answered: Notify::new() })
    }

    /// Keeps weights as they are to be, for as long as it is awaited.
    pub async fn run(&self) {
        let (mut weights, mut looks) = (self.weights.clone(), interval(LOOK));
        loop {
            tokio::select! {
                changed = weights.changed() => {
                    if changed.is_err() {
                        // Nobody reads the file any more.
                        return;
                    }
                    self.weigh_anew();
                }
                _ = looks.tick() => self.groups.look(),
                () = self.arrival() => self.lock().arrived(),
            }
        }
    }

    /// Ready when something may have arrived. Cancel-safe.
    async fn arrival(&self) {
        let answered = self.answered.notified();
        if !self.lock().awaits() {
            answered.await;
        }
        sleep(ARRIVES).await;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn weigh_anew(&self) {
        let weights = self.weights.borrow().clone();
        let mut inner = self.lock();
        let answers = inner
            .seats
            .iter()
            .filter_map(|(id, seat)| Some((*id, weights.of(seat.address, seat.request.as_ref()?))));
        let answers: Vec<_> = answers.collect();
        answers.into_iter().for_each(|(id, weight)| inner.count(id, Some(weight)));
    }

    /// A client has connected; where it is in a pool its connection can share, but where there are too
    /// many open files.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr, socket: impl AsFd) -> Option<Sharer> {
        let pool = self.weights.borrow().pool_of(address).map(Arc::from)?;
        let place = Mutex::new(Place::Outside(socket.as_fd().try_clone_to_owned().ok()?));
        Some(Sharer(Arc::new(Sharing { sharing: self.clone(), address, pool, place })))
    }
}

impl Inner {
    /// A connection counts for this much; `None`: for what is still on its way.
    fn count(&mut self, id: SeatId, weight: Option<Weight>) {
        let Some(seat) = self.seats.get(&id) else { return };
        let Some(clients) = self.pools.get_mut(&seat.pool) else { return };
        let parts = clients.count(seat.client, id, weight);
        self.weigh(parts);
    }

    fn awaits(&self) -> bool {
        self.pools.values().any(Clients::awaits)
    }

    fn arrived(&mut self) {
        let Self { pools, seats, .. } = self;
        let is_sending = |id: SeatId| seats.get(&id).is_some_and(|seat| seat.member.is_sending());
        let parts: Vec<_> = pools.values_mut().flat_map(|clients| clients.arrived(is_sending)).collect();
        self.weigh(parts);
    }

    fn leave(&mut self, id: SeatId) {
        let Some(seat) = self.seats.remove(&id) else { return };
        let Some(clients) = self.pools.get_mut(&seat.pool) else { return };
        let parts = clients.leave(seat.client, id);
        if clients.is_empty() {
            self.pools.remove(&seat.pool);
        }
        self.weigh(parts);
    }

    /// Tells the groups what has changed.
    fn weigh(&mut self, parts: Vec<(SeatId, Weight)>) {
        for (id, weight) in parts {
            if let Some(seat) = self.seats.get_mut(&id).filter(|seat| seat.weight != weight) {
                seat.weight = weight;
                seat.member.weigh(weight);
            }
        }
    }
}

/// A connection whose client is in a pool. It shares from its first answer on: one that asks for nothing
/// takes no place. Clones are the same.
#[derive(Clone)]
pub(super) struct Sharer(Arc<Sharing>);

struct Sharing {
    sharing: Arc<TcpSharing>,
    address: IpAddr,
    pool: Arc<str>,
    place: Mutex<Place>,
}

enum Place {
    /// In no group, or not yet.
    Outside(OwnedFd),
    Inside(SeatId),
}

impl Sharer {
    /// An answer to this request begins. It counts until what is returned is dropped, and has arrived.
    pub(super) fn answer<B>(&self, request: &Request<B>) -> Counting {
        let Sharing { sharing, address, pool, place } = &*self.0;
        let weights = sharing.weights.borrow().clone();
        let weight = weights.of(*address, request);
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Place::Outside(socket) = &*place {
            let member = socket.try_clone().ok().and_then(|socket| sharing.groups.join(socket, pool, weight));
            let Some(member) = member else { return Counting(self.clone()) };
            let mut inner = sharing.lock();
            let id = SeatId(inner.next_seat);
            inner.next_seat += 1;
            let is_shared = weights.is_shared(*address);
            let client =
                if is_shared { Client::Connection(id) } else { Client::Address(client_of(*address)) };
            inner.pools.entry(pool.clone()).or_default().join(client, id);
            let seat = Seat { pool: pool.clone(), address: *address, client, member, weight, request: None };
            inner.seats.insert(id, seat);
            *place = Place::Inside(id);
        }
        if let Place::Inside(id) = *place {
            let mut inner = sharing.lock();
            if let Some(seat) = inner.seats.get_mut(&id) {
                seat.request = Some(head_of(request));
            }
            inner.count(id, Some(weight));
        }
        Counting(self.clone())
    }
}

/// What weights go by.
fn head_of<B>(request: &Request<B>) -> Request<()> {
    let mut head = Request::new(());
    *head.method_mut() = request.method().clone();
    *head.uri_mut() = request.uri().clone();
    *head.headers_mut() = request.headers().clone();
    head
}

/// While it lives, a connection counts for an answer. It keeps the connection's place.
pub(super) struct Counting(Sharer);

impl fmt::Debug for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counting")
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        let Sharing { sharing, place, .. } = &*self.0.0;
        let Place::Inside(id) = *place.lock().unwrap_or_else(PoisonError::into_inner) else { return };
        let mut inner = sharing.lock();
        if let Some(seat) = inner.seats.get_mut(&id) {
            seat.request = None;
        }
        inner.count(id, None);
        drop(inner);
        sharing.answered.notify_one();
    }
}

impl Drop for Sharing {
    fn drop(&mut self) {
        if let Place::Inside(id) = *self.place.get_mut().unwrap_or_else(PoisonError::into_inner) {
            self.sharing.lock().leave(id);
        }
    }
}

#[cfg(test)]
mod tests;
