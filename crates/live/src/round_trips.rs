//! What the round trips of a connection tell of the queue on its way: how long it is, whether others fill it,
//! and how long it was when it lost packets.

use anabranch_units::{Duration, Ratio, Time};

use super::levels::{Levels, signed};

/// The round trip at losses is the mean over about so many of them.
const LOSSES: u64 = 32;
/// A queue that has not drained for so long, while no media had to wait for their turn, stands: others fill
/// it. One that the stream fills itself drains in between, or makes its media wait. It stands until it was
/// empty for as long: others leave room now and then, and come back.
const STANDING: Duration = Duration::from_secs(5);
/// Others who fill a queue have made it lose something within so long before. A queue of the stream's own may
/// take longer to drain where the stream leaves little of the link, but loses nothing then.
const LOST: Duration = Duration::from_secs(10);
/// It has drained when the round trip is no more than this part longer than the least.
const DRAINED: Ratio = Ratio::new(1, 3);

/// The round trips of a connection.
#[derive(Clone, Debug)]
pub(super) struct RoundTrips {
    /// Of the route as it is.
    least: Duration,
    levels: Levels,
    /// The last sample was much shorter than the least.
    is_doubtful: bool,
    last: Option<Duration>,
    /// The mean of what it was when losses became known.
    at_losses: Option<Duration>,
    /// When the last loss became known.
    lost: Option<Time>,
    /// When the queue on the way was last found drained, or media waited; and when it was found not drained.
    drained: Time,
    filled: Time,
    stands: bool,
}

impl Default for RoundTrips {
    fn default() -> Self {
        Self {
            least: Duration::MAX,
            levels: Levels::default(),
            is_doubtful: false,
            last: None,
            at_losses: None,
            lost: None,
            drained: Time::ZERO,
            filled: Time::ZERO,
            stands: false,
        }
    }
}

impl RoundTrips {
    /// A report brought one; `waits`: media wait for their turn to leave; `latency`: a queue that takes
    /// longer leaves no time for anything. `false`: it is not believed. What waited while a machine slept is
    /// read at once, and its clock stood still: that looks like a short round trip. One that is much shorter
    /// than all before counts only when the next one is as well.
    pub(super) fn sample(&mut self, sample: Duration, waits: bool, latency: Duration, now: Time) -> bool {
        let is_short = self.last.is_some() && sample < self.least / 2;
        if is_short && !std::mem::replace(&mut self.is_doubtful, true) {
            return false;
        }
        self.is_doubtful = false;
        self.least = self.least.min(sample.max(Duration::from_micros(1)));
        self.last = Some(sample);
        let [taken, least, borne] =
            [sample, self.least, latency].map(|duration| signed(duration.as_micros()));
        if let Some(longer) = self.levels.sample(taken, least, borne, now) {
            self.least = Duration::from_micros(u64::try_from(longer).unwrap_or(0));
        }
        let is_drained = sample <= self.least + self.least * DRAINED;
        if is_drained || waits {
            self.drained = now;
        }
        if !is_drained {
            self.filled = now;
        }
        self.stands = if self.stands {
            now.since(self.filled) <= STANDING
        } else {
            now.since(self.drained) > STANDING && self.lost.is_some_and(|lost| now.since(lost) <= LOST)
        };
        true
    }

    /// A packet was lost, as is known now.
    pub(super) fn lost(&mut self, now: Time) {
        self.lost = Some(now);
        if let Some(last) = self.last {
            let mean = self.at_losses.unwrap_or(last);
            self.at_losses = Some((mean * (LOSSES - 1) + last) / LOSSES);
        }
    }

    /// The shortest one of the route.
    pub(super) fn least(&self) -> Option<Duration> {
        self.last.map(|_| self.least)
    }

    /// Whether others fill the queue on the way.
    pub(super) fn stands(&self) -> bool {
        self.stands
    }

    /// What the queue adds to the shortest round trip in one of `rtt`.
    pub(super) fn queueing(&self, rtt: Duration) -> Duration {
        rtt - self.least
    }

    /// The mean when packets are lost, where others fill the queue: it is longer than else, as they fill it
    /// until it overflows.
    pub(super) fn at_losses(&self) -> Option<Duration> {
        self.at_losses.filter(|_| self.stands)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Duration = Duration::from_millis(100);
    const LATENCY: Duration = Duration::from_millis(400);

    /// Reports of so many seconds, ten in each: whether the queue stands then.
    fn run(round_trips: &mut RoundTrips, now: &mut Time, rtt: Duration, waits: bool, seconds: u64) -> bool {
        for _ in 0..seconds * 10 {
            *now += Duration::from_millis(100);
            round_trips.sample(rtt, waits, LATENCY, *now);
        }
        round_trips.stands()
    }

    #[test]
    fn a_queue_stands_that_does_not_drain_and_until_it_is_gone() {
        let (mut trips, mut now) = (RoundTrips::default(), Time::ZERO);
        assert!(!run(&mut trips, &mut now, LEAST, false, 10));
        // It drains slowly, and loses nothing.
        assert!(
            !run(&mut trips, &mut now, LEAST * 2, false, 20) && !run(&mut trips, &mut now, LEAST, false, 1)
        );
        trips.lost(now);
        assert!(
            !run(&mut trips, &mut now, LEAST * 2, false, 5) && run(&mut trips, &mut now, LEAST * 2, false, 1)
        );
        // It drains now and then.
        for _ in 0..10 {
            assert!(
                run(&mut trips, &mut now, LEAST, false, 2) && run(&mut trips, &mut now, LEAST * 2, false, 2)
            );
        }
        assert!(!run(&mut trips, &mut now, LEAST, false, 6));
    }

    #[test]
    fn a_queue_does_not_begin_to_stand_where_media_wait() {
        let (mut trips, mut now) = (RoundTrips::default(), Time::ZERO);
        run(&mut trips, &mut now, LEAST, false, 1);
        // It varies: else it would be taken for the route.
        for rtt in [2, 3, 2, 3].map(|times| LEAST * times) {
            assert!(!run(&mut trips, &mut now, rtt, true, 15));
        }
        trips.lost(now);
        assert!(run(&mut trips, &mut now, LEAST * 2, false, 6));
        for rtt in [2, 3, 2, 3].map(|times| LEAST * times) {
            assert!(run(&mut trips, &mut now, rtt, true, 15));
        }
    }

    #[test]
    fn where_others_fill_the_queue_the_round_trip_at_losses_counts() {
        let (mut trips, mut now) = (RoundTrips::default(), Time::ZERO);
        run(&mut trips, &mut now, LEAST, false, 1);
        run(&mut trips, &mut now, LEAST * 3, false, 1);
        trips.lost(now);
        assert_eq!(trips.at_losses(), None);
        run(&mut trips, &mut now, LEAST * 2, false, 6);
        assert_eq!((trips.at_losses(), trips.queueing(LEAST * 2)), (Some(LEAST * 3), LEAST));
    }

    #[test]
    fn a_longer_route_is_no_queue_for_ever() {
        let (mut trips, mut now) = (RoundTrips::default(), Time::ZERO);
        run(&mut trips, &mut now, LEAST, false, 30);
        run(&mut trips, &mut now, LEAST * 2, false, 30);
        assert_eq!(trips.queueing(LEAST * 2), LEAST);
        run(&mut trips, &mut now, LEAST * 2, false, 45);
        assert_eq!((trips.queueing(LEAST * 2), trips.least()), (Duration::ZERO, Some(LEAST * 2)));
        // A shorter one is known at once.
        trips.sample(LEAST, false, LATENCY, now);
        assert_eq!(trips.queueing(LEAST * 2), LEAST);
        // One that leaves no time at all is found out sooner.
        run(&mut trips, &mut now, LEAST * 8, false, 11);
        assert_eq!(trips.queueing(LEAST * 8), Duration::ZERO);
    }

    #[test]
    fn what_waited_while_a_machine_slept_is_not_taken_for_a_short_route() {
        let (mut trips, mut now) = (RoundTrips::default(), Time::ZERO);
        run(&mut trips, &mut now, LEAST, false, 10);
        assert!(!trips.sample(Duration::from_micros(1), false, LATENCY, now));
        assert_eq!(trips.queueing(LEAST), Duration::ZERO);
        // A route that is so short stays so.
        run(&mut trips, &mut now, LEAST / 4, false, 1);
        assert_eq!(trips.least(), Some(LEAST / 4));
    }
}
