//! What a flow under BBR knows of its path and of itself.

use anabranch_units::{Bytes, Duration, Rate, Time};

use super::aggregation::Aggregation;
use super::chance::Chance;
use super::cycle::{Cycle, ProbeRtt};
use super::filters::TwoCycles;
use super::full_pipe::FullPipe;
use super::losses::LongTerm;
use super::min_rtt::MinRtt;
use super::rounds::Rounds;
use super::short_term::ShortTerm;
use super::state::State;
use super::undo::Undo;
use crate::control::Start;

/// A flow under BBRv3. Volumes are bytes, bandwidths bytes per second.
#[derive(Clone, Debug)]
pub struct Bbr {
    /// `C.SMSS`.
    pub(super) segment: f64,
    /// `C.InitialCwnd`.
    pub(super) initial_window: f64,
    pub(super) has_begun: bool,
    pub(super) state: State,
    pub(super) chance: Chance,
    pub(super) rounds: Rounds,
    pub(super) full_pipe: FullPipe,
    pub(super) max_bandwidth: TwoCycles,
    /// `BBR.bw`.
    pub(super) bandwidth: f64,
    pub(super) short_term: ShortTerm,
    pub(super) long_term: LongTerm,
    pub(super) aggregation: Aggregation,
    pub(super) min_rtt: MinRtt,
    pub(super) cycle: Cycle,
    pub(super) probe_rtt: ProbeRtt,
    /// `BBR.drain_start_round`.
    pub(super) drain_start_round: u64,
    /// Acknowledgements with losses in this round trip.
    pub(super) losses_in_round: u32,
    /// `BBR.idle_restart`.
    pub(super) is_idle_restart: bool,
    /// The round trip in which the recovery began that goes on.
    pub(super) recovery_since: Option<u64>,
    pub(super) undo: Undo,
    /// `BBR.prior_cwnd`.
    pub(super) prior_cwnd: f64,
    /// `C.cwnd`.
    pub(super) cwnd: f64,
    /// `C.pacing_rate`.
    pub(super) pacing_rate: f64,
    /// The latest time, and `C.delivered` then.
    pub(super) now: Time,
    pub(super) delivered: u64,
}

impl Bbr {
    /// A flow that begins. A segment of no bytes counts as one byte.
    pub fn new(start: &Start) -> Self {
        let segment = start.segment.as_f64().max(1.0);
        let initial_window = start.initial_window.as_f64().max(segment);
        let mut bbr = Self {
            segment,
            initial_window,
            has_begun: false,
            state: State::Startup,
            chance: Chance(start.seed),
            rounds: Rounds::default(),
            full_pipe: FullPipe::default(),
            max_bandwidth: TwoCycles::default(),
            bandwidth: 0.0,
            short_term: ShortTerm::new(),
            long_term: LongTerm::new(),
            aggregation: Aggregation::new(Time::ZERO),
            min_rtt: MinRtt::new(Time::ZERO, Duration::ZERO),
            cycle: Cycle::default(),
            probe_rtt: ProbeRtt::default(),
            drain_start_round: 0,
            losses_in_round: 0,
            is_idle_restart: false,
            recovery_since: None,
            undo: Undo::default(),
            prior_cwnd: 0.0,
            cwnd: initial_window,
            pacing_rate: 0.0,
            now: Time::ZERO,
            delivered: 0,
        };
        bbr.init_pacing_rate(Duration::ZERO);
        bbr
    }

    /// The state of its machine.
    pub fn state(&self) -> State {
        self.state
    }

    /// The bandwidth that it reckons with (`BBR.bw`); zero before the first measurement.
    pub fn bandwidth(&self) -> Rate {
        Rate::from_bps_f64(self.bandwidth * 8.0)
    }

    /// The round trip without queues that it reckons with (`BBR.min_rtt`).
    pub fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.rtt
    }

    /// How much it holds the path to carry without too many losses (`BBR.inflight_longterm`); `None` before a
    /// probe lost too much.
    pub fn longterm_inflight(&self) -> Option<Bytes> {
        let inflight = self.long_term.inflight;
        inflight.is_finite().then(|| Bytes::from_f64(inflight))
    }
}
