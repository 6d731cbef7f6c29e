//! Who sends: `[[flow]]`.

use std::collections::BTreeSet;

use units::{Bytes, Time};

use super::error::Fault;
use super::media;
use super::network::{Network, check_name, copy_name};
use super::table::{Item, Table};
use super::tcp::{self, Settings};
use super::tfrc;
use crate::model::{Flow, Kind, NodeId, Pattern, Source, When};

/// Most flows.
const MOST_FLOWS: u32 = 10_000;
/// The smallest and the largest datagram on the wire: an IPv4 header and one of UDP, a full IPv4 packet.
const DATAGRAM: (Bytes, Bytes) = (Bytes::new(28), Bytes::new(65_535));

/// Kinds of flows.
#[derive(Clone, Copy)]
enum Named {
    Tcp,
    Udp,
    Tfrc,
    Media,
}

/// Reads `[[flow]]`.
pub(super) fn read_all(
    tables: Vec<Table<'_>>,
    settings: &Settings<'_>,
    network: &mut Network<'_>,
) -> Result<Vec<Flow>, Fault> {
    let mut flows = Vec::new();
    let mut names = BTreeSet::new();
    for mut table in tables {
        let kind = table.need("kind", |item| {
            item.one_of(&[
                ("tcp", Named::Tcp),
                ("udp", Named::Udp),
                ("tfrc", Named::Tfrc),
                ("media", Named::Media),
            ])
        })?;
        table.call(match kind {
            Named::Tcp => "a [[flow]] of kind tcp",
            Named::Udp => "a [[flow]] of kind udp",
            Named::Tfrc => "a [[flow]] of kind tfrc",
            Named::Media => "a [[flow]] of kind media",
        });
        let (item, pattern) = table.need("name", |item| Ok((item, item.text()?)))?;
        let count = table.get("count", |item| item.count(1..=MOST_FLOWS))?;
        let start = table.get("start", Network::when)?.unwrap_or(When::At(Time::ZERO));
        let (When::At(latest) | When::Between(_, latest)) = start;
        let stop = table.get("stop", |item| match item.moment()? {
            stop if stop > latest => Ok(stop),
            stop => Err(item.fault(format_args!("the flow stops at {stop}, and starts at {latest}"))),
        })?;
        for copy in 1..=count.unwrap_or(1) {
            let name = copy_name(pattern, copy, count);
            check_name(&name, item.span)?;
            if flows.len() >= MOST_FLOWS as usize {
                return Err(item.fault(format_args!("more than {MOST_FLOWS} flows")));
            }
            if !names.insert(name.clone()) {
                return Err(item.fault(format_args!("a second flow has the name '{name}'")));
            }
            let kind = match kind {
                Named::Tcp => tcp_flow(&mut table, copy, settings, network)?,
                Named::Udp => udp_flow(&mut table, copy, network)?,
                Named::Tfrc => tfrc_flow(&mut table, copy, network)?,
                Named::Media => media::read(&mut table, copy, settings, network)?,
            };
            flows.push(Flow { name, start, stop, kind });
        }
        table.finish()?;
    }
    Ok(flows)
}

/// Where a flow goes from and to; there has to be a way, and one back where it has acknowledgements.
fn ends(
    table: &mut Table<'_>,
    copy: u32,
    has_answers: bool,
    network: &mut Network<'_>,
) -> Result<(NodeId, NodeId), Fault> {
    let (from_item, to_item) = (table.need("from", Ok)?, table.need("to", Ok)?);
    let from = network.find(from_item, copy, &[])?;
    let to = network.find(to_item, copy, &[from])?;
    network.check_way(from, to, to_item.span)?;
    if has_answers {
        network.check_way(to, from, from_item.span)?;
    }
    Ok((from, to))
}

fn tcp_flow(
    table: &mut Table<'_>,
    copy: u32,
    settings: &Settings<'_>,
    network: &mut Network<'_>,
) -> Result<Kind, Fault> {
    /// What an application does, as it is named.
    #[derive(Clone, Copy)]
    enum Application {
        Greedy,
        File,
        Constant,
        Timetable,
    }
    let (from, to) = ends(table, copy, true, network)?;
    let mut tcp = tcp::of_flow(table.item("tcp"), settings)?;
    tcp.share = table.get("group", tcp::share)?;
    let application = table.get("application", |item| {
        item.one_of(&[
            ("greedy", Application::Greedy),
            ("file", Application::File),
            ("constant", Application::Constant),
            ("timetable", Application::Timetable),
        ])
    })?;
    // A size alone says that it is a file, a rate alone that it is constant.
    let application = application.unwrap_or_else(|| match () {
        () if table.has("size") => Application::File,
        () if table.has("rate") => Application::Constant,
        () if table.has("timetable") => Application::Timetable,
        () => Application::Greedy,
    });
    let source = match application {
        Application::Greedy => Source::Greedy,
        Application::File => Source::File(table.need("size", |item| network.size(item))?),
        Application::Constant => Source::Constant(table.need("rate", Item::rate)?),
        Application::Timetable => {
            Source::Timetable(table.need("timetable", |item| timetable(item, network))?)
        }
    };
    Ok(Kind::Tcp { from, to, tcp, source })
}

/// `[{ at = "1s", size = "20kB" }, ...]`, in the order of time.
fn timetable(item: Item<'_>, network: &mut Network<'_>) -> Result<Vec<(Time, Bytes)>, Fault> {
    let items = item.list()?;
    network.charge(items.len(), item.span)?;
    let mut entries: Vec<(Time, Bytes)> = Vec::with_capacity(items.len());
    for item in items {
        let mut table = item.table("an entry of a timetable")?;
        let at = table.need("at", Item::moment)?;
        let size = table.need("size", Item::positive_size)?;
        table.finish()?;
        if let Some((last, _)) = entries.last()
            && *last > at
        {
            return Err(
                item.fault(format_args!("a timetable goes forward in time: the entry before is at {last}"))
            );
        }
        entries.push((at, size));
    }
    if entries.is_empty() { Err(item.fault("a timetable has at least one entry")) } else { Ok(entries) }
}

fn udp_flow(table: &mut Table<'_>, copy: u32, network: &mut Network<'_>) -> Result<Kind, Fault> {
    /// When datagrams are sent, as it is named.
    #[derive(Clone, Copy)]
    enum Named {
        Constant,
        OnOff,
        Exponential,
    }
    let (from, to) = ends(table, copy, false, network)?;
    let size = packet_size(table)?;
    let rate = table.need("rate", Item::rate)?;
    let pattern = table.get("pattern", |item| {
        item.one_of(&[
            ("constant", Named::Constant),
            ("on-off", Named::OnOff),
            ("exponential", Named::Exponential),
        ])
    })?;
    let on_and_off = |table: &mut Table<'_>| {
        let on = table.need("on", Item::positive_duration)?;
        Ok::<_, Fault>((on, table.need("off", Item::positive_duration)?))
    };
    let pattern = match pattern.unwrap_or(Named::Constant) {
        Named::Constant => {
            Pattern::Constant { rate, jitter: table.get("jitter", Item::flag)?.unwrap_or(false) }
        }
        Named::OnOff => {
            let (on, off) = on_and_off(table)?;
            let off_first = table.get("off_first", Item::flag)?.unwrap_or(false);
            Pattern::OnOff { rate, on, off, off_first }
        }
        Named::Exponential => {
            let (on, off) = on_and_off(table)?;
            Pattern::Exponential { rate, on, off }
        }
    };
    Ok(Kind::Udp { from, to, size, pattern })
}

fn tfrc_flow(table: &mut Table<'_>, copy: u32, network: &mut Network<'_>) -> Result<Kind, Fault> {
    let (from, to) = ends(table, copy, true, network)?;
    let size = packet_size(table)?;
    let (parameters, scheme) = tfrc::read(table)?;
    Ok(Kind::Tfrc { from, to, size, parameters, scheme })
}

/// Size of a flow's datagrams on the wire.
fn packet_size(table: &mut Table<'_>) -> Result<Bytes, Fault> {
    let size = table.get("packet_size", |item| item.size_within(DATAGRAM.0, DATAGRAM.1))?;
    Ok(size.unwrap_or(Bytes::new(1000)))
}
