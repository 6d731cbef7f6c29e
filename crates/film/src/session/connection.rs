//! A connection as the session sees it.

use anabranch_units::{Bytes, Duration, Rate, Time};

use crate::control::{ConnectionId, ConnectionSample, PathId};

/// What the system knows about a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathFigures {
    /// Round-trip time with queueing; zero: not known.
    pub rtt: Duration,
    /// Payload of a full packet; zero: not known.
    pub packet_size: Bytes,
    /// Packets that arrived out of order, ever, as each loss makes some, or were lost; `None`: not known.
    pub out_of_order: Option<u64>,
    /// Packets with data that arrived, ever.
    pub packets: u64,
    /// Payload that has arrived and was not read yet.
    pub unread: Bytes,
    /// How long the driver has kept from reading because of the limit
    /// ([`Action::LimitRate`](super::Action::LimitRate)), in all; zero: not known.
    pub held: Duration,
}

/// State and measurements of a connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) id: ConnectionId,
    pub(super) path: PathId,
    /// The stripe group that it is in, by its founder.
    pub(super) group: Option<ConnectionId>,
    /// When it was set up; `None` before.
    up: Option<Time>,
    /// Gets nothing more to do, and is closed then.
    pub(super) closing: bool,
    pub(super) srtt: Duration,
    /// The shortest average that was seen: nearly without a queue.
    pub(super) shortest: Duration,
    pub(super) packet_size: Bytes,
    pub(super) window: Option<Bytes>,
    /// What it delivers while it has something to deliver; zero: not known.
    pub(super) rate: Rate,
    delivered: u64,
    pub(super) total: u64,
    /// What of it brought the stream on.
    pub(super) new: u64,
    last_arrival: Time,
    /// Since when its work was not counted yet; `None`: it has none.
    working: Option<Time>,
    /// Time with work in this interval.
    worked: Duration,
    /// Since when it could have had work in this interval.
    ready: Time,
    /// The part of its packets that is lost; `None`: not known.
    pub(super) loss: Option<f64>,
    /// The loss before this time was counted.
    loss_counted: Time,
    unread: Bytes,
    /// How long reading was held back, in all and until the interval began.
    held: (Duration, Duration),
    counters: (u64, u64),
}

/// Weight of the past in a connection's rate.
const SMOOTHING: f64 = 0.7;
/// The same while it rises.
const RISING: f64 = 0.5;
/// So many bytes tell a rate, however little time they took.
const MUCH: Bytes = Bytes::kib(64);
/// A usual payload of a full packet, until the connection's own is known.
const USUAL_PACKET: Bytes = Bytes::new(1448);

impl Connection {
    pub(super) fn new(id: ConnectionId, path: PathId, now: Time) -> Self {
        Self {
            id,
            path,
            group: None,
            up: None,
            closing: false,
            srtt: Duration::ZERO,
            shortest: Duration::ZERO,
            packet_size: USUAL_PACKET,
            window: None,
            rate: Rate::ZERO,
            delivered: 0,
            total: 0,
            new: 0,
            last_arrival: now,
            working: None,
            worked: Duration::ZERO,
            ready: now,
            loss: None,
            loss_counted: now,
            unread: Bytes::ZERO,
            held: (Duration::ZERO, Duration::ZERO),
            counters: (0, 0),
        }
    }

    pub(super) fn established(&mut self, rtt: Duration, now: Time) {
        self.up = Some(now);
        self.ready = now;
        (self.srtt, self.shortest) = (rtt, rtt);
        self.last_arrival = now;
    }

    /// Its queue of requests, as the content coordinator knows it.
    pub(super) fn pipe(&self) -> ConnectionId {
        self.group.unwrap_or(self.id)
    }

    /// It showed that it lives, though it brought no payload.
    pub(super) fn heard(&mut self, now: Time) {
        self.last_arrival = now;
    }

    /// How long it has been set up.
    pub(super) fn age(&self, now: Time) -> Duration {
        self.up.map_or(Duration::ZERO, |up| now.since(up))
    }

    pub(super) fn is_up(&self) -> bool {
        self.up.is_some()
    }

    pub(super) fn delivered(&mut self, bytes: u64, new: u64, now: Time) {
        self.delivered += bytes;
        self.total += bytes;
        self.new += new;
        self.last_arrival = now;
    }

    /// What it brought in this interval.
    pub(super) fn delivered_now(&self) -> u64 {
        self.delivered
    }

    /// For so long it may bring what nobody needs; then it is closed instead.
    pub(super) fn patience(&self) -> Duration {
        Duration::from_secs(1).max(self.srtt * 4)
    }

    /// How long it has had work and brought nothing.
    pub(super) fn silent(&self, now: Time) -> Duration {
        self.working.map_or(Duration::ZERO, |_| now.since(self.last_arrival))
    }

    /// It has work from now on, or none.
    pub(super) fn note_work(&mut self, has_work: bool, now: Time) {
        if let Some(since) = self.working {
            self.worked += now.since(since);
        }
        if has_work && self.working.is_none() {
            // Before the first byte of an answer a round trip passes in any case.
            self.last_arrival = self.last_arrival.max(now);
        }
        self.working = has_work.then_some(now);
    }

    pub(super) fn figures(&mut self, figures: &PathFigures, now: Time) {
        if !figures.rtt.is_zero() {
            // The handshake's value is no average: the first sample with data replaces it.
            self.srtt = if self.total == 0 { figures.rtt } else { (self.srtt * 3 + figures.rtt) / 4 };
            self.shortest = self.shortest.min(self.srtt);
        }
        if !figures.packet_size.is_zero() {
            self.packet_size = figures.packet_size;
        }
        self.unread = figures.unread;
        self.held.0 = figures.held;
        let Some(out_of_order) = figures.out_of_order else { return };
        let (before, packets) = self.counters;
        let arrived = figures.packets.saturating_sub(packets);
        if arrived > 0 {
            // A loss makes all that follow it arrive out of order for a round trip: it counts once.
            let is_new = out_of_order > before && now >= self.loss_counted;
            if is_new {
                self.loss_counted = now + self.srtt;
            }
            let sample = if is_new { 1.0 / Bytes::new(arrived).as_f64() } else { 0.0 };
            self.loss = Some(0.9 * self.loss.unwrap_or(0.0) + 0.1 * sample.min(1.0));
            self.counters = (out_of_order, figures.packets);
        }
    }

    /// The interval ends: takes its rate into the average. One that is asked only so often has worked for
    /// long enough when it has brought much.
    pub(super) fn measure(&mut self, elapsed: Duration, is_spaced: bool) {
        let worked = self.worked.min(elapsed);
        let has_brought_much = is_spaced && Bytes::new(self.delivered) >= MUCH && !worked.is_zero();
        if worked * 4 < elapsed && !has_brought_much {
            return;
        }
        let sample = Rate::of(Bytes::new(self.delivered), worked).as_f64();
        let known = self.rate.as_f64();
        // Up faster than down: while a connection finds its rate, requests must not be the limit.
        let weight = if sample > known { RISING } else { SMOOTHING };
        let mean = if known > 0.0 { weight * known + (1.0 - weight) * sample } else { sample };
        self.rate = Rate::from_bps_f64(mean);
    }

    pub(super) fn begin_interval(&mut self, now: Time) {
        self.delivered = 0;
        self.worked = Duration::ZERO;
        self.ready = now;
        self.held.1 = self.held.0;
    }

    /// Whether it had nothing to do for a quarter of the interval or more.
    pub(super) fn was_idle(&self, now: Time) -> bool {
        let ready = now.since(self.ready);
        let worked = self.worked + self.working.map_or(Duration::ZERO, |since| now.since(since));
        !ready.is_zero() && worked * 4 < ready * 3
    }

    /// Whether the limit kept it from reading for half of the interval or more.
    pub(super) fn was_held(&self, now: Time) -> bool {
        let interval = now.since(self.ready);
        !interval.is_zero() && (self.held.0 - self.held.1) * 2 >= interval
    }

    /// Whether the network holds it back: what arrived was read, the window was open, and there was work.
    /// What waits unread tells little where packets are as large as all that was asked for (on loopback), and
    /// is not known of QUIC; the time for which reading was held back tells it everywhere.
    fn network_limited(&self, now: Time) -> bool {
        let in_flight = self.rate.amount_in(self.srtt);
        let window_open = self.window.is_none_or(|window| in_flight * 4 < window * 3);
        self.unread < self.packet_size * 2 && window_open && self.working.is_some() && !self.was_held(now)
    }

    pub(super) fn sample(&self, now: Time) -> ConnectionSample {
        ConnectionSample {
            connection: self.id,
            path: self.path,
            delivered: Bytes::new(self.delivered),
            srtt: self.srtt,
            packet_size: self.packet_size,
            silent: self.silent(now),
            loss: self.loss.unwrap_or(0.0),
            network_limited: self.network_limited(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_counts_once_however_often_the_path_is_looked_at() {
        let (rtt, packet_size) = (Duration::from_millis(300), Bytes::new(1448));
        let mut connection = Connection::new(ConnectionId(0), PathId(0), Time::ZERO);
        connection.established(rtt, Time::ZERO);
        let mut sum = 0.0;
        let at = |tick: u64| Time::ZERO + Duration::from_millis(tick * 100);
        for tick in 1..=100 {
            // One loss: what follows it for a round trip arrives out of order.
            let out_of_order = Some(tick.clamp(50, 53) - 50);
            let figures =
                PathFigures { rtt, packet_size, out_of_order, packets: tick * 10, ..PathFigures::default() };
            let before = connection.loss.unwrap_or(0.0);
            connection.figures(&figures, at(tick));
            sum += (connection.loss.unwrap() - 0.9 * before) / 0.1 * 10.0;
        }
        assert!((0.99..1.01).contains(&sum), "{sum} losses");
    }

    #[test]
    fn what_nobody_tells_of_losses_is_unknown_and_not_zero() {
        let mut connection = Connection::new(ConnectionId(0), PathId(0), Time::ZERO);
        connection.established(Duration::from_millis(80), Time::ZERO);
        let figures = |out_of_order, packets| PathFigures { out_of_order, packets, ..PathFigures::default() };
        connection.figures(&figures(None, 100), Time::ZERO);
        assert_eq!(connection.loss, None);
        connection.figures(&figures(Some(0), 0), Time::ZERO);
        assert_eq!(connection.loss, None, "nothing has arrived");
        connection.figures(&figures(Some(0), 100), Time::ZERO);
        assert_eq!(connection.loss, Some(0.0));
    }
}
