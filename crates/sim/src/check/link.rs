//! What a link must keep to.

use anabranch_units::Time;

use super::bounds::{Checked, MOST, ensure};
use crate::model::{Discipline, FqCoDel, Limit, Link, LossModel};

/// Checks one direction of a link among so many nodes.
pub(super) fn check_link(link: &Link, nodes: usize) -> Checked {
    ensure(link.from < nodes && link.to < nodes, || {
        "the link leads to a node that does not exist".to_owned()
    })?;
    ensure(link.from != link.to, || "the link leads from a node to itself".to_owned())?;
    ensure(!link.rate.is_zero() || link.opportunities.is_some(), || {
        "the rate is zero: give one, like \"10Mbps\" (a link that is down for a while has a change \
         of its rate)"
            .to_owned()
    })?;
    let holds_something = match link.queue.limit {
        Limit::Packets(most) => most > 0,
        Limit::Bytes(most) => !most.is_zero(),
    };
    ensure(holds_something, || {
        "the queue holds nothing: the packet in transmission counts, so at least one".to_owned()
    })?;
    match link.queue.discipline {
        Discipline::DropTail => {}
        Discipline::Pie(pie) => {
            ensure(!pie.target.is_zero(), || "PIE wants a target that is not zero".to_owned())?;
        }
        Discipline::DualPi2(dualpi2) => {
            ensure(!dualpi2.target.is_zero() && (0.1..=100.0).contains(&dualpi2.coupling), || {
                "DualPI2 wants a target that is not zero and a coupling from 0.1 to 100".to_owned()
            })?;
        }
        Discipline::Red(red) => ensure(
            0.0 <= red.low
                && red.low < red.high
                && (0.0..=1.0).contains(&red.most)
                && 0.0 < red.weight
                && red.weight <= 1.0,
            || {
                "RED wants 0 <= low < high, a probability from 0 to 1 and a weight above 0, at most 1"
                    .to_owned()
            },
        )?,
        Discipline::CoDel(codel) | Discipline::FqCoDel(FqCoDel { codel, .. }) => {
            ensure(!codel.target.is_zero() && codel.target < codel.interval, || {
                "CoDel wants a target that is not zero and shorter than the interval".to_owned()
            })?;
        }
    }
    for bucket in link.policer.iter().chain(&link.shaper) {
        ensure(!bucket.rate.is_zero() && !bucket.burst.is_zero(), || {
            "a policer and a shaper let nothing pass without a rate and a burst".to_owned()
        })?;
    }
    ensure((0.0..=1.0).contains(&link.duplicate), || {
        format!("{} is no probability of a duplicate", link.duplicate)
    })?;
    check_loss(&link.loss)?;
    for pair in link.changes.windows(2) {
        ensure(pair[0].at < pair[1].at, || {
            format!("the change at {} s does not come after the one before it", pair[1].at.as_secs_f64())
        })?;
    }
    for change in &link.changes {
        change.loss.as_ref().map_or(Ok(()), check_loss)?;
    }
    let Some(opportunities) = &link.opportunities else { return Ok(()) };
    let in_order = opportunities.at.windows(2).all(|pair| pair[0] <= pair[1]);
    let fits = opportunities
        .at
        .last()
        .is_some_and(|last| *last <= Time::ZERO + opportunities.period && *last > Time::ZERO);
    ensure(in_order && fits && !opportunities.size.is_zero() && opportunities.at.len() < MOST, || {
        "the opportunities to transmit are not in order, or none, or beyond their period, or of no size"
            .to_owned()
    })
}

fn check_loss(loss: &LossModel) -> Checked {
    let probabilities = match loss {
        LossModel::None | LossModel::Listed(_) => return Ok(()),
        LossModel::Bernoulli(probability) => vec![*probability],
        LossModel::GilbertElliott(g) => vec![g.to_bad, g.to_good, g.loss_good, g.loss_bad],
    };
    match probabilities.iter().find(|p| !(0.0..=1.0).contains(*p)) {
        Some(wrong) => Err(format!("{wrong} is no probability: it must be from 0 to 1 (1 % is 0.01)")),
        None => Ok(()),
    }
}
