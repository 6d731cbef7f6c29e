//! What there is in a network: links and packets, and the ends of all flows.

mod datagrams;
mod event;
mod groups;
mod half;
mod live;
mod servers;
mod tfrc;
mod tfrc_flow;

use std::collections::BTreeMap;

use crate::link::LinkDirection;
use crate::model::{FlowId, Model, NodeId};
use crate::packet::PacketStore;
use crate::queue::EventQueue;
use crate::report::{Decision, PacketRecord};
use crate::route::{Hop, Routes};
use anabranch_scenario::random::Random;

pub(crate) use datagrams::Datagrams;
pub(crate) use event::Upcall;
pub(super) use event::{Event, Kind};
pub(super) use groups::{Groups, Membership, Shared};
pub(crate) use half::{Half, HalfId, Role};
pub(crate) use live::{LiveBody, LiveDatagram, LiveWay, Told};
use servers::Servers;
pub(super) use servers::{Answer, PaceId, Visit};
pub(super) use tfrc::{TIMER_BITS, TIMERS, Tfrc, Timer};
pub(crate) use tfrc_flow::TfrcFlow;

/// Everything that moves.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) now: u64,
    /// The seed of the run.
    pub(in crate::network) seed: u64,
    pub(in crate::network) queue: EventQueue<Event>,
    pub(in crate::network) links: Vec<LinkDirection>,
    /// Paths, one after the other, each up to [`Hop::ARRIVED`].
    pub(in crate::network) hops: Vec<Hop>,
    /// Where in `hops` the path between two nodes begins.
    pub(in crate::network) paths: BTreeMap<(NodeId, NodeId), u32>,
    /// Where each path begins and ends, by its place in `hops`.
    pub(in crate::network) ends: BTreeMap<u32, (NodeId, NodeId)>,
    pub(in crate::network) packets: PacketStore,
    pub(crate) halves: Vec<Half>,
    pub(in crate::network) groups: Groups,
    pub(in crate::network) servers: Servers,
    pub(crate) datagrams: Vec<Datagrams>,
    /// Which flows are of datagrams.
    pub(in crate::network) datagrams_of: Vec<Option<u32>>,
    /// Connections under TFRC, and the flows that they belong to.
    pub(in crate::network) tfrc: Vec<Tfrc>,
    pub(crate) tfrc_flows: Vec<TfrcFlow>,
    /// The uplinks of all live streams.
    pub(in crate::network) live: Vec<LiveWay>,
    /// What live senders that share an uplink told each other.
    pub(crate) told: Told,
    pub(in crate::network) random: Vec<Random>,
    pub(crate) upcalls: Vec<Upcall>,
    pub(crate) decisions: Vec<Decision>,
    pub(crate) tells_loss_events: bool,
    pub(crate) trace: Option<Vec<PacketRecord>>,
    pub(crate) events: u64,
    pub(crate) data_packets: u64,
}

/// Who brings packets to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feeder {
    Nobody,
    Link(usize),
    Several,
}

impl Network {
    /// The links of a model, with nothing on them yet.
    pub(crate) fn new(model: &Model) -> Self {
        let seed = model.run.seed;
        // Even streams belong to links, odd ones to flows.
        let links = model.links.iter().enumerate();
        let links: Vec<_> =
            links.map(|(id, link)| LinkDirection::new(link, Random::new(seed, 2 * id as u64))).collect();
        let random = (0..model.flows.len() as u64).map(|flow| Random::new(seed, 2 * flow + 1)).collect();
        Self {
            now: 0,
            seed,
            queue: EventQueue::new(),
            links,
            hops: Vec::new(),
            paths: BTreeMap::new(),
            ends: BTreeMap::new(),
            packets: PacketStore::default(),
            halves: Vec::new(),
            groups: Groups::default(),
            servers: Servers::new(model),
            datagrams: Vec::new(),
            datagrams_of: Vec::new(),
            tfrc: Vec::new(),
            tfrc_flows: Vec::new(),
            live: Vec::new(),
            told: Told::default(),
            random,
            upcalls: Vec::new(),
            decisions: Vec::new(),
            tells_loss_events: false,
            trace: None,
            events: 0,
            data_packets: 0,
        }
    }

    /// Notes a path, for as long as the network lives; `None` when there is no way.
    pub(crate) fn add_path(&mut self, routes: &mut Routes<'_>, from: usize, to: usize) -> Option<u32> {
        if let Some(known) = self.paths.get(&(from, to)) {
            return Some(*known);
        }
        let path = routes.path(from, to)?;
        let start = self.hops.len() as u32;
        self.hops.extend(path.into_iter().map(Hop::over));
        self.hops.push(Hop::ARRIVED);
        self.paths.insert((from, to), start);
        self.ends.insert(start, (from, to));
        Some(start)
    }

    /// To be called when all paths are known.
    pub(crate) fn find_direct_links(&mut self) {
        let mut feeders = vec![Feeder::Nobody; self.links.len()];
        let mut before = None;
        for &hop in &self.hops {
            if hop == Hop::ARRIVED {
                before = None;
                continue;
            }
            let feeder = &mut feeders[hop.link()];
            *feeder = match (*feeder, before) {
                (Feeder::Nobody, Some(link)) => Feeder::Link(link),
                (Feeder::Link(known), Some(link)) if known == link => Feeder::Link(known),
                _ => Feeder::Several,
            };
            before = Some(hop.link());
        }
        let is_direct = |link: usize| match feeders[link] {
            Feeder::Link(before) => {
                let before = &self.links[before];
                before.is_even() && self.links[link].only_delays(before.highest_rate())
            }
            Feeder::Nobody | Feeder::Several => false,
        };
        for hop in self.hops.iter_mut().filter(|hop| **hop != Hop::ARRIVED && is_direct(hop.link())) {
            *hop = hop.as_direct();
        }
    }

    pub(crate) fn random(&mut self, flow: FlowId) -> &mut Random {
        &mut self.random[flow]
    }

    pub(crate) fn link(&self, link: usize) -> &LinkDirection {
        &self.links[link]
    }

    #[inline]
    pub(in crate::network) fn schedule(&mut self, at: u64, kind: Kind, number: u32) {
        self.queue.push(at, Event::new(kind, number));
    }

    /// Asks for [`Upcall::Flow`].
    pub(crate) fn call_flow(&mut self, flow: FlowId, at: u64) {
        self.schedule(at.max(self.now), Kind::Flow, flow as u32);
    }

    /// Asks for [`Upcall::Stop`].
    pub(crate) fn stop_flow(&mut self, flow: FlowId, at: u64) {
        self.schedule(at.max(self.now), Kind::Stop, flow as u32);
    }
}
