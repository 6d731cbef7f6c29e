//! Which rate of the stream fits, for an encoder that follows it.
//!
//! What a stream sends too much waits, in the sender and on the way. While enough waits the path is full, and carries
//! what arrives: so a backlog of a part of the latency is not avoided but steered to. It shows what a path carries that
//! changes, both up and down, and it makes the control of the rate look for more. Where less waits the path may
//! carry more than is known, and the rate grows, the faster the longer that is so, as the window of CUBIC does (RFC
//! 9438, section 4.1).

use std::cmp::Reverse;
use std::collections::VecDeque;

use anabranch_units::{Bytes, Duration, Rate, Ratio, Time};

/// The backlog that is steered to, as a part of the latency,
const TARGET: Ratio = Ratio::new(12, 100);
/// but no shorter and no longer ones: it is to outlast the time between two pictures.
const LEAST_TARGET: Duration = Duration::from_millis(80);
const MOST_TARGET: Duration = Duration::from_millis(400);
/// The path is full while more than this part of that waits.
const FULL: Ratio = Ratio::new(1, 2);
/// What lacks of the target is to come within this time,
const FILL: Duration = Duration::from_secs(1);
/// with no more than this part of what the path carries.
const MOST_FILL: f64 = 0.15;
/// What waits beyond it is to be gone within this part of the latency, and within this time,
const DRAIN: Ratio = Ratio::new(1, 2);
const MOST_DRAIN: Duration = Duration::from_secs(1);
/// with no more than this part of what the path carries.
const LARGEST_DRAIN: f64 = 0.75;
/// This part of what the control of the rate allows is left in any case: it knows of others, and their queue does
/// not drain when the stream gives way.
const LEAST_ALLOWED: Ratio = Ratio::new(1, 8);
/// What is left to the stream of what the path carries, as it is not known exactly.
const SHARE: f64 = 0.97;
/// What a path that is not full carries grows by this part of it in a second, by so much more with the square of the
/// seconds since it was full, up to the most: near what it carried last it stays for a moment.
const GROWTH: f64 = 0.1;
const FASTER: f64 = 4.0;
const FASTEST: f64 = 1.5;
/// A connection that has just begun finds its rate within this time: what waits until then is no backlog.
const BEGINNING: Duration = Duration::from_secs(1);
/// The rate grows only when it is used: the stream takes so much of it at least.
const USED: Ratio = Ratio::new(6, 10);
/// A path that was never full carries so many times what the stream takes at least,
const AT_ONCE: u64 = 2;
/// and each path this part of what arrives.
const LEAST_CARRIED: Ratio = Ratio::new(1, 2);
/// What waits is the least of so long: a key frame comes at once and is no backlog.
const PATIENCE: Duration = Duration::from_millis(80);
/// What arrives is the mean of so long.
const ARRIVALS: Duration = Duration::from_millis(200);
/// Reports of that time that are looked at.
const MOST_ARRIVALS: usize = 256;
/// What waited on the way for so long belongs to others, or to the way.
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
    /// Bytes of the stream that wait in the sender.
    pub(super) waiting: Bytes,
    /// Bytes that are under way beyond those that would be without a queue.
    pub(super) queued: Bytes,
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
    /// What the path carries, of the stream.
    carries: Rate,
    /// When it was full last.
    full: Option<Time>,
    /// When the stream began, and the last sample.
    began: Option<Time>,
    last: Option<Time>,
    /// The mean part of what leaves that is new media.
    part: Option<f64>,
    left: (Bytes, Bytes),
    on_way: Most<Reverse<Duration>>,
    backlogs: Most<Reverse<Duration>>,
    /// When so many bytes had arrived.
    arrivals: VecDeque<(Time, Bytes)>,
}

impl Fitting {
    /// The rate of the stream that fits; zero as long as nothing is known.
    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// A report came.
    pub(super) fn sample(&mut self, sample: &Sample, now: Time) {
        let arrives = self.arrives(sample.arrived, now);
        let of_stream = arrives * Ratio::from_f64(self.part(sample.left));
        let passed = self.last.map_or(Duration::ZERO, |last| now.since(last));
        self.last = Some(now);
        let backlog = self.backlog(sample, arrives, of_stream, now).as_secs_f64();
        let target = (sample.latency * TARGET).clamp(LEAST_TARGET, MOST_TARGET).as_secs_f64();
        if backlog > target * FULL.as_f64() {
            self.full = Some(now);
            self.carries = of_stream;
        } else {
            let growth = |full| GROWTH + FASTER * now.since(full).as_secs_f64().powi(2);
            let growth = self.full.map_or(FASTEST, growth).min(FASTEST) * (1.0 - backlog / target);
            if sample.taken >= self.rate * USED {
                let passed = passed.as_secs_f64().min(1.0);
                self.carries = self.carries * Ratio::from_f64(1.0 + growth * passed);
            }
            let least = match self.full {
                None => Rate::from_bps(sample.taken.as_bps().saturating_mul(AT_ONCE)),
                Some(_) => of_stream * LEAST_CARRIED,
            };
            self.carries = self.carries.max(least);
        }
        let lacks = target - backlog;
        let steers = if lacks > 0.0 {
            (lacks / FILL.as_secs_f64()).min(MOST_FILL)
        } else {
            let drain = (sample.latency * DRAIN).min(MOST_DRAIN);
            (lacks / drain.as_secs_f64()).max(-LARGEST_DRAIN)
        };
        // A path that was never full shows nothing but what the control of the rate has found.
        let most = if self.full.is_none() { sample.available } else { Rate::MAX };
        self.carries = self.carries.min(most);
        let rate = self.carries * Ratio::from_f64(SHARE * (1.0 + steers));
        self.rate = rate.max(sample.available * LEAST_ALLOWED).min(most);
    }

    /// How long what waits takes to arrive.
    fn backlog(&mut self, sample: &Sample, arrives: Rate, of_stream: Rate, now: Time) -> Duration {
        if !sample.waiting.is_zero() {
            self.began.get_or_insert(now);
        }
        let takes = |bytes: Bytes, rate: Rate| {
            if bytes.is_zero() { Duration::ZERO } else { rate.time_for(bytes).min(sample.latency) }
        };
        let on_way = takes(sample.queued, arrives);
        let Reverse(least) = self.on_way.of(Reverse(on_way), WINDOW, now);
        let has_just_begun = self.began.is_none_or(|began| now.since(began) < BEGINNING);
        let backlog =
            if has_just_begun { Duration::ZERO } else { takes(sample.waiting, of_stream) + (on_way - least) };
        let Reverse(backlog) = self.backlogs.of(Reverse(backlog), PATIENCE, now);
        backlog
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
        available: Rate,
        arrived: Bytes,
        /// How long a queue of others is.
        others: Duration,
        fitting: Fitting,
    }

    impl Path {
        fn new(carries: Rate) -> Self {
            Self {
                now: Time::ZERO + Duration::from_secs(1),
                carries,
                made: Rate::from_kbps(500),
                waits: Bytes::ZERO,
                available: carries * Ratio::new(3, 2),
                arrived: Bytes::ZERO,
                others: Duration::ZERO,
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
                let sample = self.sample(self.made, self.waits);
                self.fitting.sample(&sample, self.now);
                self.made = self.fitting.rate();
            }
        }

        fn sample(&self, taken: Rate, waiting: Bytes) -> Sample {
            Sample {
                arrived: self.arrived,
                taken,
                waiting,
                queued: self.made.min(self.carries).amount_in(self.others),
                available: self.available,
                left: (self.arrived, self.arrived),
                latency: Duration::from_secs(1),
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
        assert!(used > 0.98, "{used:.3}");
        assert!(path.carries.time_for(path.waits) < Duration::from_millis(150), "{} wait", path.waits);
    }

    #[test]
    fn it_is_below_a_path_that_halves_until_what_waits_has_drained_and_back_when_it_returns() {
        let mut path = Path::new(Rate::from_mbps(4));
        path.run(Duration::from_secs(20));
        path.carries = Rate::from_mbps(2);
        path.run(Duration::from_millis(600));
        assert!(path.part() < 1.0 && !path.waits.is_zero(), "{:.2} after 0.6 s", path.part());
        path.run(Duration::from_millis(2500));
        assert!(path.carries.time_for(path.waits) < Duration::from_millis(150), "{} wait", path.waits);
        path.carries = Rate::from_mbps(4);
        path.run(Duration::from_secs(10));
        assert!(path.part() > 0.85, "{:.2} after 10 s", path.part());
    }

    #[test]
    fn it_does_not_grow_beyond_what_is_used_or_allowed() {
        let mut path = Path::new(Rate::from_mbps(100));
        path.available = Rate::from_mbps(50);
        path.run(Duration::from_secs(60));
        assert_eq!(path.made, Rate::from_mbps(50));
        let mut fitting = path.fitting.clone();
        path.available = Rate::MAX;
        let idle = path.sample(Rate::from_mbps(1), Bytes::ZERO);
        for second in 1..100 {
            fitting.sample(&idle, path.now + Duration::from_secs(second));
        }
        assert_eq!(fitting.carries, path.fitting.carries);
        assert!(fitting.arrivals.len() <= MOST_ARRIVALS && fitting.on_way.slots.len() <= 11);
    }

    #[test]
    fn a_queue_of_others_does_not_starve_it() {
        let mut path = Path::new(Rate::from_mbps(4));
        path.run(Duration::from_secs(20));
        path.others = Duration::from_millis(300);
        path.available = Rate::from_mbps(2);
        path.run(Duration::from_secs(10));
        assert!(path.made >= Rate::from_kbps(250), "{}", path.made);
        // It counts as a part of the way then.
        path.run(Duration::from_secs(20));
        assert!(path.made >= Rate::from_mbps(2), "{}", path.made);
    }

    #[test]
    fn a_path_that_carries_nothing_for_a_while_is_found_again() {
        let mut path = Path::new(Rate::from_mbps(4));
        path.run(Duration::from_secs(20));
        path.carries = Rate::ZERO;
        path.run(Duration::from_secs(5));
        path.carries = Rate::from_mbps(4);
        path.run(Duration::from_secs(20));
        assert!(path.part() > 0.85, "{:.2} after silence", path.part());
    }
}
