//! How the number of connections follows the round-trip time.

use units::Ratio;

/// What becomes of the number of connections at every average of the round-trip time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// Equation (9), IIAD: by alpha/n up while the queueing delay is within what is borne, by beta down when it is beyond.
    InverseIncrease {
        /// alpha.
        increase: f64,
        /// beta.
        decrease: f64,
    },
    /// Ours: the same steps, but the smaller the nearer the queueing delay is to what is borne, so that the number comes to rest
    /// there instead of swinging about it.
    ///
    /// Up by alpha/n times what is missing of the queueing delay that is borne; down by beta times what is beyond it; each as a
    /// part of that delay, at most all of it.
    Proportional {
        /// alpha.
        increase: f64,
        /// beta.
        decrease: f64,
    },
}

impl Law {
    /// The next number of connections, not yet bounded. `queueing` and `tolerance` are parts of the least round-trip time.
    pub(super) fn next(self, n: f64, queueing: f64, tolerance: Ratio) -> f64 {
        let tolerance = tolerance.as_f64();
        match self {
            Self::InverseIncrease { decrease, .. } if queueing > tolerance => n - decrease,
            Self::InverseIncrease { increase, .. } => n + increase / n,
            Self::Proportional { increase, decrease } => {
                let missing = if tolerance > 0.0 { 1.0 - queueing / tolerance } else { -1.0 };
                if missing > 0.0 { n + increase * missing / n } else { n + decrease * missing.max(-1.0) }
            }
        }
    }
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
        assert_eq!(law.next(4.0, 0.0, FIFTH), 4.5);
        assert!((law.next(4.0, 0.1, FIFTH) - 4.25).abs() < 1e-12);
        assert_eq!(law.next(4.0, 0.2, FIFTH), 4.0);
        assert!((law.next(4.0, 0.3, FIFTH) - 3.5).abs() < 1e-12);
        assert_eq!(law.next(4.0, 9.0, FIFTH), 3.0);
        assert_eq!(law.next(4.0, 0.0, Ratio::ZERO), 3.0);
    }
}
