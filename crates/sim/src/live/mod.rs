//! Live streams: the sender and the receiver of `anabranch send` and `receive`, with simulated datagrams
//! between them.
//!
//! QUIC is not simulated, only what it does to a stream: a connection is there after a round trip, and gone
//! when nothing was heard of it for [`IDLE`].

mod film;

use std::collections::BTreeMap;

use anabranch_congestion::shares::TELL_INTERVAL;
use anabranch_live::{ConnectionId, IDLE, PACKET_OVERHEAD, Receiver, Sender, UplinkId};
use anabranch_units::{Bytes, Duration, Time};

use crate::counted::FlowCounted;
use crate::model::{FlowId, Live};
use crate::network::{LiveBody, LiveDatagram, LiveWay, Network};
use crate::report::{Decision, FlowSample, LiveTotals};
use film::Film;

/// A hello that is not answered is said again after so long, and then after twice as long each time (RFC 9002,
/// section 6.2.2),
const FIRST_HELLO: Duration = Duration::from_secs(1);
/// up to this.
const LAST_HELLO: Duration = Duration::from_secs(5);
/// What begins a connection of QUIC fills a datagram (RFC 9000, section 14.1), with its headers.
const HELLO: Bytes = Bytes::new(1200 + 28);
/// A packet's time is over when it has not come out so long after its latency.
const GRACE: Duration = Duration::from_secs(1);
/// The timer is no finer.
const TICK: Duration = Duration::from_micros(1);

/// A running stream.
#[derive(Debug)]
pub(crate) struct Stream {
    flow: FlowId,
    live: Live,
    sender: Sender,
    receiver: Receiver,
    film: Film,
    /// The number of each uplink in the network.
    ways: Vec<u32>,
    connections: BTreeMap<u32, Connection>,
    next_connection: u32,
    /// What the receiver has of each connection: its uplink, and when it heard of it.
    known: BTreeMap<u32, (usize, Time)>,
    timer_at: Time,
    /// When it told those it shares with how it stands.
    told: Option<Time>,
    delivered: Bytes,
    connections_max: usize,
}

/// A connection as the sender has it.
#[derive(Clone, Copy, Debug)]
struct Connection {
    uplink: usize,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Not answered yet: when it is asked for again, and how long after the last time that is.
    Asking { again: Time, after: Duration },
    /// There; the last that was heard of it.
    Up { heard: Time },
}

impl Stream {
    /// One that has not begun.
    pub(crate) fn new(flow: FlowId, live: Live, paths: &[(u32, u32)], network: &mut Network) -> Self {
        let settings = live.settings;
        let ways =
            (0..).zip(paths).map(|(uplink, paths)| network.add_live_way(LiveWay::new(flow, uplink, *paths)));
        Self {
            flow,
            sender: match &live.share {
                Some(share) => Sender::new(settings).with_weight(share.weight),
                None => Sender::new(settings),
            },
            receiver: Receiver::new(settings.latency, 0).with_published_control(settings.is_published),
            film: Film::new(&live),
            live,
            ways: ways.collect(),
            connections: BTreeMap::new(),
            next_connection: 0,
            known: BTreeMap::new(),
            timer_at: Time::NEVER,
            told: None,
            delivered: Bytes::ZERO,
            connections_max: 0,
        }
    }

    pub(crate) fn start(&mut self, network: &mut Network) {
        self.film.begin(Time::from_nanos(network.now));
        self.act(network);
    }

    /// The flow's timer.
    pub(crate) fn timer(&mut self, network: &mut Network) {
        if Time::from_nanos(network.now) >= self.timer_at {
            self.timer_at = Time::NEVER;
            self.act(network);
        }
    }

    /// The film is over.
    pub(crate) fn stop(&mut self, network: &mut Network) {
        self.film.end();
        self.sender.finish();
        self.act(network);
    }

    /// A datagram has arrived.
    pub(crate) fn arrived(&mut self, uplink: usize, datagram: LiveDatagram, network: &mut Network) {
        let now = Time::from_nanos(network.now);
        let LiveDatagram { connection, body } = datagram;
        let id = ConnectionId(connection);
        match body {
            LiveBody::Hello(at) => {
                if self.known.contains_key(&connection) || self.receiver.connection_up(id) {
                    self.known.insert(connection, (uplink, now));
                    self.send(uplink, HELLO, connection, LiveBody::Welcome(at), network);
                }
            }
            LiveBody::Welcome(at) => self.welcomed(connection, now.since(at), now),
            LiveBody::Farewell => self.forget(connection),
            LiveBody::Data(bytes) => {
                if let Some((_, heard)) = self.known.get_mut(&connection) {
                    *heard = now;
                    // What our own sender sends is right.
                    let _ = self.receiver.receive(id, &bytes, now);
                }
            }
            LiveBody::Report(bytes) => {
                if let Some(Connection { state: State::Up { heard }, .. }) =
                    self.connections.get_mut(&connection)
                {
                    *heard = now;
                    let _ = self.sender.receive(id, &bytes, now);
                }
            }
        }
        self.act(network);
    }

    fn welcomed(&mut self, connection: u32, rtt: Duration, now: Time) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        if matches!(state.state, State::Asking { .. }) {
            state.state = State::Up { heard: now };
            let link = UplinkId(state.uplink as u32);
            self.sender.connection_up(ConnectionId(connection), link, rtt);
        }
    }

    fn forget(&mut self, connection: u32) {
        if self.known.remove(&connection).is_some() {
            self.receiver.connection_down(ConnectionId(connection));
        }
    }

    /// Does all that is due.
    fn act(&mut self, network: &mut Network) {
        let now = Time::from_nanos(network.now);
        for payload in self.film.make(now) {
            self.sender.push(&payload, now);
        }
        self.share(network);
        self.look_after(network);
        while let Some((id, datagram)) = self.sender.transmit(now) {
            let size = Bytes::of(datagram.len()) + PACKET_OVERHEAD;
            if let Some(connection) = self.connections.get(&id.0) {
                self.send(connection.uplink, size, id.0, LiveBody::Data(datagram), network);
            }
        }
        while let Some((id, datagram)) = self.receiver.transmit(now) {
            let size = Bytes::of(datagram.len()) + PACKET_OVERHEAD;
            if let Some((uplink, _)) = self.known.get(&id.0) {
                self.send(*uplink, size, id.0, LiveBody::Report(datagram), network);
            }
        }
        while let Some(payload) = self.receiver.deliver(now) {
            self.delivered += Bytes::of(payload.len());
            self.film.came(&payload, now);
        }
        self.schedule(network);
    }

    /// Tells the others of its group how it stands, and hears how they do.
    fn share(&mut self, network: &mut Network) {
        let now = Time::from_nanos(network.now);
        let Some(share) = &self.live.share else { return };
        if now < self.tells_at() {
            return;
        }
        for (link, standing) in self.sender.standings(now) {
            network.told.tell(&share.group, self.live.from[link.0 as usize], self.flow, standing, now);
        }
        for (link, node) in (0..).map(UplinkId).zip(&self.live.from) {
            for (other, standing) in network.told.others(&share.group, *node, self.flow, self.told) {
                self.sender.hear(link, other as u64, Some(standing), now);
            }
        }
        self.told = Some(now);
    }

    /// When it tells next; a stream that has ended tells nothing any more.
    fn tells_at(&self) -> Time {
        match self.told {
            _ if self.live.share.is_none() || self.sender.is_drained() => Time::NEVER,
            Some(told) => told + TELL_INTERVAL,
            None => Time::ZERO,
        }
    }

    /// Opens and closes connections, as many as the sender wants, and gives up those of which nothing is
    /// heard.
    fn look_after(&mut self, network: &mut Network) {
        let now = Time::from_nanos(network.now);
        let is_silent = |heard: Time| now.since(heard) >= IDLE;
        let unheard: Vec<u32> =
            self.known.iter().filter(|(_, (_, heard))| is_silent(*heard)).map(|(id, _)| *id).collect();
        unheard.into_iter().for_each(|id| self.forget(id));
        let is_lost =
            |connection: &Connection| matches!(connection.state, State::Up { heard } if is_silent(heard));
        let lost: Vec<u32> = self
            .connections
            .iter()
            .filter(|(_, connection)| is_lost(connection))
            .map(|(id, _)| *id)
            .collect();
        for id in lost {
            self.connections.remove(&id);
            self.sender.connection_down(ConnectionId(id), now);
            self.note(network, "lost", id, "nothing was heard of it");
        }
        for uplink in 0..self.ways.len() {
            let wanted = self.sender.wanted_connections(UplinkId(uplink as u32)).max(1);
            let mine = |(id, connection): (&u32, &Connection)| (connection.uplink == uplink).then_some(*id);
            let mut there: Vec<u32> = self.connections.iter().filter_map(mine).collect();
            while there.len() > wanted {
                let Some(id) = there.pop() else { break };
                self.connections.remove(&id);
                self.sender.connection_down(ConnectionId(id), now);
                self.send(uplink, PACKET_OVERHEAD, id, LiveBody::Farewell, network);
                self.note(network, "close", id, "fewer are wanted");
            }
            while there.len() < wanted {
                let id = self.next_connection;
                self.next_connection += 1;
                there.push(id);
                let state = State::Asking { again: now, after: FIRST_HELLO / 2 };
                self.connections.insert(id, Connection { uplink, state });
                self.note(network, "open", id, "so many are wanted");
            }
        }
        self.connections_max = self.connections_max.max(self.connections.len());
        self.say_hello(network);
    }

    fn say_hello(&mut self, network: &mut Network) {
        let now = Time::from_nanos(network.now);
        let mut hellos = Vec::new();
        for (id, connection) in &mut self.connections {
            if let State::Asking { again, after } = &mut connection.state
                && *again <= now
            {
                *after = (*after * 2).min(LAST_HELLO);
                *again = now + *after;
                hellos.push((*id, connection.uplink));
            }
        }
        for (id, uplink) in hellos {
            self.send(uplink, HELLO, id, LiveBody::Hello(now), network);
        }
    }

    /// Sees to it that the flow's timer comes in time.
    fn schedule(&mut self, network: &mut Network) {
        let now = Time::from_nanos(network.now);
        let of_connections = self.connections.values().map(|connection| match connection.state {
            State::Asking { again, .. } => again,
            State::Up { heard } => heard + IDLE,
        });
        let of_known = self.known.values().map(|(_, heard)| *heard + IDLE);
        let next = of_connections.chain(of_known).min().unwrap_or(Time::NEVER);
        let next = next
            .min(self.tells_at())
            .min(self.film.next())
            .min(self.sender.deadline(now))
            .min(self.receiver.deadline());
        let next = next.max(now + TICK);
        if next < self.timer_at {
            self.timer_at = next;
            network.call_flow(self.flow, next.as_nanos());
        }
    }

    fn send(&self, uplink: usize, size: Bytes, connection: u32, body: LiveBody, network: &mut Network) {
        network.send_live(self.ways[uplink], size, LiveDatagram { connection, body });
    }

    fn note(&self, network: &mut Network, what: &'static str, connection: u32, why: &str) {
        network.decisions.push(Decision {
            at: Time::from_nanos(network.now),
            flow: self.flow,
            connection: Some(connection),
            what,
            value: None,
            why: why.to_owned(),
        });
    }

    /// What is counted of it since its beginning.
    pub(crate) fn counted(&self, network: &Network) -> FlowCounted {
        let mut counted = FlowCounted {
            delivered: self.delivered.get(),
            retransmitted: self.sender.status().again,
            ..FlowCounted::default()
        };
        for way in self.ways.iter().map(|way| network.live_way(*way)) {
            counted.sent += way.sent;
            counted.arrived_wire += way.arrived.get();
            counted.dropped += way.dropped;
            counted.lost += way.lost;
        }
        counted
    }

    /// Adds what a sample says of the moment itself.
    pub(crate) fn state(&self, sample: &mut FlowSample) {
        let status = self.sender.status();
        sample.connections = status.connections.len() as u32;
        sample.flows = status.connections.iter().map(|connection| connection.flows).sum();
        let rtts: Vec<Duration> = status.connections.iter().map(|connection| connection.rtt).collect();
        if !rtts.is_empty() {
            let sum = rtts.iter().fold(Duration::ZERO, |sum, rtt| sum + *rtt);
            sample.srtt = sum / rtts.len() as u64;
        }
    }

    /// What this stream adds to its flow's totals: of the packets that came into the sender from `from` on,
    /// and whose time is over at `now`.
    pub(crate) fn totals(&self, from: Time, now: Time) -> LiveTotals {
        let latency = self.live.settings.latency;
        let (packets, took) = self.film.between(from, now - latency - GRACE);
        let quantile = |part: usize| took.get(took.len().saturating_sub(1) * part / 100).copied();
        let status = self.sender.status();
        LiveTotals {
            latency_asked: latency,
            packets,
            missing: packets - took.len() as u64,
            latency_median: quantile(50),
            latency_99: quantile(99),
            given_up: status.dropped.0,
            again: status.again,
            parity: status.parity,
            connections_max: self.connections_max as u32,
        }
    }
}
