//! `[[flow]]` of kind `tfrc`: how it behaves, and over how many connections.

use anabranch_congestion::aggregate::Scheme;
use anabranch_congestion::multfrc::{self, Law, Least};
use anabranch_congestion::tfrc::{Filter, Parameters};

use crate::error::Fault;
use crate::table::{Item, Table};

/// Most connections of a flow under TFRC.
pub const MOST_CONNECTIONS: u32 = 1000;

/// Schemes, as they are named.
#[derive(Clone, Copy)]
enum Named {
    Fixed,
    Multfrc,
    AioTfrc,
    Auto,
}

/// The keys `parameters`, `damping` and `scheme` of a flow.
pub(crate) fn read(table: &mut Table<'_>) -> Result<(Parameters, Scheme), Fault> {
    let parameters = table.get("parameters", |item| {
        item.one_of(&[("rfc5348", Parameters::RFC5348), ("ns2", Parameters::NS2), ("live", Parameters::LIVE)])
    });
    let mut parameters = parameters.unwrap_or_default();
    if table.get("damping", Item::flag) == Some(false) {
        parameters.sqrt_rtt_weight = None;
    }
    let scheme = table.get("scheme", scheme);
    let (filter, scheme) = scheme.unwrap_or((parameters.filter, Scheme::TFRC));
    Ok((Parameters { filter, ..parameters }, scheme))
}

fn scheme(item: Item<'_>) -> Result<(Filter, Scheme), Fault> {
    let (named, mut table) = named(item)?;
    let (filter, scheme) = match named {
        Named::Fixed => {
            let connections = table.need("connections", |item| item.count(1..=MOST_CONNECTIONS));
            (Filter::All, connections.map(Scheme::Fixed))
        }
        Named::Multfrc => (Filter::All, Ok(Scheme::Several(control(&mut table, multfrc::Parameters::PAPER)))),
        Named::AioTfrc => {
            let filters = [("first", Filter::First), ("all", Filter::All)];
            let filter = table.get("filter", |item| item.one_of(&filters)).unwrap_or(Filter::First);
            (filter, Ok(Scheme::AllInOne(control(&mut table, multfrc::Parameters::PAPER))))
        }
        Named::Auto => (Filter::All, Ok(Scheme::AllInOne(control(&mut table, multfrc::Parameters::AUTO)))),
    };
    table.finish()?;
    Ok((filter, scheme?))
}

fn named(item: Item<'_>) -> Result<(Named, Table<'_>), Fault> {
    item.named(
        "a scheme",
        &[
            ("fixed", Named::Fixed),
            ("multfrc", Named::Multfrc),
            ("aio-tfrc", Named::AioTfrc),
            ("auto", Named::Auto),
        ],
    )
}

/// The control of the number of connections, with its keys in the place of the defaults.
pub(crate) fn control(table: &mut Table<'_>, mut control: multfrc::Parameters) -> multfrc::Parameters {
    let step =
        |item: Item<'_>| item.number(|step| (0.0..=100.0).contains(&step), "of connections, from 0 to 100");
    let (Law::InverseIncrease { increase, decrease } | Law::Proportional { increase, decrease }) =
        &mut control.law;
    *increase = table.get("increase", step).unwrap_or(*increase);
    *decrease = table.get("decrease", step).unwrap_or(*decrease);
    if let Some(round_trips) = table.get("round_trips", |item| item.count(1..=100_000)) {
        control.round_trips = round_trips;
    }
    if let Some(tolerance) = table.get("tolerance", |item| item.ratio(0.0..=100.0)) {
        control.tolerance = tolerance;
    }
    let least = |item: Item<'_>| item.one_of(&[("mean", Least::Average), ("sample", Least::Sample)]);
    control.least = table.get("least_round_trip", least).unwrap_or(control.least);
    if let Some(most) = table.get("most_connections", |item| item.count(1..=MOST_CONNECTIONS)) {
        control.most_connections = most;
    }
    control
}
