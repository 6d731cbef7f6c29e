//! Who sends: `[[flow]]`.

use std::collections::BTreeSet;

use anabranch_units::{Bytes, Time};

use crate::error::Fault;
use crate::live;
use crate::media;
use crate::model::{Flow, Kind, NodeId, Pattern, Source, Tcp, When};
use crate::names::{check_name, copy_name};
use crate::network::NamedNetwork;
use crate::table::{Item, Table};
use crate::tcp::{self, Settings};
use crate::tfrc;

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
    Live,
}

/// The flows that were read so far.
#[derive(Default)]
pub(crate) struct Flows {
    pub(crate) all: Vec<Flow>,
    names: BTreeSet<String>,
}

impl Flows {
    /// Reads a `[[flow]]`.
    pub(crate) fn read(
        &mut self,
        mut table: Table<'_>,
        settings: &Settings<'_>,
        network: &mut NamedNetwork<'_>,
    ) -> Result<(), Fault> {
        let kind = table.need("kind", |item| {
            item.one_of(&[
                ("tcp", Named::Tcp),
                ("udp", Named::Udp),
                ("tfrc", Named::Tfrc),
                ("media", Named::Media),
                ("live", Named::Live),
            ])
        })?;
        table.call(match kind {
            Named::Tcp => "a [[flow]] of kind tcp",
            Named::Udp => "a [[flow]] of kind udp",
            Named::Tfrc => "a [[flow]] of kind tfrc",
            Named::Media => "a [[flow]] of kind media",
            Named::Live => "a [[flow]] of kind live",
        });
        let named = table.need("name", Ok);
        let count = table.get("count", |item| item.count(1..=MOST_FLOWS));
        let start = table.get("start", NamedNetwork::when).unwrap_or(When::At(Time::ZERO));
        let (When::At(latest) | When::Between(_, latest)) = start;
        let stop = table.get("stop", |item| match item.moment()? {
            stop if stop > latest => Ok(stop),
            stop => Err(item.fault(format_args!("the flow stops at {stop}, and starts at {latest}"))),
        });
        for copy in 1..=count.unwrap_or(1) {
            network.draw_for_flow(self.all.len());
            let name = named.clone().and_then(|item| self.name(item.turn(copy)?, copy, count));
            let name = table.kept(name);
            let kind = match kind {
                Named::Tcp => tcp_flow(&mut table, copy, settings, network),
                Named::Udp => udp_flow(&mut table, copy, network),
                Named::Tfrc => tfrc_flow(&mut table, copy, network),
                Named::Media => media::read(&mut table, copy, settings, network),
                Named::Live => live::read(&mut table, copy, network),
            };
            // What is wrong with one copy is so with the others.
            let (Some(name), Some(kind)) = (name, table.kept(kind)) else { break };
            self.all.push(Flow { name, start, stop, kind });
        }
        table.finish()
    }

    /// The name of a copy, which no other flow has.
    fn name(&mut self, item: Item<'_>, copy: u32, count: Option<u32>) -> Result<String, Fault> {
        let name = copy_name(item.text()?, copy, count);
        check_name(&name, item.span)?;
        if self.all.len() >= MOST_FLOWS as usize {
            return Err(item.fault(format_args!("more than {MOST_FLOWS} flows")));
        }
        match self.names.insert(name.clone()) {
            true => Ok(name),
            false => Err(item.fault(format_args!("a second flow has the name '{name}'"))),
        }
    }
}

/// Where a flow goes from and to; there has to be a way, and one back where it has acknowledgements.
fn ends(
    table: &mut Table<'_>,
    copy: u32,
    has_answers: bool,
    network: &mut NamedNetwork<'_>,
) -> Result<(NodeId, NodeId), Fault> {
    let (from, to) = (table.need("from", Ok), table.need("to", Ok));
    let found = from.and_then(|item| Ok((item, network.find(item, copy, &[])?)));
    let from = table.kept(found);
    let taken: Vec<NodeId> = from.iter().map(|(_, from)| *from).collect();
    let found = to.and_then(|item| Ok((item, network.find(item, copy, &taken)?)));
    let to = table.kept(found);
    let (Some((from_item, from)), Some((to_item, to))) = (from, to) else { return Err(Fault::TOLD) };
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
    network: &mut NamedNetwork<'_>,
) -> Result<Kind, Fault> {
    /// What an application does, as it is named.
    #[derive(Clone, Copy)]
    enum Application {
        Greedy,
        File,
        Constant,
        Timetable,
    }
    let ends = ends(table, copy, true, network);
    let ends = table.kept(ends);
    let tcp = tcp::of_flow(table, copy, settings);
    let share = table.get("group", |item| tcp::share(item.turn(copy)?));
    let application = table.choose(
        "application",
        &[
            ("greedy", Application::Greedy),
            ("file", Application::File),
            ("constant", Application::Constant),
            ("timetable", Application::Timetable),
        ],
    )?;
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
    let (from, to) = ends.ok_or(Fault::TOLD)?;
    let tcp = Tcp { share, ..tcp? };
    match table.item("group").zip(tcp.deaf_to_marks()) {
        Some((item, deaf)) => Err(item.fault(deaf)),
        None => Ok(Kind::Tcp { from, to, tcp, source }),
    }
}

/// `[{ at = "1s", size = "20kB" }, ...]`, in the order of time.
fn timetable(item: Item<'_>, network: &mut NamedNetwork<'_>) -> Result<Vec<(Time, Bytes)>, Fault> {
    network.charge(item.list()?.len(), item.span)?;
    let mut latest = Time::ZERO;
    let entries = item.each(|item| {
        let mut table = item.table("an entry of a timetable")?;
        let at = table.need("at", Item::moment);
        let size = table.need("size", Item::positive_size);
        table.finish()?;
        let (at, size) = (at?, size?);
        if latest > at {
            return Err(
                item.fault(format_args!("a timetable goes forward in time: the entry before is at {latest}"))
            );
        }
        latest = at;
        Ok((at, size))
    })?;
    if entries.is_empty() { Err(item.fault("a timetable has at least one entry")) } else { Ok(entries) }
}

fn udp_flow(table: &mut Table<'_>, copy: u32, network: &mut NamedNetwork<'_>) -> Result<Kind, Fault> {
    /// When datagrams are sent, as it is named.
    #[derive(Clone, Copy)]
    enum Named {
        Constant,
        OnOff,
        Exponential,
    }
    let ends = ends(table, copy, false, network);
    let ends = table.kept(ends);
    table
        .refuse("ecn", "datagrams answer no marks: only a flow of kind tcp or media has `ecn`, in its `tcp`");
    let size = packet_size(table);
    let rate = table.need("rate", Item::rate);
    let pattern = table.choose(
        "pattern",
        &[("constant", Named::Constant), ("on-off", Named::OnOff), ("exponential", Named::Exponential)],
    )?;
    let on_and_off = |table: &mut Table<'_>| {
        let (on, off) =
            (table.need("on", Item::positive_duration), table.need("off", Item::positive_duration));
        Ok::<_, Fault>((on?, off?))
    };
    let pattern = match pattern.unwrap_or(Named::Constant) {
        Named::Constant => {
            let jitter = table.get("jitter", Item::flag).unwrap_or(false);
            Pattern::Constant { rate: rate?, jitter }
        }
        Named::OnOff => {
            let times = on_and_off(table);
            let off_first = table.get("off_first", Item::flag).unwrap_or(false);
            let (on, off) = times?;
            Pattern::OnOff { rate: rate?, on, off, off_first }
        }
        Named::Exponential => {
            let (on, off) = on_and_off(table)?;
            Pattern::Exponential { rate: rate?, on, off }
        }
    };
    let (from, to) = ends.ok_or(Fault::TOLD)?;
    Ok(Kind::Udp { from, to, size, pattern })
}

fn tfrc_flow(table: &mut Table<'_>, copy: u32, network: &mut NamedNetwork<'_>) -> Result<Kind, Fault> {
    let ends = ends(table, copy, true, network);
    let ends = table.kept(ends);
    table.refuse(
        "ecn",
        "TFRC answers no marks here: only a flow of kind tcp or media has `ecn`, in its `tcp`",
    );
    let size = packet_size(table);
    let (parameters, scheme) = tfrc::read(table)?;
    let (from, to) = ends.ok_or(Fault::TOLD)?;
    Ok(Kind::Tfrc { from, to, size, parameters, scheme })
}

/// Size of a flow's datagrams on the wire.
fn packet_size(table: &mut Table<'_>) -> Bytes {
    let size = table.get("packet_size", |item| item.size_within(DATAGRAM.0, DATAGRAM.1));
    size.unwrap_or(Bytes::new(1000))
}
