//! How a stream finds its number of connections: by a part of what it has every two round trips, as slow
//! start does with windows. A step of alpha/n every m round trips takes minutes over a link that loses much.
//!
//! Slow start ends at a loss. This does not: as long as no queue stands, losses are the link's own. It ends
//! when the round-trip time shows a queue; and when much of what is sent does not arrive, as a link with
//! hardly a queue, or one that is policed, shows its limit so. It begins again when no queue was seen for
//! long although the rate does hold the sender back.

use anabranch_units::{Duration, Time};

use super::usage::Usage;
use super::window::Window;

/// Round trips from one step to the next.
const ROUND_TRIPS: u32 = 2;
/// What a step multiplies the number of connections with.
const GROWTH: f64 = 1.5;
/// When a smaller part of the connections is needed, there are too many, and a step leaves this part of them.
const LEAST_NEED: f64 = 0.6;
const SHRINKAGE: f64 = 0.9;
/// When less than this part of what was allowed arrives, what is lost is more than a link that is of use
/// loses by itself.
const LEAST_DELIVERED: f64 = 0.6;
/// How much of a window goes into the mean: losses come in bursts.
const DELIVERED_GAIN: f64 = 0.25;
/// So many windows on end without a queue begin it again.
const PATIENCE: u32 = 6;
/// The same at most: it doubles each time that the stream ran into a limit without a queue.
const MOST_PATIENCE: u32 = 384;

/// What a step led to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// There is room, and use for it: the number grows by this factor.
    Grow(f64),
    /// There are more than are needed: the number falls by this factor.
    Spare(f64),
    /// The link is full: this factor leaves the connections that just fill it.
    Full(f64),
}

/// Whether the number of connections is looked for, and what was seen.
#[derive(Clone, Debug)]
pub(super) struct Startup {
    is_on: bool,
    window: Window,
    /// Sums over the reports of a window: how many, what was delivered, as a part of what was allowed before.
    delivered: (f64, f64),
    allowed_before: Option<f64>,
    /// Whether what arrived in this window is an answer to another rate.
    is_interrupted: bool,
    /// The mean of the windows.
    mean_delivered: f64,
    is_limited: bool,
    /// Windows on end without a queue, and how many of them begin it again.
    calm: u32,
    patience: u32,
}

impl Startup {
    pub(super) fn new() -> Self {
        Self {
            is_on: true,
            window: Window::new(ROUND_TRIPS),
            delivered: (0.0, 0.0),
            allowed_before: None,
            is_interrupted: false,
            mean_delivered: 1.0,
            is_limited: false,
            calm: 0,
            patience: PATIENCE,
        }
    }

    /// Whether it decides, and not the control.
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// A report came. Answers when it completes a window in which something was learnt; `queueing` tells how
    /// long the queue is, as a part of `goal`, from the window's mean and shortest round-trip time.
    pub(super) fn report(
        &mut self,
        now: Time,
        sample: Duration,
        usage: &Usage,
        need: Option<f64>,
        queueing: impl FnOnce(Duration, Duration) -> (f64, f64),
    ) -> Option<(Duration, Step)> {
        let allowed = usage.allowed.as_f64();
        if let Some(before) = self.allowed_before.filter(|before| *before > 0.0) {
            let sent = usage.wanted.map_or(before, |wanted| before.min(wanted.as_f64())).min(allowed);
            self.delivered.0 += 1.0;
            self.delivered.1 += if sent > 0.0 { usage.delivered.as_f64() / sent } else { 1.0 };
        }
        self.is_limited |= usage.is_limited;
        let average = self.window.sample(now, sample)?;
        let (queueing, goal) = queueing(average.mean, average.shortest);
        let delivered = if self.delivered.0 > 0.0 { self.delivered.1 / self.delivered.0 } else { 1.0 };
        if !self.is_interrupted {
            self.mean_delivered += (delivered.min(1.0) - self.mean_delivered) * DELIVERED_GAIN;
        }
        let is_limited = std::mem::take(&mut self.is_limited);
        self.delivered = (0.0, 0.0);
        self.allowed_before = Some(allowed);
        let was_interrupted = std::mem::take(&mut self.is_interrupted);
        // Before the first loss the rate grows by itself.
        let is_in_slow_start = usage.loss_event_rate <= 0.0;
        let is_calm = (is_limited || usage.wanted.is_some()) && queueing < goal / 2.0;
        self.calm = if is_calm { self.calm + 1 } else { 0 };
        if !self.is_on {
            self.is_on = usage.wanted.is_some() && self.calm >= self.patience;
            return None;
        }
        let step = if queueing > goal {
            // Greedy streams let it drain; media at its own rate cannot wait so long.
            let (rest, patience) = if usage.wanted.is_some() { (1.0 + goal, 1) } else { (1.0, PATIENCE) };
            self.end(patience);
            Step::Full(rest / (1.0 + queueing))
        } else if is_in_slow_start || was_interrupted {
            return None;
        } else if let Some(need) = need
            && self.mean_delivered >= LEAST_DELIVERED
        {
            // As many as it needs. Some more do not matter as long as no queue tells of others.
            match need {
                // A burst of losses says little, but is no reason to send more.
                _ if need > 1.0 && delivered < LEAST_DELIVERED => return None,
                _ if need > 1.0 => Step::Grow(need.min(GROWTH)),
                _ if need < LEAST_NEED => Step::Spare(SHRINKAGE),
                _ => return None,
            }
        } else if !is_calm {
            return None;
        } else if self.mean_delivered < LEAST_DELIVERED {
            let delivered = std::mem::replace(&mut self.mean_delivered, 1.0);
            self.end((self.patience * 2).clamp(PATIENCE, MOST_PATIENCE));
            Step::Full(delivered)
        } else if delivered < LEAST_DELIVERED {
            return None;
        } else {
            Step::Grow(GROWTH)
        };
        Some((average.mean, step))
    }

    /// The rate was another one for a while: what is measured begins anew, and says nothing at first.
    pub(super) fn interrupt(&mut self) {
        self.window = Window::new(ROUND_TRIPS);
        (self.delivered, self.allowed_before, self.is_interrupted) = ((0.0, 0.0), None, true);
    }

    fn end(&mut self, patience: u32) {
        (self.is_on, self.patience, self.calm) = (false, patience, 0);
    }
}
