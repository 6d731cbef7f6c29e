//! The random network of figure 10: 20 backbone routers, 100 access nodes of different rates, clients and
//! servers anywhere.

use std::collections::BTreeSet;

use anabranch_sim::model::{Link, Node, NodeId};
use anabranch_units::{Duration, Rate};

use super::network::duplex;
use crate::draw::numbers;

const ROUTERS: usize = 20;
const ACCESS_NODES: usize = 100;
/// Pairs of routers that are drawn for a link besides the tree that joins all.
const MORE_LINKS: usize = ROUTERS;
const BACKBONE: Rate = Rate::from_mbps(100);
/// The link of [`behind_one_link`].
const SHARED: Rate = Rate::from_mbps(9);
const ACCESS_KBPS: [u64; 5] = [56, 128, 256, 512, 1000];
/// How many clients there are.
pub(super) const CLIENTS: usize = 50;
/// The most servers that a client has.
pub(super) const MOST_SERVERS: usize = 8;

/// A client and where its content is, the nearest use first.
pub(super) struct Client {
    pub node: NodeId,
    /// Rate of its access link.
    pub access: Rate,
    pub servers: [NodeId; MOST_SERVERS],
}

/// The network of a seed, the same for every number of servers.
pub(super) struct Network {
    pub nodes: Vec<Node>,
    pub links: Vec<Link>,
    pub clients: Vec<Client>,
}

/// Draws a network. The first servers of a client stay the same when there are more.
pub(super) fn draw(seed: u64) -> Network {
    let mut below = numbers(seed);
    let mut links = Vec::new();
    let mut linked = BTreeSet::new();
    let backbone = |links: &mut Vec<Link>, one, other| {
        duplex(links, one, other, BACKBONE, Duration::from_millis(10));
    };
    for router in 1..ROUTERS {
        let other = below(router);
        backbone(&mut links, other, router);
        linked.insert((other, router));
    }
    for _ in 0..MORE_LINKS {
        let (one, other) = (below(ROUTERS), below(ROUTERS));
        let ends = (one.min(other), one.max(other));
        if one != other && linked.insert(ends) {
            backbone(&mut links, ends.0, ends.1);
        }
    }
    let mut rates = Vec::new();
    for node in 0..ACCESS_NODES {
        let rate = Rate::from_kbps(ACCESS_KBPS[below(ACCESS_KBPS.len())]);
        duplex(&mut links, ROUTERS + node, below(ROUTERS), rate, Duration::from_millis(5));
        rates.push(rate);
    }
    let mut client = |_| {
        let place = below(ACCESS_NODES);
        // Any other node: a step of 1 to 99 around the circle of all.
        let mut other = |_| ROUTERS + (place + 1 + below(ACCESS_NODES - 1)) % ACCESS_NODES;
        let servers = std::array::from_fn(&mut other);
        Client { node: ROUTERS + place, access: rates[place], servers }
    };
    let clients = (0..CLIENTS).map(&mut client).collect();
    let routers = (1..=ROUTERS).map(|number| Node::new(format!("router {number}")));
    let access = (1..=ACCESS_NODES).map(|number| Node::new(format!("access {number}")));
    Network { nodes: routers.chain(access).collect(), links, clients }
}

/// The same clients, each behind an access link and with servers of its own, and one link between all servers
/// and all clients.
pub(super) fn behind_one_link(seed: u64) -> Network {
    const SERVERS: NodeId = 0;
    const CLIENTS: NodeId = 1;
    let delay = Duration::from_millis(5);
    let mut nodes: Vec<Node> = ["servers", "clients"].map(Node::new).into();
    let mut links = Vec::new();
    duplex(&mut links, SERVERS, CLIENTS, SHARED, Duration::from_millis(20));
    let mut node = |router: NodeId, rate: Rate| {
        nodes.push(Node::new(format!("node {}", nodes.len())));
        duplex(&mut links, router, nodes.len() - 1, rate, delay);
        nodes.len() - 1
    };
    let clients = draw(seed).clients.into_iter().map(|client| Client {
        node: node(CLIENTS, client.access),
        servers: std::array::from_fn(|_| node(SERVERS, BACKBONE)),
        ..client
    });
    let clients = clients.collect();
    Network { nodes, links, clients }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_one_network_in_which_all_are_connected() {
        for seed in 1..20 {
            let network = draw(seed);
            let again = draw(seed);
            assert_eq!(network.links, again.links);
            assert!(network.links != draw(seed + 1).links);
            let mut reached = BTreeSet::from([0]);
            for _ in 0..ROUTERS {
                let next: Vec<NodeId> = network
                    .links
                    .iter()
                    .filter(|link| reached.contains(&link.from))
                    .map(|link| link.to)
                    .collect();
                reached.extend(next);
            }
            assert_eq!(reached.len(), network.nodes.len());
            assert_eq!(network.clients.len(), CLIENTS);
            assert!(network.clients.iter().all(|client| !client.servers.contains(&client.node)));
        }
    }

    #[test]
    fn behind_one_link_clients_keep_their_access_and_share_nothing_else() {
        let (one, other) = (behind_one_link(3), draw(3));
        let access = |network: &Network| -> Vec<Rate> { network.clients.iter().map(|c| c.access).collect() };
        assert_eq!(access(&one), access(&other));
        let ends: BTreeSet<NodeId> =
            one.clients.iter().flat_map(|c| c.servers.into_iter().chain([c.node])).collect();
        assert_eq!(ends.len(), CLIENTS * (1 + MOST_SERVERS));
        let between: Vec<_> = one.links.iter().filter(|link| link.from < 2 && link.to < 2).collect();
        assert!(between.len() == 2 && between.iter().all(|link| link.rate == SHARED));
    }

    #[test]
    fn access_rates_are_drawn_evenly() {
        let access = |seed| {
            draw(seed)
                .links
                .into_iter()
                .skip_while(|link| link.rate == Rate::from_mbps(100))
                .map(|link| link.rate)
        };
        let rates: Vec<Rate> = (1..=40).flat_map(access).collect();
        for kbps in ACCESS_KBPS {
            let count = rates.iter().filter(|rate| **rate == Rate::from_kbps(kbps)).count();
            let part = count as f64 / rates.len() as f64;
            assert!((part - 0.2).abs() < 0.03, "{kbps} kbps: {part}");
        }
    }
}
