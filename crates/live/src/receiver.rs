//! The receiver of a live stream.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use anabranch_protocol::live::packed::{as_it_is, unpack};
use anabranch_protocol::live::wire::{Content, Datagram, DatagramError, encode_report, expand};
use anabranch_units::{Bytes, Duration, Time};

use super::arrivals::Arrivals;
use super::buffer::{Buffer, Counts, Way};
use super::clock::SenderClock;
use super::fec::{Decoder, ParityPacket, Recovered};
use super::{ConnectionId, MAX_CONNECTIONS, PACKET_OVERHEAD};

/// Puts a stream together and reports to its sender.
///
/// The driver hands over every datagram ([`Self::receive`]); after that, and when [`Self::deadline`] has
/// come, it sends what [`Self::transmit`] gives and hands on what [`Self::deliver`] gives, each until there
/// is no more.
#[derive(Clone, Debug)]
pub struct Receiver {
    connections: BTreeMap<ConnectionId, Arrivals>,
    clock: SenderClock,
    buffer: Buffer,
    decoder: Decoder,
    /// What is to be handed on now, and bytes that were.
    ready: VecDeque<Arc<[u8]>>,
    bytes: Bytes,
    datagrams: u64,
    repeated: u64,
    is_published: bool,
}

/// How a receiver is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReceiverStatus {
    /// What became of the packets.
    pub counts: Counts,
    /// Datagrams that arrived.
    pub datagrams: u64,
    /// Of them, repeated ones and those that cannot be.
    pub repeated: u64,
    /// Packets that wait for their time.
    pub waiting: usize,
    /// The latency budget.
    pub latency: Duration,
    /// The largest loss event rate of the connections.
    pub loss_event_rate: f64,
}

impl ReceiverStatus {
    /// Both together: sums, and of latency and loss event rate the larger one.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            counts: self.counts.with(other.counts),
            datagrams: self.datagrams + other.datagrams,
            repeated: self.repeated + other.repeated,
            waiting: self.waiting + other.waiting,
            latency: self.latency.max(other.latency),
            loss_event_rate: self.loss_event_rate.max(other.loss_event_rate),
        }
    }
}

impl Receiver {
    /// For a stream from media packet `next` on, which is handed on `latency` after it came into the sender.
    pub fn new(latency: Duration, next: u64) -> Self {
        Self {
            connections: BTreeMap::new(),
            clock: SenderClock::default(),
            buffer: Buffer::new(latency, next),
            decoder: Decoder::default(),
            ready: VecDeque::new(),
            bytes: Bytes::ZERO,
            datagrams: 0,
            repeated: 0,
            is_published: false,
        }
    }

    /// The sender's control of its rate is the published one ([`crate::Settings::is_published`]).
    pub fn with_published_control(self, is_published: bool) -> Self {
        Self { is_published, ..self }
    }

    /// A connection of the sender is there. `false`: it has too many.
    pub fn connection_up(&mut self, id: ConnectionId) -> bool {
        let has_place = self.connections.len() < MAX_CONNECTIONS;
        if has_place {
            self.connections.insert(id, Arrivals::new(self.is_published));
        }
        has_place
    }

    /// A connection is gone.
    pub fn connection_down(&mut self, id: ConnectionId) {
        self.connections.remove(&id);
        self.clock.connection_down(id);
    }

    /// The sender says that the stream ends before media packet `next`.
    pub fn end(&mut self, next: u64, now: Time) {
        self.buffer.end(next, now);
    }

    /// A datagram came on a connection.
    ///
    /// # Errors
    /// It is none that a sender sends.
    pub fn receive(&mut self, id: ConnectionId, datagram: &[u8], now: Time) -> Result<(), DatagramError> {
        let Datagram::Data(header, content) = Datagram::decode(datagram)? else {
            return Err(DatagramError::Kind);
        };
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        self.datagrams += 1;
        let size = Bytes::of(datagram.len()) + PACKET_OVERHEAD;
        if !connection.datagram(&header, size, now) {
            self.repeated += 1;
            return Ok(());
        }
        let latency = self.buffer.latency();
        self.clock.arrived(id, &header, matches!(content, Content::Media { .. }), latency, now);
        let recovered = match content {
            Content::Media { sequence, time, is_again, is_packed, payload } => {
                let sequence = header.width.expand(sequence, self.buffer.next());
                let way = if is_again { Way::SentAgain } else { Way::Sent };
                let payload = if is_packed { payload.into() } else { as_it_is(payload) };
                let came = self.clock.came(time, Some(header.timestamp), latency);
                if self.buffer.insert(sequence, came, payload.clone(), way) {
                    self.decoder.media(sequence, time, payload)
                } else {
                    Vec::new()
                }
            }
            Content::Parity { first, media, parity, index, shard } => {
                let first = expand(first, self.buffer.next());
                self.decoder.parity(&ParityPacket { first, media, parity, index, shard })
            }
            Content::Probe => Vec::new(),
        };
        for Recovered { sequence, time, payload } in recovered {
            let came = self.clock.came(time, None, latency);
            self.buffer.insert(sequence, came, payload, Way::Calculated);
        }
        Ok(())
    }

    /// The next datagram to be sent, and on which connection.
    pub fn transmit(&mut self, now: Time) -> Option<(ConnectionId, Vec<u8>)> {
        for (id, connection) in &mut self.connections {
            if connection.deadline() <= now
                && let Some(mut report) = connection.report(now)
            {
                if let Some(rate) = &report.rate {
                    self.clock.reported(*id, rate, now);
                }
                (report.settled, report.had) = self.buffer.map();
                return Some((*id, encode_report(&report)));
            }
        }
        None
    }

    /// The next packet of the stream whose time has come, with the stuffing that was left out on the way.
    pub fn deliver(&mut self, now: Time) -> Option<Arc<[u8]>> {
        while self.ready.is_empty() {
            self.ready.extend(unpack(&self.buffer.pop(&self.clock, now)?));
        }
        let payload = self.ready.pop_front()?;
        self.bytes += Bytes::of(payload.len());
        Some(payload)
    }

    /// Whether everything was handed on that can come of a stream whose end is known.
    pub fn has_ended(&mut self, now: Time) -> bool {
        self.buffer.has_ended(now)
    }

    /// When there is something to do again.
    pub fn deadline(&self) -> Time {
        let reports = self.connections.values().map(Arrivals::deadline).min().unwrap_or(Time::NEVER);
        reports.min(self.buffer.deadline(&self.clock))
    }

    /// How it is doing.
    pub fn status(&self) -> ReceiverStatus {
        ReceiverStatus {
            counts: Counts {
                bytes: self.bytes.get(),
                clock_jumps: self.clock.jumps(),
                ..self.buffer.counts()
            },
            datagrams: self.datagrams,
            repeated: self.repeated,
            waiting: self.buffer.len(),
            latency: self.buffer.latency(),
            loss_event_rate: self.connections.values().map(Arrivals::loss_event_rate).fold(0.0, f64::max),
        }
    }
}
