//! Live streams: flows of kind `live`.

use anabranch_congestion::vps::Weight;
use anabranch_live::fec::Code;
use anabranch_live::{Fec, LEAST_LATENCY, MAX_CONNECTIONS, MOST_LATENCY, Scheme, Settings};
use anabranch_units::{Duration, Rate};

use crate::error::Fault;
use crate::model::{KeyFrames, Kind, Live, LiveShare, NodeId};
use crate::network::NamedNetwork;
use crate::table::{Item, Table};

/// Most uplinks of a stream, as `anabranch send` may have interfaces.
const MOST_UPLINKS: usize = 8;
/// The rates that are simulated: a packet a second, and what one stream reaches.
const RATES: (Rate, Rate) = (Rate::from_kbps(10), Rate::from_mbps(1000));
/// No two key frames are nearer to each other, and none is so much larger than another picture.
const LEAST_BETWEEN_KEYS: Duration = Duration::from_millis(40);
const MOST_TIMES: f64 = 100.0;

/// Reads what is particular to a live stream.
pub(crate) fn read(table: &mut Table<'_>, copy: u32, network: &mut NamedNetwork<'_>) -> Result<Kind, Fault> {
    let ends = ends(table, copy, network);
    let ends = table.kept(ends);
    table.refuse(
        "ecn",
        "a live stream answers no marks: only a flow of kind tcp or media has `ecn`, in its `tcp`",
    );
    let rate = table.need("rate", |item| match item.rate()? {
        rate if rate < RATES.0 || rate > RATES.1 => {
            Err(item.fault(format_args!("a live stream has {} to {}", RATES.0, RATES.1)))
        }
        rate => Ok(rate),
    });
    let latency = table.need("latency", |item| match item.duration()? {
        latency if latency < LEAST_LATENCY || latency > MOST_LATENCY => {
            Err(item.fault(format_args!("a latency is {LEAST_LATENCY} to {MOST_LATENCY}")))
        }
        latency => Ok(latency),
    });
    let scheme = table.get("scheme", scheme);
    let scheme = scheme.unwrap_or(Scheme::AUTO);
    let is_published = table.get("as_published", |item| match item.flag()? {
        true if scheme == Scheme::AUTO => {
            Err(item.fault("`auto` is in no paper: give `scheme` as \"tfrc\", \"multfrc\" or \"aio-tfrc\""))
        }
        is_published => Ok(is_published),
    });
    let retransmit = table.get("retransmit", Item::flag);
    let fec = table.get("fec", fec);
    let key_frames = table.get("key_frames", key_frames);
    let share = table.get("group", |item| share(item.turn(copy)?));
    let (from, to) = ends.ok_or(Fault::TOLD)?;
    let settings = Settings {
        latency: latency?,
        retransmit: retransmit.unwrap_or(true),
        fec: fec.unwrap_or_default(),
        leave_out_stuffing: false,
        scheme,
        is_published: is_published.unwrap_or(false),
    };
    Ok(Kind::Live(Box::new(Live { from, to, rate: rate?, key_frames, settings, share })))
}

/// From one node or a list of them to another, and there is a way back to each.
fn ends(
    table: &mut Table<'_>,
    copy: u32,
    network: &mut NamedNetwork<'_>,
) -> Result<(Vec<NodeId>, NodeId), Fault> {
    let from = table.need("from", |item| {
        if item.text().is_ok() {
            return Ok(vec![(network.find(item, copy, &[])?, item.span)]);
        }
        if !(1..=MOST_UPLINKS).contains(&item.list()?.len()) {
            return Err(item.fault(format_args!("a live stream leaves from 1 to {MOST_UPLINKS} nodes")));
        }
        let mut nodes = Vec::new();
        item.each(|item| {
            let taken: Vec<NodeId> = nodes.iter().map(|(node, _)| *node).collect();
            nodes.push((network.find(item, copy, &taken)?, item.span));
            Ok(())
        })?;
        Ok(nodes)
    });
    let from = table.kept(from);
    let taken: Vec<NodeId> = from.iter().flatten().map(|(node, _)| *node).collect();
    let to = table.need("to", |item| Ok((network.find(item, copy, &taken)?, item.span)));
    let to = table.kept(to);
    let (Some(from), Some((to, span))) = (from, to) else { return Err(Fault::TOLD) };
    for (node, own_span) in &from {
        network.check_way(*node, to, span)?;
        network.check_way(to, *node, *own_span)?;
    }
    Ok((taken, to))
}

/// Those that a sender has, or a fixed number of connections.
fn scheme(item: Item<'_>) -> Result<Scheme, Fault> {
    /// Schemes, as they are named.
    #[derive(Clone, Copy)]
    enum Named {
        Ready(Scheme),
        Fixed,
    }
    let (named, mut table) = item.named(
        "a live stream's scheme",
        &[
            ("auto", Named::Ready(Scheme::AUTO)),
            ("tfrc", Named::Ready(Scheme::TFRC)),
            ("multfrc", Named::Ready(Scheme::MULTFRC)),
            ("aio-tfrc", Named::Ready(Scheme::AIO_TFRC)),
            ("fixed", Named::Fixed),
        ],
    )?;
    let scheme = match named {
        Named::Ready(scheme) => Ok(scheme),
        Named::Fixed => {
            let connections = table.need("connections", |item| item.count(1..=MAX_CONNECTIONS as u32));
            connections.map(Scheme::Fixed)
        }
    };
    table.finish()?;
    scheme
}

/// A group's name, or a table with the name and the sender's weight.
fn share(item: Item<'_>) -> Result<LiveShare, Fault> {
    if !item.value.is_table() {
        return Ok(LiveShare { group: item.text()?.to_owned(), weight: Weight::ONE });
    }
    let mut table = item.table("a live stream's `group`")?;
    let group = table.need("name", Item::text);
    let weight =
        table.get("weight", |item| item.number(|weight| Weight::new(weight).is_some(), "from 0.001 to 1000"));
    table.finish()?;
    Ok(LiveShare { group: group?.to_owned(), weight: weight.and_then(Weight::new).unwrap_or(Weight::ONE) })
}

/// `"off"`, `"auto"`, or a block's packets.
fn fec(item: Item<'_>) -> Result<Fec, Fault> {
    if item.text().is_ok() {
        return item.one_of(&[("off", Fec::Off), ("auto", Fec::Auto)]);
    }
    let mut table = item.table("a stream's `fec`")?;
    let media = table.need("media", |item| item.count(1..=255));
    let parity = table.need("parity", |item| item.count(1..=255));
    table.finish()?;
    Code::new(media?, parity?).map(Fec::Fixed).map_err(|error| item.fault(error))
}

fn key_frames(item: Item<'_>) -> Result<KeyFrames, Fault> {
    let mut table = item.table("a stream's `key_frames`")?;
    let every = table.need("every", |item| match item.duration()? {
        every if every < LEAST_BETWEEN_KEYS => {
            Err(item.fault(format_args!("key frames are at least {LEAST_BETWEEN_KEYS} apart")))
        }
        every => Ok(every),
    });
    let times = table.need("times", |item| {
        item.number(
            |times| (1.0..=MOST_TIMES).contains(&times),
            "of times as large as another picture, from 1 to 100",
        )
    });
    table.finish()?;
    Ok(KeyFrames { every: every?, times: times? })
}
