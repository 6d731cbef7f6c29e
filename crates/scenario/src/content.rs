//! Which parts of the media a stream asks for, and how: the key `content` of a media flow.

use anabranch_film::content::{InFlight, MissingRule, Policy};
use anabranch_units::Bytes;

use crate::error::Fault;
use crate::table::Item;

/// The largest segment, and the farthest that a stream asks ahead.
const LARGEST: Bytes = Bytes::mib(1 << 20);

/// Reads what differs from the policy that the stream has without it.
pub(crate) fn read(item: Item<'_>, without: Policy) -> Result<Policy, Fault> {
    let mut table = item.table("a stream's `content`")?;
    let ahead = table.get("look_ahead", size).unwrap_or(without.look_ahead);
    let sizes = table.get("segment", sizes);
    let mut policy = match sizes {
        // Of one size: as TCP-ROME has it.
        Some((least, most)) if least == most => Policy::rome(least, ahead),
        Some(sizes) => Policy { segment_size: sizes, look_ahead: ahead, ..without },
        None => Policy { look_ahead: ahead, ..without },
    };
    if let Some(size) = table.get("first_segment", size) {
        policy.first_segment = size;
    }
    if let Some(time) = table.get("segment_time", Item::positive_duration) {
        policy.segment_time = time;
    }
    if let Some(in_flight) = table.get("requests_in_flight", in_flight) {
        policy.in_flight = in_flight;
    }
    let rules = [
        ("round-trip", MissingRule::RoundTrip),
        ("play-time", MissingRule::PlayTime),
        ("expected", MissingRule::Expected),
    ];
    if let Some(rule) = table.get("missing", |item| item.one_of(&rules)) {
        policy.missing = rule;
    }
    if let Some(count) = table.get("abandon_after", |item| item.count(0..=1_000_000)) {
        policy.abandon_after = count;
    }
    table.finish()?;
    Ok(policy)
}

/// A number of requests, or "windows".
fn in_flight(item: Item<'_>) -> Result<InFlight, Fault> {
    if item.text().is_ok() {
        return item.one_of(&[("windows", InFlight::Windows)]);
    }
    item.count(1..=64).map(|count| InFlight::Requests(count as usize))
}

fn size(item: Item<'_>) -> Result<Bytes, Fault> {
    item.size_within(Bytes::new(1), LARGEST)
}

/// One size, or the least and the largest.
fn sizes(item: Item<'_>) -> Result<(Bytes, Bytes), Fault> {
    if item.text().is_ok() {
        return size(item).map(|size| (size, size));
    }
    match item.each(size)?.as_slice() {
        [least, most] if least <= most => Ok((*least, *most)),
        _ => Err(item.fault("`segment` is one size, or the least and the largest in a list")),
    }
}
