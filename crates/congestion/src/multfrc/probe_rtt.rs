//! Whether the shortest round trip is the route's, or that of a queue which stood when the stream began.
//!
//! A stream that begins behind a full queue takes it for a part of the route, sees none, and adds connections
//! until the others starve: a queue that is full does not grow with what they send. What tells the two apart
//! is to give way. Who sends less by a part of the link's rate for a while sees a queue fall by that part of
//! the while; a route stays as it is. So a stream sends a part of its rate for a moment, as BBR does with
//! ProbeRTT (draft-ietf-ccwg-bbr, section 5.3.4), each time that it has twice as many connections as when it
//! did so last: there is that much more to lose for others, and its part of the link is that much larger.

use anabranch_units::{Duration, Time};

/// So many times the connections of the last look ask for another one.
const GROWTH: f64 = 2.0;
/// What is left of the connections meanwhile.
const PART: f64 = 0.25;
/// Round trips that it takes: in one nothing is seen yet of what is sent less.
const ROUND_TRIPS: u64 = 2;

/// What was seen of the route.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seen {
    /// The connections before.
    pub(super) connections: f64,
    /// The shortest round trip before, and meanwhile.
    pub(super) before: Duration,
    pub(super) shortest: Duration,
}

/// What a report leads to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// So many connections are to be left for a while.
    GiveWay(f64),
    /// It goes on.
    Wait,
    /// It is over.
    Over(Seen),
}

/// The looks at the route.
#[derive(Clone, Debug)]
pub(super) struct ProbeRtt {
    /// The connections at the last one.
    looked: f64,
    running: Option<(Time, Seen)>,
}

impl ProbeRtt {
    pub(super) fn new() -> Self {
        Self { looked: 1.0, running: None }
    }

    /// A round trip came; there are so many connections, and `least` is the shortest round trip so far.
    pub(super) fn sample(
        &mut self,
        now: Time,
        sample: Duration,
        connections: f64,
        least: Duration,
    ) -> Option<Step> {
        if let Some((until, seen)) = &mut self.running {
            seen.shortest = seen.shortest.min(sample);
            if now < *until {
                return Some(Step::Wait);
            }
            let seen = *seen;
            self.running = None;
            return Some(Step::Over(seen));
        }
        if connections < GROWTH * self.looked {
            return None;
        }
        self.looked = connections;
        let seen = Seen { connections, before: least, shortest: sample };
        self.running = Some((now + sample * ROUND_TRIPS, seen));
        Some(Step::GiveWay(PART * connections))
    }

    /// The stream begins anew: what was seen says nothing.
    pub(super) fn forget(&mut self) {
        *self = Self::new();
    }
}
