//! The receiver: measures the loss event rate and the receive rate, and reports them (RFC 5348, section 6).

use std::collections::VecDeque;

use anabranch_units::{Bytes, Duration, Packets, Rate, Time};

use super::losses::{FlowLosses, Judge};
use super::{Feedback, PacketInfo, Parameters};
use crate::loss_history::LossHistory;

/// Counts what arrives, and reports once in a round trip and at every loss event.
#[derive(Clone, Debug)]
pub struct Receiver {
    parameters: Parameters,
    losses: FlowLosses,
    /// Known since the first packet, and when that came.
    newest: Option<Newest>,
    began: Time,
    loss_events: u64,
    arrivals: Arrivals,
    /// Whether anything arrived since the last report.
    has_news: bool,
    /// p as it was calculated last.
    loss_event_rate: f64,
    /// The feedback timer; [`Time::NEVER`] when the next packet is to be reported at once.
    deadline: Time,
}

/// The packet with the highest sequence number.
#[derive(Clone, Copy, Debug)]
struct Newest {
    packet: PacketInfo,
    arrival: Time,
}

impl Receiver {
    /// Before the first packet. Both ends need the same parameters.
    pub fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            losses: FlowLosses::new(parameters),
            newest: None,
            began: Time::ZERO,
            loss_events: 0,
            arrivals: Arrivals::default(),
            has_news: false,
            loss_event_rate: 0.0,
            deadline: Time::NEVER,
        }
    }

    /// A packet of `size` arrived (section 6.1). Answers with a report if one is to be sent at once.
    /// Duplicates, and packets that come after they were taken for lost, change nothing.
    pub fn packet(&mut self, packet: &PacketInfo, size: Bytes, now: Time) -> Option<Feedback> {
        let is_newest = self.newest.is_none_or(|newest| packet.sequence > newest.packet.sequence);
        #[expect(clippy::float_cmp, reason = "the sender repeats the same number until it takes another")]
        if is_newest && packet.flows != self.losses.flows() {
            self.losses.set_flows(packet.flows);
        }
        if !self.losses.packet(packet, now) {
            return None;
        }
        if self.newest.is_none() {
            self.began = now;
        }
        if is_newest {
            self.newest = Some(Newest { packet: *packet, arrival: now });
        }
        if !self.has_news {
            self.arrivals.resume(self.rtt(), now);
        }
        self.arrivals.count(size);
        self.has_news = true;
        let before = self.loss_event_rate;
        self.take_losses(packet.connection, now);
        if self.deadline == Time::NEVER || self.loss_event_rate > before { self.report(now) } else { None }
    }

    /// When [`Self::tick`] is to be called: the feedback timer.
    pub fn deadline(&self) -> Time {
        self.deadline
    }

    /// The feedback timer ran out (section 6.2): answers with a report if anything arrived since the last
    /// one. Before the deadline it changes nothing.
    pub fn tick(&mut self, now: Time) -> Option<Feedback> {
        if now < self.deadline { None } else { self.report(now) }
    }

    /// The loss event rate (p), zero before the first loss.
    pub fn loss_event_rate(&self) -> f64 {
        self.loss_event_rate
    }

    /// Loss events until now. Of those between two packets only as many are counted as can matter for the
    /// history.
    pub fn loss_events(&self) -> u64 {
        self.loss_events
    }

    /// The intervals between loss events, of the first connection if the sender stands for several.
    pub fn loss_history(&self) -> &LossHistory {
        self.losses.first_history()
    }

    /// The sender's estimate in the newest packet (R_m).
    fn rtt(&self) -> Option<Duration> {
        self.newest?.packet.rtt
    }

    /// Takes account of the losses that a packet of a connection has made certain.
    fn take_losses(&mut self, connection: u16, now: Time) {
        let round =
            self.newest.map(|newest| newest.packet.round).filter(|_| self.parameters.event_needs_report);
        let judge = Judge { rtt: self.rtt(), round };
        let (arrivals, parameters, flows) = (&mut self.arrivals, &self.parameters, self.losses.flows());
        let first_interval = || arrivals.first_interval(judge.rtt, parameters, flows, now);
        let events = self.losses.take(connection, judge, first_interval);
        self.loss_events = self.loss_events.saturating_add(events);
        self.loss_event_rate = self.losses.loss_event_rate();
    }

    /// The feedback timer expires, in time or early.
    fn report(&mut self, now: Time) -> Option<Feedback> {
        let newest = self.newest?;
        let rtt = newest.packet.rtt;
        let is_beginning = rtt.is_some_and(|rtt| now.since(self.began) < rtt * BEGINNING);
        let starts = match self.parameters.slow_start_feedback_per_rtt {
            more if self.loss_event_rate == 0.0 && is_beginning => more.max(1),
            _ => 1,
        };
        let receive_rate = self.arrivals.measure(rtt, now);
        let receive_rate = match rtt {
            Some(rtt) if starts > 1 => self.arrivals.of_late(rtt / u64::from(starts), now),
            _ => receive_rate,
        };
        self.arrivals.mark(now);
        self.deadline = Time::NEVER;
        if !self.has_news {
            return None;
        }
        self.has_news = false;
        if let Some(rtt) = rtt {
            let interval = rtt / u64::from(self.parameters.feedback_per_rtt.max(starts));
            self.deadline = now + interval.max(self.parameters.least_feedback_interval);
        }
        Some(Feedback {
            timestamp: newest.packet.timestamp,
            delay: now.since(newest.arrival),
            receive_rate,
            loss_event_rate: self.loss_event_rate,
        })
    }
}

/// Slow start is over after so many round trips: ten packets have become a hundred thousand.
const BEGINNING: u64 = 14;
/// More than the expirations of the feedback timer in a round trip.
const MOST_MARKS: usize = 64;

/// What has arrived, and the receive rate (X_recv) since the last expiration of the feedback timer that was
/// at least a round trip ago.
#[derive(Clone, Debug, Default)]
struct Arrivals {
    packets: u64,
    bytes: Bytes,
    /// What had arrived when the timer expired.
    marks: VecDeque<(Time, Bytes)>,
    /// The largest receive rate so far.
    largest: Rate,
}

impl Arrivals {
    fn count(&mut self, size: Bytes) {
        self.packets = self.packets.saturating_add(1);
        self.bytes += size;
    }

    /// Zero before the first mark.
    fn measure(&mut self, rtt: Option<Duration>, now: Time) -> Rate {
        let rtt = rtt.unwrap_or(Duration::ZERO);
        while self.marks.get(1).is_some_and(|(marked, _)| now.since(*marked) >= rtt) {
            self.marks.pop_front();
        }
        let rate = self.marks.front().map_or(Rate::ZERO, |(marked, until_then)| {
            Rate::of(self.bytes - *until_then, now.since(*marked))
        });
        self.largest = self.largest.max(rate);
        rate
    }

    /// What came since the last mark that is so old; zero before the first.
    fn of_late(&self, time: Duration, now: Time) -> Rate {
        let since = self.marks.iter().rev().find(|(marked, _)| now.since(*marked) >= time);
        let since = since.or(self.marks.front());
        since
            .map_or(Rate::ZERO, |(marked, until_then)| Rate::of(self.bytes - *until_then, now.since(*marked)))
    }

    /// The feedback timer expired.
    fn mark(&mut self, time: Time) {
        self.marks.push_back((time, self.bytes));
        if self.marks.len() > MOST_MARKS {
            self.marks.pop_front();
        }
    }

    /// Data comes again. Through a silence of more than a round trip the timer would have gone on expiring,
    /// so it counts as if it had done so a round trip ago.
    fn resume(&mut self, rtt: Option<Duration>, now: Time) {
        let (Some(rtt), Some((last, _))) = (rtt, self.marks.back()) else { return };
        if now.since(*last) > rtt {
            self.mark(now - rtt);
        }
    }

    /// The loss interval that would have given one of `flows` connections the largest receive rate so far
    /// (section 6.3.1). If none was measured, half a packet in a round trip.
    fn first_interval(
        &mut self,
        rtt: Option<Duration>,
        parameters: &Parameters,
        flows: f64,
        now: Time,
    ) -> f64 {
        self.measure(rtt, now);
        let rtt = rtt.filter(|rtt| !rtt.is_zero()).unwrap_or(Duration::from_secs(1));
        let mean = self.bytes.get().checked_div(self.packets).unwrap_or(0);
        let size = Bytes::new(mean.max(1));
        let target = if self.largest.is_zero() {
            Rate::of(size, rtt * 2)
        } else {
            Rate::from_bps_f64(self.largest.as_f64() / flows)
        };
        let interval = 1.0 / parameters.tcp(rtt * 4).loss_at(parameters.equation, size, rtt, target);
        if parameters.first_interval_arrived {
            interval.max(Packets::new(self.packets).as_f64() / flows)
        } else {
            interval
        }
    }
}
