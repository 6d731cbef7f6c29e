//! Behind a link's transmitter: losses and jitter.

use anabranch_units::Duration;

use crate::error::Fault;
use crate::model::{GilbertElliott, Jitter, LossModel, Spread};
use crate::table::Item;

/// Most listed losses.
const MOST_LISTED: usize = 100_000;

/// Kinds of jitter.
#[derive(Clone, Copy)]
enum JitterKind {
    Uniform,
    Exponential,
    Normal,
}

/// The longest, or a table.
pub(crate) fn jitter(item: Item<'_>) -> Result<Option<Jitter>, Fault> {
    let uniform = |most: Duration| Spread::Uniform { most };
    if !item.value.is_table() {
        let spread = item.duration().map(|most| (!most.is_zero()).then(|| uniform(most)))?;
        return Ok(spread.map(|spread| Jitter { spread, reorders: false }));
    }
    let choices = [
        ("uniform", JitterKind::Uniform),
        ("exponential", JitterKind::Exponential),
        ("normal", JitterKind::Normal),
    ];
    let mut table = item.table("a link's `jitter`")?;
    let reorders = table.get("reorder", Item::flag).unwrap_or(false);
    let spread = match table.need("kind", |item| item.one_of(&choices))? {
        JitterKind::Uniform => table.need("most", Item::duration).map(uniform),
        JitterKind::Exponential => {
            table.need("mean", Item::duration).map(|mean| Spread::Exponential { mean })
        }
        JitterKind::Normal => {
            let mean = table.need("mean", Item::duration);
            let deviation = table.need("deviation", Item::duration);
            mean.and_then(|mean| Ok(Spread::Normal { mean, deviation: deviation? }))
        }
    };
    table.finish()?;
    Ok(Some(Jitter { spread: spread?, reorders }))
}

/// Kinds of losses that have parameters.
#[derive(Clone, Copy)]
enum LossKind {
    Bernoulli,
    GilbertElliott,
    Listed,
}

/// A probability, or a table.
pub(crate) fn loss(item: Item<'_>) -> Result<LossModel, Fault> {
    let bernoulli =
        |probability| if probability > 0.0 { LossModel::Bernoulli(probability) } else { LossModel::None };
    if !item.value.is_table() {
        return item.probability().map(bernoulli);
    }
    let choices = [
        ("bernoulli", LossKind::Bernoulli),
        ("gilbert-elliott", LossKind::GilbertElliott),
        ("listed", LossKind::Listed),
    ];
    let mut table = item.table("a link's `loss`")?;
    let loss = match table.need("kind", |item| item.one_of(&choices))? {
        LossKind::Bernoulli => table.need("probability", Item::probability).map(bernoulli),
        LossKind::GilbertElliott => {
            let to_bad = table.need("to_bad", Item::probability);
            let to_good = table.need("to_good", Item::probability);
            let loss_good = table.get("loss_good", Item::probability).unwrap_or(0.0);
            let loss_bad = table.get("loss_bad", Item::probability).unwrap_or(1.0);
            to_bad.and_then(|to_bad| {
                Ok(LossModel::GilbertElliott(GilbertElliott {
                    to_bad,
                    to_good: to_good?,
                    loss_good,
                    loss_bad,
                }))
            })
        }
        LossKind::Listed => table.need("packets", listed).map(|packets| match packets.is_empty() {
            true => LossModel::None,
            false => LossModel::Listed(packets),
        }),
    };
    table.finish()?;
    loss
}

/// Places in the order of arrival, which rise.
fn listed(item: Item<'_>) -> Result<Vec<u64>, Fault> {
    if item.list()?.len() > MOST_LISTED {
        return Err(item.fault(format_args!("at most {MOST_LISTED} listed losses")));
    }
    let mut last = None;
    item.each(|item| {
        let place = item.whole(0..=u64::MAX)?;
        match last.replace(place) {
            Some(last) if last >= place => Err(item.fault("the places of lost packets have to rise")),
            _ => Ok(place),
        }
    })
}
