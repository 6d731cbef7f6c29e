//! Media streams: flows of kind `media`.

use anabranch_film::content::Policy;
use anabranch_film::playback;
use anabranch_film::session::Pace;
use anabranch_units::{Bytes, Duration, Rate, Ratio};

use crate::algorithm;
use crate::content;
use crate::error::Fault;
use crate::ladder;
use crate::model::{Act, Kind, Media, NodeId, RateControl, Reader, Tcp};
use crate::network::NamedNetwork;
use crate::table::{Item, Table};
use crate::tcp::{self, Settings};

/// Most servers of a stream, and most connections to each.
const MOST_SERVERS: u32 = 256;
/// Memory of a session where nothing else is said, as in `anabranch play`.
const MEMORY: Bytes = Bytes::mib(32);
/// Most connections to a server where nothing else is said, as in `anabranch play`.
const PER_SERVER: u32 = 16;
/// In which a connection has to be set up where nothing else is said, as in `anabranch play`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Buffer of a player where nothing else is said.
const READER_BUFFER: Bytes = Bytes::mib(1);
/// Most acts of a viewer, and most scenes of a film.
const MOST_ACTS: usize = 10_000;
const MOST_SCENES: usize = 10_000;

/// Reads what is particular to a media stream.
pub(crate) fn read(
    table: &mut Table<'_>,
    copy: u32,
    settings: &Settings<'_>,
    network: &mut NamedNetwork<'_>,
) -> Result<Kind, Fault> {
    let client = table.need("client", |item| network.find(item, copy, &[]));
    let servers = table.need("servers", |item| servers(item, copy, client.as_ref().ok().copied(), network));
    let ladder = table.get("ladder", ladder::read);
    let lowest = ladder.as_ref().and_then(|ladder| ladder.rungs.first().copied());
    let rate = match lowest {
        Some(lowest) => Ok(lowest),
        None => table.need("rate", Item::rate),
    };
    let memory = table.get("memory", |item| item.size_within(Bytes::mib(1), Bytes::mib(1 << 20)));
    let count = servers.as_ref().map_or(1, Vec::len);
    let algorithm = table.need("algorithm", |item| algorithm::read(item, count));
    let per_server = table.get("connections_per_server", |item| item.count(1..=256));
    let connect_timeout = table.get("connect_timeout", Item::positive_duration);
    let tcp = tcp::of_flow(table, copy, settings);
    let share = table.get("group", |item| tcp::share(item.turn(copy)?));
    // A film of which a player chooses the rates has no size, and no other player.
    let size = if lowest.is_some() { None } else { table.get("size", |item| network.size(item)) };
    let media_rate = rate.as_ref().map_or(Rate::ZERO, |rate| *rate);
    let pace = table.get("pace", |item| {
        item.one_of(&[
            ("media", Pace::Media(Some(media_rate))),
            ("inferred", Pace::Media(None)),
            ("limit", Pace::Limit(media_rate)),
            ("max", Pace::Max),
        ])
    });
    let reader = if lowest.is_some() { None } else { table.get("reader", reader) };
    let playback = table.get("playback", playback);
    let largest_window = table.get("largest_window", Item::positive_size);
    let (algorithm, segment) = algorithm?;
    let unhurried_from = match &algorithm {
        RateControl::Auto(parameters) => Some(parameters.buffer.0),
        _ => None,
    };
    let policy = Policy { unhurried_from, ..policy(memory.unwrap_or(MEMORY), segment) };
    let content = table.get("content", |item| content::read(item, policy));
    let asked = match &algorithm {
        RateControl::Fixed { connections, .. } => *connections,
        RateControl::Basic(parameters) => parameters.connections,
        RateControl::Advanced(parameters) => parameters.basic.connections,
        RateControl::Rome(parameters) => parameters.connections,
        RateControl::Auto(_) | RateControl::Mul(_) => 0,
    };
    let tcp = Tcp { share, ..tcp? };
    if let Some((item, deaf)) = table.item("group").zip(tcp.deaf_to_marks()) {
        return Err(item.fault(deaf));
    }
    Ok(Kind::Media(Box::new(Media {
        client: client?,
        servers: servers?,
        tcp,
        rate: rate?,
        size,
        pace: match (pace, lowest) {
            // What its player asks for is to come at least as fast as it plays.
            (None | Some(Pace::Media(Some(_))), Some(rate)) => {
                Pace::AtLeast { rate, ahead: Duration::ZERO, next: None }
            }
            (pace, _) => pace.unwrap_or(Pace::Media(Some(media_rate))),
        },
        algorithm,
        reader,
        ladder,
        playback: playback.unwrap_or_default(),
        policy: content.unwrap_or(policy),
        largest_window,
        connect_timeout: Some(connect_timeout.unwrap_or(CONNECT_TIMEOUT)),
        // Who asks for more connections than a server gets by default means it.
        connections_per_server: algorithm::as_usize(per_server.unwrap_or(PER_SERVER.max(asked))),
    })))
}

/// The nodes of a list, or so many nodes of one name.
fn servers(
    item: Item<'_>,
    copy: u32,
    client: Option<NodeId>,
    network: &mut NamedNetwork<'_>,
) -> Result<Vec<NodeId>, Fault> {
    let mut taken: Vec<NodeId> = client.into_iter().collect();
    let find = |item: Item<'_>| {
        let server = network.find(item, copy, &taken)?;
        if let Some(client) = client {
            network.check_way(client, server, item.span)?;
            network.check_way(server, client, item.span)?;
        }
        taken.push(server);
        Ok(server)
    };
    if item.value.is_table() {
        let mut table = item.table("a stream's `servers`")?;
        let (node, count) =
            (table.need("node", Ok), table.need("count", |item| item.count(1..=MOST_SERVERS)));
        table.finish()?;
        let (node, count) = (node?, count?);
        return std::iter::repeat_n(node, algorithm::as_usize(count)).map(find).collect();
    }
    if !(1..=algorithm::as_usize(MOST_SERVERS)).contains(&item.list()?.len()) {
        return Err(item.fault(format_args!("a stream has 1 to {MOST_SERVERS} servers")));
    }
    item.each(find)
}

/// The content coordinator within this memory, as `anabranch play` has it: with segments of one size for
/// TCP-ROME.
fn policy(memory: Bytes, segment: Option<Bytes>) -> Policy {
    let look_ahead = memory * Ratio::new(3, 4);
    match segment {
        Some(segment) => Policy::rome(segment, look_ahead),
        None => {
            let policy = Policy::expected(look_ahead);
            let largest = (memory * Ratio::new(1, 16)).max(Bytes::kib(64));
            Policy { segment_size: (policy.segment_size.0, largest), ..policy }
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
    let scenes = table.get("scenes", scenes).unwrap_or_default();
    table.finish()?;
    Ok(Reader { buffer, takes, acts, scenes })
}

/// `[{ at = "30s", rate = "6Mbps" }, ...]`: the media's rate from these play times on.
fn scenes(item: Item<'_>) -> Result<Vec<(Duration, Rate)>, Fault> {
    if item.list()?.len() > MOST_SCENES {
        return Err(item.fault(format_args!("at most {MOST_SCENES} scenes of a film")));
    }
    let mut last = Duration::ZERO;
    item.each(|item| {
        let mut table = item.table("a scene of a film")?;
        let at = table.need("at", |item| match item.duration()? {
            at if at < last => {
                Err(item.fault(format_args!("scenes go forward in play time: the one before is at {last}")))
            }
            at => Ok(at),
        });
        last = at.as_ref().map_or(last, |at| *at);
        let rate = table.need("rate", Item::rate);
        table.finish()?;
        Ok((at?, rate?))
    })
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
