//! The sender: the allowed rate, and when packets leave (RFC 5348, section 4).

use anabranch_units::{Bytes, Duration, Rate, Time};

use super::receive_rates::{DataLimit, ReceiveRates};
use super::share::Share;
use super::timeout::CoarseTimeout;
use super::virtual_connections::{MOST_FLOWS, Numbering, bounded};
use super::{Feedback, Increase, PacketInfo, Parameters, Timeout};
use crate::multfrc::Usage;

/// Where a sender has a share, its packets belong to connections in such parts of one.
const SHARE_PARTS: f64 = 64.0;
/// A round trip is never shorter, whatever a report says.
const SHORTEST_RTT: Duration = Duration::from_micros(1);

/// Sends packets of one size at the rate that TCP would have, or at a multiple of it.
#[derive(Clone, Debug)]
pub struct Sender {
    parameters: Parameters,
    packet_size: Bytes,
    next_sequence: u64,
    /// How many connections the sender stands for (n), and how much of what these are allowed it has.
    flows: f64,
    share: Share,
    /// Which packet belongs to which connection.
    numbering: Numbering,
    /// Reports that came or were missed.
    round: u64,
    /// The allowed rate of one connection (X), bytes per second.
    allowed: f64,
    /// Known since the first report, or taken from a handshake.
    path: Option<Path>,
    /// Whether a report has come.
    has_report: bool,
    loss_event_rate: f64,
    /// When the rate was doubled last (tld) or, after slow start, when it was changed last.
    last_change: Time,
    receive_rates: ReceiveRates,
    data_limit: DataLimit,
    /// The last receive rate of all connections, and whether there was more to send than was allowed, as the
    /// last report told.
    delivered: Rate,
    is_limited: bool,
    /// What the last report covered.
    newest_echo: Time,
    /// When the last packet should have left (t_i), `None` before the first.
    last_nominal: Option<Time>,
    nofeedback: Time,
    /// Whether nothing was sent since the nofeedback timer was set.
    is_idle: bool,
}

/// What the reports have told of the round trip.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// Smoothed (R).
    rtt: Duration,
    /// The mean of the square roots (R_sqmean), and the last square root; seconds^(1/2).
    sqrt_mean: f64,
    sqrt_sample: f64,
    coarse: Option<CoarseTimeout>,
}

impl Path {
    fn new(sample: Duration, parameters: &Parameters) -> Self {
        let sqrt_sample = sample.as_secs_f64().sqrt();
        let coarse = match parameters.timeout {
            Timeout::FourRtts => None,
            Timeout::Coarse { tick } => Some(CoarseTimeout::new(sample, tick)),
        };
        Self { rtt: sample, sqrt_mean: sqrt_sample, sqrt_sample, coarse }
    }

    fn update(&mut self, sample: Duration, parameters: &Parameters) {
        // By differences, so that rounding does not make a steady round trip shorter.
        let gain = parameters.rtt_weight.complement();
        self.rtt = self.rtt + (sample - self.rtt) * gain - (self.rtt - sample) * gain;
        self.sqrt_sample = sample.as_secs_f64().sqrt();
        if let Some(weight) = parameters.sqrt_rtt_weight {
            self.sqrt_mean =
                weight.as_f64() * self.sqrt_mean + weight.complement().as_f64() * self.sqrt_sample;
        }
        if let Some(coarse) = &mut self.coarse {
            coarse.update(sample);
        }
    }

    fn timeout(&self) -> Duration {
        self.coarse.map_or(self.rtt * 4, |coarse| coarse.timeout())
    }
}

impl Sender {
    /// A sender of packets of `packet_size` (s), which begins with one packet a second until the first report
    /// (section 4.2). Packets of no bytes count as packets of one byte.
    pub fn new(parameters: Parameters, packet_size: Bytes) -> Self {
        let packet_size = packet_size.max(Bytes::new(1));
        let mut sender = Self {
            parameters,
            packet_size,
            next_sequence: 0,
            flows: 1.0,
            share: Share::WHOLE,
            numbering: Numbering::new(),
            round: 0,
            allowed: packet_size.as_f64(),
            path: None,
            has_report: false,
            loss_event_rate: 0.0,
            last_change: Time::ZERO,
            receive_rates: ReceiveRates::unbounded(Time::ZERO),
            data_limit: DataLimit::default(),
            delivered: Rate::ZERO,
            is_limited: false,
            newest_echo: Time::ZERO,
            last_nominal: None,
            nofeedback: Time::NEVER,
            is_idle: true,
        };
        sender.allow(sender.allowed);
        sender
    }

    /// The same where a handshake has shown the round trip: it begins with the initial window in each round trip
    /// (section 4.2). The first report takes its place.
    #[must_use]
    pub fn with_round_trip(mut self, rtt: Duration) -> Self {
        let path = Path::new(rtt.max(SHORTEST_RTT), &self.parameters);
        self.path = Some(path);
        self.allow(self.initial_rate(&path));
        self
    }

    /// The sender stands for so many connections from now on (n): it sends at n times the rate of one. Less
    /// than one, and what is no number, counts as one, more than 100 as 100. The interval to the next packet
    /// changes at once.
    pub fn set_flows(&mut self, flows: f64) {
        self.flows = bounded(flows);
        self.stand();
    }

    /// The sender has so much of what its own control allows it from now on: less than one part where it is
    /// held back, more where others leave it something ([`crate::shares`]). The control itself goes on as if
    /// it had all: what arrives, and which losses are those of one connection, is reckoned with the rate of
    /// one.
    pub fn set_share(&mut self, share: f64) {
        self.share.set(share);
        self.stand();
    }

    fn stand(&mut self) {
        // Less than one connection is one there. A share is told in whole parts, so that both ends reckon
        // alike.
        let is_whole = self.share.get().to_bits() == 1.0_f64.to_bits();
        let stands_for = self.stands_for();
        self.numbering.set_flows(if is_whole {
            stands_for
        } else {
            (stands_for * SHARE_PARTS).round() / SHARE_PARTS
        });
        self.allow(self.allowed);
    }

    /// How many connections the sender stands for (n).
    pub fn flows(&self) -> f64 {
        self.flows
    }

    /// How much of what its own control allows it the sender has ([`Self::set_share`]).
    pub fn share(&self) -> f64 {
        self.share.get()
    }

    /// So many times the rate of one connection are sent.
    fn stands_for(&self) -> f64 {
        (self.flows * self.share.get()).min(f64::from(MOST_FLOWS))
    }

    /// When the next packet may leave (section 4.6); it may be in the past.
    pub fn next_send(&self) -> Time {
        let Some(last) = self.last_nominal else { return Time::ZERO };
        let interval = self.interval();
        let rtt = self.rtt().unwrap_or(Duration::MAX);
        last + interval - interval.min(self.parameters.granularity).min(rtt) / 2
    }

    /// A packet leaves. `has_more` says whether further data waits, so that the rate is what holds the sender
    /// back.
    pub fn sent(&mut self, now: Time, has_more: bool) -> PacketInfo {
        let interval = self.interval();
        let credit = match self.parameters.burst {
            // A driver whose timer is coarser than the round trip would not come to its rate.
            None => self.rtt().unwrap_or(Duration::ZERO).max(self.parameters.granularity * 2),
            Some(packets) => interval * u64::from(packets.saturating_sub(1)),
        };
        // One that leaves before its time, to ask for a report, does not put off those that follow it: before
        // the first report the rate is one packet a second, and as many seconds as packets asked would pass
        // until the next one left.
        let latest = now + self.parameters.granularity;
        let nominal = |last: Time| (last + interval).max(now - credit).min(latest);
        self.last_nominal = Some(self.last_nominal.map_or(now, nominal));
        if self.nofeedback == Time::NEVER {
            self.restart_nofeedback_timer(now);
        }
        self.is_idle = false;
        self.data_limit.sent(now, has_more);
        let sequence = self.next_sequence;
        self.next_sequence = sequence.saturating_add(1);
        let (connection, connection_sequence) = self.numbering.take();
        PacketInfo {
            sequence,
            timestamp: now,
            rtt: self.rtt(),
            round: self.round,
            flows: self.numbering.flows(),
            connection,
            connection_sequence,
        }
    }

    /// A report arrived (section 4.3). Answers with the round-trip time that it brought (R_sample). One that
    /// is older than the last, or of a packet that was not sent yet, changes nothing. A loss event rate that
    /// is no number counts as one.
    pub fn feedback(&mut self, feedback: &Feedback, now: Time) -> Option<Duration> {
        let is_too_old = feedback.timestamp < self.newest_echo;
        if is_too_old || feedback.timestamp > now || self.last_nominal.is_none() {
            return None;
        }
        self.newest_echo = feedback.timestamp;
        let sample = (now.since(feedback.timestamp) - feedback.delay).max(SHORTEST_RTT);
        let path = match self.path {
            Some(mut path) if self.has_report => {
                path.update(sample, &self.parameters);
                path
            }
            known => {
                let path = Path::new(sample, &self.parameters);
                // What has left at the rate of a handshake's round trip bounds what follows.
                if known.is_none() {
                    self.receive_rates = ReceiveRates::unbounded(now);
                }
                self.last_change = now;
                self.allow(self.initial_rate(&path));
                path
            }
        };
        (self.path, self.has_report) = (Some(path), true);
        let reported = feedback.loss_event_rate;
        let loss_event_rate = if reported.is_nan() { 1.0 } else { reported.clamp(0.0, 1.0) };
        let has_grown = loss_event_rate > self.loss_event_rate;
        self.loss_event_rate = loss_event_rate;
        let limit = self.receive_limit(feedback, has_grown, &path, now);
        self.update_allowed(&path, limit, now);
        self.restart_nofeedback_timer(now);
        self.round = self.round.saturating_add(1);
        Some(sample)
    }

    /// When [`Self::tick`] is to be called: the nofeedback timer. [`Time::NEVER`] before the first packet.
    pub fn deadline(&self) -> Time {
        self.nofeedback
    }

    /// The nofeedback timer ran out (section 4.4). Before the deadline it changes nothing.
    pub fn tick(&mut self, now: Time) {
        if now < self.nofeedback {
            return;
        }
        let receive_rate = self.receive_rates.maximum();
        match self.path {
            None if self.is_idle => {}
            // No rate that the equation gave is there to be halved.
            None => self.allow(self.allowed / 2.0),
            Some(path) if self.is_idle && self.is_below_recovery(&path, receive_rate) => {}
            Some(_) if self.loss_event_rate == 0.0 => self.allow(self.allowed / 2.0),
            Some(path) => {
                let equation = self.equation_rate(&path, self.loss_event_rate);
                // Half of what held the rate: the receive rate, or else the equation.
                let limit = if equation > 2.0 * receive_rate { receive_rate } else { equation / 2.0 };
                let limit = limit.max(self.least_rate());
                self.receive_rates.replace(limit / 2.0, now);
                self.update_allowed(&path, limit, now);
            }
        }
        self.restart_nofeedback_timer(now);
        self.round = self.round.saturating_add(1);
    }

    /// The allowed rate, of all connections that the sender stands for (n X), or its share of it.
    pub fn allowed_rate(&self) -> Rate {
        rate(self.stands_for() * self.allowed)
    }

    /// What the sender's own control allows it, however much of it it has.
    pub fn allowed_alone(&self) -> Rate {
        rate(self.flows * self.allowed)
    }

    /// The rate at which packets leave: the allowed one, less while the round-trip time grows (section 4.5,
    /// X_inst).
    pub fn sending_rate(&self) -> Rate {
        rate(self.stands_for() * self.instantaneous())
    }

    /// The smoothed round-trip time (R), once there was a report or a handshake.
    pub fn rtt(&self) -> Option<Duration> {
        self.path.map(|path| path.rtt)
    }

    /// The loss event rate that was reported last (p).
    pub fn loss_event_rate(&self) -> f64 {
        self.loss_event_rate
    }

    /// What arrived in the last round trip.
    pub fn delivered(&self) -> Rate {
        self.delivered
    }

    /// What the sender makes of its rate, after a report, as if it had all of it. `wanted`: the rate of what
    /// there is to send, if that is known.
    pub fn usage(&self, wanted: Option<Rate>) -> Usage {
        let equation = self
            .path
            .filter(|_| self.loss_event_rate > 0.0)
            .map(|path| self.equation_rate(&path, self.loss_event_rate));
        Usage {
            allowed: self.allowed_alone(),
            equation: equation.map_or(Rate::MAX, |one| rate(self.flows * one)),
            delivered: rate(self.delivered.bytes_per_second() / self.share.sent_with()),
            loss_event_rate: self.loss_event_rate,
            is_limited: self.is_limited,
            wanted,
            has_links_beside: false,
            one: None,
        }
    }

    /// What the equation gives one connection at this loss event rate; `None` without losses, and before the
    /// round trip is known.
    pub fn rate_of_one(&self, loss_event_rate: f64) -> Option<Rate> {
        let path = self.path.filter(|_| loss_event_rate > 0.0)?;
        Some(rate(self.equation_rate(&path, loss_event_rate)))
    }

    /// Bytes per second that the receive rates allow (recv_limit).
    fn receive_limit(&mut self, feedback: &Feedback, has_grown: bool, path: &Path, now: Time) -> f64 {
        self.share.reported(path.rtt, now);
        let shown = self.flows * self.share.shown(self.loss_event_rate > 0.0);
        let receive_rate = feedback.receive_rate.bytes_per_second() / shown;
        self.delivered = feedback.receive_rate;
        self.is_limited = !self.data_limit.was_limited(feedback.timestamp);
        if self.is_limited {
            let round_trip = path.rtt.max(self.parameters.least_feedback_interval);
            let memory = round_trip * u64::from(self.parameters.receive_rate_rtts);
            self.receive_rates.update(receive_rate, now, memory);
        } else if has_grown {
            // Of n connections one has seen a loss: it alone comes down, as the RFC has it, and the limit is
            // the mean of all.
            let one = 1.0 / self.stands_for().max(1.0);
            self.receive_rates.scale(1.0 - 0.5 * one);
            self.receive_rates.maximize((1.0 - 0.15 * one) * receive_rate, now);
            return (2.0 - one) * self.receive_rates.maximum();
        } else {
            self.receive_rates.maximize(receive_rate, now);
        }
        2.0 * self.receive_rates.maximum()
    }

    /// Step 4 of section 4.3: congestion avoidance once there were losses, slow start before.
    fn update_allowed(&mut self, path: &Path, receive_limit: f64, now: Time) {
        let elapsed = now.since(self.last_change);
        if self.loss_event_rate > 0.0 {
            let packet_per_rtt = self.packet_size.as_f64() / path.rtt.as_secs_f64();
            let least_limit = f64::from(self.parameters.least_receive_limit) * packet_per_rtt;
            let target = self.equation_rate(path, self.loss_event_rate).min(receive_limit.max(least_limit));
            let next = match self.parameters.increase {
                Increase::AtOnce => target,
                Increase::PacketPerRtt => {
                    let packets = elapsed.ratio_to(path.rtt).min(2.0);
                    target.min(self.allowed + packets * packet_per_rtt)
                }
            };
            self.allow(next);
            self.last_change = now;
        } else if elapsed >= path.rtt / u64::from(self.parameters.slow_start_feedback_per_rtt.max(1)) {
            self.allow((2.0 * self.allowed).min(receive_limit).max(self.initial_rate(path)));
            self.last_change = now;
        }
    }

    /// Whether a sender that was idle has so small a rate that it keeps it (section 4.4).
    fn is_below_recovery(&self, path: &Path, receive_rate: f64) -> bool {
        let recovery = self.initial_rate(path);
        if self.loss_event_rate > 0.0 { receive_rate < recovery } else { self.allowed < 2.0 * recovery }
    }

    /// What the equation gives at this loss event rate (X_Bps), bytes per second.
    fn equation_rate(&self, path: &Path, loss_event_rate: f64) -> f64 {
        let tcp = self.parameters.tcp(path.timeout());
        let equation = self.parameters.equation;
        tcp.throughput_by(equation, self.packet_size, path.rtt, loss_event_rate).bytes_per_second()
    }

    fn initial_rate(&self, path: &Path) -> f64 {
        self.parameters.initial_window.bytes(self.packet_size) / path.rtt.as_secs_f64()
    }

    /// A packet in the longest interval (s / t_mbi).
    fn least_rate(&self) -> f64 {
        let longest = self.parameters.longest_interval.max(SHORTEST_RTT);
        self.packet_size.as_f64() / longest.as_secs_f64()
    }

    fn within_bounds(&self, rate: f64) -> f64 {
        let maximum = self.parameters.maximum_rate.bytes_per_second() / self.stands_for();
        rate.min(maximum).max(self.least_rate())
    }

    fn allow(&mut self, rate: f64) {
        self.allowed = self.within_bounds(rate);
    }

    fn instantaneous(&self) -> f64 {
        match self.path {
            Some(path) if self.parameters.sqrt_rtt_weight.is_some() => {
                self.within_bounds(self.allowed * path.sqrt_mean / path.sqrt_sample)
            }
            _ => self.allowed,
        }
    }

    /// From one packet to the next (t_ipi), never nothing: time must pass while packets leave.
    fn interval(&self) -> Duration {
        let interval =
            Duration::from_secs_f64(self.packet_size.as_f64() / (self.stands_for() * self.instantaneous()));
        interval.max(Duration::from_nanos(1))
    }

    /// The timer takes the rate as it is after the report: a timer shorter than the distance of two packets
    /// would run out for lack of packets. Time must pass until it runs out, whatever the parameters.
    fn restart_nofeedback_timer(&mut self, now: Time) {
        let two_packets =
            Duration::from_secs_f64(2.0 * self.packet_size.as_f64() / (self.stands_for() * self.allowed));
        let round_trip = self.rtt().unwrap_or(Duration::ZERO).max(self.parameters.least_feedback_interval);
        let rtts = round_trip * u64::from(self.parameters.nofeedback_rtts);
        self.nofeedback = now + rtts.max(two_packets).max(Duration::from_nanos(1));
        self.is_idle = true;
    }
}

fn rate(bytes_per_second: f64) -> Rate {
    Rate::from_bps_f64(8.0 * bytes_per_second)
}
