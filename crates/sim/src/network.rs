//! The network at work: packets over links to the ends of TCP connections and of TFRC flows, and to receivers of datagrams.

mod connections;
mod datagrams;
mod groups;
mod tfrc;
mod tfrc_flow;

use std::collections::BTreeMap;

use anabranch_units::{Bytes, Time};

use crate::link::{Fate, Link};
use crate::model::{FlowId, Model, NodeId};
use crate::packet::{Packet, Packets, What, blocks};
use crate::queue::EventQueue;
use crate::random::Random;
use crate::report::{Decision, PacketRecord, Segment};
use crate::route::{ARRIVED, Routes};
pub(crate) use connections::{Half, HalfId, Role};
pub(crate) use datagrams::Datagrams;
use groups::Groups;
pub(crate) use tfrc::Tfrc;
pub(crate) use tfrc_flow::TfrcFlow;

/// What happens at a moment: a kind and a number in one word, because millions of these move in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Event(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A packet enters a link or arrives.
    Packet,
    /// A half connection's retransmission timer.
    Retransmission,
    /// A half connection's delayed acknowledgement.
    DelayedAck,
    /// A half connection's random delay of sending is over.
    Jitter,
    /// A flow's own timer: its beginning, its end, the next datagram, what its application writes next.
    Flow,
    /// A link's queue has to be asked.
    Service,
    /// The end of a flow.
    Stop,
    /// One of the timers of a TFRC flow.
    Tfrc,
}

/// The state of so many connections stays in a processor's own memory, and reading ahead only costs.
const FEW_HALVES: usize = 512;

const KINDS: [Kind; 8] = [
    Kind::Packet,
    Kind::Retransmission,
    Kind::DelayedAck,
    Kind::Jitter,
    Kind::Flow,
    Kind::Service,
    Kind::Stop,
    Kind::Tfrc,
];
const KIND_SHIFT: u32 = 29;

impl Event {
    #[inline]
    fn new(kind: Kind, number: u32) -> Self {
        Self((kind as u32) << KIND_SHIFT | number)
    }

    #[inline]
    fn open(self) -> (Kind, u32) {
        (KINDS[(self.0 >> KIND_SHIFT) as usize], self.0 & ((1 << KIND_SHIFT) - 1))
    }
}

/// What the user of a network is told after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upcall {
    /// A flow's timer went off.
    Flow(FlowId),
    /// A flow's time is over.
    Stop(FlowId),
    /// The set-up that this half began is answered.
    Connected(HalfId),
    /// Bytes have arrived in order at the receiver of this half.
    Delivered(HalfId, u64),
}

/// Everything that moves.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) now: u64,
    queue: EventQueue<Event>,
    links: Vec<Link>,
    /// Paths, one after the other: links, then [`ARRIVED`].
    hops: Vec<u32>,
    /// Where in `hops` the path between two nodes begins.
    paths: BTreeMap<(NodeId, NodeId), u32>,
    /// Where each path begins and ends, by its place in `hops`.
    ends: BTreeMap<u32, (NodeId, NodeId)>,
    /// Whether a link's packets all come from one other link that is no faster: then nothing can come between, and they enter it
    /// without an event of their own.
    is_direct: Vec<bool>,
    packets: Packets,
    pub(crate) halves: Vec<Half>,
    groups: Groups,
    pub(crate) datagrams: Vec<Datagrams>,
    /// Which flows are of datagrams.
    datagrams_of: Vec<Option<u32>>,
    /// Connections under TFRC, and the flows that they belong to.
    tfrc: Vec<Tfrc>,
    pub(crate) tfrc_flows: Vec<TfrcFlow>,
    random: Vec<Random>,
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
            links.map(|(id, link)| Link::new(link, Random::new(seed, 2 * id as u64))).collect();
        let random = (0..model.flows.len() as u64).map(|flow| Random::new(seed, 2 * flow + 1)).collect();
        Self {
            now: 0,
            queue: EventQueue::new(),
            is_direct: vec![false; links.len()],
            links,
            hops: Vec::new(),
            paths: BTreeMap::new(),
            ends: BTreeMap::new(),
            packets: Packets::default(),
            halves: Vec::new(),
            groups: Groups::default(),
            datagrams: Vec::new(),
            datagrams_of: Vec::new(),
            tfrc: Vec::new(),
            tfrc_flows: Vec::new(),
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
        self.hops.extend(path.iter().map(|link| *link as u32));
        self.hops.push(ARRIVED);
        self.paths.insert((from, to), start);
        self.ends.insert(start, (from, to));
        Some(start)
    }

    /// To be called when all paths are known.
    pub(crate) fn find_direct_links(&mut self) {
        let mut feeders = vec![Feeder::Nobody; self.links.len()];
        let mut before = None;
        for &hop in &self.hops {
            if hop == ARRIVED {
                before = None;
                continue;
            }
            let feeder = &mut feeders[hop as usize];
            *feeder = match (*feeder, before) {
                (Feeder::Nobody, Some(link)) => Feeder::Link(link),
                (Feeder::Link(known), Some(link)) if known == link => Feeder::Link(known),
                _ => Feeder::Several,
            };
            before = Some(hop as usize);
        }
        for (link, feeder) in feeders.into_iter().enumerate() {
            self.is_direct[link] = match feeder {
                Feeder::Link(before) => self.links[link].only_delays(self.links[before].highest_rate()),
                _ => false,
            };
        }
    }

    pub(crate) fn random(&mut self, flow: FlowId) -> &mut Random {
        &mut self.random[flow]
    }

    pub(crate) fn link(&self, link: usize) -> &Link {
        &self.links[link]
    }

    #[inline]
    fn schedule(&mut self, at: u64, kind: Kind, number: u32) {
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

    /// Lets the next event before `until` happen; `false` when there is none.
    #[inline]
    pub(crate) fn step(&mut self, until: u64) -> bool {
        if self.queue.prepare() && self.halves.len() > FEW_HALVES {
            self.touch_due();
        }
        match self.queue.due().last() {
            Some((at, _)) if *at < until => {}
            _ => return false,
        }
        let Some((at, event)) = self.queue.pop() else { return false };
        debug_assert!(at >= self.now, "time goes back");
        self.now = at;
        self.events += 1;
        let (kind, number) = event.open();
        match kind {
            Kind::Packet => {
                if self.hops[self.packets.get(number).hop as usize] == ARRIVED {
                    self.deliver(number);
                } else {
                    self.forward(number);
                }
            }
            Kind::Retransmission => self.retransmission_timer(number),
            Kind::DelayedAck => self.delayed_ack(number),
            Kind::Jitter => self.jitter_over(number),
            Kind::Flow => self.flow_timer(number as FlowId),
            Kind::Service => self.serve(number),
            Kind::Stop => self.upcalls.push(Upcall::Stop(number as FlowId)),
            Kind::Tfrc => self.tfrc_timer(number),
        }
        true
    }

    /// Reads of what the next events need, so that the memory has brought it by then: all at once costs little more than one
    /// after the other would each. With ten thousand flows hardly anything is still in a processor's own memory.
    fn touch_due(&self) {
        for (_, event) in self.queue.due() {
            if let (Kind::Packet, number) = event.open() {
                self.packets.touch(number);
            }
        }
        for (_, event) in self.queue.due() {
            if let (Kind::Packet, number) = event.open() {
                self.touch_next_of(number);
            }
        }
    }

    /// Reads of the link that a packet enters next, or of the half connection where it arrives.
    #[inline]
    fn touch_next_of(&self, number: u32) {
        let packet = self.packets.get(number);
        let hop = self.hops[packet.hop as usize];
        if hop != ARRIVED {
            self.links[hop as usize].touch();
        } else if packet.what == What::Data {
            self.halves[packet.owner as usize].touch_receiver();
        } else if packet.what == What::Ack {
            self.halves[packet.owner as usize].touch_sender();
        }
    }

    /// A packet sets out.
    #[inline]
    fn send(&mut self, packet: Packet) {
        let number = self.packets.add(packet);
        if self.hops[packet.hop as usize] == ARRIVED {
            // From a node to itself.
            self.schedule(self.now, Kind::Packet, number);
        } else {
            self.forward(number);
        }
    }

    /// A packet enters the link that it stands before, and every following one that nothing else can enter before it.
    #[inline]
    fn forward(&mut self, number: u32) {
        let mut time = self.now;
        loop {
            let packet = self.packets.get(number);
            let link = self.hops[packet.hop as usize];
            let size = u32::from(packet.size);
            let fate = self.links[link as usize].offer(number, size, time);
            if !self.settle(number, link, fate) {
                return;
            }
            let Fate::Arrives(at) = fate else { return };
            let next = self.hops[self.packets.get(number).hop as usize];
            if next == ARRIVED || !self.is_direct[next as usize] {
                self.schedule(at, Kind::Packet, number);
                return;
            }
            time = at;
        }
    }

    /// Does what follows from a packet's fate on a link, and moves it to its next hop; `false` when it does not go on now.
    #[inline]
    fn settle(&mut self, number: u32, link: u32, fate: Fate) -> bool {
        if matches!(fate, Fate::Arrives(_) | Fate::Lost) {
            if self.trace.is_some() {
                self.note(number, link);
            }
            if let Some(at) = self.links[link as usize].next_service().filter(|at| *at != u64::MAX) {
                self.schedule(at, Kind::Service, link);
            }
        }
        match fate {
            Fate::Arrives(_) => {
                self.packets.get_mut(number).hop += 1;
                true
            }
            Fate::Waits => false,
            Fate::Dropped | Fate::Lost => {
                self.gone(number, fate == Fate::Dropped);
                false
            }
        }
    }

    /// A packet will never arrive.
    fn gone(&mut self, number: u32, was_dropped: bool) {
        let packet = self.packets.remove(number);
        let (dropped, lost) = match packet.what {
            What::Data => {
                let half = &mut self.halves[packet.owner as usize];
                (&mut half.counters.dropped, &mut half.counters.lost)
            }
            What::Datagram => {
                let datagrams = &mut self.datagrams[packet.owner as usize];
                (&mut datagrams.dropped, &mut datagrams.lost)
            }
            What::TfrcData => {
                let tfrc = &mut self.tfrc[packet.owner as usize];
                (&mut tfrc.dropped, &mut tfrc.lost)
            }
            _ => return,
        };
        *if was_dropped { dropped } else { lost } += 1;
    }

    fn serve(&mut self, link: u32) {
        let mut dropped = Vec::new();
        let next = self.links[link as usize].serve(self.now, |packet| dropped.push(packet));
        for packet in dropped {
            self.gone(packet, true);
        }
        if let Some((number, fate)) = next
            && self.settle(number, link, fate)
            && let Fate::Arrives(at) = fate
        {
            self.schedule(at, Kind::Packet, number);
        }
    }

    #[inline]
    fn deliver(&mut self, number: u32) {
        let packet = self.packets.remove(number);
        match packet.what {
            What::Data => self.data_arrives(&packet),
            What::Ack => self.ack_arrives(&packet),
            What::Datagram => {
                let datagrams = &mut self.datagrams[packet.owner as usize];
                datagrams.arrived += 1;
            }
            What::TfrcData => self.tfrc_data_arrives(&packet),
            What::TfrcFeedback => self.tfrc_feedback_arrives(&packet),
            What::Syn => self.syn_arrives(&packet),
            What::SynAck => self.syn_ack_arrives(&packet),
            What::Reset => self.reset_arrives(&packet),
        }
    }

    /// Writes a packet down for a trace.
    fn note(&mut self, number: u32, link: u32) {
        let packet = self.packets.get(number);
        let owner = packet.owner as usize;
        let (flow, connection, is_opener, header, path) = match packet.what {
            What::Datagram => {
                let datagrams = &self.datagrams[owner];
                (datagrams.flow, 0, true, 0, datagrams.path())
            }
            what @ (What::TfrcData | What::TfrcFeedback) => {
                let (tfrc, is_from_sender) = (&self.tfrc[owner], what == What::TfrcData);
                (tfrc.flow, tfrc.connection, is_from_sender, 0, tfrc.path(is_from_sender))
            }
            what => {
                let half = &self.halves[owner];
                // What the sender of the opener's half sends comes from the opener, and so do the other half's answers.
                let is_from_sender = matches!(what, What::Data | What::Syn);
                let is_opener = half.is_opener == is_from_sender;
                (half.flow, half.connection, is_opener, half.header, half.path(is_from_sender))
            }
        };
        let Some((source, destination)) = self.ends.get(&path).copied() else { return };
        let payload = match packet.what {
            What::Data => u64::from(packet.size) - u64::from(header),
            What::Datagram | What::TfrcData | What::TfrcFeedback => u64::from(packet.size),
            _ => 0,
        };
        let what = match packet.what {
            What::Syn => Segment::Syn,
            What::SynAck => Segment::SynAck,
            What::Data => Segment::Data(packet.sequence),
            What::Ack => Segment::Ack {
                acknowledged: packet.sequence,
                window: packet.window.get(),
                sack: blocks(packet.sequence, self.packets.extra(packet)),
            },
            What::Reset => Segment::Reset,
            What::Datagram | What::TfrcData | What::TfrcFeedback => Segment::Datagram(packet.sequence),
        };
        let record = PacketRecord {
            at: Time::from_nanos(self.links[link as usize].last_start()),
            link: link as usize,
            flow,
            connection,
            from_opener: is_opener,
            source,
            destination,
            size: Bytes::new(u64::from(packet.size)),
            payload: Bytes::new(payload),
            what,
        };
        if let Some(trace) = &mut self.trace {
            trace.push(record);
        }
    }
}
