//! The loss event rate as the weighted mean of the last intervals between loss events (RFC 5348, sections 5.3
//! to 5.5).
//!
//! Whoever uses it decides what a loss event is: at the receiver from arrival times, at a sender from
//! acknowledgements.

use std::collections::VecDeque;

use anabranch_units::{Packets, Ratio};

/// How much the intervals between loss events weigh in their mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    /// The newer half alike, the older half less and less (RFC 5348, section 5.4).
    #[default]
    Rfc5348,
    /// The powers of 0.82 of 16 intervals, and of 0.65 of 8. TTFWC's thesis calls its weights exponential and
    /// does not print them. These have the sums of its section 4.1 (5.3 and 2.8), and 0.81, of its figure 4.6,
    /// is one less the inverse of the first.
    Geometric,
}

impl Weights {
    /// w_0, w_1, ... of so many intervals, at least one.
    fn of(self, intervals: u8) -> Vec<f64> {
        let n = u32::from(intervals.max(1));
        let ratio: f64 = if n >= 16 { 0.82 } else { 0.65 };
        let weight = |i: u32| match self {
            Self::Rfc5348 if 2 * i < n => 1.0,
            Self::Rfc5348 => Ratio::new(2 * (n - i), n + 2).as_f64(),
            Self::Geometric => libm::pow(ratio, f64::from(i)),
        };
        (0..n).map(weight).collect()
    }
}

/// The intervals between loss events, newest first, in packets.
#[derive(Clone, Debug)]
pub struct LossHistory {
    /// w_0, w_1, ...: one for each interval that counts.
    weights: Vec<f64>,
    kind: Weights,
    /// The least general discount factor; `None`: no discounting.
    discounting: Option<Ratio>,
    /// I_1, I_2, ...: at most as many as there are weights.
    closed: VecDeque<Interval>,
    open: Option<Open>,
    /// 1 when the lost packet with which it began counts in the open interval, 0 when not.
    lost_packet: f64,
}

/// An interval that a loss event has ended.
#[derive(Clone, Copy, Debug)]
struct Interval {
    packets: f64,
    /// What long intervals after it have left of its weight (DF_i).
    discount: f64,
}

/// The interval since the last loss event (I_0).
#[derive(Clone, Copy, Debug)]
struct Open {
    first: u64,
    highest: u64,
}

impl Open {
    /// Packets after the first.
    fn later_packets(&self) -> f64 {
        Packets::new(self.highest.saturating_sub(self.first)).as_f64()
    }
}

impl LossHistory {
    /// Without a loss event yet. `intervals` is n (8 in the RFC, at least one), `discounting` the least
    /// discount factor of section 5.5 (0.25 in the RFC), `None` to leave it away.
    pub fn new(intervals: u8, discounting: Option<Ratio>) -> Self {
        Self {
            weights: Weights::default().of(intervals),
            kind: Weights::default(),
            discounting,
            closed: VecDeque::new(),
            open: None,
            lost_packet: 1.0,
        }
    }

    /// The same, without the lost packet in the open interval, as ns-2 counts.
    #[must_use]
    pub fn without_lost_packet(self) -> Self {
        Self { lost_packet: 0.0, ..self }
    }

    /// The same with other weights.
    #[must_use]
    pub fn with_weights(self, kind: Weights) -> Self {
        Self { weights: kind.of(self.weights.len().try_into().unwrap_or(u8::MAX)), kind, ..self }
    }

    /// Whether there was no loss event yet.
    pub fn is_empty(&self) -> bool {
        self.open.is_none()
    }

    /// So many intervals count from now on; where there are fewer, those.
    pub fn set_intervals(&mut self, intervals: u8) {
        self.weights = self.kind.of(intervals);
        self.closed.truncate(self.weights.len());
    }

    /// How many intervals count (n).
    pub fn intervals(&self) -> usize {
        self.weights.len()
    }

    /// The first loss event, at the packet `sequence`. What was before it says nothing about the path, so
    /// `before`, in packets, stands for it (section 6.3.1).
    pub fn begin(&mut self, sequence: u64, before: f64) {
        self.closed.clear();
        self.closed.push_front(Interval { packets: before.max(1.0), discount: 1.0 });
        self.open = Some(Open { first: sequence, highest: sequence });
    }

    /// A loss event begins with the packet `sequence` (section 5.3): the interval before it is as long as
    /// their distance. Before [`Self::begin`] it counts as the first packet.
    pub fn event(&mut self, sequence: u64) {
        let Some(open) = self.open else {
            self.begin(sequence, 1.0);
            return;
        };
        let packets = Packets::new(sequence.saturating_sub(open.first).max(1)).as_f64();
        let factor = self.discount_factor(packets);
        for interval in &mut self.closed {
            interval.discount *= factor;
        }
        self.closed.push_front(Interval { packets, discount: 1.0 });
        self.closed.truncate(self.weights.len());
        self.open = Some(Open { first: sequence, highest: sequence });
    }

    /// The packet `sequence` was reached without a new loss event.
    pub fn advance(&mut self, sequence: u64) {
        if let Some(open) = &mut self.open {
            open.highest = open.highest.max(sequence);
        }
    }

    /// The mean loss interval in packets (I_mean), at least one; `None` before the first loss event.
    pub fn mean_interval(&self) -> Option<f64> {
        let open = self.open?.later_packets() + self.lost_packet;
        let factor = self.discount_factor(open);
        // The open interval counts only where it makes the mean longer; then it takes the first weight and
        // the oldest of the others falls out (I_tot0 and I_tot1).
        let (mut sum, mut weights) = (open * self.weights[0], self.weights[0]);
        let later = self.closed.iter().take(self.closed.len().saturating_sub(1));
        for (interval, weight) in later.zip(&self.weights[1..]) {
            sum += interval.packets * weight * interval.discount * factor;
            weights += weight * interval.discount * factor;
        }
        Some((sum / weights).max(self.closed_mean()).max(1.0))
    }

    /// The loss event rate (p), zero before the first loss event, at most one.
    pub fn loss_event_rate(&self) -> f64 {
        self.mean_interval().map_or(0.0, |packets| 1.0 / packets)
    }

    /// The mean of the intervals that have ended, in packets; `None` before the first loss event.
    pub fn mean_of_closed(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.closed_mean())
    }

    /// Length of the open interval, in packets; zero before the first loss event.
    pub fn open_packets(&self) -> f64 {
        self.open.map_or(0.0, |open| open.later_packets() + self.lost_packet)
    }

    /// How long the open interval is when it begins to make the mean longer, in packets, without discounting:
    /// until then the mean does not move. `None` before the first loss event.
    pub fn longer_from(&self) -> Option<f64> {
        self.open?;
        let (mut sum, mut weights) = (0.0, self.weights[0]);
        let later = self.closed.iter().take(self.closed.len().saturating_sub(1));
        for (interval, weight) in later.zip(&self.weights[1..]) {
            sum += interval.packets * weight;
            weights += weight;
        }
        Some(((self.closed_mean() * weights - sum) / self.weights[0]).max(0.0))
    }

    /// The sum of the weights of the intervals there are, as a multiple of the newest one's: after so many
    /// packets in the open interval the mean is a packet longer, and one interval of no length makes it
    /// shorter by no more than the inverse of this. At least one.
    pub fn weights_in_first(&self) -> f64 {
        self.weights.iter().take(self.closed.len().max(1)).sum::<f64>() / self.weights[0]
    }

    /// The mean of the intervals that have ended.
    fn closed_mean(&self) -> f64 {
        let (mut sum, mut weights) = (0.0, 0.0);
        for (interval, weight) in self.closed.iter().zip(&self.weights) {
            sum += interval.packets * weight * interval.discount;
            weights += weight * interval.discount;
        }
        if weights > 0.0 { sum / weights } else { 0.0 }
    }

    /// What an open interval of so many packets leaves of the weight of those before it (DF).
    fn discount_factor(&self, open: f64) -> f64 {
        let Some(least) = self.discounting else { return 1.0 };
        let twice = 2.0 * self.closed_mean();
        if open > twice { (twice / open).max(least.as_f64()) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A history whose intervals, oldest first, have these lengths; the open one has begun with one packet.
    fn history(intervals: &[u64], discounting: Option<Ratio>) -> LossHistory {
        let mut history = LossHistory::new(8, discounting);
        let mut sequence = 0;
        history.begin(sequence, intervals[0] as f64);
        for packets in &intervals[1..] {
            sequence += packets;
            history.event(sequence);
        }
        history
    }

    fn near(value: Option<f64>, expected: f64) {
        assert!((value.unwrap() - expected).abs() < 1e-9, "{value:?} instead of {expected}");
    }

    #[test]
    fn weights_are_those_of_5_4() {
        let expected = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
        for (weight, expected) in LossHistory::new(8, None).weights.iter().zip(expected) {
            assert!((weight - expected).abs() < 1e-12);
        }
        assert_eq!(LossHistory::new(0, None).weights, [1.0]);
    }

    #[test]
    fn geometric_weights_have_the_sums_of_the_thesis() {
        let sum = |intervals| Weights::Geometric.of(intervals).iter().sum::<f64>();
        assert!((sum(16) - 5.3).abs() < 0.05 && (sum(8) - 2.8).abs() < 0.05);
        assert!((1.0 - 1.0 / sum(16) - 0.81).abs() < 0.005);
        // They stay geometric when their number changes.
        let mut history = LossHistory::new(16, None).with_weights(Weights::Geometric);
        history.set_intervals(8);
        assert_eq!(history.weights, Weights::Geometric.of(8));
    }

    #[test]
    fn the_mean_counts_the_newest_first() {
        // 80, 70, ... 10, newest 80: (80 + 70 + 60 + 50 + 0.8 * 40 + 0.6 * 30 + 0.4 * 20 + 0.2 * 10) / 6 =
        // 320 / 6.
        let mut history = history(&[5, 10, 20, 30, 40, 50, 60, 70, 80], None);
        near(history.mean_interval(), 320.0 / 6.0);
        // With an open interval of 100: (100 + 80 + 70 + 60 + 0.8 * 50 + 0.6 * 40 + 0.4 * 30 + 0.2 * 20) / 6
        // = 390 / 6.
        history.advance(360 + 99);
        near(history.mean_interval(), 390.0 / 6.0);
        // As long as it makes the mean shorter it does not count: with 58 it is 348 / 6, with 20 as before.
        let mut young = self::history(&[5, 10, 20, 30, 40, 50, 60, 70, 80], None);
        young.advance(360 + 19);
        near(young.mean_interval(), 320.0 / 6.0);
    }

    #[test]
    fn few_intervals_take_the_first_weights() {
        let mut history = LossHistory::new(8, None);
        assert!(history.is_empty());
        assert_eq!((history.mean_interval(), history.loss_event_rate()), (None, 0.0));
        history.begin(1000, 50.0);
        near(history.mean_interval(), 50.0);
        history.advance(1079);
        near(history.mean_interval(), 80.0);
        history.event(1100);
        // I_1 = 100, I_2 = 50.
        near(history.mean_interval(), 75.0);
        assert!((history.loss_event_rate() - 1.0 / 75.0).abs() < 1e-12);
    }

    #[test]
    fn long_intervals_discount_those_before() {
        let quarter = Some(Ratio::new(1, 4));
        // Nine of 100, then 250 without a loss: 250 > 2 * 100, DF = 200 / 250 = 0.8. The weights of I_1 to
        // I_7 sum to 5: (250 + 0.8 * 500) / (1 + 0.8 * 5) = 130.
        let mut history = history(&[100; 9], quarter);
        history.advance(800 + 249);
        near(history.mean_interval(), 130.0);
        // A loss now keeps the factor: (250 + 0.8 * 100 * 5) / (1 + 0.8 * 5), the same.
        history.event(800 + 250);
        near(history.mean_interval(), 130.0);
        // The next long interval: 1300 > 260, DF = 0.25 at the least (260 / 1300 = 0.2). I_1 = 250 counts
        // 0.25, the six others, which weigh 4 together, 0.25 * 0.8: (1300 + 62.5 + 0.2 * 400) / (1 + 0.25 +
        // 0.2 * 4).
        history.advance(1050 + 1299);
        near(history.mean_interval(), 1442.5 / 2.05);
    }

    #[test]
    fn without_discounting_weights_stay() {
        let mut history = history(&[100; 9], None);
        history.advance(800 + 999);
        near(history.mean_interval(), (1000.0 + 500.0) / 6.0);
    }

    #[test]
    fn the_lost_packet_may_be_left_out_of_the_open_interval() {
        let mut history = LossHistory::new(8, None).without_lost_packet();
        history.begin(1000, 50.0);
        history.advance(1079);
        near(history.mean_interval(), 79.0);
        // A closed interval goes from one loss event to the next in any case.
        history.event(1100);
        near(history.mean_interval(), 75.0);
    }

    proptest! {
        #[test]
        fn the_rate_is_a_rate(
            n in 0u8..40, least in prop::option::of(0u32..=100),
            steps in prop::collection::vec((any::<bool>(), any::<u64>()), 0..60),
        ) {
            let mut history = LossHistory::new(n, least.map(|least| Ratio::new(least, 100)));
            for (is_event, sequence) in steps {
                if is_event { history.event(sequence) } else { history.advance(sequence) }
                prop_assert!((0.0..=1.0).contains(&history.loss_event_rate()));
            }
        }

        #[test]
        fn only_loss_events_raise_the_rate(gaps in prop::collection::vec(1u64..500, 1..40)) {
            let mut history = LossHistory::new(8, Some(Ratio::new(1, 4)));
            let mut sequence = 0;
            history.begin(0, 10.0);
            for gap in gaps {
                for _ in 0..gap {
                    let before = history.loss_event_rate();
                    sequence += 1;
                    history.advance(sequence);
                    prop_assert!(history.loss_event_rate() <= before + 1e-12);
                }
                history.event(sequence + 1);
            }
        }
    }
}
