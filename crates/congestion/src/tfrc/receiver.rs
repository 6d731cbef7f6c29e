//! The receiver: measures the loss event rate and the receive rate, and reports them (RFC 5348, section 6).

use std::collections::VecDeque;

use units::{Bytes, Duration, Rate, Time};

use super::loss_events::{Arrival, LossDetector, LossEvents};
use super::{Feedback, PacketInfo, Parameters};
use crate::loss_history::LossHistory;

/// Counts what arrives, and reports once in a round trip and at every loss event.
#[derive(Clone, Debug)]
pub struct Receiver {
    parameters: Parameters,
    history: LossHistory,
    events: LossEvents,
    /// Known since the first packet.
    stream: Option<Stream>,
    loss_events: u64,
    arrived_packets: u64,
    arrived: Bytes,
    /// Whether anything arrived since the last report.
    has_news: bool,
    receive_rate: ReceiveRate,
    /// p as it was calculated last.
    loss_event_rate: f64,
    /// The feedback timer; [`Time::NEVER`] when the next packet is to be reported at once.
    deadline: Time,
}

/// What is known from packets.
#[derive(Clone, Debug)]
struct Stream {
    detector: LossDetector,
    /// The packet with the highest sequence number, and when it arrived.
    newest: PacketInfo,
    newest_arrival: Time,
}

impl Receiver {
    /// Before the first packet. Both ends need the same parameters.
    pub fn new(parameters: Parameters) -> Self {
        let history = LossHistory::new(parameters.intervals, parameters.discounting);
        Self {
            parameters,
            history: if parameters.lost_packet_counts { history } else { history.without_lost_packet() },
            events: LossEvents::default(),
            stream: None,
            loss_events: 0,
            arrived_packets: 0,
            arrived: Bytes::ZERO,
            has_news: false,
            receive_rate: ReceiveRate::default(),
            loss_event_rate: 0.0,
            deadline: Time::NEVER,
        }
    }

    /// A packet of `size` arrived (section 6.1). Answers with a report if one is to be sent at once. Duplicates, and packets
    /// that come after they were taken for lost, change nothing.
    pub fn packet(&mut self, packet: &PacketInfo, size: Bytes, now: Time) -> Option<Feedback> {
        let arrival = Arrival { sequence: packet.sequence, time: now };
        match &mut self.stream {
            None => {
                let detector = LossDetector::new(arrival, self.parameters.later_packets);
                self.stream = Some(Stream { detector, newest: *packet, newest_arrival: now });
            }
            Some(stream) => {
                if !stream.detector.packet(arrival) {
                    return None;
                }
                if packet.sequence > stream.newest.sequence {
                    stream.newest = *packet;
                    stream.newest_arrival = now;
                }
            }
        }
        if !self.has_news {
            self.receive_rate.resume(self.rtt(), self.arrived, now);
        }
        self.arrived_packets = self.arrived_packets.saturating_add(1);
        self.arrived += size;
        self.has_news = true;
        let before = self.loss_event_rate;
        self.take_losses(now);
        if self.deadline == Time::NEVER || self.loss_event_rate > before { self.report(now) } else { None }
    }

    /// When [`Self::tick`] is to be called: the feedback timer.
    pub fn deadline(&self) -> Time {
        self.deadline
    }

    /// The feedback timer ran out (section 6.2): answers with a report if anything arrived since the last one. Before the
    /// deadline it changes nothing.
    pub fn tick(&mut self, now: Time) -> Option<Feedback> {
        if now < self.deadline { None } else { self.report(now) }
    }

    /// The loss event rate (p), zero before the first loss.
    pub fn loss_event_rate(&self) -> f64 {
        self.loss_event_rate
    }

    /// Loss events until now. Of those between two packets only as many are counted as can matter for the history.
    pub fn loss_events(&self) -> u64 {
        self.loss_events
    }

    /// The intervals between loss events.
    pub fn loss_history(&self) -> &LossHistory {
        &self.history
    }

    /// The sender's estimate in the newest packet (R_m).
    fn rtt(&self) -> Option<Duration> {
        self.stream.as_ref()?.newest.rtt
    }

    /// Puts the losses that have become certain into the history.
    fn take_losses(&mut self, now: Time) {
        let rtt = self.rtt();
        let round = self.stream.as_ref().map(|stream| stream.newest.round);
        let round = round.filter(|_| self.parameters.event_needs_report);
        // One more event than intervals count: the first of them closes an interval of unknown length.
        let most = self.history.intervals() + 1;
        while let Some(hole) = self.stream.as_mut().and_then(|stream| stream.detector.next_hole()) {
            for sequence in self.events.in_hole(&hole, rtt, round, most) {
                self.loss_events = self.loss_events.saturating_add(1);
                if self.history.is_empty() {
                    let interval = self.first_interval(now);
                    self.history.begin(sequence, interval);
                } else {
                    self.history.event(sequence);
                }
            }
        }
        if let Some(stream) = &self.stream {
            self.history.advance(stream.newest.sequence);
        }
        self.loss_event_rate = self.history.loss_event_rate();
    }

    /// The loss interval that would have given the largest receive rate so far (section 6.3.1). If none was measured, half a
    /// packet in a round trip.
    fn first_interval(&mut self, now: Time) -> f64 {
        let rtt = self.rtt().filter(|rtt| !rtt.is_zero()).unwrap_or(Duration::from_secs(1));
        self.receive_rate.measure(self.rtt(), self.arrived, now);
        let mean = self.arrived.get().checked_div(self.arrived_packets).unwrap_or(0);
        let size = Bytes::new(mean.max(1));
        let mut target = self.receive_rate.largest;
        if target.is_zero() {
            target = Rate::of(size, rtt * 2);
        }
        1.0 / self.parameters.tcp(rtt * 4).loss_at(self.parameters.equation, size, rtt, target)
    }

    /// The feedback timer expires, in time or early.
    fn report(&mut self, now: Time) -> Option<Feedback> {
        let stream = self.stream.as_ref()?;
        let rtt = stream.newest.rtt;
        let receive_rate = self.receive_rate.measure(rtt, self.arrived, now);
        self.receive_rate.mark(self.arrived, now);
        self.deadline = Time::NEVER;
        if !self.has_news {
            return None;
        }
        self.has_news = false;
        if let Some(rtt) = rtt {
            self.deadline = now + rtt / u64::from(self.parameters.feedback_per_rtt.max(1));
        }
        Some(Feedback {
            timestamp: stream.newest.timestamp,
            delay: now.since(stream.newest_arrival),
            receive_rate,
            loss_event_rate: self.loss_event_rate,
        })
    }
}

/// More than the expirations of the feedback timer in a round trip.
const MOST_MARKS: usize = 64;

/// The receive rate (X_recv) since the last expiration of the feedback timer that was at least a round trip ago.
#[derive(Clone, Debug, Default)]
struct ReceiveRate {
    /// What had arrived when the timer expired.
    marks: VecDeque<(Time, Bytes)>,
    largest: Rate,
}

impl ReceiveRate {
    /// Zero before the first mark.
    fn measure(&mut self, rtt: Option<Duration>, arrived: Bytes, now: Time) -> Rate {
        let rtt = rtt.unwrap_or(Duration::ZERO);
        while self.marks.get(1).is_some_and(|(marked, _)| now.since(*marked) >= rtt) {
            self.marks.pop_front();
        }
        let rate = self
            .marks
            .front()
            .map_or(Rate::ZERO, |(marked, until_then)| Rate::of(arrived - *until_then, now.since(*marked)));
        self.largest = self.largest.max(rate);
        rate
    }

    fn mark(&mut self, arrived: Bytes, now: Time) {
        self.marks.push_back((now, arrived));
        if self.marks.len() > MOST_MARKS {
            self.marks.pop_front();
        }
    }

    /// Data comes again. Through a silence of more than a round trip the timer would have gone on expiring, so it counts as
    /// if it had done so a round trip ago.
    fn resume(&mut self, rtt: Option<Duration>, arrived: Bytes, now: Time) {
        let (Some(rtt), Some((last, _))) = (rtt, self.marks.back()) else { return };
        if now.since(*last) > rtt {
            self.mark(arrived, now - rtt);
        }
    }
}
