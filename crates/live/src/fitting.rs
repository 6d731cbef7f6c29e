//! Which rate of the stream fits, for an encoder that follows it.
//!
//! What a stream sends too much waits: in the sender, and on the way. So long as little waits, nothing is
//! known but that more may fit, and the rate grows, the faster the longer nothing waited, as the window of CUBIC
//! does (RFC 9438, section 4.1). When something waits, what arrives is what the path carries; the rate becomes that, less
//! what lets the backlog drain within a part of the latency.

use std::cmp::Reverse;
use std::collections::VecDeque;

use anabranch_units::{Bytes, Duration, Rate, Ratio, Time};

/// A backlog of this part of the latency is one,
const BACKLOG: Ratio = Ratio::new(1, 10);
/// but no shorter and no longer ones.
const LEAST_BACKLOG: Duration = Duration::from_millis(60);
const MOST_BACKLOG: Duration = Duration::from_millis(200);
/// It has drained when it is this part of that.
const DRAINED: Ratio = Ratio::new(1, 2);
/// A backlog drains within the latency, and within this time.
const DRAIN: Duration = Duration::from_millis(2000);
/// What is left to the stream of what arrives, besides what drains.
const SHARE: Ratio = Ratio::new(95, 100);
/// So much is left to it at least.
const LEAST_SHARE: Ratio = Ratio::new(1, 4);
/// What of the path's rate is taken again when the backlog has drained.
const AGAIN: Ratio = Ratio::new(97, 100);
/// The rate grows by this part of it in a second as long as it is no more than so many times what the path
/// carried last; beyond that it grows faster, by so much more with each second, up to the most.
const GROWTH: f64 = 0.06;
const BEYOND: Ratio = Ratio::new(105, 100);
const FASTER: f64 = 0.2;
const FASTEST: f64 = 0.5;
/// A connection that has just begun finds its rate within this time: what waits until then is no backlog.
const BEGINNING: Duration = Duration::from_secs(1);
/// The rate grows only when it is used: the stream takes so much of it at least.
const USED: Ratio = Ratio::new(6, 10);
/// Before the first backlog the rate is so many times what the stream takes at least.
const AT_ONCE: u64 = 2;
/// What waits is the least of so long: a key frame comes at once and is no backlog.
const PATIENCE: Duration = Duration::from_millis(120);
/// The control of the rate may take less than the path carries for a while: the most that arrived in so long is what
/// it carries.
const REMEMBERED: Duration = Duration::from_millis(800);
/// What arrives is the mean of so long.
const ARRIVALS: Duration = Duration::from_millis(200);
/// Reports of that time that are looked at.
const MOST_ARRIVALS: usize = 256;
/// The shortest round trip of so long is that without a backlog.
const WINDOW: Duration = Duration::from_secs(20);
/// Each window is looked at in so many parts.
const SLOTS: u64 = 10;
/// The mean of the parts of what is sent that are new media.
const MEAN: f64 = 0.02;

/// What a report brought.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// All bytes that arrived, with headers and what was sent again.
    pub(super) arrived: Bytes,
    /// What comes into the sender.
    pub(super) taken: Rate,
    /// Bytes that wait in the sender.
    pub(super) waiting: Bytes,
    /// The round trip that was measured last.
    pub(super) rtt: Duration,
    /// What the control of the rate allows the stream.
    pub(super) available: Rate,
    /// All bytes of the stream that left for the first time, and all bytes that left.
    pub(super) left: (Bytes, Bytes),
    pub(super) latency: Duration,
}

/// The rate that fits.
#[derive(Clone, Debug, Default)]
pub(super) struct Fitting {
    rate: Rate,
    available: Rate,
    /// What the path carried when there was a backlog last.
    carried: Option<Rate>,
    is_behind: bool,
    /// When the stream began, the last sample, and the last one at which the path's rate was known.
    began: Option<Time>,
    last: Option<Time>,
    known: Time,
    /// The mean part of what leaves that is new media.
    part: Option<f64>,
    left: (Bytes, Bytes),
    round_trips: Most<Reverse<Duration>>,
    backlogs: Most<Reverse<Duration>>,
    /// What arrived while there was a backlog.
    capacity: Most<Rate>,
    /// When so many bytes had arrived.
    arrivals: VecDeque<(Time, Bytes)>,
}

impl Fitting {
    /// The rate of the stream that fits; zero as long as nothing is known.
    pub(super) fn rate(&self) -> Rate {
        self.rate.min(self.available)
    }

    /// A report came.
    pub(super) fn sample(&mut self, sample: &Sample, now: Time) {
        self.available = sample.available;
        let part = Ratio::from_f64(self.part(sample.left));
        let arrives = self.arrives(sample.arrived, now) * part;
        let since = self.last.map_or(Duration::ZERO, |last| now.since(last));
        self.last = Some(now);
        if self.began.is_none() && !sample.waiting.is_zero() {
            self.began = Some(now);
        }
        let has_just_begun = self.began.is_none_or(|began| now.since(began) < BEGINNING);
        let own = if has_just_begun || sample.waiting.is_zero() {
            Duration::ZERO
        } else if arrives.is_zero() {
            sample.latency
        } else {
            arrives.time_for(sample.waiting)
        };
        let Reverse(least) = self.round_trips.of(Reverse(sample.rtt), WINDOW, now);
        let backlog = own.min(sample.latency) + (sample.rtt - least);
        let Reverse(backlog) = self.backlogs.of(Reverse(backlog), PATIENCE, now);
        let most = (sample.latency * BACKLOG).clamp(LEAST_BACKLOG, MOST_BACKLOG);
        let was_behind = self.is_behind;
        self.is_behind = backlog > if was_behind { most * DRAINED } else { most };
        if self.is_behind {
            if !was_behind {
                self.capacity = Most::default();
            }
            let carried = self.capacity.of(arrives, REMEMBERED, now);
            let drains = Rate::of(carried.amount_in(backlog), sample.latency.min(DRAIN));
            self.rate = (carried * SHARE - drains).max(carried * LEAST_SHARE);
            self.carried = Some(carried);
            self.known = now;
            return;
        }
        match self.carried {
            Some(carried) if was_behind => self.rate = carried * AGAIN,
            Some(carried) if self.rate <= carried * BEYOND => self.known = now,
            Some(_) => {}
            None => {
                let at_once = Rate::from_bps(sample.taken.as_bps().saturating_mul(AT_ONCE));
                self.rate = self.rate.max(at_once);
            }
        }
        if sample.taken >= self.rate * USED {
            let growth = (GROWTH + FASTER * now.since(self.known).as_secs_f64()).min(FASTEST);
            self.rate = self.rate * Ratio::from_f64(1.0 + growth * since.as_secs_f64().min(1.0));
        }
    }

    /// What arrives, in the mean of late.
    fn arrives(&mut self, arrived: Bytes, now: Time) -> Rate {
        self.arrivals.push_back((now, arrived));
        while self.arrivals.get(1).is_some_and(|(time, _)| now.since(*time) >= ARRIVALS)
            || self.arrivals.len() > MOST_ARRIVALS
        {
            self.arrivals.pop_front();
        }
        let Some((time, before)) = self.arrivals.front() else { return Rate::ZERO };
        let span = now.since(*time);
        if span.is_zero() { Rate::ZERO } else { Rate::of(arrived - *before, span) }
    }

    /// The part of what leaves that is new media, from the bytes that have left so far.
    fn part(&mut self, left: (Bytes, Bytes)) -> f64 {
        let (media, all) = (left.0 - self.left.0, left.1 - self.left.1);
        if !all.is_zero() {
            self.left = left;
            let now = (media.as_f64() / all.as_f64()).min(1.0);
            let before = self.part.unwrap_or(now);
            self.part = Some(before + MEAN * (now - before));
        }
        self.part.unwrap_or(1.0)
    }
}

/// The most of late.
#[derive(Clone, Debug)]
struct Most<T> {
    /// The number of each part of the window, and the most in it.
    slots: VecDeque<(u64, T)>,
}

impl<T> Default for Most<T> {
    fn default() -> Self {
        Self { slots: VecDeque::new() }
    }
}

impl<T: Copy + Ord> Most<T> {
    /// The most of a window, this one included.
    fn of(&mut self, value: T, window: Duration, now: Time) -> T {
        let slot = now.as_nanos() / (window / SLOTS).as_nanos();
        match self.slots.back_mut() {
            Some((newest, most)) if *newest >= slot => *most = value.max(*most),
            _ => self.slots.push_back((slot, value)),
        }
        while self.slots.front().is_some_and(|(oldest, _)| oldest + SLOTS <= slot) {
            self.slots.pop_front();
        }
        self.slots.iter().map(|(_, most)| *most).max().unwrap_or(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path that carries so much, over which an encoder makes what it is told, 20 times a second.
    struct Path {
        now: Time,
        carries: Rate,
        made: Rate,
        waits: Bytes,
        arrived: Bytes,
        fitting: Fitting,
    }

    impl Path {
        fn new(carries: Rate) -> Self {
            Self {
                now: Time::ZERO + Duration::from_secs(1),
                carries,
                made: Rate::from_kbps(500),
                waits: Bytes::ZERO,
                arrived: Bytes::ZERO,
                fitting: Fitting::default(),
            }
        }

        fn run(&mut self, length: Duration) {
            const STEP: Duration = Duration::from_millis(50);
            let end = self.now + length;
            while self.now < end {
                self.now += STEP;
                self.waits += self.made.amount_in(STEP);
                let leaves = self.carries.amount_in(STEP).min(self.waits);
                self.waits -= leaves;
                self.arrived += leaves;
                let sample = Sample {
                    arrived: self.arrived,
                    taken: self.made,
                    waiting: self.waits,
                    rtt: Duration::from_millis(50),
                    available: Rate::from_mbps(50),
                    left: (self.arrived, self.arrived),
                    latency: Duration::from_secs(1),
                };
                self.fitting.sample(&sample, self.now);
                self.made = self.fitting.rate();
            }
        }

        fn part(&self) -> f64 {
            self.made.ratio_to(self.carries)
        }
    }

    #[test]
    fn it_finds_what_the_path_carries_and_stays_near() {
        let mut path = Path::new(Rate::from_mbps(4));
        path.run(Duration::from_secs(10));
        let before = path.arrived;
        path.run(Duration::from_secs(20));
        let used = Rate::of(path.arrived - before, Duration::from_secs(20)).ratio_to(path.carries);
        assert!(used > 0.9, "{used:.3}");
    }

    #[test]
    fn it_is_below_a_path_that_halves_until_what_waits_has_drained_and_back_when_it_returns() {
        let mut path = Path::new(Rate::from_mbps(4));
        path.run(Duration::from_secs(20));
        path.carries = Rate::from_mbps(2);
        path.run(Duration::from_millis(600));
        assert!(path.part() < 1.0 && !path.waits.is_zero(), "{:.2} after 0.6 s", path.part());
        path.run(Duration::from_millis(2500));
        assert!(path.carries.time_for(path.waits) < Duration::from_millis(70), "{} wait", path.waits);
        path.carries = Rate::from_mbps(4);
        path.run(Duration::from_secs(10));
        assert!(path.part() > 0.85, "{:.2} after 10 s", path.part());
    }

    #[test]
    fn it_does_not_grow_beyond_what_is_used_or_allowed() {
        let mut path = Path::new(Rate::from_mbps(100));
        path.run(Duration::from_secs(60));
        assert_eq!(path.made, Rate::from_mbps(50));
        let mut fitting = path.fitting.clone();
        let idle = Sample {
            arrived: path.arrived,
            taken: Rate::from_mbps(1),
            waiting: Bytes::ZERO,
            rtt: Duration::from_millis(50),
            available: Rate::MAX,
            left: (path.arrived, path.arrived),
            latency: Duration::from_secs(1),
        };
        let before = fitting.rate;
        for second in 1..100 {
            fitting.sample(&idle, path.now + Duration::from_secs(second));
        }
        assert_eq!(fitting.rate, before);
        assert!(fitting.arrivals.len() <= MOST_ARRIVALS && fitting.round_trips.slots.len() <= 11);
    }
}
