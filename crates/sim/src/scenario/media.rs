//! Media streams: flows of kind `media`. Their parameters have the names of the options of `anabranch play`.

use stream::interval::Interval;
use stream::session::Pace;
use stream::{auto, content, multitcp, playback, rome};
use units::{Bytes, Duration, Ratio};

use super::error::Fault;
use super::network::Network;
use super::table::{Item, Table};
use super::tcp::{self, Settings};
use crate::model::{Algorithm, Kind, Media};

/// Most servers of a stream, and most connections to each.
const MOST_SERVERS: usize = 256;
/// Memory of a session where nothing else is said, as in `anabranch play`.
const MEMORY: Bytes = Bytes::mib(32);
/// Size of a segment of TCP-ROME where none is given. The paper has no value.
const SEGMENT: Bytes = Bytes::kib(64);
/// Most connections to a server where nothing else is said, as in `anabranch play`.
const PER_SERVER: u32 = 16;

/// Reads what is particular to a media stream.
pub(super) fn read(
    table: &mut Table<'_>,
    copy: u32,
    settings: &Settings<'_>,
    network: &mut Network<'_>,
) -> Result<Kind, Fault> {
    let client_item = table.need("client", Ok)?;
    let (servers_item, names) = table.need("servers", |item| Ok((item, item.list()?)))?;
    if !(1..=MOST_SERVERS).contains(&names.len()) {
        return Err(servers_item.fault(format_args!("a stream has 1 to {MOST_SERVERS} servers")));
    }
    let client = network.find(client_item, copy, &[])?;
    let mut servers = Vec::with_capacity(names.len());
    let mut taken = vec![client];
    for item in names {
        let server = network.find(item, copy, &taken)?;
        network.check_way(client, server, item.span)?;
        network.check_way(server, client, item.span)?;
        servers.push(server);
        taken.push(server);
    }
    let rate = table.need("rate", Item::rate)?;
    let memory = table.get("memory", |item| item.size_within(Bytes::mib(1), Bytes::mib(1 << 20)))?;
    let (algorithm, segment) = table.need("algorithm", |item| algorithm(item, servers.len()))?;
    let asked = match &algorithm {
        Algorithm::Fixed { connections, .. } => *connections,
        Algorithm::Basic(parameters) => parameters.connections,
        Algorithm::Advanced(parameters) => parameters.basic.connections,
        Algorithm::Rome(parameters) => parameters.connections,
        Algorithm::Auto(_) | Algorithm::Mul(_) => 0,
    };
    let per_server = table.get("connections_per_server", |item| item.count(1..=256))?;
    Ok(Kind::Media(Box::new(Media {
        client,
        servers,
        tcp: tcp::of_flow(table.item("tcp"), settings)?,
        rate,
        size: table.get("size", |item| network.size(item))?,
        pace: table
            .get("pace", |item| {
                item.one_of(&[
                    ("media", Pace::Media(Some(rate))),
                    ("inferred", Pace::Media(None)),
                    ("limit", Pace::Limit(rate)),
                    ("max", Pace::Max),
                ])
            })?
            .unwrap_or(Pace::Media(Some(rate))),
        algorithm,
        playback: table.get("playback", playback)?.unwrap_or_default(),
        policy: policy(memory.unwrap_or(MEMORY), segment),
        largest_window: table.get("largest_window", Item::positive_size)?,
        // Who asks for more connections than a server gets by default means it.
        connections_per_server: as_usize(per_server.unwrap_or(PER_SERVER.max(asked))),
    })))
}

/// The content coordinator within this memory, as `anabranch play` has it: with segments of one size for TCP-ROME.
fn policy(memory: Bytes, segment: Option<Bytes>) -> content::Policy {
    let look_ahead = memory * Ratio::new(3, 4);
    match segment {
        Some(segment) => content::Policy::rome(segment, look_ahead),
        None => {
            let policy = content::Policy::expected(look_ahead);
            let largest = (memory * Ratio::new(1, 16)).max(Bytes::kib(64));
            content::Policy { segment_size: (policy.segment_size.0, largest), ..policy }
        }
    }
}

/// When the player starts and stops.
fn playback(item: Item<'_>) -> Result<playback::Parameters, Fault> {
    let mut table = item.table("a stream's `playback`")?;
    let mut parameters = playback::Parameters::default();
    if let Some(prebuffer) = table.get("prebuffer", Item::duration)? {
        parameters.prebuffer = prebuffer;
    }
    let pause = table.get("pause", Item::positive_duration)?;
    parameters.stall = match (table.item("rebuffer"), pause) {
        (Some(item), Some(_)) => return Err(item.fault("either `rebuffer` or `pause`, not both")),
        (Some(item), None) => playback::StallRule::Rebuffer { resume_at: item.duration()? },
        (None, Some(pause)) => playback::StallRule::FixedPause(pause.max(Duration::from_millis(1))),
        (None, None) => parameters.stall,
    };
    table.finish()?;
    Ok(parameters)
}

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
fn algorithm(item: Item<'_>, servers: usize) -> Result<(Algorithm, Option<Bytes>), Fault> {
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
        Named::Fixed => Algorithm::Fixed {
            connections: table.get("connections", connections)?.unwrap_or(1),
            window: table.get("window", Item::positive_size)?,
        },
        Named::Basic => Algorithm::Basic(multitcp(&mut table, multitcp::Parameters::default())?),
        Named::Advanced => {
            let defaults = multitcp::AdvancedParameters::default();
            Algorithm::Advanced(multitcp::AdvancedParameters {
                basic: multitcp(&mut table, defaults.basic)?,
                initial_connections: table
                    .get("start_connections", connections)?
                    .unwrap_or(defaults.initial_connections),
                congestion_factor: table.get("cf", Item::factor)?.unwrap_or(defaults.congestion_factor),
                silence: table.get("x", Item::factor)?.unwrap_or(defaults.silence),
                previous_ratio: table
                    .get("previous_ratio", |item| {
                        item.one_of(&[
                            ("step", multitcp::PreviousRatio::OfTheLastStep),
                            ("interval", multitcp::PreviousRatio::OfTheLastInterval),
                        ])
                    })?
                    .unwrap_or(defaults.previous_ratio),
            })
        }
        Named::Mul => {
            Algorithm::Mul(super::tfrc::control(&mut table, congestion::multfrc::Parameters::PAPER)?)
        }
        Named::Rome => {
            segment = Some(
                table
                    .get("segment_size", |item| item.size_within(Bytes::kib(1), Bytes::mib(64)))?
                    .unwrap_or(SEGMENT),
            );
            Algorithm::Rome(rome(&mut table)?)
        }
        Named::Auto => Algorithm::Auto(auto(&mut table, servers)?),
    };
    table.finish()?;
    Ok((algorithm, segment))
}

fn multitcp(table: &mut Table<'_>, defaults: multitcp::Parameters) -> Result<multitcp::Parameters, Fault> {
    let preset = table.get("preset", |item| {
        item.one_of(&[
            ("table8.1", multitcp::Parameters::TABLE_8_1),
            ("table8.2", multitcp::Parameters::TABLE_8_2),
            ("table8.3", multitcp::Parameters::TABLE_8_3),
        ])
    })?;
    let preset = preset.unwrap_or(defaults);
    let spike = |item: Item<'_>| {
        item.number(|number| number > 2.0 && number <= 1000.0, "above 2, up to 1000").map(Ratio::from_f64)
    };
    Ok(multitcp::Parameters {
        connections: table.get("connections", connections)?.unwrap_or(preset.connections),
        interval: table.get("delta", interval)?.unwrap_or(preset.interval),
        smoothing: table.get("alpha", Item::part)?.unwrap_or(preset.smoothing),
        threshold: table.get("lambda", Item::rate)?.unwrap_or(preset.threshold),
        spike_factor: table.get("f", spike)?.unwrap_or(preset.spike_factor),
    })
}

fn rome(table: &mut Table<'_>) -> Result<rome::Parameters, Fault> {
    let defaults = rome::Parameters::default();
    let (buffer_low, buffer_high) = buffer(table, (defaults.buffer_low, defaults.buffer_high))?;
    Ok(rome::Parameters {
        connections: table.get("connections", connections)?.unwrap_or(defaults.connections),
        model: table
            .get("model", |item| {
                item.one_of(&[
                    ("strict", rome::Model::StrictFairness),
                    ("compensation", rome::Model::Compensation),
                ])
            })?
            .unwrap_or(defaults.model),
        low: table.get("rate_low", |item| item.ratio(0.0..=1.0))?.unwrap_or(defaults.low),
        high: table.get("rate_high", |item| item.ratio(1.0..=100.0))?.unwrap_or(defaults.high),
        buffer_low,
        buffer_high,
        interval: table.get("delta", interval)?.unwrap_or(defaults.interval),
        waiting: table.get("waiting", |item| item.ratio(1.0..=100.0))?.unwrap_or(defaults.waiting),
        smoothing: table.get("alpha", Item::part)?.unwrap_or(defaults.smoothing),
        restart: table.get("restart", Item::flag)?.unwrap_or(defaults.restart),
        ..defaults
    })
}

fn auto(table: &mut Table<'_>, servers: usize) -> Result<auto::Parameters, Fault> {
    let defaults = auto::Parameters::default();
    let most = table.get("connections", connections)?.map_or(defaults.most, as_usize);
    let at_start = table.get("start_connections", connections)?.map(as_usize);
    let multiple = |item: Item<'_>| item.ratio(1.0..=100.0);
    Ok(auto::Parameters {
        most,
        // As in `anabranch play`: servers start together, and connections that are not needed are given back.
        at_start: at_start.unwrap_or(defaults.at_start.max(servers).min(3)).min(most),
        buffer: buffer(table, defaults.buffer)?,
        boost_low: table.get("boost_low", multiple)?.unwrap_or(defaults.boost_low),
        boost_high: table.get("boost_high", multiple)?.unwrap_or(defaults.boost_high),
        margin: table.get("margin", |item| item.ratio(0.0..=1.0))?.unwrap_or(defaults.margin),
        window_headroom: table.get("window_headroom", multiple)?.unwrap_or(defaults.window_headroom),
        window_spread: table.get("window_spread", multiple)?.unwrap_or(defaults.window_spread),
        least_gain: table.get("least_gain", |item| item.ratio(0.0..=1.0))?.unwrap_or(defaults.least_gain),
        first_rest: table.get("first_rest", Item::positive_duration)?.unwrap_or(defaults.first_rest),
        longest_rest: table.get("longest_rest", Item::positive_duration)?.unwrap_or(defaults.longest_rest),
    })
}

fn connections(item: Item<'_>) -> Result<u32, Fault> {
    item.count(1..=multitcp::MOST_CONNECTIONS)
}

/// The thresholds B- and B+.
fn buffer(table: &mut Table<'_>, defaults: (Duration, Duration)) -> Result<(Duration, Duration), Fault> {
    let low = table.get("buffer_low", Item::duration)?.unwrap_or(defaults.0);
    let high_item = table.item("buffer_high");
    let high = high_item.map(Item::positive_duration).transpose()?.unwrap_or(defaults.1);
    if low < high {
        return Ok((low, high));
    }
    let span = high_item.map_or(table.span, |item| item.span);
    Err(Fault::new(span, format_args!("`buffer_low` ({low}) has to be below `buffer_high` ({high})")))
}

/// A measuring interval: `300ms`, or `8rtt` for so many round-trip times.
fn interval(item: Item<'_>) -> Result<Interval, Fault> {
    const FORMS: &str = "an interval is written \"300ms\", or \"8rtt\" for so many round-trip times";
    let text = item.text().map_err(|fault| fault.help(FORMS))?;
    if let Some(count) = text.strip_suffix("rtt") {
        let count = count.trim().parse().ok().filter(|count| (1..=1000).contains(count));
        return count.map(Interval::RoundTrips).ok_or_else(|| item.fault(FORMS));
    }
    let length: Duration = text.parse().map_err(|_| item.fault(FORMS))?;
    match (Interval::LEAST..=Interval::MOST).contains(&length) {
        true => Ok(Interval::Fixed(length)),
        false => {
            Err(item.fault(format_args!("an interval is from {} to {}", Interval::LEAST, Interval::MOST)))
        }
    }
}

fn as_usize(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
