//! BBA-0 (Huang et al., SIGCOMM 2014, section 4): the buffer decides.

use anabranch_units::{Duration, Rate, Ratio};

use super::choice::Choice;

/// With less than this part of what the player holds the lowest rung is fetched: 90 s of 240 s.
const RESERVOIR: Ratio = Ratio::new(90, 240);
/// Over so much more of it the line rises to the highest rung: 126 s of 240 s.
const CUSHION: Ratio = Ratio::new(126, 240);

/// Algorithm 1: the rung stays until the line has passed the next one, so that it does not go to and fro.
pub(super) fn choose(rungs: &[Rate], buffer: Duration, holds: Duration, last: Option<usize>) -> Choice {
    let (Some(lowest), Some(highest)) = (rungs.first(), rungs.last()) else {
        return Choice { rung: 0, why: "there is no other" };
    };
    let top = rungs.len() - 1;
    let (reservoir, cushion) = (holds * RESERVOIR, holds * CUSHION);
    if buffer <= reservoir {
        return Choice { rung: 0, why: "the buffer is in its reserve" };
    }
    if buffer >= reservoir + cushion {
        return Choice { rung: top, why: "the buffer is full" };
    }
    let part = (buffer - reservoir).ratio_to(cushion);
    let line = Rate::from_bps_f64(lowest.as_f64() + part * (highest.as_f64() - lowest.as_f64()));
    let last = last.unwrap_or(0).min(top);
    let (next, before) = ((last + 1).min(top), last.saturating_sub(1));
    if last < top && line >= rungs[next] {
        // Greater than: the line reaches the highest rung only at its end.
        let rung = rungs.iter().rposition(|rung| *rung < line).unwrap_or(0).max(last);
        Choice { rung, why: "the buffer has risen" }
    } else if last > 0 && line <= rungs[before] {
        let rung = rungs.iter().position(|rung| *rung > line).unwrap_or(top).min(last);
        Choice { rung, why: "the buffer has fallen" }
    } else {
        Choice { rung: last, why: "the buffer asks for no change" }
    }
}
