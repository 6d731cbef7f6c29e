//! Two queues before one transmitter, of which the one for L4S is short: DualPI2 (RFC 9332, appendix A, with
//! the overload handling of A.2).
//!
//! Classic packets are dropped or marked with the square of a base probability, by which a PI controller
//! keeps their queue at its target. L4S packets are marked with the base probability times the coupling
//! factor, or by how long they waited where that gives more. So flows of both kinds get about the same rate.

use std::collections::VecDeque;

use anabranch_scenario::model::DualPi2;

use crate::ecn::{Codepoint, Verdict};

/// Worst round-trip time (RTT_max), seconds.
const LONGEST_ROUND_TRIP: f64 = 0.1;
/// Longest time between two updates of the base probability (Tupdate), seconds.
const LONGEST_UPDATE: f64 = LONGEST_ROUND_TRIP / 3.0;
/// So few L4S packets are not marked for their wait (Th_len): one alone may have found another in
/// transmission.
const UNMARKED: usize = 1;
/// Of what is transmitted while both queues hold packets, the classic queue gets at least this many parts in
/// 256 (section 4.2.2 has a sixteenth as an example).
const CLASSIC_SHARE: i64 = 16;
const WHOLE: i64 = 256;

/// A packet in one of the queues.
#[derive(Clone, Copy, Debug)]
struct Waiting<P> {
    packet: P,
    size: u32,
    codepoint: Codepoint,
    came: u64,
}

/// A packet whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving<P> {
    /// The packet.
    pub packet: P,
    /// Its size in bytes.
    pub size: u32,
    /// When it came.
    pub came: u64,
    /// As it came.
    pub codepoint: Codepoint,
    /// Whether it leaves marked.
    pub is_marked: bool,
}

/// Picks packets evenly with a given likelihood (`recur` in appendix A.1).
#[derive(Clone, Copy, Debug, Default)]
struct Picks(f64);

impl Picks {
    fn pick(&mut self, likelihood: f64) -> bool {
        self.0 += likelihood;
        let picks = self.0 > 1.0;
        if picks {
            self.0 -= 1.0;
        }
        picks
    }
}

/// The two queues. Times are nanoseconds.
#[derive(Clone, Debug)]
pub struct DualPi2State<P> {
    /// Seconds, as the next four.
    target: f64,
    threshold: f64,
    range: f64,
    delay_before: f64,
    /// Weights of the distance to the target, and of the trend; per second.
    alpha: f64,
    beta: f64,
    coupling: f64,
    update: u64,
    next_update: u64,
    /// p'.
    base: f64,
    low_latency: VecDeque<Waiting<P>>,
    classic: VecDeque<Waiting<P>>,
    /// Above zero it is the classic queue's turn.
    credit: i64,
    low_latency_marks: Picks,
    low_latency_drops: Picks,
    classic_picks: Picks,
}

impl<P: Copy> DualPi2State<P> {
    /// Both empty.
    pub fn new(parameters: DualPi2) -> Self {
        let target = parameters.target.as_secs_f64();
        let update = target.min(LONGEST_UPDATE);
        let update_nanos = parameters.target.as_nanos().min((LONGEST_UPDATE * 1e9) as u64).max(1);
        Self {
            target,
            threshold: parameters.threshold.as_secs_f64(),
            range: parameters.range.as_secs_f64(),
            delay_before: 0.0,
            alpha: 0.1 * update / (LONGEST_ROUND_TRIP * LONGEST_ROUND_TRIP),
            beta: 0.3 / LONGEST_ROUND_TRIP,
            coupling: parameters.coupling,
            update: update_nanos,
            next_update: update_nanos,
            base: 0.0,
            low_latency: VecDeque::new(),
            classic: VecDeque::new(),
            credit: 0,
            low_latency_marks: Picks::default(),
            low_latency_drops: Picks::default(),
            classic_picks: Picks::default(),
        }
    }

    /// How many packets wait.
    pub fn len(&self) -> usize {
        self.low_latency.len() + self.classic.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The base probability p', that of L4S packets by the coupling alone (p_CL), and that of classic ones
    /// (p_C).
    pub fn probabilities(&self) -> (f64, f64, f64) {
        (self.base, (self.coupling * self.base).min(1.0), self.base * self.base)
    }

    /// A packet comes. Whether there is room for it its driver knows.
    pub fn push(&mut self, packet: P, size: u32, codepoint: Codepoint, now: u64) {
        self.update(now);
        let queue = if codepoint.is_low_latency() { &mut self.low_latency } else { &mut self.classic };
        queue.push_back(Waiting { packet, size, codepoint, came: now });
    }

    /// The next packet to transmit. `dropped` is told of those that go, with their sizes.
    pub fn pop(&mut self, now: u64, mut dropped: impl FnMut(P, u32)) -> Option<Leaving<P>> {
        self.update(now);
        loop {
            let (waiting, verdict) = if self.is_classic_turn() {
                let waiting = self.classic.pop_front()?;
                (waiting, self.judge_classic(waiting.codepoint))
            } else {
                let Some(waiting) = self.low_latency.pop_front() else {
                    self.credit = 0;
                    return None;
                };
                (waiting, self.judge_low_latency(now - waiting.came))
            };
            let Waiting { packet, size, came, codepoint } = waiting;
            if verdict == Verdict::Dropped {
                dropped(packet, size);
                continue;
            }
            self.charge(&waiting);
            return Some(Leaving { packet, size, came, codepoint, is_marked: verdict == Verdict::Marked });
        }
    }

    fn is_classic_turn(&self) -> bool {
        !self.classic.is_empty() && (self.low_latency.is_empty() || self.credit > 0)
    }

    /// Weighted round robin: what leaves while others wait in the other queue is set against their share.
    fn charge(&mut self, waiting: &Waiting<P>) {
        let size = i64::from(waiting.size);
        if waiting.codepoint.is_low_latency() {
            if !self.classic.is_empty() {
                self.credit += size * CLASSIC_SHARE;
            }
        } else if !self.low_latency.is_empty() {
            self.credit -= size * (WHOLE - CLASSIC_SHARE);
        }
    }

    /// A classic packet, by the square of the base probability. In overload marks do not help any more.
    fn judge_classic(&mut self, codepoint: Codepoint) -> Verdict {
        let (_, coupled, classic) = self.probabilities();
        match self.classic_picks.pick(classic) {
            true => Verdict::picked(codepoint.is_capable() && coupled < 1.0),
            false => Verdict::Passes,
        }
    }

    /// An L4S packet that waited so long.
    fn judge_low_latency(&mut self, waited: u64) -> Verdict {
        let (_, coupled, classic) = self.probabilities();
        if coupled >= 1.0 && self.low_latency_drops.pick(classic) {
            return Verdict::Dropped;
        }
        let native = if self.low_latency.len() < UNMARKED { 0.0 } else { self.ramp(waited as f64 / 1e9) };
        match self.low_latency_marks.pick(native.max(coupled)) {
            true => Verdict::Marked,
            false => Verdict::Passes,
        }
    }

    /// The likelihood of a mark by the time waited (`laqm`, appendix A.1).
    fn ramp(&self, waited: f64) -> f64 {
        match waited - self.threshold {
            above if above >= self.range => 1.0,
            above if above > 0.0 => above / self.range,
            _ => 0.0,
        }
    }

    /// Does what should have been done at every update until now.
    fn update(&mut self, now: u64) {
        while self.next_update <= now {
            let first = [&self.low_latency, &self.classic].into_iter().filter_map(VecDeque::front);
            let waits = first.map(|waiting| self.next_update.saturating_sub(waiting.came));
            let delay = waits.max().unwrap_or(0) as f64 / 1e9;
            if delay <= 0.0 && self.delay_before <= 0.0 && self.base <= 0.0 {
                // Nothing will change until somebody comes.
                self.next_update += (now - self.next_update) / self.update * self.update + self.update;
                return;
            }
            let change = self.alpha * (delay - self.target) + self.beta * (delay - self.delay_before);
            self.base = (self.base + change).clamp(0.0, 1.0);
            self.delay_before = delay;
            self.next_update += self.update;
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_units::Duration;

    use super::*;

    const MILLISECOND: u64 = 1_000_000;

    fn state() -> DualPi2State<u32> {
        DualPi2State::new(DualPi2 {
            target: Duration::from_millis(15),
            coupling: 2.0,
            threshold: Duration::from_micros(800),
            range: Duration::from_micros(400),
        })
    }

    /// Packets wait so long from their coming to their turn, one after the other: how many pass, are marked,
    /// are dropped.
    fn verdicts(state: &mut DualPi2State<u32>, codepoint: Codepoint, count: u32) -> (u32, u32, u32) {
        let (now, mut dropped, mut marked) = (state.next_update - 1, 0, 0);
        (0..count).for_each(|number| state.push(number, 1000, codepoint, now));
        while let Some(leaving) = state.pop(now, |_, _| dropped += 1) {
            marked += u32::from(leaving.is_marked);
        }
        (count - marked - dropped, marked, dropped)
    }

    #[test]
    fn marks_are_coupled_by_a_square_and_a_factor() {
        for base in [0.05, 0.1, 0.3] {
            let mut state = DualPi2State { base, ..state() };
            let expected = |p: f64| (f64::from(10_000) * p).floor() as u32;
            let (_, marked, dropped) = verdicts(&mut state, Codepoint::Ect1, 10_000);
            assert!(
                marked.abs_diff(expected(2.0 * base)) <= 1 && dropped == 0,
                "{base}: {marked}, {dropped}"
            );
            let (_, marked, dropped) = verdicts(&mut state, Codepoint::Ect0, 10_000);
            assert!(
                marked.abs_diff(expected(base * base)) <= 1 && dropped == 0,
                "{base}: {marked}, {dropped}"
            );
            let (_, marked, dropped) = verdicts(&mut state, Codepoint::NotEct, 10_000);
            assert!(
                dropped.abs_diff(expected(base * base)) <= 1 && marked == 0,
                "{base}: {marked}, {dropped}"
            );
        }
    }

    #[test]
    fn in_overload_marks_give_way_to_drops_in_both_queues() {
        let mut state = DualPi2State { base: 0.6, ..state() };
        let (passed, marked, dropped) = verdicts(&mut state, Codepoint::Ect1, 10_000);
        assert!(passed <= 1 && dropped.abs_diff(3600) <= 1 && marked.abs_diff(6400) <= 1);
        let (_, marked, dropped) = verdicts(&mut state, Codepoint::Ect0, 10_000);
        assert!(dropped.abs_diff(3600) <= 1 && marked == 0);
    }

    #[test]
    fn a_wait_is_marked_from_the_threshold_on_unless_nothing_else_waits() {
        let mark = |micros: u64, count: u32| {
            let mut state = state();
            (0..count).for_each(|number| state.push(number, 1000, Codepoint::Ect1, 0));
            let now = micros * 1000;
            (0..100)
                .filter(|_| {
                    let marked = state.pop(now, |_, _| ()).unwrap().is_marked;
                    state.push(0, 1000, Codepoint::Ect1, 0);
                    marked
                })
                .count()
        };
        assert_eq!((mark(799, 2), mark(1201, 2)), (0, 99), "the first of those picked evenly passes");
        assert!(mark(1000, 2).abs_diff(50) <= 1);
        assert_eq!(mark(5000, 1), 0);
    }

    #[test]
    fn l4s_comes_first_and_the_classic_queue_gets_its_share() {
        let mut state = state();
        for number in 0..4096 {
            state.push(number, 1000, Codepoint::Ect0, 0);
            state.push(10_000 + number, 1000, Codepoint::Ect1, 0);
        }
        let first: Vec<_> = (0..256).filter_map(|_| state.pop(0, |_, _| ())).collect();
        let classic = first.iter().filter(|leaving| leaving.packet < 10_000).count();
        assert!(first[0].packet == 10_000 && classic.abs_diff(16) <= 1, "{classic}");
    }

    #[test]
    fn the_probability_rises_above_the_target_and_falls_below_it() {
        let mut state = DualPi2State { next_update: 1000 * MILLISECOND, ..state() };
        state.push(1, 1000, Codepoint::NotEct, 0);
        let at_target = |state: &mut DualPi2State<u32>, waits: u64, times: u64| {
            for _ in 0..times {
                state.classic[0].came = state.next_update - waits * MILLISECOND;
                state.update(state.next_update);
            }
            state.base
        };
        let risen = at_target(&mut state, 30, 100);
        // The trend first: 3 Hz times 30 ms; then 0.15 Hz times what is too much.
        assert!((risen - (3.0 * 0.03 + 100.0 * 0.15 * 0.015)).abs() < 1e-9, "{risen}");
        assert!((at_target(&mut state, 15, 50) - (risen - 3.0 * 0.015)).abs() < 1e-9);
        assert!(at_target(&mut state, 5, 1000) <= 0.0);
    }

    #[test]
    fn an_idle_time_costs_no_work() {
        let mut state = state();
        assert_eq!(state.pop(u64::MAX / 2, |_, _| ()), None);
        assert!(state.next_update > u64::MAX / 2 && state.is_empty());
    }
}
