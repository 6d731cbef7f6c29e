//! Whose losses they are: the link's own, or those of a queue that the stream helps to overflow.
//!
//! Behind a short queue, CoDel or PIE both look alike, and no round trip tells of others. What tells them apart
//! is to give way. A link loses its part of whatever is sent; a queue that has got room loses nothing. So the
//! stream sends a part of its rate for a moment, now and then, and the loss events of what left then are held
//! against those of what left in between, by a sequential probability ratio test (A. Wald, "Sequential Tests of
//! Statistical Hypotheses", 1945) for Poisson events.
//!
//! Where they are a queue's, the stream gets fewer connections, and is looked at again: first as many as what
//! arrives needs, with some to spare, since a stream that overflows a link alone needs no more; then ever fewer,
//! since others take what it leaves, and overflow the queue again.

use std::collections::VecDeque;

use anabranch_units::{Duration, Time};

use super::usage::SPARE;

/// What is left of the connections while the stream gives way.
const PART: f64 = 0.7;
/// For how many round trips it does so, and how long at least: what PIE drops falls only in so long.
const ROUND_TRIPS: u64 = 2;
const LEAST_SPAN: Duration = Duration::from_millis(250);
/// The queue takes this part of it to get room.
const DRAINS: f64 = 0.4;
/// After it, and at the beginning, what waited is caught up with for so many times as long: nothing is counted.
const CATCHES_UP: u64 = 4;
/// Then for so many times as long what leaves is counted, and for twice as many where nothing is known yet.
const COUNTS: u64 = 4;
/// So few connections take little from others.
const FEW: f64 = 2.0;
/// Less than this part of the loss events while the stream gives way shows that they are a queue's.
const RATIO: f64 = 0.35;
/// A verdict needs one of the two to be so many times as likely as the other (as a logarithm).
const ENOUGH: f64 = 2.0;
/// The same for a queue where the last verdict was not one: a stream alone loses by a wrong one.
const ENOUGH_AT_FIRST: f64 = 3.5;
/// Events in between without which there is nothing to compare.
const LEAST_EVENTS: f64 = 3.0;
/// What is left of the counts in between each time that the stream gives way.
const REMEMBERED: f64 = 0.5;
/// What a verdict multiplies the most connections with.
const DECREASE: f64 = 0.75;
const INCREASE: f64 = 1.5;
/// For how long a verdict stands at first, and after many of its kind.
const STANDS: Duration = Duration::from_secs(15);
const MOST_STANDS: Duration = Duration::from_secs(240);
/// Spans in which the stream gave way that are remembered: what left then is known soon after.
const SPANS: usize = 4;

/// What a report leads to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// So many connections are to be left for a while.
    GiveWay(f64),
    /// It goes on.
    Wait,
    /// It is over, and there are as many as before.
    Over(f64),
}

/// Datagrams, and loss events: losses that follow each other are one.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    datagrams: f64,
    events: f64,
}

/// The looks at the losses.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    /// Until when the stream gives way, and the connections before.
    running: Option<(Time, f64)>,
    /// When it gave way of late.
    spans: VecDeque<(Time, Time)>,
    /// What left in between, from a time on.
    between: Count,
    counts_from: Time,
    was_lost: bool,
    /// The likelihood that losses are a queue's beside that they are the link's (as a logarithm).
    evidence: f64,
    /// When the stream gives way next; `None`: it has few connections.
    next: Option<Time>,
    /// Until when the last verdict stands, and how long one of each kind does: a queue's, the link's.
    decided: Option<Time>,
    stands: [Duration; 2],
    /// What arrives, as a part of what is allowed.
    used: f64,
    /// Whether the losses have been a queue's since they were last the link's.
    is_queue: bool,
    /// Most connections.
    most: f64,
}

impl Origin {
    pub(super) fn new() -> Self {
        Self {
            running: None,
            spans: VecDeque::new(),
            between: Count::default(),
            counts_from: Time::ZERO,
            was_lost: false,
            evidence: 0.0,
            next: None,
            decided: None,
            stands: [STANDS; 2],
            used: 1.0,
            is_queue: false,
            most: f64::INFINITY,
        }
    }

    /// The most connections that the losses speak for.
    pub(super) fn most(&self) -> f64 {
        self.most
    }

    /// It is known what became of a datagram. They are told in about the order in which they left.
    pub(super) fn datagram(&mut self, sent: Time, is_lost: bool) {
        let was_lost = std::mem::replace(&mut self.was_lost, is_lost);
        let is_event = is_lost && !was_lost;
        if self.spans.iter().any(|(from, until)| (*from..=*until).contains(&sent)) {
            let expected = self.between.events / self.between.datagrams.max(1.0);
            let ratio = if is_event { RATIO.ln() } else { 0.0 };
            self.evidence = (self.evidence + expected * (1.0 - RATIO) + ratio).clamp(-ENOUGH, self.enough());
        } else if sent >= self.counts_from {
            self.between.datagrams += 1.0;
            self.between.events += f64::from(u8::from(is_event));
        }
    }

    /// A report came; there are so many connections, and `used` is what arrives as a part of what is allowed.
    pub(super) fn report(&mut self, now: Time, rtt: Duration, connections: f64, used: f64) -> Option<Step> {
        let span = (rtt * ROUND_TRIPS).max(LEAST_SPAN);
        if let Some((until, before)) = self.running {
            if now < until {
                return Some(Step::Wait);
            }
            self.running = None;
            self.wait(now + span * CATCHES_UP, span * COUNTS);
            return Some(Step::Over(before));
        }
        if now >= self.counts_from {
            self.used += (used.min(1.0) - self.used) / 10.0;
        }
        if self.decided.is_some_and(|until| now < until) {
            return None;
        }
        if self.decided.take().is_some() {
            // Others may have come or gone.
            self.most = if self.is_queue { FEW / PART } else { f64::INFINITY };
            self.next = None;
        }
        if self.evidence >= self.enough() || self.evidence <= -ENOUGH {
            self.decide(now, span, connections);
            return None;
        }
        if connections < FEW {
            self.next = None;
            return None;
        }
        let Some(next) = self.next else {
            self.begin(now + span * CATCHES_UP, span);
            return None;
        };
        if now < next || self.between.events < LEAST_EVENTS {
            return None;
        }
        self.between.datagrams *= REMEMBERED;
        self.between.events *= REMEMBERED;
        let until = now + span;
        if self.spans.len() >= SPANS {
            self.spans.pop_front();
        }
        self.spans.push_back((now + Duration::from_secs_f64(span.as_secs_f64() * DRAINS), until));
        self.running = Some((until, connections));
        Some(Step::GiveWay(PART * connections))
    }

    /// The evidence that shows that losses are a queue's.
    fn enough(&self) -> f64 {
        if self.is_queue { ENOUGH } else { ENOUGH_AT_FIRST }
    }

    /// Nothing is known of the losses as they are now.
    fn begin(&mut self, counts_from: Time, span: Duration) {
        (self.between, self.evidence) = (Count::default(), 0.0);
        self.wait(counts_from, span * COUNTS * 2);
    }

    fn wait(&mut self, counts_from: Time, counts: Duration) {
        self.counts_from = counts_from;
        self.next = Some(counts_from + counts);
    }

    /// There is a verdict.
    fn decide(&mut self, now: Time, span: Duration, connections: f64) {
        let was_queue = std::mem::replace(&mut self.is_queue, self.evidence > 0.0);
        let is_bound = connections > 0.9 * self.most;
        let is_over = if self.is_queue {
            let factor = if was_queue { DECREASE } else { (SPARE * self.used).min(1.0) };
            self.most = (self.most.min(connections) * factor).max(FEW);
            self.most <= FEW
        } else {
            self.most = if is_bound { self.most * INCREASE } else { f64::INFINITY };
            !is_bound
        };
        self.begin(now, span);
        if is_over {
            let stands = &mut self.stands[usize::from(!self.is_queue)];
            self.decided = Some(now + *stands);
            *stands = (*stands * 2).min(MOST_STANDS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// A stream that would have `wanted` connections for so many round trips of fifty datagrams each, over a path
    /// that loses a part of them that follows from the connections of the moment and those it has else.
    fn run(wanted: f64, round_trips: u64, loss: impl Fn(f64, f64) -> f64) -> Origin {
        let mut origin = Origin::new();
        let (mut connections, mut given, mut owed) = (wanted, None::<f64>, 0.0);
        for round_trip in 1..=round_trips {
            let now = Time::ZERO + RTT * round_trip;
            let sends = given.unwrap_or(connections);
            for datagram in 0..50 {
                owed += loss(sends, connections);
                let is_lost = owed >= 1.0;
                owed -= if is_lost { 1.0 } else { 0.0 };
                origin.datagram(now + RTT * datagram / 50, is_lost);
            }
            match origin.report(now + RTT, RTT, connections, 0.95) {
                Some(Step::GiveWay(fewer)) => given = Some(fewer),
                Some(Step::Over(before)) => (given, connections) = (None, before),
                Some(Step::Wait) => {}
                None => connections = wanted.min(origin.most()),
            }
        }
        origin
    }

    #[test]
    fn what_a_link_loses_by_itself_takes_no_connection_away() {
        for loss in [0.01, 0.04, 0.08] {
            let origin = run(10.0, 3000, |_, _| loss);
            assert_eq!(origin.most(), f64::INFINITY, "{loss}");
            assert!(origin.evidence < 0.0 || origin.stands[1] > STANDS, "{loss}: {origin:?}");
        }
    }

    #[test]
    fn where_others_fill_a_queue_few_are_left() {
        // Whoever gives way makes room; as soon as others have taken it, more is lost the more there are.
        let loss =
            |sends, connections: f64| if sends < connections { 0.0 } else { 0.0006 * connections.powi(2) };
        let origin = run(10.0, 600, loss);
        assert!((FEW..=FEW / PART).contains(&origin.most()), "{origin:?}");
    }

    #[test]
    fn a_stream_that_overflows_a_link_alone_keeps_what_it_needs() {
        // A tenth is lost with ten connections; with fewer the losses are the link's own.
        let origin = run(10.0, 600, |sends, _| if sends > 9.6 { 0.1 } else { 0.004 });
        assert!(origin.most() > 7.0, "{origin:?}");
    }

    #[test]
    fn few_connections_never_give_way() {
        let origin = run(1.9, 600, |_, _| 0.05);
        assert!(origin.spans.is_empty() && origin.most() == f64::INFINITY, "{origin:?}");
    }

    #[test]
    fn losses_in_a_row_are_one_event() {
        let mut origin = Origin::new();
        for (millis, is_lost) in [(1, false), (2, true), (3, true), (4, false), (5, true)] {
            origin.datagram(Time::ZERO + Duration::from_millis(millis), is_lost);
        }
        assert_eq!((origin.between.datagrams, origin.between.events), (5.0, 2.0));
    }
}
