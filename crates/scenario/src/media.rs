//! Media streams: flows of kind `media`. Their parameters have the names of the options of `anabranch play`.

use anabranch_film::interval::Interval;
use anabranch_film::session::Pace;
use anabranch_film::{auto, content, multitcp, playback, rome};
use anabranch_units::{Bytes, Duration, Quantity, Rate, Ratio};

use crate::error::Fault;
use crate::model::{Act, Algorithm, Kind, Media, NodeId, Reader};
use crate::network::NamedNetwork;
use crate::table::{Item, Table};
use crate::tcp::{self, Settings};

/// Most servers of a stream, and most connections to each.
const MOST_SERVERS: usize = 256;
/// Memory of a session where nothing else is said, as in `anabranch play`.
const MEMORY: Bytes = Bytes::mib(32);
/// Size of a segment of TCP-ROME where none is given. The paper has no value.
const SEGMENT: Bytes = Bytes::kib(64);
/// Most connections to a server where nothing else is said, as in `anabranch play`.
const PER_SERVER: u32 = 16;
/// Buffer of a player where nothing else is said.
const READER_BUFFER: Bytes = Bytes::mib(1);
/// Most acts of a viewer.
const MOST_ACTS: usize = 10_000;

/// Reads what is particular to a media stream.
pub(crate) fn read(
    table: &mut Table<'_>,
    copy: u32,
    settings: &Settings<'_>,
    network: &mut NamedNetwork<'_>,
) -> Result<Kind, Fault> {
    let client = table.need("client", |item| network.find(item, copy, &[]));
    let mut taken: Vec<NodeId> = client.iter().copied().collect();
    let servers = table.need("servers", |item| {
        if !(1..=MOST_SERVERS).contains(&item.list()?.len()) {
            return Err(item.fault(format_args!("a stream has 1 to {MOST_SERVERS} servers")));
        }
        item.each(|item| {
            let server = network.find(item, copy, &taken)?;
            if let Ok(client) = client {
                network.check_way(client, server, item.span)?;
                network.check_way(server, client, item.span)?;
            }
            taken.push(server);
            Ok(server)
        })
    });
    let rate = table.need("rate", Item::rate);
    let memory = table.get("memory", |item| item.size_within(Bytes::mib(1), Bytes::mib(1 << 20)));
    let count = servers.as_ref().map_or(1, Vec::len);
    let algorithm = table.need("algorithm", |item| algorithm(item, count));
    let per_server = table.get("connections_per_server", |item| item.count(1..=256));
    let tcp = tcp::of_flow(table, settings);
    let size = table.get("size", |item| network.size(item));
    let media_rate = rate.as_ref().map_or(Rate::ZERO, |rate| *rate);
    let pace = table.get("pace", |item| {
        item.one_of(&[
            ("media", Pace::Media(Some(media_rate))),
            ("inferred", Pace::Media(None)),
            ("limit", Pace::Limit(media_rate)),
            ("max", Pace::Max),
        ])
    });
    let reader = table.get("reader", reader);
    let playback = table.get("playback", playback);
    let largest_window = table.get("largest_window", Item::positive_size);
    let (algorithm, segment) = algorithm?;
    let asked = match &algorithm {
        Algorithm::Fixed { connections, .. } => *connections,
        Algorithm::Basic(parameters) => parameters.connections,
        Algorithm::Advanced(parameters) => parameters.basic.connections,
        Algorithm::Rome(parameters) => parameters.connections,
        Algorithm::Auto(_) | Algorithm::Mul(_) => 0,
    };
    Ok(Kind::Media(Box::new(Media {
        client: client?,
        servers: servers?,
        tcp: tcp?,
        rate: rate?,
        size,
        pace: pace.unwrap_or(Pace::Media(Some(media_rate))),
        algorithm,
        reader,
        playback: playback.unwrap_or_default(),
        policy: policy(memory.unwrap_or(MEMORY), segment),
        largest_window,
        // Who asks for more connections than a server gets by default means it.
        connections_per_server: as_usize(per_server.unwrap_or(PER_SERVER.max(asked))),
    })))
}

/// The content coordinator within this memory, as `anabranch play` has it: with segments of one size for
/// TCP-ROME.
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

/// When a player starts and stops: a table with `prebuffer`, and `rebuffer` or `pause`.
///
/// # Errors
/// It is something else.
pub fn playback(item: Item<'_>) -> Result<playback::Parameters, Fault> {
    let mut table = item.table("a stream's `playback`")?;
    let mut parameters = playback::Parameters::default();
    if let Some(prebuffer) = table.get("prebuffer", Item::duration) {
        parameters.prebuffer = prebuffer;
    }
    let pause = table.get("pause", Item::positive_duration);
    let rebuffer = table.get("rebuffer", |item| match pause {
        Some(_) => Err(item.fault("either `rebuffer` or `pause`, not both")),
        None => item.duration(),
    });
    parameters.stall = match (rebuffer, pause) {
        (Some(resume_at), _) => playback::StallRule::Rebuffer { resume_at },
        (None, Some(pause)) => playback::StallRule::FixedPause(pause.max(Duration::from_millis(1))),
        (None, None) => parameters.stall,
    };
    table.finish()?;
    Ok(parameters)
}

/// How the player takes what has arrived, and what its viewer does.
fn reader(item: Item<'_>) -> Result<Reader, Fault> {
    let mut table = item.table("a stream's `reader`")?;
    let buffer = table.get("buffer", Item::positive_size).unwrap_or(READER_BUFFER);
    let takes = table.get("takes", Item::rate);
    let acts = table.get("acts", acts).unwrap_or_default();
    table.finish()?;
    Ok(Reader { buffer, takes, acts })
}

fn acts(item: Item<'_>) -> Result<Vec<(Duration, Act)>, Fault> {
    if item.list()?.len() > MOST_ACTS {
        return Err(item.fault(format_args!("at most {MOST_ACTS} acts of a viewer")));
    }
    let mut last = Duration::ZERO;
    item.each(|item| {
        let mut table = item.table("an act of a stream's reader")?;
        let at = table.need("at", |item| match item.duration()? {
            at if at < last => {
                Err(item.fault(format_args!("acts go forward in time: the one before is at {last}")))
            }
            at => Ok(at),
        });
        last = at.as_ref().map_or(last, |at| *at);
        let speed = |item: Item<'_>| {
            item.number(|speed| (0.1..=16.0).contains(&speed), "from 0.1 to 16").map(Act::Speed)
        };
        let given = [
            table.get("pause", |item| item.flag().map(Act::Pause)),
            table.get("speed", speed),
            table.get("seek", |item| item.duration().map(Act::Seek)),
            table.get("leave", Item::flag).and_then(|leaves| leaves.then_some(Act::Leave)),
        ];
        table.finish()?;
        let mut given = given.into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(act), None) => Ok((at?, act)),
            _ => Err(item.fault("an act is one of `pause`, `speed`, `seek` and `leave = true`")),
        }
    })
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
            connections: table.get("connections", connections).unwrap_or(1),
            window: table.get("window", Item::positive_size),
        },
        Named::Basic => Algorithm::Basic(multitcp(&mut table, multitcp::Parameters::default())),
        Named::Advanced => {
            let defaults = multitcp::AdvancedParameters::default();
            Algorithm::Advanced(multitcp::AdvancedParameters {
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
            })
        }
        Named::Mul => {
            Algorithm::Mul(crate::tfrc::control(&mut table, anabranch_congestion::multfrc::Parameters::PAPER))
        }
        Named::Rome => {
            segment = Some(
                table
                    .get("segment_size", |item| item.size_within(Bytes::kib(1), Bytes::mib(64)))
                    .unwrap_or(SEGMENT),
            );
            Algorithm::Rome(rome(&mut table))
        }
        Named::Auto => Algorithm::Auto(auto(&mut table, servers)),
    };
    table.finish()?;
    // Parameters that are right one by one.
    let buffer = match &algorithm {
        Algorithm::Rome(parameters) => (parameters.buffer_low, parameters.buffer_high),
        Algorithm::Auto(parameters) => parameters.buffer,
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
                ])
            })
            .unwrap_or(defaults.model),
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
        boost_low: table.get("boost_low", multiple).unwrap_or(defaults.boost_low),
        boost_high: table.get("boost_high", multiple).unwrap_or(defaults.boost_high),
        margin: table.get("margin", |item| item.ratio(0.0..=1.0)).unwrap_or(defaults.margin),
        window_headroom: table.get("window_headroom", multiple).unwrap_or(defaults.window_headroom),
        window_spread: table.get("window_spread", multiple).unwrap_or(defaults.window_spread),
        least_gain: table.get("least_gain", |item| item.ratio(0.0..=1.0)).unwrap_or(defaults.least_gain),
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

fn as_usize(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
