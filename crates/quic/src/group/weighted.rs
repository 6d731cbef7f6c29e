//! A connection as a member of a group: quinn's controller of it.

use std::any::Any;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use anabranch_congestion::clients::Client;
use anabranch_congestion::vps::{Heard, MemberId, SentTimes, Weight};
use anabranch_units::{Bytes, Duration};
use quinn::congestion::{Controller, ControllerFactory};
use quinn_proto::RttEstimator;

use super::waits::Waits;
use super::{Inner, Membership, Seat, Sharing, SlotId, Wakeable};
use crate::{INITIAL_WINDOW, InFlight, is_open};

/// Makes the controller of a connection of a group, and keeps what it has in common with who answers its
/// requests.
#[derive(Clone)]
pub struct WeightedFactory {
    sharing: Arc<Sharing>,
    in_flight: InFlight,
    /// Set when the handshake is done.
    pub(super) joined: Arc<OnceLock<(SlotId, MemberId)>>,
}

impl WeightedFactory {
    /// For a connection that shares with these, once it is there.
    pub fn new(sharing: Arc<Sharing>, in_flight: InFlight) -> Self {
        Self { sharing, in_flight, joined: Arc::default() }
    }

    /// The handshake is done: the connection joins, as one of those from `address`, or for itself alone. It
    /// leaves when what is answered is dropped.
    pub fn join(&self, connection: impl Wakeable + 'static, address: Option<IpAddr>) -> Membership {
        let sharing = self.sharing.clone();
        let mut inner = sharing.lock();
        let slot = SlotId(inner.next_slot);
        inner.next_slot += 1;
        let seat = Seat {
            client: address.map_or(Client::Connection(slot), Client::Address),
            connection: Arc::new(connection),
            weight: Weight::ONE,
            srtt: Duration::ZERO,
            in_flight: self.in_flight.clone(),
        };
        inner.clients.join(seat.client, slot);
        inner.slots.insert(slot, seat);
        let place = address.and_then(|address| {
            let now = self.sharing.now();
            inner.place_of(Client::Address(address)).or_else(|| inner.places.get(address, now))
        });
        let member = match place {
            Some(place) => inner.group.join_beside(Weight::ONE, place),
            None => inner.group.join(Weight::ONE),
        };
        inner.members.insert(member, slot);
        // Nobody else sets it.
        let _ = self.joined.set((slot, member));
        inner.to_wake.insert(slot);
        drop(inner);
        sharing.woken.notify_one();
        sharing.occupied.notify_one();
        Membership { sharing, slot }
    }
}

impl ControllerFactory for WeightedFactory {
    fn build(self: Arc<Self>, _: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Weighted {
            sharing: self.sharing.clone(),
            joined: self.joined.clone(),
            told: self.in_flight.clone(),
            packet: mtu.into(),
            times: SentTimes::default(),
            unknown: 0,
            srtt: Duration::ZERO,
            last_acked: None,
            waits: Waits::default(),
        })
    }
}

/// The controller of a connection whose window the group decides.
#[derive(Debug)]
struct Weighted {
    sharing: Arc<Sharing>,
    joined: Arc<OnceLock<(SlotId, MemberId)>>,
    told: InFlight,
    /// Bytes of a full packet on this path.
    packet: u64,
    times: SentTimes,
    /// What quinn has in flight and the group does not know of: the handshake, probes of the path's MTU.
    unknown: u64,
    srtt: Duration,
    /// When the newest packet was sent that the acknowledgement at hand acknowledges.
    last_acked: Option<Instant>,
    waits: Waits,
}

impl Weighted {
    /// Does something as a member; before the handshake is done there is nothing to do.
    fn as_member<T>(&self, what: impl FnOnce(&mut Inner, MemberId) -> T) -> Option<T> {
        let (_, member) = *self.joined.get()?;
        Some(what(&mut self.sharing.lock(), member))
    }
}

impl Controller for Weighted {
    fn on_sent(&mut self, now: Instant, bytes: u64, _: u64) {
        let bytes = self.told.acknowledged_of(bytes);
        if bytes == 0 {
            return;
        }
        let at = self.sharing.epoch.time(now);
        let range = self.times.sent(at, Bytes::new(bytes));
        self.as_member(|inner, member| {
            // quinn tells of a whole batch at once; each packet of it stands for one of a virtual flow.
            let mut start = range.start;
            while start < range.end {
                let end = range.end.min(start + self.packet);
                inner.group.on_sent(member, start..end, at);
                start = end;
            }
            self.told.set(inner.group.in_flight(member).get() + self.unknown);
        });
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _: bool, rtt: &RttEstimator) {
        self.srtt = rtt.get().into();
        self.last_acked = Some(sent);
        let epoch = self.sharing.epoch;
        let range = self.times.acknowledged(epoch.time(sent), Bytes::new(bytes));
        // Each packet's acknowledgement counts as one; the round trip is the newest packet's, which did not
        // wait for others.
        let heard = Heard { now: epoch.time(now), rtt: None, srtt: self.srtt };
        self.as_member(|inner, member| inner.group.on_ack(member, &[range], &heard));
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _: Option<u64>) {
        self.told.set(in_flight);
        let (at, srtt) = (self.sharing.epoch.time(now), self.srtt);
        // When the packet of the acknowledgement before came back, had its receiver not waited, and after how long.
        let heard = self.last_acked.take().and_then(|sent| {
            let rtt = now.saturating_duration_since(sent);
            let (sent, rtt) = self.waits.measured(sent, rtt, srtt.into())?;
            Some((self.sharing.epoch.time(sent + rtt), rtt.into()))
        });
        let Some((_, member)) = self.joined.get().copied() else { return };
        let sharing = self.sharing.clone();
        let mut inner = sharing.lock();
        if let Some((back, rtt)) = heard {
            inner.group.on_ack(member, &[], &Heard { now: back, rtt: Some(rtt), srtt });
        }
        let slot = inner.members.get(&member).copied();
        if let Some(seat) = slot.and_then(|slot| inner.slots.get_mut(&slot)) {
            seat.srtt = srtt;
        }
        // What of the handshake is given up was told as sent and is never acknowledged.
        let counted = inner.group.in_flight(member).get();
        if counted > in_flight {
            for range in self.times.lost(at, Bytes::new(counted - in_flight)) {
                inner.group.release(member, range);
            }
        }
        self.unknown = in_flight.saturating_sub(inner.group.in_flight(member).get());
        tracing::trace!(?member, in_flight, counted, unknown = self.unknown, window = %inner.group.total_window(), "acknowledged");
        if app_limited {
            inner.group.want(member, Bytes::ZERO);
        }
        sharing.hand_out(&mut inner, Some(member));
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        let epoch = self.sharing.epoch;
        let at = epoch.time(now);
        // A mark of ECN loses nothing; one byte stands for it.
        let lost = self.times.lost(epoch.time(sent), Bytes::new(lost_bytes.max(1)));
        self.as_member(|inner, member| {
            for range in lost {
                inner.group.on_loss(member, range, at);
            }
            if is_persistent {
                inner.group.on_timeout(member, at);
            }
            self.sharing.hand_out(inner, Some(member));
        });
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.packet = u64::from(mtu).max(1);
    }

    /// quinn asks when it has something to send.
    fn window(&self) -> u64 {
        let allowed = self.as_member(|inner, member| {
            inner.group.want_more(member);
            self.sharing.hand_out(inner, Some(member));
            let (window, in_flight) = (inner.group.window(member).get(), inner.group.in_flight(member).get());
            if is_open(window, in_flight, self.packet) { window } else { in_flight }
        });
        allowed.map_or(INITIAL_WINDOW.get(), |window| window.saturating_add(self.unknown)).saturating_add(1)
    }

    /// For another path, on which nothing is in flight.
    fn clone_box(&self) -> Box<dyn Controller> {
        let joined = OnceLock::new();
        if let Some((slot, _)) = self.joined.get() {
            let mut inner = self.sharing.lock();
            let weight = inner.slots.get(slot).map_or(Weight::ONE, |seat| seat.weight);
            let member = inner.group.join(weight);
            inner.members.insert(member, *slot);
            let _ = joined.set((*slot, member));
        }
        Box::new(Self {
            sharing: self.sharing.clone(),
            joined: Arc::new(joined),
            told: self.told.clone(),
            packet: self.packet,
            times: SentTimes::default(),
            unknown: 0,
            srtt: self.srtt,
            last_acked: None,
            waits: Waits::default(),
        })
    }

    fn initial_window(&self) -> u64 {
        INITIAL_WINDOW.get()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl Drop for Weighted {
    fn drop(&mut self) {
        self.as_member(|inner, member| {
            // One that departs already is let go by then; this one was left for another path.
            if inner.members.remove(&member).is_some() {
                inner.group.leave(member);
                self.sharing.hand_out(inner, None);
            }
        });
    }
}
