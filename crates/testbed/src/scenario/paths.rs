//! Emulated paths: the links of a described network, as far as the emulator has them.

use std::collections::BTreeMap;

use anabranch_scenario::model::{
    self, Discipline, GilbertElliott, Jitter, Limit, Link, LossModel, NodeId, TokenBucket,
};
use anabranch_scenario::{Described, Fault, SourceTable, Table};
use anabranch_units::{Duration, Rate, Time};

/// How many paths, servers, clients, groups or events a file may have; addresses are numbered in one byte.
pub(super) const MOST: usize = 64;

/// An emulated path: a link between a server and the client.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// The name of the link towards the client, in results.
    pub name: String,
    /// The server at its far end.
    pub server: usize,
    /// What goes to the client.
    pub to_client: Direction,
    /// What goes to the server.
    pub to_server: Direction,
}

/// One direction of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// Bits per second at the network layer.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Duration,
    /// Packets that its queue holds, with the one in transmission.
    pub queue: u32,
    /// Which of them it drops.
    pub discipline: Discipline,
    /// What drops packets before they come to the queue.
    pub policer: Option<TokenBucket>,
    /// What lets packets wait in the queue, beyond what the rate does.
    pub shaper: Option<TokenBucket>,
    /// What is lost behind the queue.
    pub loss: LossPattern,
    /// What a packet's way takes beyond the delay.
    pub jitter: Option<Jitter>,
    /// The probability that a packet which arrives does so twice.
    pub duplicate: f64,
    /// What changes, in the order of time.
    pub changes: Vec<Change>,
}

/// A change of a direction at a moment. What is `None` stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// When, after the client's start.
    pub at: Duration,
    /// A new rate; zero: nothing is transmitted until the next change.
    pub rate: Option<Rate>,
    /// A new delay.
    pub delay: Option<Duration>,
    /// New losses.
    pub loss: Option<LossPattern>,
}

/// The probabilities that a packet is lost, after none, one, ... lost before it; the last holds from there
/// on.
#[derive(Clone, Debug, PartialEq)]
pub struct LossPattern(pub Vec<f64>);

impl LossPattern {
    /// Whether nothing is ever lost.
    pub fn is_none(&self) -> bool {
        self.0.iter().all(|probability| *probability <= 0.0)
    }
}

/// Which direction of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the server to the client.
    ToClient,
    /// From the client to the server.
    ToServer,
}

impl Path {
    /// Round-trip time without queueing.
    pub fn rtt(&self) -> Duration {
        self.to_client.delay + self.to_server.delay
    }

    /// One of its directions.
    pub fn direction(&self, way: Way) -> &Direction {
        match way {
            Way::ToClient => &self.to_client,
            Way::ToServer => &self.to_server,
        }
    }
}

/// The nodes of a described network by what they are in a run.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) paths: Vec<Path>,
    pub(super) client: NodeId,
    /// How much farther away than the client these nodes behind it are.
    farther: BTreeMap<NodeId, Duration>,
}

impl Network {
    /// How much farther away than the client a node is; none where it is no receiver.
    pub(super) fn distance(&self, node: NodeId) -> Option<Duration> {
        if node == self.client { Some(Duration::ZERO) } else { self.farther.get(&node).copied() }
    }
}

/// Both directions of a link, and where they are described.
#[derive(Clone, Copy)]
struct Duplex<'m, 'a> {
    forward: &'m Link,
    reverse: &'m Link,
    origin: &'m SourceTable<'a>,
}

/// Sorts the links into paths and what is behind the client; `servers` are the servers' nodes.
pub(super) fn read(
    document: &mut Table<'_>,
    described: &Described<'_>,
    servers: &[NodeId],
) -> Result<Network, Fault> {
    let links = duplex(document, described)?;
    let server_at = |node: NodeId| servers.iter().position(|server| *server == node);
    let name = |node: NodeId| described.model.nodes[node].name.as_str();
    let (mut paths, mut client) = (Vec::new(), None);
    let mut others = Vec::new();
    for link in &links {
        let Duplex { forward, origin, .. } = *link;
        let (server, node, is_towards_client) = match (server_at(forward.from), server_at(forward.to)) {
            (Some(server), None) => (server, forward.to, true),
            (None, Some(server)) => (server, forward.from, false),
            (Some(_), Some(_)) => {
                document.tell(origin.fault("to", "the testbed has no links between servers"));
                continue;
            }
            (None, None) => {
                others.push(*link);
                continue;
            }
        };
        let first = *client.get_or_insert(node);
        if first != node {
            let key = if is_towards_client { "to" } else { "from" };
            let message = format_args!(
                "the servers' links lead to one client, in the testbed: to '{}' as before, not to '{}'",
                name(first),
                name(node)
            );
            document.tell(origin.fault(key, message));
        }
        paths.extend(document.kept(path(link, server, is_towards_client)));
    }
    let Some(client) = client else {
        return Err(described.run.fault("no link leads from a [[server]]'s node to the client's"));
    };
    if paths.len() > MOST {
        return Err(described.run.fault(format_args!("more than {MOST} links from servers")));
    }
    let mut farther = BTreeMap::new();
    for link in others {
        let found = behind(&link, client, &paths);
        if let Some((node, delay)) = document.kept(found)
            && farther.insert(node, delay).is_some()
        {
            document.tell(link.origin.fault("to", format_args!("a second link leads to '{}'", name(node))));
        }
    }
    Ok(Network { paths, client, farther })
}

/// The model's links in pairs.
fn duplex<'m, 'a>(
    document: &mut Table<'_>,
    described: &'m Described<'a>,
) -> Result<Vec<Duplex<'m, 'a>>, Fault> {
    let mut links = described.model.links.iter().zip(&described.links).peekable();
    let mut pairs = Vec::new();
    while let Some((forward, origin)) = links.next() {
        let is_reverse =
            |link: &Link, other| origin == other && (link.from, link.to) == (forward.to, forward.from);
        match links.next_if(|(link, other)| is_reverse(link, *other)) {
            Some((reverse, _)) => pairs.push(Duplex { forward, reverse, origin }),
            None => document.tell(origin.fault("simplex", "the testbed's links have two directions")),
        }
    }
    Ok(pairs)
}

fn path(link: &Duplex<'_, '_>, server: usize, is_towards_client: bool) -> Result<Path, Fault> {
    let forward = direction(link.forward, link.origin)?;
    let reverse = direction(link.reverse, &link.origin.with("reverse"))?;
    let (named, to_client, to_server) = match is_towards_client {
        true => (link.forward, forward, reverse),
        false => (link.reverse, reverse, forward),
    };
    Ok(Path { name: named.name.clone(), server, to_client, to_server })
}

/// A direction, unless it is asked for what the emulator does not have.
fn direction(link: &Link, origin: &SourceTable<'_>) -> Result<Direction, Fault> {
    let fault = |key, message| Err(origin.fault(key, message));
    if link.opportunities.is_some() {
        return fault("trace", "the testbed has traces of rates, and none of moments at which packets leave");
    }
    let Limit::Packets(queue) = link.queue.limit else {
        return fault("queue", "the testbed's queues hold a number of packets");
    };
    if matches!(link.queue.discipline, Discipline::Red(_) | Discipline::DualPi2(_)) {
        return fault("discipline", "the testbed has droptail, codel, fq-codel and pie");
    }
    if link.queue.discipline.marks() {
        return fault("discipline", "the testbed's queues mark nothing: leave out `ecn`");
    }
    let pattern = |loss: &LossModel, key| pattern(loss).map_err(|message| origin.fault(key, message));
    let changes = link.changes.iter().map(|change| {
        let model::Change { at, rate, delay, loss } = change;
        let loss = loss.as_ref().map(|loss| pattern(loss, "changes")).transpose()?;
        Ok(Change { at: at.since(Time::ZERO), rate: *rate, delay: *delay, loss })
    });
    Ok(Direction {
        rate: link.rate,
        delay: link.delay,
        queue,
        discipline: link.queue.discipline,
        policer: link.policer,
        shaper: link.shaper,
        loss: pattern(&link.loss, "loss")?,
        jitter: link.jitter,
        duplicate: link.duplicate,
        changes: changes.collect::<Result<_, Fault>>()?,
    })
}

/// Losses as the emulator has them: by how many were lost just before.
fn pattern(loss: &LossModel) -> Result<LossPattern, &'static str> {
    match *loss {
        LossModel::None => Ok(LossPattern(vec![0.0])),
        LossModel::Bernoulli(probability) => Ok(LossPattern(vec![probability])),
        // Each packet of the bad state is lost, so that its successor's state is known from the loss.
        LossModel::GilbertElliott(GilbertElliott { to_bad, to_good, loss_good: 0.0, loss_bad: 1.0 }) => {
            Ok(LossPattern(vec![to_bad, 1.0 - to_good]))
        }
        LossModel::GilbertElliott(_) => {
            Err("the testbed loses every packet in the bad state and none in the good one")
        }
        LossModel::Listed(_) => Err("the testbed loses packets by chance, and none by their place"),
    }
}

/// A node behind the client, and how much farther away it is: only that is emulated there.
fn behind(link: &Duplex<'_, '_>, client: NodeId, paths: &[Path]) -> Result<(NodeId, Duration), Fault> {
    let Duplex { forward, reverse, origin } = *link;
    let back_origin = origin.with("reverse");
    let (node, away, (back, back_origin)) = if forward.from == client {
        (forward.to, (forward, origin), (reverse, &back_origin))
    } else if forward.to == client {
        (forward.from, (reverse, &back_origin), (forward, origin))
    } else {
        let message = "this link leads neither from a [[server]]'s node to the client's, nor from there to a \
                       receiver behind it";
        return Err(origin.fault("from", message));
    };
    for (link, origin) in [away, (back, back_origin)] {
        let direction = direction(link, origin)?;
        if !direction.loss.is_none() {
            return Err(origin.fault("loss", "behind the client the testbed loses nothing"));
        }
        for (key, is_there) in [
            ("changes", !direction.changes.is_empty()),
            ("policer", direction.policer.is_some()),
            ("shaper", direction.shaper.is_some()),
            ("discipline", direction.discipline != Discipline::DropTail),
            ("jitter", direction.jitter.is_some()),
            ("duplicate", direction.duplicate > 0.0),
        ] {
            if is_there {
                return Err(origin.fault(key, "behind the client the testbed has a delay alone"));
            }
        }
        if paths.iter().any(|path| path.to_client.rate > link.rate) {
            let message = "behind the client the testbed has a delay alone: the rate is at least that of the \
                           servers' links";
            return Err(origin.fault("rate", message));
        }
    }
    if !back.delay.is_zero() {
        let fault = back_origin.fault("delay", "behind the client the testbed delays what goes away from it");
        return Err(fault.help("write `reverse = { delay = \"0s\" }`"));
    }
    Ok((node, away.0.delay))
}
