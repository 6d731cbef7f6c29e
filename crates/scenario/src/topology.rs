//! Generated networks: `[topology]`.

use std::collections::BTreeSet;

use anabranch_units::{Duration, Rate};

use crate::error::{Fault, Span};
use crate::link::{Direction, Pair};
use crate::model::NodeId;
use crate::network::NamedNetwork;
use crate::queue;
use crate::table::{Item, Table};

/// Kinds of generated networks.
#[derive(Clone, Copy)]
enum Kind {
    Dumbbell,
    ParkingLot,
    Random,
}

/// Reads `[topology]` and adds its nodes and links.
pub(crate) fn read(item: Item<'_>, network: &mut NamedNetwork<'_>) -> Result<(), Fault> {
    let mut table = item.table("the [topology]")?;
    let choices = [("dumbbell", Kind::Dumbbell), ("parking-lot", Kind::ParkingLot), ("random", Kind::Random)];
    let (kind, span) = table.need("kind", |item| Ok((item.one_of(&choices)?, item.span)))?;
    let read = match kind {
        Kind::Dumbbell => dumbbell(&mut table, network, span),
        Kind::ParkingLot => parking_lot(&mut table, network, span),
        Kind::Random => random(&mut table, network, span),
    };
    table.finish()?;
    read
}

/// The hosts' links of dumbbells and parking lots where nothing else is said: no bottleneck.
fn fast_access() -> Pair {
    Pair::duplex(Direction::plain(Rate::from_mbps(100), Duration::from_millis(1)))
}

/// `sender1` ... - `left` - `right` - `receiver1` ...
fn dumbbell(table: &mut Table<'_>, network: &mut NamedNetwork<'_>, span: Span) -> Result<(), Fault> {
    let pairs = table.need("pairs", |item| item.count(1..=500));
    let bottleneck = table.need("bottleneck", |item| Pair::of(item, network.files));
    let access = table.get("access", |item| Pair::of(item, network.files)).unwrap_or_else(fast_access);
    let spread = table.get("receiver_delay_spread", Item::duration).unwrap_or_default();
    let (pairs, bottleneck) = (pairs?, bottleneck?);
    let left = network.add_node("left".into(), span)?;
    let right = network.add_node("right".into(), span)?;
    network.add_link(bottleneck, left, right, span)?;
    for number in 1..=pairs {
        let sender = network.add_node(format!("sender{number}"), span)?;
        network.add_link(access.clone(), sender, left, span)?;
        let receiver = network.add_node(format!("receiver{number}"), span)?;
        network.add_link(access.clone().spread(spread, number, pairs), right, receiver, span)?;
    }
    Ok(())
}

/// `router1` - `router2` - ... with `sender0` and `receiver0` at the ends, and a pair of hosts around each
/// hop.
fn parking_lot(table: &mut Table<'_>, network: &mut NamedNetwork<'_>, span: Span) -> Result<(), Fault> {
    let hops = table.need("hops", |item| item.count(1..=500));
    let bottleneck = table.need("bottleneck", |item| Pair::of(item, network.files));
    let access = table.get("access", |item| Pair::of(item, network.files)).unwrap_or_else(fast_access);
    let (hops, bottleneck) = (hops?, bottleneck?);
    let mut routers = Vec::new();
    for number in 1..=hops + 1 {
        let router = network.add_node(format!("router{number}"), span)?;
        if let Some(last) = routers.last() {
            network.add_link(bottleneck.clone(), *last, router, span)?;
        }
        routers.push(router);
    }
    let mut pair = |number: usize, first: NodeId, last: NodeId| {
        let sender = network.add_node(format!("sender{number}"), span)?;
        network.add_link(access.clone(), sender, first, span)?;
        let receiver = network.add_node(format!("receiver{number}"), span)?;
        network.add_link(access.clone(), last, receiver, span)
    };
    pair(0, routers[0], routers[routers.len() - 1])?;
    routers.windows(2).enumerate().try_for_each(|(index, ends)| pair(index + 1, ends[0], ends[1]))
}

/// The network of TCP-ROME figure 10: `router1` ... in a core, and `access1` ... at random routers, each with
/// a rate drawn from a list. The paper does not say how the core is connected: here every router but the
/// first is linked to a random one before it, so that all are connected, and some random pairs are linked as
/// well.
fn random(table: &mut Table<'_>, network: &mut NamedNetwork<'_>, span: Span) -> Result<(), Fault> {
    let routers = table.get("routers", |item| item.count(1..=500)).unwrap_or(20);
    let more = table.get("extra_links", |item| item.count(0..=5000)).unwrap_or(routers);
    let nodes = table.get("access_nodes", |item| item.count(1..=1500)).unwrap_or(100);
    let backbone = table.get("backbone", |item| Pair::of(item, network.files));
    let backbone = backbone
        .unwrap_or_else(|| Pair::duplex(Direction::plain(Rate::from_mbps(100), Duration::from_millis(10))));
    let rates = table.get("access_rates", |item| {
        let rates = item.each(Item::rate)?;
        if rates.is_empty() { Err(item.fault("`access_rates` needs at least one rate")) } else { Ok(rates) }
    });
    let rates = rates.unwrap_or_else(|| [56, 128, 256, 512, 1000].map(Rate::from_kbps).to_vec());
    let delay = table.get("access_delay", Item::duration).unwrap_or(Duration::from_millis(5));
    let queue = table.get("access_queue", queue::limit);
    let mut access = Direction::plain(rates[0], delay);
    access.queue.limit = queue.unwrap_or(access.queue.limit);
    let access = Pair::duplex(access);

    let mut core = Vec::new();
    let mut linked = BTreeSet::new();
    for number in 1..=routers {
        let router = network.add_node(format!("router{number}"), span)?;
        if let Some(other) = network.choose(&core) {
            network.add_link(backbone.clone(), other, router, span)?;
            linked.insert((other, router));
        }
        core.push(router);
    }
    for _ in 0..more {
        // A pair that is linked already, or no pair, is drawn in vain: small cores have no room for more.
        let ends = (network.choose(&core), network.choose(&core));
        let (Some(one), Some(other)) = ends else { break };
        let (from, to) = (one.min(other), one.max(other));
        if from != to && linked.insert((from, to)) {
            network.add_link(backbone.clone(), from, to, span)?;
        }
    }
    for number in 1..=nodes {
        let node = network.add_node(format!("access{number}"), span)?;
        let router = network.choose(&core).unwrap_or_default();
        let rate = network.choose(&rates).unwrap_or(rates[0]);
        network.add_link(access.clone().at_rate(rate), node, router, span)?;
    }
    Ok(())
}
