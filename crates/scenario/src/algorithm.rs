//! Rate controllers of media streams. Their parameters have the names of the options of `anabranch play`.

use anabranch_film::interval::Interval;
use anabranch_film::{auto, multitcp, rome};
use anabranch_units::{Bytes, Duration, Packets, Quantity, Ratio};

use crate::error::Fault;
use crate::model::RateControl;
use crate::table::{Item, Table};

/// Size of a segment of TCP-ROME where none is given. The paper has no value.
const SEGMENT: Bytes = Bytes::kib(64);

/// Algorithms, as they are named.
#[derive(Clone, Copy)]
enum Named {
    Fixed,
    Basic,
    Advanced,
    Mul,
    Rome,
    Auto,
}

/// How many connections and which windows, and the size of every segment where it is fixed.
pub(crate) fn read(item: Item<'_>, servers: usize) -> Result<(RateControl, Option<Bytes>), Fault> {
    let choices = [
        ("fixed", Named::Fixed),
        ("basic", Named::Basic),
        ("advanced", Named::Advanced),
        ("mul", Named::Mul),
        ("rome", Named::Rome),
        ("auto", Named::Auto),
    ];
    let (named, mut table) = item.named("a stream's `algorithm`", &choices)?;
    let mut segment = None;
    let algorithm = match named {
        Named::Fixed => RateControl::Fixed {
            connections: table.get("connections", connections).unwrap_or(1),
            window: table.get("window", Item::positive_size),
        },
        Named::Basic => RateControl::Basic(multitcp(&mut table, multitcp::Parameters::default())),
        Named::Advanced => {
            let defaults = multitcp::AdvancedParameters::default();
            RateControl::Advanced(multitcp::AdvancedParameters {
                basic: multitcp(&mut table, defaults.basic),
                initial_connections: table
                    .get("start_connections", connections)
                    .unwrap_or(defaults.initial_connections),
                congestion_factor: table.get("cf", Item::factor).unwrap_or(defaults.congestion_factor),
                silence: table.get("x", Item::factor).unwrap_or(defaults.silence),
                previous_ratio: table
                    .get("previous_ratio", |item| {
                        item.one_of(&[
                            ("step", multitcp::PreviousRatio::OfTheLastStep),
                            ("interval", multitcp::PreviousRatio::OfTheLastInterval),
                        ])
                    })
                    .unwrap_or(defaults.previous_ratio),
                ratio_change: table
                    .get("ratio_change", |item| item.ratio(0.0..=10.0))
                    .unwrap_or(defaults.ratio_change),
            })
        }
        Named::Mul => RateControl::Mul(crate::tfrc::control(
            &mut table,
            anabranch_congestion::multfrc::Parameters::PAPER,
        )),
        Named::Rome => {
            segment = Some(
                table
                    .get("segment_size", |item| item.size_within(Bytes::kib(1), Bytes::mib(64)))
                    .unwrap_or(SEGMENT),
            );
            RateControl::Rome(rome(&mut table))
        }
        Named::Auto => RateControl::Auto(auto(&mut table, servers)),
    };
    table.finish()?;
    // Parameters that are right one by one.
    let buffer = match &algorithm {
        RateControl::Rome(parameters) => (parameters.buffer_low, parameters.buffer_high),
        RateControl::Auto(parameters) => parameters.buffer,
        _ => return Ok((algorithm, segment)),
    };
    match buffer {
        (low, high) if low < high => Ok((algorithm, segment)),
        (low, high) => {
            let mut table = item.table("a stream's `algorithm`")?;
            let at = table.item("buffer_high").or(table.item("buffer_low")).unwrap_or(item);
            Err(at.fault(format_args!("`buffer_low` ({low}) has to be below `buffer_high` ({high})")))
        }
    }
}

fn multitcp(table: &mut Table<'_>, defaults: multitcp::Parameters) -> multitcp::Parameters {
    let preset = table.get("preset", |item| {
        item.one_of(&[
            ("table8.1", multitcp::Parameters::TABLE_8_1),
            ("table8.2", multitcp::Parameters::TABLE_8_2),
            ("table8.3", multitcp::Parameters::TABLE_8_3),
        ])
    });
    let preset = preset.unwrap_or(defaults);
    let spike = |item: Item<'_>| {
        item.number(|number| number > 2.0 && number <= 1000.0, "above 2, up to 1000").map(Ratio::from_f64)
    };
    multitcp::Parameters {
        connections: table.get("connections", connections).unwrap_or(preset.connections),
        interval: table.get("delta", interval).unwrap_or(preset.interval),
        smoothing: table.get("alpha", Item::part).unwrap_or(preset.smoothing),
        threshold: table.get("lambda", Item::rate).unwrap_or(preset.threshold),
        spike_factor: table.get("f", spike).unwrap_or(preset.spike_factor),
    }
}

fn rome(table: &mut Table<'_>) -> rome::Parameters {
    let defaults = rome::Parameters::default();
    let (buffer_low, buffer_high) = buffer(table, (defaults.buffer_low, defaults.buffer_high));
    rome::Parameters {
        connections: table.get("connections", connections).unwrap_or(defaults.connections),
        model: table
            .get("model", |item| {
                item.one_of(&[
                    ("strict", rome::Model::StrictFairness),
                    ("compensation", rome::Model::Compensation),
                    ("compensation-where-enough", rome::Model::CompensationWhereEnough),
                ])
            })
            .unwrap_or(defaults.model),
        above: table
            .get("above", |item| {
                item.one_of(&[
                    ("keep", rome::Above::Keep),
                    ("keep-again", rome::Above::KeepAgain),
                    ("keep-while", rome::Above::KeepWhile),
                    ("share", rome::Above::Share),
                ])
            })
            .unwrap_or(defaults.above),
        low: table.get("rate_low", |item| item.ratio(0.0..=1.0)).unwrap_or(defaults.low),
        high: table.get("rate_high", |item| item.ratio(1.0..=100.0)).unwrap_or(defaults.high),
        buffer_low,
        buffer_high,
        interval: table.get("delta", interval).unwrap_or(defaults.interval),
        waiting: table.get("waiting", |item| item.ratio(1.0..=100.0)).unwrap_or(defaults.waiting),
        smoothing: table.get("alpha", Item::part).unwrap_or(defaults.smoothing),
        restart: table.get("restart", Item::flag).unwrap_or(defaults.restart),
        ..defaults
    }
}

fn auto(table: &mut Table<'_>, servers: usize) -> auto::Parameters {
    let defaults = auto::Parameters::default();
    let most = table.get("connections", connections).map_or(defaults.most, as_usize);
    let at_start = table.get("start_connections", connections).map(as_usize);
    let multiple = |item: Item<'_>| item.ratio(1.0..=100.0);
    auto::Parameters {
        most,
        // As in `anabranch play`: servers start together, and connections that are not needed are given back.
        at_start: at_start.unwrap_or(defaults.at_start.max(servers).min(3)).min(most),
        buffer: buffer(table, defaults.buffer),
        boost: table.get("boost", multiple).unwrap_or(defaults.boost),
        boost_with_room: table.get("boost_with_room", multiple).unwrap_or(defaults.boost_with_room),
        margin: table.get("margin", |item| item.ratio(0.0..=1.0)).unwrap_or(defaults.margin),
        window_headroom: table.get("window_headroom", multiple).unwrap_or(defaults.window_headroom),
        window_spread: table.get("window_spread", multiple).unwrap_or(defaults.window_spread),
        least_gain: table.get("least_gain", |item| item.ratio(0.0..=1.0)).unwrap_or(defaults.least_gain),
        least_share: table
            .get("least_share", |item| item.count(1..=100))
            .map_or(defaults.least_share, |count| Packets::new(u64::from(count))),
        first_rest: table.get("first_rest", Item::positive_duration).unwrap_or(defaults.first_rest),
        longest_rest: table.get("longest_rest", Item::positive_duration).unwrap_or(defaults.longest_rest),
    }
}

fn connections(item: Item<'_>) -> Result<u32, Fault> {
    item.count(1..=multitcp::MOST_CONNECTIONS)
}

/// The thresholds B- and B+.
fn buffer(table: &mut Table<'_>, defaults: (Duration, Duration)) -> (Duration, Duration) {
    let low = table.get("buffer_low", Item::duration).unwrap_or(defaults.0);
    (low, table.get("buffer_high", Item::positive_duration).unwrap_or(defaults.1))
}

/// A measuring interval: `300ms`, or `8rtt` for so many round-trip times.
fn interval(item: Item<'_>) -> Result<Interval, Fault> {
    const FORMS: &str = "an interval is written \"300ms\", or \"8rtt\" for so many round-trip times";
    let text = item.text().map_err(|fault| fault.help(FORMS))?;
    if let Some(count) = text.strip_suffix("rtt") {
        let count = count.trim().parse().ok().filter(|count| (1..=1000).contains(count));
        return count.map(Interval::RoundTrips).ok_or_else(|| item.fault(FORMS));
    }
    let length = Duration::read_with_unit(text).map_err(|_| item.fault(FORMS))?;
    match (Interval::LEAST..=Interval::MOST).contains(&length) {
        true => Ok(Interval::Fixed(length)),
        false => {
            Err(item.fault(format_args!("an interval is from {} to {}", Interval::LEAST, Interval::MOST)))
        }
    }
}

pub(crate) fn as_usize(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
