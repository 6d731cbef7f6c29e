//! The sender's side of a connection: its rate, and which of its datagrams were lost.

use std::collections::{BTreeMap, BTreeSet};

use congestion::tfrc::{self, Feedback};
use units::{Bytes, Duration, Ratio, Time};

use super::LinkId;
use super::bursts::Fate;
use super::control::{packet_size, parameters};
use super::wire::{FLOWS_UNIT, Header, Report, expand, from_micros, low_bits, micros};

/// So many later datagrams show that one is lost where datagrams overtake each other (RFC 9002, section 6.1.1). Where none ever did the
/// next one does: at low rates the third comes too late for another attempt.
const LATER: u64 = 3;
/// Datagrams taken for lost that are remembered, in case they arrive after all.
const MOST_DOUBTFUL: usize = 64;
/// Datagrams whose fate is not known; more are taken for lost.
const MOST_OUTSTANDING: usize = 1 << 14;
/// A way of which nothing is known yet takes so long.
const UNKNOWN_WAY: Duration = Duration::from_millis(500);
/// The least silence that makes a connection doubtful.
const LEAST_SILENCE: Duration = Duration::from_millis(100);
/// How often a doubtful connection is tried.
const PROBE_INTERVAL: Duration = Duration::from_millis(500);

/// A datagram that was sent.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    sent: Time,
    /// The media packet in it.
    media: Option<u64>,
    /// Its number among all datagrams of the sender.
    number: u64,
}

/// The round trip at losses is the mean over about so many of them.
const LOSSES: u64 = 32;
/// A queue that has not drained for so long stands: others fill it. One that the stream fills itself drains in between.
const STANDING: Duration = Duration::from_secs(10);
/// It has drained when the round trip is no more than this part longer than the least.
const DRAINED: Ratio = Ratio::new(1, 3);

/// What is known of a connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) link: LinkId,
    rate: tfrc::Sender,
    outstanding: BTreeMap<u64, Outstanding>,
    newest_arrived: Option<u64>,
    /// So many later datagrams show that one is lost.
    later: u64,
    /// What was taken for lost of late.
    doubtful: BTreeSet<u64>,
    /// Since when a report is waited for.
    waits_since: Option<Time>,
    last_probe: Option<Time>,
    /// The round trip that the transport measured before there was any report.
    first_rtt: Duration,
    least_rtt: Duration,
    /// The last sample, and the mean of what it was when losses became known.
    last_rtt: Option<Duration>,
    rtt_at_losses: Option<Duration>,
    /// When the queue on the way was drained last.
    drained: Option<Time>,
    is_silent: bool,
    sent: u64,
    lost: u64,
    /// What became known and was not taken yet, by the numbers of all datagrams of the sender.
    fates: Vec<(u64, Fate)>,
}

impl Connection {
    pub(super) fn new(link: LinkId, rtt: Duration) -> Self {
        Self {
            link,
            rate: tfrc::Sender::new(parameters(), packet_size()),
            outstanding: BTreeMap::new(),
            newest_arrived: None,
            later: 1,
            doubtful: BTreeSet::new(),
            waits_since: None,
            last_probe: None,
            first_rtt: rtt,
            least_rtt: Duration::MAX,
            last_rtt: None,
            rtt_at_losses: None,
            drained: None,
            is_silent: false,
            sent: 0,
            lost: 0,
            fates: Vec::new(),
        }
    }

    /// Whether a report has come: before, the rate is one packet a second.
    pub(super) fn is_ready(&self) -> bool {
        self.rate.rtt().is_some()
    }

    /// Whether nothing has been heard for longer than a report takes.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// When media may leave here next.
    pub(super) fn next_send(&self) -> Time {
        self.rate.next_send()
    }

    /// From one packet to the next at the rate of the moment.
    pub(super) fn interval(&self) -> Duration {
        self.rate.sending_rate().time_for(packet_size())
    }

    /// How long a datagram takes to the receiver, about.
    pub(super) fn way(&self) -> Duration {
        self.rate.rtt().map_or(UNKNOWN_WAY, |rtt| rtt / 2)
    }

    /// The smoothed round-trip time.
    pub(super) fn rtt(&self) -> Option<Duration> {
        self.rate.rtt()
    }

    /// What queues on the way add to the shortest round trip.
    pub(super) fn queueing(&self) -> Duration {
        self.rate.rtt().map_or(Duration::ZERO, |rtt| rtt - self.least_rtt)
    }

    /// The round trip when packets are lost: beside a flow that fills the queue until it overflows it is longer than else.
    pub(super) fn rtt_at_losses(&self, now: Time) -> Option<Duration> {
        let stands = self.drained.is_some_and(|drained| now.since(drained) > STANDING);
        self.rtt_at_losses.filter(|_| stands).or(self.rate.rtt())
    }

    /// What queues on the way add to the shortest round trip when packets are lost.
    pub(super) fn queueing_at_losses(&self, now: Time) -> Duration {
        self.rtt_at_losses(now).map_or(Duration::ZERO, |rtt| rtt - self.least_rtt)
    }

    pub(super) fn rate(&self) -> &tfrc::Sender {
        &self.rate
    }

    /// Datagrams sent, and those of them that were lost.
    pub(super) fn totals(&self) -> (u64, u64) {
        (self.sent, self.lost)
    }

    /// Whether it should be asked for a report now: to know the round trip before media comes, and whether a silent one is
    /// alive again.
    pub(super) fn probe_at(&self) -> Time {
        let interval = match (self.is_ready(), self.is_silent) {
            (true, false) => return Time::NEVER,
            (true, true) => PROBE_INTERVAL,
            (false, _) => (self.first_rtt * 2).max(Duration::from_millis(20)),
        };
        self.last_probe.map_or(Time::ZERO, |last| last + interval)
    }

    pub(super) fn probed(&mut self, now: Time) {
        self.last_probe = Some(now);
    }

    /// A datagram leaves, with `number` among all of the sender's; what it carries is what `media` says. Answers with its
    /// header, and with media packets that are taken for lost since too much is under way.
    pub(super) fn send(
        &mut self,
        number: u64,
        media: Option<u64>,
        has_more: bool,
        now: Time,
    ) -> (Header, Option<u64>) {
        // What travels are whole microseconds: reports are compared with what is kept here.
        let now = from_micros(micros(now));
        let info = self.rate.sent(now, has_more);
        self.sent += 1;
        self.waits_since.get_or_insert(now);
        self.outstanding.insert(info.sequence, Outstanding { sent: now, media, number });
        let oldest =
            if self.outstanding.len() > MOST_OUTSTANDING { self.outstanding.pop_first() } else { None };
        self.fates.extend(oldest.map(|(_, outstanding)| (outstanding.number, Fate::Unknown)));
        let rtt = info.rtt.map_or(0, |rtt| u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX).max(1));
        let header = Header {
            sequence: low_bits(info.sequence),
            timestamp: low_bits(micros(now)),
            rtt,
            flows: Bytes::from_f64(info.flows * FLOWS_UNIT).get().try_into().unwrap_or(u16::MAX),
            member: info.connection,
            member_sequence: low_bits(info.connection_sequence),
        };
        (header, oldest.and_then(|(_, outstanding)| outstanding.media))
    }

    /// This connection stands for so many of TCP.
    pub(super) fn set_flows(&mut self, flows: f64) {
        // In the parts in which they are told, so that both ends reckon with the same number.
        self.rate.set_flows((flows * FLOWS_UNIT).round() / FLOWS_UNIT);
    }

    /// A report came. Answers with the media packets that were lost, and the round-trip time that the report brought.
    pub(super) fn report(&mut self, report: &Report, now: Time) -> (Vec<u64>, Option<Duration>) {
        self.is_silent = false;
        let mut round_trip = None;
        if let Some(rate) = &report.rate {
            let age = low_bits(micros(now)).wrapping_sub(rate.timestamp);
            if let Some(timestamp) = micros(now).checked_sub(age.into()) {
                let feedback = Feedback {
                    timestamp: from_micros(timestamp),
                    delay: rate.delay,
                    receive_rate: rate.receive_rate,
                    loss_event_rate: rate.loss_event_rate,
                };
                let sample = now.since(feedback.timestamp) - feedback.delay;
                self.least_rtt = self.least_rtt.min(sample.max(Duration::from_micros(1)));
                round_trip = self.rate.feedback(&feedback, now);
                self.last_rtt = round_trip.or(self.last_rtt);
                if sample <= self.least_rtt + self.least_rtt * DRAINED {
                    self.drained = Some(now);
                }
            }
        }
        let Some((&newest_sent, _)) = self.outstanding.last_key_value() else {
            self.waits_since = None;
            return (Vec::new(), round_trip);
        };
        for (last, length) in &report.arrived {
            let last = expand(*last, newest_sent);
            // What was not sent yet cannot have arrived.
            if last > newest_sent {
                continue;
            }
            let first = (last + 1).saturating_sub((*length).into());
            if self.doubtful.range(first..=last).next().is_some() {
                self.later = LATER;
            }
            while let Some((&sequence, _)) = self.outstanding.range(first..=last).next() {
                if let Some(outstanding) = self.outstanding.remove(&sequence) {
                    self.fates.push((outstanding.number, Fate::Arrived));
                }
            }
            self.newest_arrived = self.newest_arrived.max(Some(last));
        }
        let lost = self.lost_before_newest(now);
        self.waits_since = (!self.outstanding.is_empty()).then_some(now);
        (lost, round_trip)
    }

    /// Datagrams that are lost, since later ones arrived: enough of them, or one long before (RFC 9002, section 6.1).
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
            if let Some(rtt) = self.last_rtt {
                let mean = self.rtt_at_losses.unwrap_or(rtt);
                self.rtt_at_losses = Some((mean * (LOSSES - 1) + rtt) / LOSSES);
            }
            let (sequence, outstanding) = entry.remove_entry();
            self.doubtful.insert(sequence);
            if self.doubtful.len() > MOST_DOUBTFUL {
                self.doubtful.pop_first();
            }
            self.fates.push((outstanding.number, Fate::Lost));
            lost.extend(outstanding.media);
        }
        lost
    }

    /// A datagram that has been under way for so long when a later one has arrived is lost.
    fn patience(&self) -> Duration {
        let rtt = self.rate.rtt().unwrap_or(self.first_rtt);
        rtt + rtt / 8
    }

    /// When the oldest datagram counts as lost though no further report comes.
    fn lost_at(&self) -> Time {
        match self.outstanding.first_key_value() {
            Some((sequence, oldest)) if Some(*sequence) < self.newest_arrived => {
                oldest.sent + self.patience()
            }
            _ => Time::NEVER,
        }
    }

    /// So long a silence means that nothing gets through: two reports could have come.
    fn silence(&self) -> Duration {
        let rtt = self.rate.rtt().unwrap_or(self.first_rtt);
        (rtt * 5 / 2 + Duration::from_millis(50)).max(LEAST_SILENCE)
    }

    /// When [`Self::tick`] is to be called.
    pub(super) fn deadline(&self) -> Time {
        let silent = match self.waits_since {
            Some(since) if !self.is_silent => since + self.silence(),
            _ => Time::NEVER,
        };
        silent.min(self.rate.deadline()).min(self.lost_at())
    }

    /// Time has passed. Answers with the media packets that are taken for lost: since a later one has arrived for long, or
    /// since the connection is silent.
    pub(super) fn tick(&mut self, now: Time) -> Vec<u64> {
        self.rate.tick(now);
        let mut lost = self.lost_before_newest(now);
        let is_overdue = self.waits_since.is_some_and(|since| now.since(since) >= self.silence());
        if !is_overdue || self.is_silent {
            return lost;
        }
        self.is_silent = true;
        lost.extend(self.take_outstanding());
        lost
    }

    /// The media packets whose fate is not known.
    pub(super) fn take_outstanding(&mut self) -> Vec<u64> {
        let outstanding = std::mem::take(&mut self.outstanding);
        self.fates.extend(outstanding.values().map(|outstanding| (outstanding.number, Fate::Unknown)));
        outstanding.into_values().filter_map(|outstanding| outstanding.media).collect()
    }

    /// What became of datagrams since this was asked before.
    pub(super) fn take_fates(&mut self) -> Vec<(u64, Fate)> {
        std::mem::take(&mut self.fates)
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::RateReport;
    use super::*;
    use units::Rate;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn connection() -> Connection {
        Connection::new(LinkId(0), Duration::from_millis(20))
    }

    fn report(arrived: &[(u32, u16)]) -> Report {
        Report { arrived: arrived.to_vec(), ..Report::default() }
    }

    #[test]
    fn a_later_datagram_shows_a_loss() {
        let mut connection = connection();
        for media in 0..4 {
            connection.send(0, Some(media), true, at(media));
        }
        assert!(connection.report(&report(&[(1, 2)]), at(10)).0.is_empty());
        assert_eq!(connection.report(&report(&[(3, 1), (1, 2)]), at(12)).0, [2]);
        assert_eq!(connection.totals(), (4, 1));
    }

    #[test]
    fn where_one_was_overtaken_three_later_datagrams_or_a_long_time_show_a_loss() {
        let mut connection = connection();
        connection.send(0, Some(100), true, at(0));
        connection.send(0, Some(101), true, at(0));
        connection.send(0, Some(2), true, at(1));
        assert_eq!(connection.report(&report(&[(1, 1)]), at(1)).0, [100]);
        assert!(connection.report(&report(&[(1, 2)]), at(1)).0.is_empty());
        for media in 3..8 {
            connection.send(0, Some(media), true, at(media));
        }
        assert!(connection.report(&report(&[(4, 2), (2, 1)]), at(10)).0.is_empty());
        assert!(connection.report(&report(&[(6, 1), (4, 2), (2, 1)]), at(12)).0.is_empty());
        // 5 and 7 are out, 3 arrived; 5 is lost when 22.5 ms have passed since it left.
        assert_eq!(connection.report(&report(&[(6, 1)]), at(28)).0, [5]);
        connection.send(0, Some(8), true, at(29));
        connection.send(0, Some(9), true, at(29));
        connection.send(0, Some(10), true, at(29));
        assert_eq!(connection.report(&report(&[(10, 3)]), at(29)).0, [7]);
        assert_eq!(connection.totals(), (11, 3));
    }

    #[test]
    fn a_silent_connection_is_told_within_a_second_and_comes_back() {
        let mut connection = connection();
        connection.send(0, Some(1), true, at(0));
        connection.send(0, Some(2), true, at(10));
        assert_eq!(connection.deadline(), at(100));
        assert!(connection.tick(at(99)).is_empty() && !connection.is_silent());
        assert_eq!(connection.tick(at(100)), [1, 2]);
        assert!(connection.is_silent());
        connection.report(&report(&[]), at(400));
        assert!(!connection.is_silent());
    }

    #[test]
    fn reports_of_what_was_not_sent_change_nothing() {
        let mut connection = connection();
        connection.send(0, Some(1), true, at(0));
        let rate = RateReport {
            timestamp: 4_000_000_000,
            delay: Duration::ZERO,
            receive_rate: Rate::MAX,
            loss_event_rate: 0.0,
        };
        let wrong = Report { rate: Some(rate), ..report(&[(1000, 500), (u32::MAX, 9)]) };
        assert!(connection.report(&wrong, at(10)).0.is_empty());
        assert!(!connection.is_ready() && connection.outstanding.len() == 1);
    }

    #[test]
    fn what_is_under_way_is_bounded() {
        let mut connection = connection();
        for media in 0..MOST_OUTSTANDING as u64 {
            assert_eq!(connection.send(0, Some(media), true, at(0)).1, None);
        }
        assert_eq!(connection.send(0, Some(0), true, at(0)).1, Some(0));
    }
}
