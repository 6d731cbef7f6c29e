//! What drops or marks packets before the queue is full.

use anabranch_queues::{Codepoint, PieState, Verdict};
use anabranch_scenario::random::Random;
use anabranch_units::Rate;

use super::red::RedAverage;
use crate::model::{Pie, Red};

/// Of so many packets PIE drops nothing early.
const FEW: usize = 2;

/// By which rule.
#[derive(Debug)]
pub(super) enum Early {
    Never,
    Red(Box<RedAverage>),
    Pie(Box<PieState>),
}

impl Early {
    /// Before a link of this rate.
    pub(super) fn red(red: Red, rate: Rate) -> Self {
        Self::Red(Box::new(RedAverage::new(red, rate)))
    }

    pub(super) fn pie(pie: Pie) -> Self {
        Self::Pie(Box::new(PieState::new(pie)))
    }

    /// What becomes of a packet that finds `waiting` others. What is there has left at `busy_until`.
    #[inline]
    pub(super) fn judge(
        &mut self,
        ecn: Codepoint,
        waiting: usize,
        busy_until: u64,
        now: u64,
        random: &mut Random,
    ) -> Verdict {
        match self {
            Self::Never => Verdict::Passes,
            Self::Red(red) => red.judge(ecn, waiting, busy_until, now, random),
            Self::Pie(pie) => pie.judge(ecn, waiting <= FEW, now, |at| busy_until.saturating_sub(at), random),
        }
    }
}
