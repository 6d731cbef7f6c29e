//! The sender's side of a connection: its rate, and which of its datagrams were lost.

mod waiting;

use std::collections::BTreeMap;

use anabranch_congestion::tfrc::{self, Feedback, PacketInfo};
use anabranch_protocol::live::wire::{
    FLOWS_UNIT, Header, MAX_DATAGRAM, Report, Several, Width, expand, from_micros, low_bits, micros,
};
use anabranch_units::{Bytes, Duration, Rate, Time};

use super::bursts::Fate;
use super::control::{packet_size, parameters};
use super::one_connection::OneConnection;
use super::round_trips::RoundTrips;
use super::{PACKET_OVERHEAD, UplinkId};

/// So many later datagrams at least show that one is lost where datagrams overtake each other (RFC 9002, section
/// 6.1.1), and as many as have overtaken one before it came. Where none ever did the next one does: at low rates
/// the third comes too late for another attempt. What was long under way is lost whatever overtook it
/// ([`Connection::patience`]).
const LATER: u64 = 3;
/// For so long the slowest of those is remembered.
const OVERTAKEN: Duration = Duration::from_secs(60);
/// Datagrams taken for lost that are remembered, in case they arrive after all.
const MOST_DOUBTFUL: usize = 64;
/// Datagrams whose fate is not known; more are taken for lost.
const MOST_OUTSTANDING: usize = 1 << 14;
/// Counters travel in 16 bits as long as no more than so many lie between what is sent and what the receiver is known to
/// have: half of what would still be told apart.
pub(super) const MOST_NARROW: u64 = 1 << 14;
/// So many datagrams, and as many more as have arrived, are under way at the most (RFC 6928).
const FIRST_WINDOW: usize = 10;
/// How often a doubtful connection is tried: what the latency saves of an outage is less by that.
const PROBE_INTERVAL: Duration = Duration::from_millis(250);
/// After a silence a probe follows so many other datagrams, until one of these has arrived or so many probes
/// have left.
const LOADS_PER_PROBE: u8 = 2;
const MOST_TRIED: u8 = 8;

/// What a datagram has besides its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// Nothing.
    Probe,
    Parity,
    /// The media packet with this number.
    Media(u64),
}

impl Load {
    fn media(self) -> Option<u64> {
        if let Self::Media(sequence) = self { Some(sequence) } else { None }
    }
}

/// A connection that was silent answers a probe. So it does as well where the path carries short datagrams
/// and no long ones any more: probes between the others show the transport which of them are lost, so that it
/// finds the length out (RFC 8899, section 4.3) within a round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Trial {
    /// Datagrams since the last probe.
    loads: u8,
    probes: u8,
}

/// A datagram that was sent.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    sent: Time,
    load: Load,
    size: Bytes,
    /// Its number among all datagrams of the sender.
    number: u64,
}

impl Outstanding {
    fn known(&self, fate: Fate) -> Known {
        Known { number: self.number, sent: self.sent, fate }
    }
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Its number among all datagrams of the sender.
    pub(super) number: u64,
    pub(super) sent: Time,
    pub(super) fate: Fate,
}

/// What is known of a connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) link: UplinkId,
    rate: tfrc::Sender,
    outstanding: BTreeMap<u64, Outstanding>,
    /// Their bytes.
    under_way: Bytes,
    newest_sent: Option<u64>,
    newest_arrived: Option<u64>,
    /// So many later datagrams show that one is lost.
    later: u64,
    /// What was taken for lost of late, and when it left.
    doubtful: BTreeMap<u64, Time>,
    /// How long the slowest of these took that came after all, and when it did.
    overtaken: (Duration, Time),
    /// Datagrams below this one were taken for overdue already.
    overdue_from: u64,
    /// Since when a report is waited for.
    waits_since: Option<Time>,
    last_probe: Option<Time>,
    /// A packet may leave behind the last probe, whatever the rate.
    may_follow: bool,
    trial: Option<Trial>,
    /// Bytes of the longest datagram that the path carries.
    longest: usize,
    round_trips: RoundTrips,
    one: OneConnection,
    is_silent: bool,
    /// When an outage ended last: what left before says how long that was, and nothing of the route.
    heard_again: Option<Time>,
    sent: u64,
    lost: u64,
    /// Bytes that arrived, and in how many datagrams.
    arrived: Bytes,
    arrivals: usize,
    /// Reports of the receive rate: each echoes a datagram that arrived, whatever else it tells.
    echoes: usize,
    /// The round trip of the newest datagram that a report told of.
    last_rtt: Option<Duration>,
    /// What became known and was not taken yet.
    fates: Vec<Known>,
}

impl Connection {
    /// The transport has measured `rtt` when it was made, so that media may leave at once. `is_published`: the control
    /// of the rate is that of RFC 5348.
    pub(super) fn new(link: UplinkId, rtt: Duration, is_published: bool) -> Self {
        Self {
            link,
            rate: tfrc::Sender::new(parameters(is_published), packet_size()).with_round_trip(rtt),
            outstanding: BTreeMap::new(),
            under_way: Bytes::ZERO,
            newest_sent: None,
            newest_arrived: None,
            later: 1,
            doubtful: BTreeMap::new(),
            overtaken: (Duration::ZERO, Time::ZERO),
            overdue_from: 0,
            waits_since: None,
            last_probe: None,
            may_follow: false,
            trial: None,
            longest: MAX_DATAGRAM,
            round_trips: RoundTrips::default(),
            one: OneConnection::default(),
            is_silent: false,
            heard_again: None,
            sent: 0,
            lost: 0,
            arrived: Bytes::ZERO,
            arrivals: 0,
            echoes: 0,
            last_rtt: None,
            fates: Vec::new(),
        }
    }

    /// Whether nothing has been heard for longer than a report takes.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// When media may leave here next. Behind the probe of a silent connection one packet may: a receiver that hears from a
    /// new address answers with no more than three times as much (RFC 9000, section 8.1), and its QUIC says nothing before
    /// a whole datagram is within that.
    pub(super) fn next_send(&self) -> Time {
        if self.may_follow {
            return Time::ZERO;
        }
        // As in TCP's slow start (RFC 6928, RFC 5681): a short round trip says nothing of what the path carries.
        let is_shown = self.outstanding.len() < FIRST_WINDOW + self.arrivals.max(self.echoes);
        if is_shown { self.rate.next_send() } else { self.rate.next_send().max(self.rate.deadline()) }
    }

    /// From one packet to the next at the rate of the moment.
    pub(super) fn interval(&self) -> Duration {
        self.rate.sending_rate().time_for(packet_size())
    }

    /// Bytes of the longest datagram that the path carries.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    pub(super) fn set_longest(&mut self, longest: usize) {
        self.longest = longest;
    }

    /// How long a datagram takes to the receiver that leaves now, about: what is under way arrives before it, at
    /// the rate of the last report; before there is one each takes as long as it has taken beyond the round trip that the
    /// first one has not arrived. A round trip that was measured knows of a queue only when it has grown.
    pub(super) fn way(&self, now: Time) -> Duration {
        let rtt = self.rtt();
        let delivered = self.rate.delivered();
        let under_way = self.outstanding.len() as u64;
        let drains = match self.outstanding.first_key_value() {
            Some((_, first)) if delivered.is_zero() => (now.since(first.sent) - rtt) * under_way,
            _ if delivered.is_zero() => Duration::ZERO,
            _ => delivered.time_for(packet_size() * under_way),
        };
        self.last_rtt.unwrap_or(rtt).max(drains) - self.round_trips.least().unwrap_or(rtt) / 2
    }

    /// The smoothed round-trip time; that of the handshake until a report has come.
    pub(super) fn rtt(&self) -> Duration {
        self.rate.rtt().unwrap_or_default()
    }

    /// Whether others fill the queue on the way.
    pub(super) fn has_standing_queue(&self) -> bool {
        self.round_trips.stands()
    }

    /// What queues on the way add to the shortest round trip.
    pub(super) fn queueing(&self) -> Duration {
        self.round_trips.queueing(self.rtt())
    }

    /// Bytes that are under way beyond what arrives within the shortest round trip: what waits on the way.
    pub(super) fn queued(&self) -> Bytes {
        let least = self.round_trips.least().unwrap_or(self.rtt());
        self.under_way - self.rate.delivered().amount_in(least)
    }

    /// Datagrams whose fate is not known.
    pub(super) fn under_way(&self) -> usize {
        self.outstanding.len()
    }

    /// Bytes of datagrams that have arrived so far, as they were counted when they left.
    pub(super) fn arrived(&self) -> Bytes {
        self.arrived
    }

    /// The shortest round trip of the route.
    pub(super) fn least_rtt(&self) -> Option<Duration> {
        self.round_trips.least()
    }

    /// The round trip when packets are lost, if others fill the queue; else as it is.
    fn rtt_at_losses(&self) -> Duration {
        self.round_trips.at_losses().unwrap_or(self.rtt())
    }

    /// What queues on the way add to the shortest round trip when packets are lost.
    pub(super) fn queueing_at_losses(&self) -> Duration {
        self.round_trips.queueing(self.rtt_at_losses())
    }

    /// What one connection would get here, as it would see the losses.
    pub(super) fn rate_of_one(&self) -> Option<Rate> {
        self.rate.rate_of_one(self.one.loss_event_rate()?)
    }

    pub(super) fn rate(&self) -> &tfrc::Sender {
        &self.rate
    }

    /// Datagrams sent, and those of them that were lost.
    pub(super) fn totals(&self) -> (u64, u64) {
        (self.sent, self.lost)
    }

    /// When it should be asked for a report: whether a silent one is alive again.
    pub(super) fn probe_at(&self) -> Time {
        if self.is_silent {
            return self.last_probe.map_or(Time::ZERO, |last| last + PROBE_INTERVAL);
        }
        let is_due = self.trial.is_some_and(|trial| trial.loads >= LOADS_PER_PROBE);
        if is_due { Time::ZERO } else { Time::NEVER }
    }

    pub(super) fn probed(&mut self, now: Time) {
        self.last_probe = Some(now);
        self.may_follow = self.is_silent;
        if let Some(trial) = self.trial.as_mut().filter(|_| !self.is_silent) {
            *trial = Trial { loads: 0, probes: trial.probes + 1 };
            if trial.probes >= MOST_TRIED {
                self.trial = None;
            }
        }
    }

    /// A datagram leaves, with `number` among all of the sender's: `encode` makes it, whose own counters need this width.
    /// Answers with it, and with a media packet that is taken for lost since too much is under way.
    pub(super) fn send(
        &mut self,
        number: u64,
        load: Load,
        width: Width,
        has_more: bool,
        now: Time,
        encode: impl FnOnce(Header) -> Vec<u8>,
    ) -> (Vec<u8>, Option<u64>) {
        // What travels are whole microseconds: reports are compared with what is kept here.
        let now = from_micros(micros(now));
        let info = self.rate.sent(now, has_more);
        self.sent += 1;
        self.waits_since.get_or_insert(now);
        self.newest_sent = Some(info.sequence);
        let datagram = encode(self.header(&info, width));
        let size = Bytes::of(datagram.len()) + PACKET_OVERHEAD;
        self.outstanding.insert(info.sequence, Outstanding { sent: now, load, size, number });
        self.under_way += size;
        if load != Load::Probe {
            self.may_follow = false;
            if let Some(trial) = &mut self.trial {
                trial.loads = trial.loads.saturating_add(1);
            }
        }
        let oldest =
            if self.outstanding.len() > MOST_OUTSTANDING { self.outstanding.pop_first() } else { None };
        self.under_way -= oldest.map_or(Bytes::ZERO, |(_, outstanding)| outstanding.size);
        self.fates.extend(oldest.map(|(_, outstanding)| outstanding.known(Fate::Unknown)));
        (datagram, oldest.and_then(|(_, outstanding)| outstanding.load.media()))
    }

    fn header(&self, info: &PacketInfo, width: Width) -> Header {
        let ahead = info.sequence.saturating_sub(self.newest_arrived.unwrap_or(0));
        let width = if ahead < MOST_NARROW { width } else { Width::Wide };
        let is_one = info.flows <= 1.0 && info.connection_sequence == info.sequence;
        let several = Several {
            flows: Bytes::from_f64(info.flows * FLOWS_UNIT).get().try_into().unwrap_or(u16::MAX),
            // There are 100 at the most.
            member: u8::try_from(info.connection).unwrap_or(u8::MAX),
            member_sequence: width.low(info.connection_sequence),
        };
        Header {
            width,
            sequence: width.low(info.sequence),
            timestamp: low_bits(micros(info.timestamp)),
            rtt: info.rtt.map_or(0, |rtt| u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX).max(1)),
            several: (!is_one).then_some(several),
        }
    }

    /// This connection stands for so many of TCP.
    pub(super) fn set_flows(&mut self, flows: f64) {
        // In the parts in which they are told, so that both ends reckon with the same number.
        self.rate.set_flows((flows * FLOWS_UNIT).round() / FLOWS_UNIT);
    }

    /// It has so much of what its own control allows ([`tfrc::Sender::set_share`]).
    pub(super) fn set_share(&mut self, share: f64) {
        self.rate.set_share(share);
    }

    /// A report came; `waits`: media wait for their turn to leave. Answers with the media packets that were
    /// lost, and the round-trip time that the report brought.
    pub(super) fn report(
        &mut self,
        report: &Report,
        waits: bool,
        latency: Duration,
        now: Time,
    ) -> (Vec<u64>, Option<Duration>) {
        // A queue that grows may make a silence as well, but hardly twice as long a one.
        let was_out = self.waits_since.is_some_and(|since| now.since(since) >= self.silence() * 2);
        if std::mem::take(&mut self.is_silent) && was_out {
            self.heard_again = Some(now);
        }
        self.may_follow = false;
        let mut round_trip = None;
        if let Some(rate) = &report.rate {
            self.echoes += 1;
            let age = low_bits(micros(now)).wrapping_sub(rate.timestamp);
            if let Some(timestamp) = micros(now).checked_sub(age.into()) {
                let feedback = Feedback {
                    timestamp: from_micros(timestamp),
                    delay: rate.delay,
                    receive_rate: rate.receive_rate,
                    loss_event_rate: rate.loss_event_rate,
                };
                round_trip = self.feedback(feedback, waits, latency, now);
            }
        }
        let Some(newest_sent) = self.newest_sent else { return (Vec::new(), round_trip) };
        for (last, length) in &report.arrived {
            let last = expand(*last, newest_sent);
            // What was not sent yet cannot have arrived.
            if last > newest_sent {
                continue;
            }
            let first = (last + 1).saturating_sub((*length).into());
            while let Some((&sequence, &sent)) = self.doubtful.range(first..=last).next() {
                self.doubtful.remove(&sequence);
                self.came_after_all(sequence, sent, now);
            }
            while let Some((&sequence, _)) = self.outstanding.range(first..=last).next() {
                if let Some(outstanding) = self.outstanding.remove(&sequence) {
                    self.arrived += outstanding.size;
                    self.arrivals += 1;
                    self.under_way -= outstanding.size;
                    // A mere acknowledgement leaves when the newest arrives.
                    if report.rate.is_none() && Some(sequence) > self.newest_arrived {
                        self.last_rtt = Some(now.since(outstanding.sent));
                    }
                    self.fates.push(outstanding.known(Fate::Arrived));
                    self.trial = self.trial.filter(|_| outstanding.load == Load::Probe);
                }
            }
            self.newest_arrived = self.newest_arrived.max(Some(last));
            self.one.reached(last);
        }
        let lost = self.lost_before_newest(now);
        self.waits_since = (!self.outstanding.is_empty()).then_some(now);
        (lost, round_trip)
    }

    /// The control of the rate is told of a report. Answers with the round-trip time that it brought, if that is
    /// believed.
    fn feedback(
        &mut self,
        feedback: Feedback,
        waits: bool,
        latency: Duration,
        now: Time,
    ) -> Option<Duration> {
        let age = now.since(feedback.timestamp);
        let is_of_outage = self.heard_again.is_some_and(|again| feedback.timestamp <= again);
        if is_of_outage {
            self.rate.feedback(&Feedback { delay: age - self.rtt(), ..feedback }, now);
            return None;
        }
        let sample = age - feedback.delay;
        self.last_rtt = Some(sample);
        let round_trip = self.rate.feedback(&feedback, now);
        let is_believed = self.round_trips.sample(sample, waits, latency, now);
        round_trip.filter(|_| is_believed)
    }

    /// Datagrams that are lost, since later ones arrived: enough of them, or one long before (RFC 9002,
    /// section 6.1).
    fn lost_before_newest(&mut self, now: Time) -> Vec<u64> {
        let Some(newest) = self.newest_arrived else { return Vec::new() };
        let patience = self.patience();
        let mut lost = Vec::new();
        while let Some(entry) = self.outstanding.first_entry() {
            let is_lost = *entry.key() + self.later <= newest
                || (*entry.key() < newest && now.since(entry.get().sent) >= patience);
            if !is_lost {
                break;
            }
            self.lost += 1;
            let (sequence, outstanding) = entry.remove_entry();
            self.under_way -= outstanding.size;
            self.round_trips.lost(now);
            self.one.lost(sequence, outstanding.sent, self.rtt());
            self.doubtful.insert(sequence, outstanding.sent);
            if self.doubtful.len() > MOST_DOUBTFUL {
                self.doubtful.pop_first();
            }
            self.fates.push(outstanding.known(Fate::Lost));
            lost.extend(outstanding.load.media());
        }
        lost
    }

    /// A datagram has come that was taken for lost: others overtook it. As many, and as long a way, are no loss
    /// from now on.
    fn came_after_all(&mut self, sequence: u64, sent: Time, now: Time) {
        let overtook = self.newest_arrived.map_or(0, |newest| newest.saturating_sub(sequence));
        self.later = self.later.max(LATER).max(overtook + 1);
        let took = now.since(sent);
        if took > self.overtaken.0 || now.since(self.overtaken.1) > OVERTAKEN {
            self.overtaken = (took, now);
        }
    }

    /// When [`Self::tick`] is to be called.
    pub(super) fn deadline(&self) -> Time {
        let silent = match self.waits_since {
            Some(since) if !self.is_silent => since + self.silence(),
            _ => Time::NEVER,
        };
        silent.min(self.rate.deadline()).min(self.lost_at()).min(self.overdue_at())
    }

    /// Time has passed. Answers with the media packets that are taken for lost: since a later one has arrived
    /// for long, or since the connection is silent.
    pub(super) fn tick(&mut self, now: Time) -> Vec<u64> {
        self.rate.tick(now);
        let mut lost = self.lost_before_newest(now);
        let is_overdue = self.waits_since.is_some_and(|since| now.since(since) >= self.silence());
        if !is_overdue || self.is_silent {
            return lost;
        }
        self.is_silent = true;
        self.trial = Some(Trial::default());
        // The first one leaves at once.
        self.last_probe = None;
        lost.extend(self.take_outstanding());
        lost
    }

    /// The media packets whose fate is not known.
    pub(super) fn take_outstanding(&mut self) -> Vec<u64> {
        let outstanding = std::mem::take(&mut self.outstanding);
        self.under_way = Bytes::ZERO;
        self.fates.extend(outstanding.values().map(|outstanding| outstanding.known(Fate::Unknown)));
        outstanding.into_values().filter_map(|outstanding| outstanding.load.media()).collect()
    }

    /// What became of datagrams since this was asked before, in the order in which they left.
    pub(super) fn take_fates(&mut self) -> Vec<Known> {
        let mut fates = std::mem::take(&mut self.fates);
        fates.sort_unstable_by_key(|known| known.number);
        fates
    }
}

#[cfg(test)]
mod tests;
