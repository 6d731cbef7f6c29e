//! Packets on their way over links.

use anabranch_units::{Bytes, Time};

use super::state::{Kind, Network};
use crate::link::Fate;
use crate::packet::{Packet, What, blocks};
use crate::report::{PacketKind, PacketRecord};
use crate::route::Hop;

impl Network {
    /// A packet sets out.
    #[inline]
    pub(super) fn send(&mut self, packet: Packet) {
        let number = self.packets.add(packet);
        if self.hops[packet.hop as usize] == Hop::ARRIVED {
            // From a node to itself.
            self.schedule(self.now, Kind::Packet, number);
        } else {
            self.forward(number);
        }
    }

    /// A packet enters the link that it stands before, and every following one that nothing else can enter
    /// before it.
    #[inline]
    pub(super) fn forward(&mut self, number: u32) {
        let mut time = self.now;
        loop {
            let packet = self.packets.get_mut(number);
            let link = self.hops[packet.hop as usize].link();
            let state = &mut self.links[link];
            if state.is_plain() && self.trace.is_none() {
                let Some(at) = state.pass(u32::from(packet.size), time) else {
                    return self.gone(number, true);
                };
                packet.hop += 1;
                time = at;
            } else {
                let Some(at) = self.offer(number, link, time) else { return };
                time = at;
            }
            if !self.hops[self.packets.get(number).hop as usize].is_direct() {
                return self.schedule(time, Kind::Packet, number);
            }
        }
    }

    /// A packet enters any link; when it arrives, if that is known by now. A call of its own, so that packets
    /// over plain links do not pay for what it needs.
    #[inline(never)]
    fn offer(&mut self, number: u32, link: usize, time: u64) -> Option<u64> {
        let packet = self.packets.get(number);
        let fate = self.links[link].offer(
            number,
            u32::from(packet.size),
            packet.flow_key(),
            packet.ecn.codepoint(),
            time,
        );
        if !self.settle(number, link as u32, fate) {
            return None;
        }
        let Fate::Arrives(at) = fate else { return None };
        Some(at)
    }

    /// Does what follows from a packet's fate on a link, and moves it to its next hop; `false` when it does
    /// not go on now.
    pub(super) fn settle(&mut self, number: u32, link: u32, fate: Fate) -> bool {
        if matches!(fate, Fate::Arrives(_) | Fate::Lost) {
            if self.links[link as usize].marks() {
                self.packets.get_mut(number).ecn.mark();
            }
            if self.trace.is_some() {
                self.note(number, link);
            }
            if let Some(at) = self.links[link as usize].next_service().filter(|at| *at != u64::MAX) {
                self.schedule(at, Kind::Service, link);
            }
        }
        match fate {
            Fate::Arrives(at) => {
                self.packets.get_mut(number).hop += 1;
                if self.links[link as usize].duplicates() {
                    let packet = self.packets.get(number);
                    if packet.what == What::Live {
                        self.live[packet.owner as usize].doubled(packet.sequence);
                    }
                    let copy = self.packets.copy(number);
                    self.schedule(at, Kind::Packet, copy);
                }
                true
            }
            Fate::Waits | Fate::Dropped | Fate::Lost => {
                if let Some(other) = self.links[link as usize].take_evicted() {
                    self.gone(other, true);
                }
                if fate != Fate::Waits {
                    self.gone(number, fate == Fate::Dropped);
                }
                false
            }
        }
    }

    /// A packet will never arrive.
    #[inline(never)]
    pub(super) fn gone(&mut self, number: u32, was_dropped: bool) {
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
            What::Live => return self.live_gone(&packet, was_dropped),
            // A lost farewell would be said again: it counts as heard.
            What::Reset => return self.servers.left(packet.owner),
            _ => return,
        };
        *if was_dropped { dropped } else { lost } += 1;
    }

    pub(super) fn serve(&mut self, link: u32) {
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

    /// Writes a packet down for a trace.
    pub(super) fn note(&mut self, number: u32, link: u32) {
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
            What::Live => {
                let way = &self.live[owner];
                let is_from_sender = way.is_from_sender(packet.sequence);
                (way.flow, way.uplink, is_from_sender, 0, way.path(is_from_sender))
            }
            what => {
                let half = &self.halves[owner];
                // What the sender of the opener's half sends comes from the opener, and so do the other
                // half's answers.
                let is_from_sender = matches!(what, What::Data | What::Syn);
                let is_opener = half.is_opener == is_from_sender;
                (half.flow, half.connection, is_opener, half.header, half.path(is_from_sender))
            }
        };
        let Some((source, destination)) = self.ends.get(&path).copied() else { return };
        let payload = match packet.what {
            What::Data => u64::from(packet.size) - u64::from(header),
            What::Datagram | What::TfrcData | What::TfrcFeedback | What::Live => u64::from(packet.size),
            _ => 0,
        };
        let what = match packet.what {
            What::Syn => PacketKind::Syn,
            What::SynAck => PacketKind::SynAck,
            What::Data => PacketKind::Data(packet.sequence),
            What::Ack => PacketKind::Ack {
                acknowledged: packet.sequence,
                window: packet.window.get(),
                sack: blocks(packet.sequence, self.packets.extra(packet)),
            },
            What::Reset => PacketKind::Reset,
            What::Datagram | What::TfrcData | What::TfrcFeedback | What::Live => {
                PacketKind::Datagram(packet.sequence)
            }
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
            ecn: packet.ecn.codepoint(),
            ecn_flag: packet.ecn.flag(),
        };
        if let Some(trace) = &mut self.trace {
            trace.push(record);
        }
    }
}
