//! The connections of a sender, taken together: what they allow, how long they take, and which of them brings
//! a packet first.

use anabranch_congestion::aggregate::Aggregate;
use anabranch_protocol::live::wire::MAX_PAYLOAD;
use anabranch_units::{Bytes, Duration, Rate, Ratio, Time};

use super::super::connection::Connection;
use super::super::control::packet_size;
use super::super::fitting;
use super::super::{ConnectionId, UplinkId};
use super::Sender;

/// How many packets that wait are looked at when the connection of the next one is chosen.
const LOOKAHEAD: usize = 64;

impl Sender {
    /// What may be sent over all connections that live, with headers.
    pub(super) fn allowed_rate(&self) -> Rate {
        let alive = self.connections.values().filter(|connection| !connection.is_silent());
        alive.map(|connection| connection.rate().allowed_rate()).sum()
    }

    pub(super) fn available_rate(&self) -> Rate {
        let allowed = self.allowed_rate();
        let payload = Ratio::from_f64(Bytes::of(MAX_PAYLOAD).as_f64() / packet_size().as_f64());
        let media = self.protection.code().map_or(Ratio::ONE, |code| {
            Ratio::new(code.media().into(), u32::from(code.media()) + u32::from(code.parity()))
        });
        allowed * payload * media
    }

    /// A report came: learns which rate fits.
    pub(super) fn fit(&mut self, now: Time) {
        let of_all = |bytes: fn(&Connection) -> Bytes| {
            self.connections.values().map(bytes).fold(Bytes::ZERO, |sum, one| sum + one)
        };
        let payload = Ratio::from_f64(Bytes::of(MAX_PAYLOAD).as_f64() / packet_size().as_f64());
        let sample = fitting::Sample {
            arrived: self.counts.past_arrived + of_all(Connection::arrived),
            queued: of_all(Connection::queued),
            taken: self.demand.rate(Bytes::ZERO, now) * payload,
            waiting: self.queue.size(),
            available: self.available_rate(),
            left: self.counts.left,
            latency: self.settings.latency,
        };
        self.fitting.sample(&sample, now);
    }

    /// What an encoder that follows should make; zero as long as nothing gets through.
    pub(super) fn fitting_rate(&self) -> Rate {
        let is_heard = self.connections.values().any(|connection| !connection.is_silent());
        if is_heard { self.fitting.rate() } else { Rate::ZERO }
    }

    /// Datagrams whose fate is not known.
    pub(super) fn under_way(&self) -> usize {
        self.connections.values().map(Connection::under_way).sum()
    }

    /// What queues on the shortest way add to it.
    pub(super) fn queueing(&self) -> Duration {
        let usable = self.usable().map(|(_, connection)| connection.queueing());
        usable.min().unwrap_or(Duration::ZERO)
    }

    /// The same when packets are lost.
    pub(super) fn queueing_at_losses(&self) -> Duration {
        let usable = self.usable().map(|(_, connection)| connection.queueing_at_losses());
        usable.min().unwrap_or(Duration::ZERO)
    }

    /// The shortest round trip.
    pub(super) fn rtt(&self) -> Option<Duration> {
        self.usable().map(|(_, connection)| connection.rtt()).min()
    }

    /// Connections that media may take: those from which something is heard, or else all.
    pub(super) fn usable(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        let is_any_alive = self.connections.values().any(|connection| !connection.is_silent());
        self.connections
            .iter()
            .filter(move |(_, connection)| !connection.is_silent() || !is_any_alive)
            .map(|(id, connection)| (*id, connection))
    }

    /// The connection that brings the next packet, of a datagram of so many bytes, first, if it may leave
    /// there now. When faster connections are taken by what waits before them, later packets leave on slower
    /// ones, so that all of them are used.
    pub(super) fn choose(&self, time: Time, length: usize, now: Time) -> Option<ConnectionId> {
        let usable = || self.usable().filter(|(_, connection)| connection.longest() >= length);
        let shortest = usable().map(|(_, connection)| connection.way(now)).min()?;
        // A way so much longer than the shortest brings it too late.
        let slack = (time + self.settings.latency).since(now);
        let mut ways: Vec<_> = usable()
            .filter(|(_, connection)| connection.way(now) <= shortest + slack)
            .map(|(id, connection)| {
                (connection.next_send().max(now), connection.way(now), connection.interval(), id)
            })
            .collect();
        for _ in 0..self.waiting().min(LOOKAHEAD) {
            let (leaves, _, interval, id) = ways.iter_mut().min_by_key(|(leaves, way, ..)| *leaves + *way)?;
            if *leaves <= now {
                return Some(*id);
            }
            *leaves += *interval;
        }
        None
    }

    /// What the other links bring: so much of what is to be sent is not wanted of this one.
    pub(super) fn brought_beside(&self, link: UplinkId) -> Rate {
        let others = self.connections.values().filter(|other| other.link != link && !other.is_silent());
        others.map(|other| other.rate().delivered()).sum()
    }

    /// The round trip of the shortest way without a queue.
    pub(super) fn least_rtt(&self) -> Option<Duration> {
        self.usable().filter_map(|(_, connection)| connection.least_rtt()).min()
    }

    /// What is left of what the stream saved of its rate beside others, from 0 to 1.
    pub(super) fn saved(&self) -> f64 {
        self.links.values().map(Aggregate::saved).fold(0.0, f64::max)
    }

    /// Whether others fill the queue on every way.
    pub(super) fn has_standing_queue(&self) -> bool {
        let mut usable = self.usable().peekable();
        usable.peek().is_some() && usable.all(|(_, connection)| connection.has_standing_queue())
    }
}
