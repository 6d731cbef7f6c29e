//! How much a sender makes of its allowed rate, where it shares with others ([`crate::shares`]).

use anabranch_units::{Duration, Time};

/// A sender that hardly sends sees losses late: no more is concluded from what arrives than this part would
/// show.
const LEAST_SHOWN: f64 = 0.25;
/// No part is smaller: time has to pass until the next packet, but not for ever.
const LEAST: f64 = 0.001;

/// The part of its own allowed rate that a sender has: more than one where others leave it something. What is
/// reported was sent up to two round trips before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    now: f64,
    /// The least since `since`, and in the time before that.
    least: f64,
    before: f64,
    since: Time,
}

impl Share {
    /// One that does not share.
    pub(super) const WHOLE: Self = Self { now: 1.0, least: 1.0, before: 1.0, since: Time::ZERO };

    /// The part of now.
    pub(super) fn get(&self) -> f64 {
        self.now
    }

    /// Another part from now on. What is no number is one.
    pub(super) fn set(&mut self, share: f64) {
        self.now = if share.is_nan() { 1.0 } else { share.max(LEAST) };
        self.least = self.least.min(self.now);
    }

    /// A report came.
    pub(super) fn reported(&mut self, rtt: Duration, now: Time) {
        if now.since(self.since) >= rtt * 2 {
            (self.before, self.least, self.since) = (self.least, self.now, now);
        }
    }

    /// What the last report tells of was sent with this part at least.
    pub(super) fn sent_with(&self) -> f64 {
        self.before.min(self.least).max(LEAST)
    }

    /// What arrived is taken for this part of what one connection would have got through. Before there were
    /// losses it is all that is known of the path, and a small part shows no more than it is.
    pub(super) fn shown(&self, has_losses: bool) -> f64 {
        self.sent_with().max(if has_losses { LEAST_SHOWN } else { 1.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn what_arrives_was_sent_with_the_part_of_two_round_trips_ago() {
        let mut share = Share::WHOLE;
        share.set(2.0);
        share.reported(RTT, at(0));
        assert_eq!((share.get(), share.sent_with()), (2.0, 1.0));
        share.reported(RTT, at(200));
        assert_eq!(share.sent_with(), 1.0);
        share.reported(RTT, at(400));
        assert_eq!((share.sent_with(), share.shown(false)), (2.0, 2.0));
        share.set(0.5);
        assert_eq!((share.sent_with(), share.shown(true)), (0.5, 0.5));
        // A part shows no more than it is before there were losses, and a small one hardly anything.
        assert_eq!(share.shown(false), 1.0);
        share.set(0.01);
        assert_eq!((share.sent_with(), share.shown(true)), (0.01, 0.25));
        share.set(f64::NAN);
        assert_eq!(share.get(), 1.0);
    }
}
