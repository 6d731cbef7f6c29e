//! How the number of connections follows the round-trip time.

use anabranch_units::Ratio;

/// What becomes of the number of connections at every average of the round-trip time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// Equation (9), IIAD: by alpha/n up while the queueing delay is within what is borne, by beta down when
    /// it is beyond.
    InverseIncrease {
        /// alpha.
        increase: f64,
        /// beta.
        decrease: f64,
    },
    /// Ours: the same steps, but the smaller the nearer the queueing delay is to a goal, so that the number
    /// comes to rest there instead of swinging about it. The goal is what is borne with one connection, and
    /// less of it with more, down to 7/10: of two streams the larger one gives way first.
    ///
    /// Up by alpha/n times what is missing to the goal; down by beta times what is beyond it; each as a part
    /// of the goal, at most all of it. At 2.5 times the goal the queue is drained once: for two averages
    /// there are 0.9 of the connections that just fill the link.
    Proportional {
        /// alpha.
        increase: f64,
        /// beta.
        decrease: f64,
    },
}

impl Law {
    /// The next number of connections, not yet bounded. `queueing` and `tolerance` are parts of the least
    /// round-trip time.
    pub(super) fn next(self, n: f64, queueing: f64, tolerance: Ratio) -> f64 {
        let tolerance = tolerance.as_f64();
        match self {
            Self::InverseIncrease { decrease, .. } if queueing > tolerance => n - decrease,
            Self::InverseIncrease { increase, .. } => n + increase / n,
            Self::Proportional { increase, decrease } => {
                let goal = goal(n, tolerance);
                let missing = if goal > 0.0 { 1.0 - queueing / goal } else { -1.0 };
                if missing > 0.0 { n + increase * missing / n } else { n + decrease * missing.max(-1.0) }
            }
        }
    }

    /// The queueing delay at which the number rests, as a part of the least round-trip time.
    pub(super) fn goal(self, n: f64, tolerance: Ratio) -> f64 {
        match self {
            Self::InverseIncrease { .. } => tolerance.as_f64(),
            Self::Proportional { .. } => goal(n, tolerance.as_f64()),
        }
    }

    /// The number of connections with which a queue drains that has grown far beyond the goal,
    /// [`DRAIN_AVERAGES`] long. Whoever shares the queue sees it grow, and they all drain it together; who
    /// took its delay for a part of the path learns better.
    pub(super) fn drain(self, n: f64, queueing: f64, tolerance: Ratio) -> Option<f64> {
        let is_far = queueing > FAR * goal(n, tolerance.as_f64());
        (matches!(self, Self::Proportional { .. }) && is_far).then(|| DRAINING * n / (1.0 + queueing))
    }
}

/// A queueing delay of so many times the goal is far beyond it.
const FAR: f64 = 2.5;
/// On a full link n is proportional to the round-trip time. This part of the n that just fills it leaves room
/// for the queue to drain.
const DRAINING: f64 = 0.9;
/// The averages for which a queue is drained: those of streams that share it do not begin at the same time.
pub(super) const DRAIN_AVERAGES: u32 = 2;

/// The queueing delay at which [`Law::Proportional`] rests with n connections, as a part of the least
/// round-trip time.
fn goal(n: f64, tolerance: f64) -> f64 {
    tolerance * (0.7 + 0.3 / n)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIFTH: Ratio = Ratio::new(1, 5);

    #[test]
    fn equation_9_by_hand() {
        let law = Law::InverseIncrease { increase: 6.0, decrease: 2.0 };
        assert_eq!(law.next(4.0, 0.2, FIFTH), 5.5);
        assert_eq!(law.next(4.0, 0.201, FIFTH), 2.0);
    }

    #[test]
    fn steps_get_smaller_towards_the_goal() {
        let law = Law::Proportional { increase: 2.0, decrease: 1.0 };
        // The goal of four is 0.2 * (0.7 + 0.3 / 4) = 0.155.
        assert_eq!(law.next(4.0, 0.0, FIFTH), 4.5);
        assert!((law.next(4.0, 0.0775, FIFTH) - 4.25).abs() < 1e-12);
        assert!((law.next(4.0, 0.155, FIFTH) - 4.0).abs() < 1e-12);
        assert!((law.next(4.0, 0.2, FIFTH) - (4.0 - 0.045 / 0.155)).abs() < 1e-12);
        assert_eq!(law.next(4.0, 9.0, FIFTH), 3.0);
        // One connection bears all of it.
        assert!((law.next(1.0, 0.2, FIFTH) - 1.0).abs() < 1e-12 && law.next(1.0, 0.19, FIFTH) > 1.0);
        assert_eq!(law.next(4.0, 0.0, Ratio::ZERO), 3.0);
    }

    #[test]
    fn a_queue_far_beyond_the_goal_is_drained() {
        let law = Law::Proportional { increase: 2.0, decrease: 1.0 };
        assert_eq!(law.drain(4.0, 0.38, FIFTH), None);
        assert!((law.drain(4.0, 0.5, FIFTH).unwrap() - 0.9 * 4.0 / 1.5).abs() < 1e-12);
        assert_eq!(Law::InverseIncrease { increase: 1.0, decrease: 1.0 }.drain(4.0, 0.5, FIFTH), None);
    }
}
