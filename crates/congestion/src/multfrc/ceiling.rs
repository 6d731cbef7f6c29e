//! What a stream whose rate is known is given at the most: little more than what arrived when the link was
//! full.
//!
//! Such a stream catches up after it had to wait. Given more than the link carries for that, it moves what
//! waits from its own queue into the one on the way; the round trip grows, the control takes connections
//! away, and the stream waits again.

use anabranch_units::{Duration, Rate, Time};

use super::usage::Usage;
use super::window::Window;

/// Round trips from one step to the next.
const ROUND_TRIPS: u32 = 2;
/// More than what arrived, so that a link that has become faster shows it.
const ABOVE: f64 = 1.05;
/// A queue of the stream's own: less arrives than this part of what is allowed. More than 1 / [`ABOVE`], so
/// that a stream at its ceiling still finds the end of its link.
const LEAST_PART: f64 = 0.96;
/// What a step without a queue multiplies the ceiling with.
const GROWTH: f64 = 1.02;

/// The ceiling of a stream's rate.
#[derive(Clone, Debug)]
pub(super) struct Ceiling {
    window: Window,
    /// Most that arrived in a round trip of this window, bits per second.
    delivered: f64,
    /// Bits per second.
    rate: f64,
}

impl Ceiling {
    pub(super) fn new() -> Self {
        Self { window: Window::new(ROUND_TRIPS), delivered: 0.0, rate: f64::INFINITY }
    }

    /// A report came; `is_full` tells of a mean round trip whether a queue stands.
    pub(super) fn report(
        &mut self,
        now: Time,
        sample: Duration,
        usage: &Usage,
        is_full: impl FnOnce(Duration) -> bool,
    ) {
        self.delivered = self.delivered.max(usage.delivered.as_f64());
        let Some(average) = self.window.sample(now, sample) else { return };
        let delivered = std::mem::take(&mut self.delivered);
        // Where all arrives that is allowed the queue may be that of others, and says nothing of what the
        // link has for this stream.
        let is_own = delivered < LEAST_PART * usage.allowed.as_f64();
        let is_full = is_full(average.mean);
        if is_own && is_full {
            self.rate = ABOVE * delivered;
        } else if !(is_full && usage.has_links_beside) {
            // What waits for a full link can go over the others.
            self.rate *= GROWTH;
        }
    }

    /// The ceiling; the longest rate there is before any queue was seen.
    pub(super) fn rate(&self) -> Rate {
        Rate::from_bps_f64(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// Reports of so many round trips.
    fn report(ceiling: &mut Ceiling, now: &mut Time, delivered: Rate, rtt: Duration, round_trips: u64) {
        let usage = Usage {
            allowed: Rate::from_mbps(2),
            equation: Rate::from_mbps(2),
            delivered,
            loss_event_rate: 0.02,
            is_limited: true,
            wanted: Some(Rate::from_mbps(2)),
            has_links_beside: false,
            one: None,
        };
        for _ in 0..round_trips {
            *now += rtt;
            ceiling.report(*now, rtt, &usage, |mean| mean > RTT);
        }
    }

    #[test]
    fn a_full_link_sets_it_and_one_without_a_queue_lifts_it_slowly() {
        let (mut ceiling, mut now) = (Ceiling::new(), Time::ZERO);
        report(&mut ceiling, &mut now, Rate::from_kbps(700), RTT, 10);
        assert_eq!(ceiling.rate(), Rate::MAX);
        report(&mut ceiling, &mut now, Rate::from_mbps(1), RTT * 2, 10);
        assert_eq!(ceiling.rate(), Rate::from_kbps(1050));
        // Six seconds for a half more.
        report(&mut ceiling, &mut now, Rate::from_mbps(1), RTT, 60);
        let lifted = ceiling.rate();
        assert!(lifted > Rate::from_kbps(1500) && lifted < Rate::from_kbps(2000), "{lifted}");
        // The link has become slower.
        report(&mut ceiling, &mut now, Rate::from_kbps(500), RTT * 2, 4);
        assert_eq!(ceiling.rate(), Rate::from_kbps(525));
    }
}
