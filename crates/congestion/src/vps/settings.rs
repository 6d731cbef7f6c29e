//! When members of a group are taken to share a bottleneck, and when no longer.

use anabranch_units::Duration;

/// Where members begin of whom nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    /// Each for itself, until there is evidence that it shares a bottleneck with others.
    Alone,
    /// With the others, for somebody has said that they share one, until there is evidence that it does not.
    Together,
}

/// When members are parted and joined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Where members begin.
    pub begins: Begins,
    /// Of which the least round trips are compared, and of halves of it where companies may be joined.
    pub interval: Duration,
    /// How many intervals are compared where companies may be joined,
    pub join_intervals: usize,
    /// in how many of them something has to be known of both,
    pub join_known: usize,
    /// and by how many standard deviations they have to be more alike than two of which each has a queue of its
    /// own, where they have moved often. It is twice as much where all is one movement.
    pub join_likeness: f64,
    /// How many have to disagree for a member to be parted.
    pub part_intervals: usize,
    /// How often it is judged.
    pub judged_every: Duration,
    /// For how long companies have to agree at every judgement,
    pub convinced_after: Duration,
    /// and for how long where they could have for a long time and did not.
    pub convinced_late_after: Duration,
    /// The part of their movements by which companies that agree may differ, however noisy they are,
    pub differ_at_most: f64,
    /// and the part by which they may whatever they are. In how they change they may always differ by the former,
    /// for one sees a fall a little earlier than the other.
    pub differ_at_least: f64,
    /// In between, how many times the variance of what is no queue in both.
    pub times_noise: f64,
    /// Members whose concordance with the rest of their company is lower at two judgements are parted.
    pub part_below: f64,
    /// Delays that deviate by less from their mean say nothing.
    pub least_deviation: Duration,
    /// By so much what is no queue, such as what receivers wait, may have delays deviate: differences that are
    /// no larger part nobody by themselves.
    pub waits: Duration,
}

impl Default for Settings {
    /// Ours, chosen in simulation so that noise moves nobody there and back.
    fn default() -> Self {
        Self {
            begins: Begins::Alone,
            interval: Duration::from_millis(200),
            join_intervals: 100,
            join_known: 30,
            join_likeness: 4.0,
            part_intervals: 18,
            judged_every: Duration::from_millis(500),
            convinced_after: Duration::from_secs(3),
            convinced_late_after: Duration::from_secs(15),
            differ_at_most: 0.5,
            differ_at_least: 0.1,
            times_noise: 4.0,
            part_below: 0.2,
            least_deviation: Duration::from_millis(1),
            // What is anywhere from 0 to 20 ms has a deviation of 5.8 ms.
            waits: Duration::from_millis(6),
        }
    }
}

impl Settings {
    /// The same where members begin together, because somebody has said that they share a bottleneck: that
    /// they do not takes more evidence, over three times as long.
    #[must_use]
    pub fn declared(self) -> Self {
        Self { begins: Begins::Together, part_intervals: 3 * self.part_intervals, ..self }
    }
}
