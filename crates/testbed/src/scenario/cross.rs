//! Cross traffic: the flows of a described network, as far as real programs send them.

use std::collections::BTreeMap;

use anabranch_scenario::model::{Congestion, Flow, Kind, NodeId, Pattern, Source, Tcp, When};
use anabranch_scenario::{Described, Fault, Item, SourceTable, Table};
use anabranch_units::{Bytes, Duration, Rate, Time};

use super::paths::{MOST, Network};

/// Most flows of a group: iperf3 has no more.
const MOST_FLOWS: u32 = 128;
/// The smallest and the largest datagram on the wire: iperf3's payload with headers, and what needs no
/// fragments.
const DATAGRAM: (Bytes, Bytes) = (Bytes::new(64), Bytes::new(1500));
/// An IPv4 header and one of UDP.
const HEADERS: Bytes = Bytes::new(28);

/// A `[[flow]]` with its copies, which one program sends from a server over its path.
#[derive(Clone, Debug, PartialEq)]
pub struct Cross {
    /// Its name in the results: the flow's, without the number of a copy.
    pub name: String,
    /// The path that it goes over.
    pub path: usize,
    /// How many flows.
    pub flows: u32,
    /// How much farther away its receiver is than the client: behind the bottleneck, on the way towards it.
    /// It adds that to its round-trip time.
    pub delay: Duration,
    /// How each flow sends.
    pub transport: Transport,
    /// When it starts, after the client's start.
    pub start: Duration,
    /// When it stops; without it, with the run.
    pub stop: Option<Duration>,
}

/// How a flow of cross traffic sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// As much as this congestion control of the kernel finds.
    Tcp(String),
    /// Datagrams at a constant rate.
    Udp {
        /// Rate of the payload.
        rate: Rate,
        /// Payload of a datagram.
        payload: Bytes,
    },
}

/// Reads the flows of `described`, and `[kernel]`; `servers` are the servers' nodes.
pub(super) fn read(
    document: &mut Table<'_>,
    described: &Described<'_>,
    network: &Network,
    servers: &[NodeId],
) -> Result<Vec<Cross>, Fault> {
    let kernel = document.get("kernel", |item| item.table("[kernel]"));
    let mut kernel: BTreeMap<&str, Item<'_>> =
        kernel.iter().flat_map(Table::entries).map(|item| (item.key, item)).collect();
    let mut groups: Vec<Cross> = Vec::new();
    let mut flows = described.model.flows.as_slice();
    for origins in described.flows.chunk_by(|one, other| one == other) {
        let (copies, rest) = flows.split_at(origins.len());
        flows = rest;
        let group = group(copies, &origins[0], network, servers, &mut kernel);
        let Some(group) = document.kept(group) else { continue };
        if groups.iter().any(|other| other.name == group.name) {
            let message = format_args!("two groups of flows are called '{}' in the results", group.name);
            document.tell(origins[0].fault("name", message));
        }
        groups.push(group);
    }
    for (name, item) in kernel {
        document.tell(item.fault(format_args!("there is no flow '{name}'")));
    }
    match groups.len() > MOST {
        true => Err(described.run.fault(format_args!("more than {MOST} flows, copies not counted"))),
        false => Ok(groups),
    }
}

/// The copies of one `[[flow]]`.
fn group(
    copies: &[Flow],
    origin: &SourceTable<'_>,
    network: &Network,
    servers: &[NodeId],
    kernel: &mut BTreeMap<&str, Item<'_>>,
) -> Result<Cross, Fault> {
    let first = &copies[0];
    for key in ["name", "tcp", "group"] {
        if origin.item(key).is_some_and(|item| item.list().is_ok()) {
            return Err(
                origin.fault(key, "the copies of a flow are alike in the testbed: write a [[flow]] for each")
            );
        }
    }
    let pattern = origin.item("name").map_or(Ok(first.name.as_str()), Item::text)?;
    let name = if copies.len() == 1 { first.name.clone() } else { pattern.replace("{i}", "") };
    // What the client itself causes has that name.
    if name.is_empty() || name == "film" {
        return Err(origin.fault("name", format_args!("'{name}' cannot be the name of cross traffic")));
    }
    let flows = u32::try_from(copies.len()).unwrap_or(u32::MAX);
    if flows > MOST_FLOWS {
        return Err(
            origin.fault("count", format_args!("the testbed makes at most {MOST_FLOWS} copies of a flow"))
        );
    }
    let (from, to, transport) = transport(&first.kind, origin, kernel.remove(name.as_str()))?;
    if copies.iter().any(|copy| ends(&copy.kind) != Some((from, to))) {
        return Err(origin.fault("from", "the copies of a flow go between the same nodes, in the testbed"));
    }
    let Some(server) = servers.iter().position(|server| *server == from) else {
        return Err(origin.fault("from", "the testbed's flows come from a [[server]]'s node"));
    };
    let Some(delay) = network.distance(to) else {
        return Err(origin.fault("to", "the testbed's flows go to the client, or to a node behind it"));
    };
    // As a router takes it: the first of several links.
    let Some(path) = network.paths.iter().position(|path| path.server == server) else {
        return Err(origin.fault("from", "no link leads from there to the client"));
    };
    let When::At(start) = first.start else {
        return Err(origin.fault("start", "the testbed draws nothing: say one moment"));
    };
    let span = |at: Time| at.since(Time::ZERO);
    Ok(Cross { name, path, flows, delay, transport, start: span(start), stop: first.stop.map(span) })
}

fn ends(kind: &Kind) -> Option<(NodeId, NodeId)> {
    match kind {
        Kind::Tcp { from, to, .. } | Kind::Udp { from, to, .. } | Kind::Tfrc { from, to, .. } => {
            Some((*from, *to))
        }
        Kind::Media(_) | Kind::Live(_) => None,
    }
}

/// Both ends of a flow, and how it sends, unless it is asked for what programs do not do.
fn transport(
    kind: &Kind,
    origin: &SourceTable<'_>,
    control: Option<Item<'_>>,
) -> Result<(NodeId, NodeId, Transport), Fault> {
    match kind {
        Kind::Tcp { from, to, tcp, source } => {
            if *source != Source::Greedy {
                let key = ["application", "size", "rate", "timetable"]
                    .into_iter()
                    .find(|key| origin.item(key).is_some());
                return Err(origin.fault(key.unwrap_or("kind"), "the testbed's connections are greedy"));
            }
            if tcp.share.is_some() {
                return Err(origin.fault("group", "the testbed's flows are in no group"));
            }
            let own = congestion(tcp, origin);
            let control = control.map_or(own, |item| item.name().map(str::to_owned))?;
            Ok((*from, *to, Transport::Tcp(control)))
        }
        Kind::Udp { from, to, size, pattern } => {
            if let Some(item) = control {
                return Err(item.fault("datagrams have no congestion control"));
            }
            let Pattern::Constant { rate, jitter } = *pattern else {
                return Err(origin.fault("pattern", "the testbed's datagrams are sent at a constant rate"));
            };
            if jitter {
                return Err(origin.fault("jitter", "the testbed's datagrams are sent evenly"));
            }
            if !(DATAGRAM.0..=DATAGRAM.1).contains(size) {
                let (least, most) = DATAGRAM;
                return Err(origin
                    .fault("packet_size", format_args!("the testbed's datagrams have {least} to {most}")));
            }
            let payload = *size - HEADERS;
            let rate = Rate::from_bps(rate.as_bps() * payload.get() / size.get());
            Ok((*from, *to, Transport::Udp { rate, payload }))
        }
        Kind::Tfrc { .. } => {
            Err(origin.fault("kind", "the testbed has no TFRC: a [[client]] can be a program that has it"))
        }
        Kind::Media(_) => {
            Err(origin.fault("kind", "the testbed's streams are [film], and a [[client]] that plays it"))
        }
        Kind::Live(_) => {
            Err(origin
                .fault("kind", "the testbed's live streams are [live], and a [[client]] with a `sender`"))
        }
    }
}

/// The kernel's name of a flow's congestion control.
fn congestion(tcp: &Tcp, origin: &SourceTable<'_>) -> Result<String, Fault> {
    let expected = Tcp { congestion: tcp.congestion, ..Tcp::DEPLOYED };
    if *tcp != expected {
        return Err(
            origin.fault("tcp", "the testbed's TCP is the kernel's: of its settings it takes `congestion`")
        );
    }
    match tcp.congestion {
        Congestion::Reno => Ok("reno".into()),
        Congestion::Cubic => Ok("cubic".into()),
        // Of the version that the kernel has.
        Congestion::Bbr => Ok("bbr".into()),
        Congestion::MulTcp(_) | Congestion::Tfwc(_) | Congestion::Dctcp => {
            let fault = origin
                .fault("tcp", "of the simulator's congestion controls the kernel has cubic, reno and bbr");
            Err(fault.help("[kernel] names any that the kernel has, for a flow by its name"))
        }
    }
}
