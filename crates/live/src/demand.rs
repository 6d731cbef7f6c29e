//! How much a sender has to send, in bits per second: what came into it of late, what it sends beside that,
//! and what waits.

use std::collections::VecDeque;

use anabranch_units::{Bytes, Duration, Rate, Time};

/// What came in so long ago counts.
const SPAN: Duration = Duration::from_secs(1);
/// The span in slots.
const SLOTS: u64 = 10;
/// What waits should have left after so long.
const CATCH_UP: Duration = Duration::from_millis(500);

/// Bytes of the last second.
#[derive(Clone, Debug, Default)]
pub(super) struct Demand {
    /// The number of each slot, and its bytes; the newest last.
    slots: VecDeque<(u64, Bytes)>,
}

impl Demand {
    /// There is so much more to send, headers included.
    pub(super) fn add(&mut self, bytes: Bytes, now: Time) {
        let slot = slot(now);
        match self.slots.back_mut() {
            Some((newest, sum)) if *newest >= slot => *sum += bytes,
            _ => self.slots.push_back((slot, bytes)),
        }
        self.forget(slot);
    }

    /// The rate that is wanted when `waiting` waits.
    pub(super) fn rate(&mut self, waiting: Bytes, now: Time) -> Rate {
        self.forget(slot(now));
        let sum = self.slots.iter().fold(Bytes::ZERO, |sum, (_, bytes)| sum + *bytes);
        Rate::of(sum, SPAN) + catch_up(waiting)
    }

    fn forget(&mut self, slot: u64) {
        while self.slots.front().is_some_and(|(oldest, _)| oldest + SLOTS <= slot) {
            self.slots.pop_front();
        }
    }
}

/// The rate at which what waits leaves in time.
pub(super) fn catch_up(waiting: Bytes) -> Rate {
    Rate::of(waiting, CATCH_UP)
}

fn slot(now: Time) -> u64 {
    now.as_nanos() / (SPAN / SLOTS).as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn the_last_second_and_what_waits_count() {
        let mut demand = Demand::default();
        for millis in (0..2000).step_by(10) {
            demand.add(Bytes::new(1250), at(millis));
        }
        assert_eq!(demand.rate(Bytes::ZERO, at(1999)), Rate::from_mbps(1));
        assert_eq!(demand.rate(Bytes::new(62_500), at(1999)), Rate::from_mbps(2));
        assert_eq!(demand.rate(Bytes::ZERO, at(2500)), Rate::from_kbps(400));
        assert_eq!(demand.rate(Bytes::ZERO, at(9000)), Rate::ZERO);
        // A clock that was set back, and memory.
        demand.add(Bytes::new(1), at(0));
        for millis in 0..100_000 {
            demand.add(Bytes::new(1), at(millis));
        }
        assert!(demand.slots.len() <= SLOTS as usize);
    }
}
