//! BOLA (Spiteri et al., INFOCOM 2016), with the parameters that dash.js gives it: the lowest rung's score is
//! zero at the least buffer, the highest one's at the target, and a player waits rather than fetch what has less.

use anabranch_units::{Duration, Rate};

use super::choice::Choice;

/// The least buffer, in seconds (dash.js' `MINIMUM_BUFFER_S`).
const LEAST_S: f64 = 10.0;
/// The target is at least so many seconds for each rung above that (`MINIMUM_BUFFER_PER_BITRATE_LEVEL_S`).
const PER_RUNG_S: f64 = 2.0;

/// The rung with the highest score (V (utility + gp) - buffer) / size, where a rung's utility is the logarithm
/// of its rate beside the lowest.
pub(super) fn choose(rungs: &[Rate], buffer: Duration, holds: Duration) -> Choice {
    let lowest = rungs.first().map_or(0.0, |rate| rate.as_f64());
    let utility = |rate: &Rate| (rate.as_f64() / lowest).ln();
    let most = rungs.last().map_or(0.0, utility);
    // Rungs of one rate, or of none.
    if most.is_nan() || most <= 0.0 {
        return Choice { rung: 0, why: "there is no other" };
    }
    let count: f64 = rungs.iter().map(|_| 1.0).sum();
    let target = holds.as_secs_f64().max(LEAST_S + PER_RUNG_S * count);
    let gp = most / (target / LEAST_S - 1.0);
    let v = LEAST_S / gp;
    let scores = rungs.iter().map(|rate| (v * (utility(rate) + gp) - buffer.as_secs_f64()) / rate.as_f64());
    let best = scores.enumerate().max_by(|(_, one), (_, other)| one.total_cmp(other));
    Choice { rung: best.map_or(0, |(rung, _)| rung), why: "the best for so much buffer" }
}
