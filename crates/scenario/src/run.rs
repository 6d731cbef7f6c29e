//! How long, and what is written down: `[run]`.

use anabranch_units::Duration;

use crate::error::Fault;
use crate::model::Run;
use crate::table::Item;

/// Nothing runs longer: 115 days.
const LONGEST_RUN: Duration = Duration::from_secs(10_000_000);
/// No sampling interval is shorter.
const SHORTEST_SAMPLING: Duration = Duration::from_millis(1);

/// Reads `[run]`; `seed` takes the place of the one that is written.
pub(crate) fn read(item: Item<'_>, seed: Option<u64>) -> Result<Run, Fault> {
    let mut table = item.table("[run]")?;
    let duration = table.need("duration", |item| match item.positive_duration()? {
        duration if duration > LONGEST_RUN => {
            Err(item.fault(format_args!("a run is at most {LONGEST_RUN} of simulated time")))
        }
        duration => Ok(duration),
    });
    let written = table.get("seed", |item| item.whole(0..=u64::MAX));
    let sampling = table.get("sampling", |item| match item.duration()? {
        sampling if sampling < SHORTEST_SAMPLING => {
            Err(item.fault(format_args!("`sampling` is at least {SHORTEST_SAMPLING}")))
        }
        sampling => Ok(sampling),
    });
    let warm_up = table.get("warm_up", |item| match (item.duration()?, &duration) {
        (warm_up, Ok(duration)) if warm_up >= *duration => Err(item.fault(format_args!(
            "the warm-up ({warm_up}) has to be shorter than the run ({duration}): nothing would be counted"
        ))),
        (warm_up, _) => Ok(warm_up),
    });
    table.finish()?;
    Ok(Run {
        duration: duration?,
        seed: seed.or(written).unwrap_or(1),
        sampling: sampling.unwrap_or(Duration::from_secs(1)),
        warm_up: warm_up.unwrap_or(Duration::ZERO),
    })
}
