//! What changes on a link by the clock: values by steps, and the transmitter.

use crate::model::{Opportunities, TokenBucket};
use anabranch_queues::Bucket;

/// A value that changes at known times. It is asked for times that never go back.
#[derive(Clone, Debug)]
pub(super) struct Steps<T> {
    value: T,
    /// The changes to come, the last one first.
    later: Vec<(u64, T)>,
}

impl<T> Steps<T> {
    pub(super) fn new(value: T, mut changes: Vec<(u64, T)>) -> Self {
        changes.reverse();
        Self { value, later: changes }
    }

    /// As it was last asked for.
    pub(super) fn now(&self) -> &T {
        &self.value
    }

    #[inline]
    pub(super) fn at(&mut self, time: u64) -> &mut T {
        while self.later.last().is_some_and(|(at, _)| *at <= time) {
            if let Some((_, value)) = self.later.pop() {
                self.value = value;
            }
        }
        &mut self.value
    }
}

/// Sends one packet after the other, at a rate that can change, or whenever there is an opportunity; with a
/// shaper no sooner than that lets it pass. What every packet needs comes first.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Transmitter {
    busy_until: u64,
    last_start: u64,
    /// The transmission times of sizes seen before, at the current rate: segments have one size,
    /// acknowledgements grow by eight.
    known: [(u32, u64); 4],
    rate: Steps<u64>,
    slots: Option<Box<Slots>>,
    shaper: Option<Box<Bucket>>,
    lowest: u64,
    highest: u64,
}

const NANOS_TIMES_BITS: u64 = 8_000_000_000;

impl Transmitter {
    pub(super) fn new(
        rate: u64,
        changes: Vec<(u64, u64)>,
        opportunities: Option<&Opportunities>,
        shaper: Option<&TokenBucket>,
    ) -> Self {
        let rates = || changes.iter().map(|(_, rate)| *rate).chain([rate]);
        let (lowest, highest) = match opportunities {
            None => (rates().min().unwrap_or(rate), rates().max().unwrap_or(rate)),
            Some(_) => (0, u64::MAX),
        };
        Self {
            rate: Steps::new(rate, changes),
            slots: opportunities.map(|opportunities| Box::new(Slots::new(opportunities))),
            shaper: shaper.map(|shaper| Box::new(Bucket::new(shaper))),
            busy_until: 0,
            last_start: 0,
            known: [(0, 0); 4],
            lowest,
            highest,
        }
    }

    pub(super) fn busy_until(&self) -> u64 {
        self.busy_until
    }

    pub(super) fn last_start(&self) -> u64 {
        self.last_start
    }

    pub(super) fn is_always_at_least(&self, rate: u64) -> bool {
        self.lowest >= rate && self.shaper.is_none()
    }

    pub(super) fn highest_rate(&self) -> u64 {
        self.highest
    }

    /// Transmits `size` bytes that are there from `now` on, after everything before; answers when it begins
    /// and ends.
    #[inline]
    pub(super) fn transmit(&mut self, size: u32, now: u64) -> (u64, u64) {
        let mut start = now.max(self.busy_until);
        if let Some(shaper) = &mut self.shaper {
            start = shaper.take_when_ready(size, start);
        }
        let end = if let Some(slots) = &mut self.slots {
            slots.transmit(size, start)
        } else if self.rate.later.is_empty() {
            start.saturating_add(self.time_for(size))
        } else {
            self.through_changes(size, start)
        };
        self.last_start = start;
        self.busy_until = end;
        (start, end)
    }

    /// The same where the rate is always the same, and a packet may leave as soon as those before it have.
    #[inline]
    pub(super) fn transmit_at_once(&mut self, size: u32, now: u64) -> (u64, u64) {
        let start = now.max(self.busy_until);
        let end = start.saturating_add(self.time_for(size));
        self.last_start = start;
        self.busy_until = end;
        (start, end)
    }

    #[inline]
    fn time_for(&mut self, size: u32) -> u64 {
        let place = &mut self.known[(size / 8 % 4) as usize];
        if place.0 != size {
            let time = (u64::from(size) * NANOS_TIMES_BITS).checked_div(self.rate.value).unwrap_or(u64::MAX);
            *place = (size, time);
        }
        place.1
    }

    /// The end of a transmission that later changes of the rate may touch.
    fn through_changes(&mut self, size: u32, start: u64) -> u64 {
        let mut left = u128::from(size) * u128::from(NANOS_TIMES_BITS);
        let mut time = start;
        self.known = [(0, 0); 4];
        loop {
            let rate = u128::from(*self.rate.at(time));
            let until = self.rate.later.last().map_or(u64::MAX, |(at, _)| *at);
            let possible = rate * u128::from(until - time);
            if possible >= left {
                // A rate of zero is possible for nothing, and nothing is never left.
                return time + (left / rate) as u64;
            }
            if until == u64::MAX {
                return u64::MAX;
            }
            left -= possible;
            time = until;
        }
    }
}

/// Opportunities to transmit.
#[derive(Clone, Debug)]
struct Slots {
    at: Vec<u64>,
    period: u64,
    size: u32,
    /// The current one: which period, which of its moments, and how much of it is left.
    turn: u64,
    index: usize,
    left: u32,
}

impl Slots {
    fn new(opportunities: &Opportunities) -> Self {
        let size = u32::try_from(opportunities.size.get()).unwrap_or(u32::MAX);
        Self {
            at: opportunities.at.iter().map(|time| time.as_nanos()).collect(),
            period: opportunities.period.as_nanos(),
            size,
            turn: 0,
            index: 0,
            left: size,
        }
    }

    fn time(&self) -> u64 {
        self.turn.saturating_mul(self.period).saturating_add(self.at[self.index])
    }

    fn next(&mut self) {
        self.index += 1;
        if self.index == self.at.len() {
            self.index = 0;
            self.turn += 1;
        }
        self.left = self.size;
    }

    fn transmit(&mut self, size: u32, start: u64) -> u64 {
        // Whole periods are skipped at once, the rest one by one.
        let turn = start / self.period;
        if turn > self.turn + 1 {
            self.turn = turn - 1;
            self.index = 0;
            self.left = self.size;
        }
        while self.time() < start {
            self.next();
        }
        let mut needed = size;
        while needed > self.left {
            needed -= self.left;
            self.next();
        }
        self.left -= needed;
        self.time()
    }
}

#[cfg(test)]
mod tests {
    use anabranch_units::{Bytes, Duration, Time};

    use super::*;

    #[test]
    fn a_transmission_goes_through_changes_of_rate() {
        // 8 Mbps: a byte a microsecond; from 1 ms on half of it; nothing from 2 ms to 3 ms.
        let changes = vec![(1_000_000, 4_000_000), (2_000_000, 0), (3_000_000, 8_000_000)];
        let mut transmitter = Transmitter::new(8_000_000, changes, None, None);
        assert_eq!(transmitter.transmit(900, 0), (0, 900_000));
        // 100 bytes at the first rate, 100 at the half: 0.2 ms more.
        assert_eq!(transmitter.transmit(200, 0), (900_000, 1_200_000));
        // 400 bytes until 2 ms, then a pause, 100 after it.
        assert_eq!(transmitter.transmit(500, 0), (1_200_000, 3_100_000));
        assert_eq!(transmitter.transmit(1000, 0), (3_100_000, 4_100_000));
    }

    #[test]
    fn a_link_that_stays_down_never_ends_a_transmission() {
        let mut transmitter = Transmitter::new(8_000_000, vec![(1_000, 0)], None, None);
        assert_eq!(transmitter.transmit(1000, 0).1, u64::MAX);
    }

    #[test]
    fn opportunities_repeat_and_are_shared_by_small_packets() {
        let opportunities = Opportunities {
            at: [1, 2, 2, 5].map(|ms| Time::ZERO + Duration::from_millis(ms)).to_vec(),
            period: Duration::from_millis(5),
            size: Bytes::new(1500),
        };
        let mut transmitter = Transmitter::new(1, Vec::new(), Some(&opportunities), None);
        let mut end = |size, now: u64| transmitter.transmit(size, now * 1_000_000u64).1 / 1_000_000;
        assert_eq!(end(1000, 0), 1);
        assert_eq!(end(500, 0), 1);
        assert_eq!(end(1501, 0), 2);
        // What is left at 2 ms is gone at 3 ms.
        assert_eq!(end(100, 3), 5);
        assert_eq!(end(1500, 4), 6);
        assert_eq!(end(1500, 26), 26);
        assert_eq!(end(3000, 27), 27);
        assert_eq!(end(1500, 27), 30);
    }
}
