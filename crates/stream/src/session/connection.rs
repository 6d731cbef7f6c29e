//! A connection as the session sees it.

use units::{Bytes, Duration, Rate, Time};

use crate::control::{ConnectionId, ConnectionSample, PathId};

/// What the system knows about a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathFigures {
    /// Round-trip time with queueing; zero: not known.
    pub rtt: Duration,
    /// Payload of a full packet; zero: not known.
    pub packet_size: Bytes,
    /// Packets that arrived out of order, ever: each loss makes some.
    pub out_of_order: u64,
    /// Packets with data that arrived, ever.
    pub packets: u64,
    /// Payload that has arrived and was not read yet.
    pub unread: Bytes,
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
    pub(super) packet_size: Bytes,
    pub(super) window: Option<Bytes>,
    /// What it delivers while it has something to deliver; zero: not known.
    pub(super) rate: Rate,
    delivered: u64,
    pub(super) total: u64,
    last_arrival: Time,
    /// Since when its work was not counted yet; `None`: it has none.
    working: Option<Time>,
    /// Time with work in this interval.
    worked: Duration,
    loss: f64,
    unread: Bytes,
    counters: (u64, u64),
}

/// Weight of the past in a connection's rate.
const SMOOTHING: f64 = 0.7;
/// The same while it rises.
const RISING: f64 = 0.5;
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
            packet_size: USUAL_PACKET,
            window: None,
            rate: Rate::ZERO,
            delivered: 0,
            total: 0,
            last_arrival: now,
            working: None,
            worked: Duration::ZERO,
            loss: 0.0,
            unread: Bytes::ZERO,
            counters: (0, 0),
        }
    }

    pub(super) fn established(&mut self, rtt: Duration, now: Time) {
        self.up = Some(now);
        self.srtt = rtt;
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

    pub(super) fn is_up(&self) -> bool {
        self.up.is_some()
    }

    pub(super) fn delivered(&mut self, bytes: u64, now: Time) {
        self.delivered += bytes;
        self.total += bytes;
        self.last_arrival = now;
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

    pub(super) fn figures(&mut self, figures: &PathFigures) {
        if !figures.rtt.is_zero() {
            // The handshake's value is no average: the first sample with data replaces it.
            self.srtt = if self.total == 0 { figures.rtt } else { (self.srtt * 3 + figures.rtt) / 4 };
        }
        if !figures.packet_size.is_zero() {
            self.packet_size = figures.packet_size;
        }
        self.unread = figures.unread;
        let (out_of_order, packets) = self.counters;
        let arrived = figures.packets.saturating_sub(packets);
        if arrived > 0 {
            // A loss makes all that follow it in its window arrive out of order: it counts once an interval.
            let event = if figures.out_of_order > out_of_order { 1.0 } else { 0.0 };
            let sample = event / Bytes::new(arrived).as_f64();
            self.loss = 0.9 * self.loss + 0.1 * sample.min(1.0);
            self.counters = (figures.out_of_order, figures.packets);
        }
    }

    /// The interval ends: takes its rate into the average.
    pub(super) fn measure(&mut self, elapsed: Duration) {
        let worked = self.worked.min(elapsed);
        if worked * 4 < elapsed {
            return;
        }
        let sample = Rate::of(Bytes::new(self.delivered), worked).as_f64();
        let known = self.rate.as_f64();
        // Up faster than down: while a connection finds its rate, requests must not be the limit.
        let weight = if sample > known { RISING } else { SMOOTHING };
        let mean = if known > 0.0 { weight * known + (1.0 - weight) * sample } else { sample };
        self.rate = Rate::from_bps_f64(mean);
    }

    pub(super) fn begin_interval(&mut self) {
        self.delivered = 0;
        self.worked = Duration::ZERO;
    }

    /// Whether the network holds it back: what arrived was read, the window was open, and there was work.
    fn network_limited(&self) -> bool {
        let in_flight = self.rate.amount_in(self.srtt);
        let window_open = self.window.is_none_or(|window| in_flight * 4 < window * 3);
        self.unread < self.packet_size * 2 && window_open && self.working.is_some()
    }

    pub(super) fn sample(&self, now: Time) -> ConnectionSample {
        ConnectionSample {
            connection: self.id,
            path: self.path,
            delivered: Bytes::new(self.delivered),
            srtt: self.srtt,
            packet_size: self.packet_size,
            silent: self.silent(now),
            loss: self.loss,
            network_limited: self.network_limited(),
        }
    }
}
