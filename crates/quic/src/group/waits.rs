//! Round trips without what their receiver waited before it acknowledged.
//!
//! A browser keeps acknowledgements back, by up to 25 ms (RFC 9000, section 18.2), and says in each for how
//! long. That is no queue, and where queues are short it would hide them from who looks for common ones. quinn
//! does not hand on what an acknowledgement says; but it takes it off before it smooths (RFC 9002, section
//! 5.3), so that two smoothed values in a row tell what was between them.

use std::time::{Duration, Instant};

/// The longest that a receiver may say it waited, where it has not agreed on another time.
const LONGEST_WAIT: Duration = Duration::from_millis(25);

/// quinn's smoothing leaves out less than this.
const ROUNDING: Duration = Duration::from_nanos(8);

/// The round trips of a connection.
#[derive(Debug, Default)]
pub(super) struct Waits {
    last: Option<Measured>,
}

/// An acknowledgement, which is in no smoothed value yet.
#[derive(Debug)]
struct Measured {
    sent: Instant,
    rtt: Duration,
    smoothed_before: Duration,
}

impl Waits {
    /// An acknowledgement of a packet that was `sent` then has measured `rtt`, and was not smoothed into
    /// `smoothed` yet. Answers when the packet before that was sent, and its round trip without the wait, or as
    /// it was where none was taken off.
    pub(super) fn measured(
        &mut self,
        sent: Instant,
        rtt: Duration,
        smoothed: Duration,
    ) -> Option<(Instant, Duration)> {
        let measured = Measured { sent, rtt, smoothed_before: smoothed };
        let before = self.last.replace(measured)?;
        Some((before.sent, before.without_wait(smoothed).unwrap_or(before.rtt)))
    }
}

impl Measured {
    /// What was smoothed, by what came of it; `None` where that is no round trip of this one, such as when the
    /// acknowledgement came too late to be smoothed, or was the first.
    fn without_wait(&self, smoothed: Duration) -> Option<Duration> {
        if smoothed == self.smoothed_before {
            return None;
        }
        let sum = (8 * smoothed).checked_sub(7 * self.smoothed_before)?;
        let is_possible = sum <= self.rtt && sum + LONGEST_WAIT + ROUNDING >= self.rtt;
        is_possible.then_some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_receiver_says_that_it_waited_is_taken_off() {
        let milliseconds = Duration::from_millis;
        let (start, mut waits) = (Instant::now(), Waits::default());
        // What quinn begins with, and what RFC 9002 has it do.
        let (mut smoothed, mut is_first) = (milliseconds(333), true);
        let mut expected = None;
        for number in 0..100u64 {
            let (queue, wait) = (number * 7 % 40, number * 11 % 26);
            let (sent, rtt) = (start + milliseconds(5 * number), milliseconds(60 + queue + wait));
            let told = waits.measured(sent, rtt, smoothed);
            if let (Some((at, told)), Some((expected_at, expected))) = (told, expected) {
                let expected: Duration = expected;
                assert!(
                    at == expected_at && told.abs_diff(expected) < Duration::from_micros(1),
                    "{told:?} {expected:?}"
                );
            }
            let adjusted = rtt - milliseconds(wait);
            smoothed = if is_first { rtt } else { (7 * smoothed + adjusted) / 8 };
            // The first one is taken as it is.
            expected = Some((sent, if is_first { rtt } else { adjusted }));
            is_first = false;
        }
    }

    #[test]
    fn a_round_trip_that_was_not_smoothed_stays_as_it_is() {
        let milliseconds = Duration::from_millis;
        let (start, mut waits) = (Instant::now(), Waits::default());
        for (rtt, smoothed, told) in
            [(70, 60, None), (80, 60, Some(70)), (90, 200, Some(80)), (65, 61, Some(90))]
        {
            let before = waits.measured(start, milliseconds(rtt), milliseconds(smoothed));
            assert_eq!(before, told.map(|told| (start, milliseconds(told))));
        }
    }
}
