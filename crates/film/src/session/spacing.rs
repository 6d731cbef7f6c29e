//! How often a server takes requests, as far as its refusals tell.
//!
//! A server that answers with 429 or 503 may mean too many connections or too many requests (nginx's
//! `limit_conn` and `limit_req` say the same). Both become fewer: the connections by the path's cap, the
//! requests by the time that is kept between two of them, which doubles with every refusal. What is asked
//! for less often is asked for in longer pieces, so it costs no throughput; that is why it stays so.

use anabranch_units::{Duration, Time};

/// The first time between two requests that a refusal leads to.
const FIRST: Duration = Duration::from_millis(500);
/// No server is asked more seldom.
const MOST: Duration = Duration::from_secs(8);

/// The time between two requests to one server.
#[derive(Clone, Debug, Default)]
pub(super) struct Spacing {
    /// At least so much; zero: the server has refused nothing.
    least: Duration,
    asked: Option<Time>,
    /// The mean of late.
    mean: Duration,
}

impl Spacing {
    /// At least so much time is between two requests.
    pub(super) fn least(&self) -> Duration {
        self.least
    }

    /// Whether it is too soon for the next one.
    pub(super) fn rests(&self, now: Time) -> bool {
        self.asked.is_some_and(|asked| now.since(asked) < self.least)
    }

    /// The server is asked.
    pub(super) fn asked(&mut self, now: Time) {
        if let Some(before) = self.asked {
            let gap = now.since(before).min(MOST);
            self.mean = if self.mean.is_zero() { gap } else { (self.mean * 3 + gap) / 4 };
        }
        self.asked = Some(now);
    }

    /// The server refused a request.
    pub(super) fn refused(&mut self) {
        self.least = (self.least.max(self.mean) * 2).max(FIRST).min(MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_server_that_refuses_nothing_is_asked_at_any_time() {
        let mut spacing = Spacing::default();
        spacing.asked(at(0));
        spacing.asked(at(1));
        assert!(!spacing.rests(at(1)));
    }

    #[test]
    fn every_refusal_doubles_the_time_between_requests_up_to_a_bound() {
        let mut spacing = Spacing::default();
        for millis in [0, 10, 20] {
            spacing.asked(at(millis));
        }
        spacing.refused();
        assert_eq!(spacing.least(), FIRST);
        assert!(spacing.rests(at(20)) && spacing.rests(at(519)) && !spacing.rests(at(520)));
        spacing.refused();
        assert_eq!(spacing.least(), FIRST * 2);
        (0..10).for_each(|_| spacing.refused());
        assert_eq!(spacing.least(), MOST);
    }

    #[test]
    fn it_begins_with_twice_the_time_that_was_too_short() {
        let mut spacing = Spacing::default();
        for second in 0..20 {
            spacing.asked(at(second * 1000));
        }
        spacing.refused();
        assert_eq!(spacing.least(), Duration::from_secs(2));
    }
}
