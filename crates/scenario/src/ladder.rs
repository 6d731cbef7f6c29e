//! A film in segments of several rates, and how its player chooses among them: the key `ladder` of a media flow.

use anabranch_film::adaptation::{Parameters, Rule};
use anabranch_units::Duration;

use crate::error::Fault;
use crate::model::Ladder;
use crate::table::Item;

/// Most rungs.
const MOST_RUNGS: usize = 64;
/// How long a segment plays where nothing else is said.
const SEGMENT: Duration = Duration::from_secs(4);
/// No segment is shorter: whoever simulates looks at its player every few milliseconds.
const SHORTEST: Duration = Duration::from_millis(100);

/// Reads a ladder and its player.
pub(crate) fn read(item: Item<'_>) -> Result<Ladder, Fault> {
    let mut table = item.table("a stream's `ladder`")?;
    let rungs = table.need("rungs", |item| {
        if !(1..=MOST_RUNGS).contains(&item.list()?.len()) {
            return Err(item.fault(format_args!("a ladder has 1 to {MOST_RUNGS} rungs")));
        }
        let rungs = item.each(Item::rate)?;
        match rungs.iter().zip(rungs.iter().skip(1)).all(|(lower, higher)| lower < higher) {
            true => Ok(rungs),
            false => Err(item.fault("the rungs of a ladder rise")),
        }
    });
    let segment = table.get("segment", |item| match item.duration()? {
        segment if segment < SHORTEST => Err(item.fault(format_args!("a segment plays at least {SHORTEST}"))),
        segment => Ok(segment),
    });
    let segment = segment.unwrap_or(SEGMENT);
    let usual = Parameters::default();
    let rule = table.get("rule", |item| {
        item.one_of(&[("buffer", Rule::Buffer), ("throughput", Rule::Throughput), ("both", Rule::Both)])
    });
    let holds = table.get("holds", |item| match item.duration()? {
        holds if holds < segment => {
            Err(item.fault(format_args!("its player has at least a segment to play, which is {segment}")))
        }
        holds => Ok(holds),
    });
    table.finish()?;
    let adaptation = Parameters {
        rule: rule.unwrap_or(usual.rule),
        holds: holds.unwrap_or(usual.holds.max(segment)),
        ..usual
    };
    Ok(Ladder { rungs: rungs?, segment, adaptation })
}
