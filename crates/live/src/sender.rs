//! The sender of a live stream.

mod again;
mod end;
mod leaving;
mod protection;
mod sharing;
mod status;
mod ways;

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_congestion::aggregate::{Aggregate, Scheme};
use anabranch_congestion::multfrc::Usage;
use anabranch_protocol::live::packed::left_out_bytes;
use anabranch_protocol::live::stuffing::Packer;
use anabranch_protocol::live::wire::{
    Content, Datagram, DatagramError, MAX_DATAGRAM, MAX_PAYLOAD, Width, encode_data,
};
use anabranch_units::{Bytes, Duration, Rate, Time};

use super::bursts::{Bursts, Fate};
use super::connection::{Connection, Known, Load};
use super::control::packet_size;
use super::demand::{self, Demand};
use super::fitting::Fitting;
use super::history::History;
use super::queue::{Packet, Queue};
use super::sharing::Sharing;
use super::{ConnectionId, MAX_CONNECTIONS, UplinkId, most_kept};

pub use protection::Fec;
use protection::{Beside, Protection, Situation};

pub use status::{ConnectionStatus, SenderStatus};

/// The part of the latency for which packets may wait until a datagram is full.
const PACKING: u64 = 12;
/// Headers of a transport stream's packets are left out of datagrams as long as no larger part of these is lost: of eight
/// losses in a hundred datagrams one in a hundred runs of 45 s at 1 Mbit/s would be taken for a shorter path.
const MOST_LOST_SHORT: f64 = 0.05;
/// The least time between two probes after the stream's end.
const LEAST_END_PROBE: Duration = Duration::from_millis(5);

/// What a sender is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// A packet is of use to the receiver for so long after it came into the sender.
    pub latency: Duration,
    /// Whether lost packets are sent again.
    pub retransmit: bool,
    /// Parity.
    pub fec: Fec,
    /// Whether null packets of a transport stream are left out on the way.
    pub leave_out_stuffing: bool,
    /// How many connections a link gets, or for how many one stands.
    pub scheme: Scheme,
    /// Whether TFRC is that of RFC 5348, in place of ours ([`crate::control::parameters`]).
    pub is_published: bool,
}

/// Decides what leaves next, and on which connection.
///
/// The driver hands over the stream in packets ([`Self::push`]) and every datagram that comes
/// ([`Self::receive`]); after that, and when [`Self::deadline`] has come, it sends what [`Self::transmit`]
/// gives until there is no more.
#[derive(Clone, Debug)]
pub struct Sender {
    settings: Settings,
    connections: BTreeMap<ConnectionId, Connection>,
    links: BTreeMap<UplinkId, Aggregate>,
    sharing: Option<Sharing>,
    packer: Packer,
    queue: Queue,
    demand: Demand,
    fitting: Fitting,
    history: History,
    protection: Protection,
    bursts: Bursts,
    /// Bytes of the longest datagram that all paths carry in one piece, where that is less than they carry.
    whole: Option<usize>,
    /// The next media packet's number.
    next: u64,
    /// What waits is what a receiver that is new has missed, and what has come since.
    catch_up: Option<CatchUp>,
    is_finished: bool,
    /// When the last probe after the stream's end left.
    end_probed: Option<Time>,
    /// The part of the losses that is known too late to send anything again.
    late: f64,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    taken: Bytes,
    left_out: Bytes,
    media: u64,
    again: u64,
    parity: u64,
    /// Bytes of the stream that left for the first time, and of all that left, with headers.
    left: (Bytes, Bytes),
    /// Datagrams of connections that are gone, those of them that were lost, and the bytes that arrived.
    past: (u64, u64),
    past_arrived: Bytes,
}

impl Sender {
    /// Before there is any connection.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            connections: BTreeMap::new(),
            links: BTreeMap::new(),
            sharing: None,
            packer: Packer::new(settings.leave_out_stuffing),
            queue: Queue::default(),
            demand: Demand::default(),
            fitting: Fitting::default(),
            history: History::default(),
            protection: Protection::new(settings.fec),
            bursts: Bursts::default(),
            whole: None,
            next: 0,
            catch_up: None,
            is_finished: false,
            end_probed: None,
            late: 0.0,
            counts: Counts::default(),
        }
    }

    /// Both ends have agreed on this latency budget.
    pub fn set_latency(&mut self, latency: Duration) {
        self.settings.latency = latency;
    }

    /// The latency budget.
    pub fn latency(&self) -> Duration {
        self.settings.latency
    }

    /// The number of the next media packet that leaves for the first time.
    pub fn next_media(&self) -> u64 {
        self.next
    }

    /// The number of the oldest media packet that may still be sent again: a receiver that is new begins with it.
    pub fn first_media(&self) -> u64 {
        self.history.first().unwrap_or(self.next)
    }

    /// The receiver has started anew, and with it is lost what it had and had not handed on: what can still come in time
    /// leaves as if it never had, so that what the rate holds back is dropped where a gap is anyway.
    pub fn receiver_is_new(&mut self, now: Time) {
        self.history.expire(now - self.settings.latency);
        self.queue.push_before(self.history.take_all(self.next), most_kept(self.settings.latency));
        self.catch_up = Some(CatchUp::Begins);
    }

    /// A connection over `link` is there, and media may leave; the transport has measured `rtt` when it was made. `false`:
    /// there are too many.
    pub fn connection_up(&mut self, id: ConnectionId, link: UplinkId, rtt: Duration) -> bool {
        let has_place = self.connections.len() < MAX_CONNECTIONS;
        if has_place {
            let aggregate = self.links.entry(link).or_insert_with(|| Aggregate::new(self.settings.scheme));
            let mut connection = Connection::new(link, rtt, self.settings.is_published);
            connection.set_flows(aggregate.flows());
            self.connections.insert(id, connection);
        }
        has_place
    }

    /// Of a connection on which nothing is heard: the time from one packet to the next at the rate that it has.
    pub fn silent(&self, id: ConnectionId) -> Option<Duration> {
        let connection = self.connections.get(&id).filter(|connection| connection.is_silent());
        connection.map(Connection::interval)
    }

    /// How many connections the driver should have over this link; it closes first what it opened last.
    pub fn wanted_connections(&self, link: UplinkId) -> usize {
        let wanted = self.links.get(&link).map_or(1, Aggregate::connections);
        usize::try_from(wanted).unwrap_or(usize::MAX).min(MAX_CONNECTIONS / self.links.len().max(1))
    }

    /// A connection is gone. What was under way on it is taken for lost.
    pub fn connection_down(&mut self, id: ConnectionId, now: Time) {
        if let Some(mut connection) = self.connections.remove(&id) {
            let lost = connection.take_outstanding();
            learn(&mut self.bursts, self.links.get_mut(&connection.link), &mut connection);
            let ((sent, gone), past) = (connection.totals(), self.counts.past);
            self.counts.past = (past.0 + sent, past.1 + gone);
            self.counts.past_arrived += connection.arrived();
            self.lost(lost, now);
        }
    }

    /// The next packet of the stream, 1 to [`MAX_PAYLOAD`] bytes.
    pub fn push(&mut self, payload: &[u8], now: Time) {
        debug_assert!((1..=MAX_PAYLOAD).contains(&payload.len()), "a packet of {} bytes", payload.len());
        self.counts.taken += Bytes::of(payload.len());
        let packed = self.packer.push(payload, now);
        self.enqueue(packed);
    }

    /// The path of a connection carries datagrams of so many bytes at the moment.
    pub fn set_datagram_size(&mut self, id: ConnectionId, bytes: usize) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.set_longest(bytes);
        }
        self.cut();
    }

    /// Paths carry datagrams of no more than so many bytes in one piece. Longer ones go in fragments, which is
    /// for those that were cut before.
    pub fn set_whole(&mut self, bytes: Option<usize>) {
        self.whole = bytes;
        self.cut();
    }

    /// What comes is cut to what every path carries in one piece.
    fn cut(&mut self) {
        let sizes = self.connections.values().map(Connection::longest).chain(self.whole);
        let least = sizes.min().unwrap_or(MAX_DATAGRAM);
        self.packer.set_most(least.saturating_sub(MAX_DATAGRAM - MAX_PAYLOAD));
    }

    /// Most bytes of the stream that a datagram takes at the moment, on any connection.
    pub fn payload(&self) -> usize {
        self.packer.most()
    }

    fn enqueue(&mut self, packed: impl IntoIterator<Item = (Time, Arc<[u8]>)>) {
        for (time, payload) in packed {
            self.counts.left_out += left_out_bytes(&payload);
            let headers = packet_size() - Bytes::of(MAX_PAYLOAD);
            self.demand.add(Bytes::of(payload.len()) + headers, time);
            self.queue.push(Packet { time, payload }, most_kept(self.settings.latency));
        }
    }

    /// How long packets wait for others, so that a datagram of which stuffing was left out is full.
    fn patience(&self) -> Duration {
        self.settings.latency / PACKING
    }

    /// The stream has ended.
    pub fn finish(&mut self) {
        self.is_finished = true;
        let rest = self.packer.flush();
        self.enqueue(rest);
    }

    /// Whether the stream has ended and the receiver has all that can come in time.
    pub fn is_drained(&self) -> bool {
        self.is_finished && self.waiting() == 0 && self.history.is_empty()
    }

    /// A datagram came on a connection.
    ///
    /// # Errors
    /// It is none that a receiver sends.
    pub fn receive(&mut self, id: ConnectionId, datagram: &[u8], now: Time) -> Result<(), DatagramError> {
        let Datagram::Report(report) = Datagram::decode(datagram)? else {
            return Err(DatagramError::Kind);
        };
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        let link = connection.link;
        let (lost, round_trip) = connection.report(&report, self.queue.len() > 1, self.settings.latency, now);
        learn(&mut self.bursts, self.links.get_mut(&link), connection);
        let usage = Usage { one: connection.rate_of_one(), ..connection.rate().usage(None) };
        let has_links_beside = !self.brought_beside(link).is_zero();
        let usage = Usage { wanted: Some(self.wanted(link, now)), has_links_beside, ..usage };
        if let Some(round_trip) = round_trip
            && let Some(aggregate) = self.links.get_mut(&link)
            && aggregate.report(now, round_trip, &usage).is_some()
        {
            let mine = self.connections.values_mut().filter(|connection| connection.link == link);
            mine.for_each(|connection| connection.set_flows(aggregate.flows()));
        }
        self.packer.set_shortens(self.bursts.losses().rate <= MOST_LOST_SHORT);
        self.split(link, now);
        self.history.report(&report, self.next);
        self.lost(lost, now);
        self.fit(now);
        Ok(())
    }

    /// What there is to send over a link.
    fn wanted(&mut self, link: UplinkId, now: Time) -> Rate {
        let wanted = self.demand.rate(self.queue.size(), now) + self.protection.lacking();
        wanted - self.brought_beside(link)
    }

    /// The next datagram that leaves now, and on which connection.
    pub fn transmit(&mut self, now: Time) -> Option<(ConnectionId, Vec<u8>)> {
        self.tick(now);
        let probed = self.connections.iter().find(|(_, connection)| connection.probe_at() <= now);
        if let Some(id) = probed.map(|(id, _)| *id).or_else(|| self.probe_of_the_end(now)) {
            let connection = self.connections.get_mut(&id)?;
            connection.probed(now);
            let encode = |header| encode_data(header, Content::Probe);
            let (datagram, dropped) =
                connection.send(self.bursts.leaves(), Load::Probe, Width::Narrow, false, now, encode);
            self.lost(dropped, now);
            return Some((id, datagram));
        }
        loop {
            self.queue.cut_front(self.packer.most());
            let (item, time) = self.next_item(now)?;
            let longest = self.usable().map(|(_, connection)| connection.longest()).max()?;
            let length = self.length(item);
            if length > longest {
                // No path carries any more what was cut for one that did.
                self.give_up(item);
                continue;
            }
            let id = self.choose(time, length, now)?;
            return self.send(item, id, now).map(|datagram| (id, datagram));
        }
    }

    /// When there is something to do again. Only after [`Self::transmit`] has given all that there was at
    /// `now`.
    pub fn deadline(&self, now: Time) -> Time {
        let timers =
            self.connections.values().map(|connection| connection.deadline().min(connection.probe_at()));
        let mut deadline = timers.min().unwrap_or(Time::NEVER).min(self.history.deadline());
        if self.waiting() > 0 {
            let sends = self.usable().map(|(_, connection)| connection.next_send());
            deadline = deadline.min(sends.filter(|next| *next > now).min().unwrap_or(Time::NEVER));
        }
        deadline = deadline.min(self.packer.deadline(self.patience()));
        deadline =
            deadline.min(self.protection.deadline(self.settings.latency)).min(self.protection.next_leaves());
        if self.is_finished && !self.is_drained() {
            // What is too old is given up then.
            deadline = deadline.min(now + self.settings.latency / 8);
            let ready = self.usable().map(|(_, connection)| connection.next_send()).min();
            deadline = deadline
                .min(self.next_end_probe().max(ready.unwrap_or(Time::NEVER)).max(now + LEAST_END_PROBE));
        }
        deadline
    }

    /// How it is doing.
    pub fn status(&self) -> SenderStatus {
        let connections = self.connections.iter().map(|(id, connection)| {
            let (sent, lost) = connection.totals();
            ConnectionStatus {
                id: *id,
                link: connection.link,
                rtt: connection.rtt(),
                allowed_rate: connection.rate().allowed_rate(),
                flows: connection.rate().flows(),
                share: connection.rate().share(),
                loss_event_rate: connection.rate().loss_event_rate(),
                sent,
                lost,
                is_silent: connection.is_silent(),
            }
        });
        let totals = self.connections.values().map(Connection::totals);
        let totals = totals.fold(self.counts.past, |all, one| (all.0 + one.0, all.1 + one.1));
        SenderStatus {
            sent: totals.0,
            lost: totals.1,
            taken: self.counts.taken,
            left_out: self.counts.left_out,
            media: self.counts.media,
            again: self.counts.again,
            parity: self.counts.parity,
            dropped: self.queue.dropped(),
            waiting: self.queue.size(),
            available_rate: self.available_rate(),
            fitting_rate: self.fitting_rate(),
            losses: self.bursts.losses(),
            code: self.protection.code(),
            shares_with: self.shares_with(),
            connections: connections.collect(),
        }
    }

    /// Packets that wait to leave.
    fn waiting(&self) -> usize {
        self.history.waiting() + self.protection.waiting() + self.queue.len()
    }

    /// How long packets may wait: one has time to be lost and sent again, where there is that much; else what cannot
    /// come in time is dropped. What a receiver that is new has missed begins with what has that time; for what follows it is
    /// there for the queue of a round trip that slow start can make, so that nothing is dropped behind what has left.
    fn limit(&mut self, budget: Duration, rtt: Duration, now: Time) -> Duration {
        let limit = (budget - rtt).max(budget * 2 / 3);
        let has_way = self.usable().next().is_some();
        match self.catch_up {
            _ if self.queue.len() == 0 => self.catch_up = None,
            Some(CatchUp::Begins) if has_way => {
                self.catch_up = Some(CatchUp::Goes);
                self.queue.expire(limit, now);
            }
            _ => {}
        }
        if self.catch_up.is_some() { budget } else { limit }
    }

    /// Gives up what cannot come in time any more, and looks after the timers.
    fn tick(&mut self, now: Time) {
        let (mut lost, mut overdue) = (Vec::new(), Vec::new());
        for connection in self.connections.values_mut().filter(|connection| connection.deadline() <= now) {
            lost.extend(connection.tick(now));
            overdue.extend(connection.take_overdue(now));
            learn(&mut self.bursts, self.links.get_mut(&connection.link), connection);
        }
        self.lost(lost, now);
        self.overdue(overdue, now);
        self.history.tick(now);
        if self.packer.deadline(self.patience()) <= now {
            let packed = self.packer.flush();
            self.enqueue(packed);
        }
        let latency = self.settings.latency;
        let (queueing, rtt) = (self.queueing(), self.rtt());
        let budget = latency - queueing;
        let limit = self.limit(budget, rtt.unwrap_or(Duration::ZERO), now);
        self.queue.expire(limit, now);
        // Times before the epoch are the epoch: nothing is too old then.
        self.history.expire(now - latency);
        self.protection.expire(now + queueing - latency);
        let is_over = self.is_finished && self.queue.len() == 0;
        let time = latency - self.queueing_at_losses();
        self.protection.set_time(time);
        if is_over || self.protection.deadline(latency) <= now {
            self.protection.close(now);
        }
        self.protection.tick(now);
        if self.protection.is_to_choose(now) {
            let situation = Situation {
                losses: self.bursts.losses(),
                recent: self.bursts.recent(),
                time,
                rtt: self.least_rtt(),
                retransmit: self.settings.retransmit,
                beside: self.has_standing_queue().then(|| Beside { late: self.late, saved: self.saved() }),
                allowed: self.allowed_rate(),
                catch_up: demand::catch_up(self.queue.size()),
            };
            self.protection.choose(&situation, now);
        }
    }
}

/// How far a sender has come with what a receiver that is new has missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CatchUp {
    /// There is no connection yet.
    Begins,
    Goes,
}

/// What a connection has learnt about losses.
fn learn(bursts: &mut Bursts, mut link: Option<&mut Aggregate>, connection: &mut Connection) {
    for Known { number, sent, fate } in connection.take_fates() {
        bursts.known(number, fate);
        if let Some(link) = link.as_mut().filter(|_| fate != Fate::Unknown) {
            link.datagram(sent, fate == Fate::Lost);
        }
    }
}

#[cfg(test)]
mod tests;
