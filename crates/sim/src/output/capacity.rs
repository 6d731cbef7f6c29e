//! What a link could have carried.

use anabranch_units::Time;

use crate::model::Link;

/// The bits, times a billion, that `link` can transmit between two moments, its changes counted. A link with
/// opportunities is counted at their mean rate, which is its own.
pub(super) fn capacity(link: &Link, from: Time, to: Time) -> u128 {
    let next = link.changes.partition_point(|change| change.at <= from);
    let (before, after) = link.changes.split_at(next);
    let mut rate = before.iter().rev().find_map(|change| change.rate).unwrap_or(link.rate);
    let mut at = from;
    let mut sum = 0u128;
    let mut add = |rate: anabranch_units::Rate, at: Time, until: Time| {
        sum += u128::from(rate.as_bps()) * u128::from(until.since(at).as_nanos());
    };
    for change in after.iter().take_while(|change| change.at < to) {
        add(rate, at, change.at);
        at = change.at;
        rate = change.rate.unwrap_or(rate);
    }
    add(rate, at, to);
    sum
}
