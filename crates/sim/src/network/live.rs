//! Datagrams of live streams in the network.

use anabranch_units::Bytes;

use super::state::{LiveDatagram, LiveWay, Network, Upcall};
use crate::packet::{Packet, What};

impl Network {
    /// An uplink of a live stream; its number.
    pub(crate) fn add_live_way(&mut self, way: LiveWay) -> u32 {
        self.live.push(way);
        (self.live.len() - 1) as u32
    }

    /// What went over an uplink.
    pub(crate) fn live_way(&self, way: u32) -> &LiveWay {
        &self.live[way as usize]
    }

    /// A datagram of so many bytes on the wire sets out.
    pub(crate) fn send_live(&mut self, way: u32, size: Bytes, datagram: LiveDatagram) {
        let state = &mut self.live[way as usize];
        let is_from_sender = datagram.body.is_from_sender();
        let number = state.next;
        state.next += 1;
        state.under_way.insert(number, (1, datagram));
        if is_from_sender {
            state.sent += 1;
            self.data_packets += 1;
        }
        let path = self.live[way as usize].path(is_from_sender);
        self.send(Packet::new(What::Live, way, path, number, size.get() as u16));
    }

    pub(super) fn live_arrives(&mut self, packet: &Packet) {
        let way = &mut self.live[packet.owner as usize];
        if way.is_from_sender(packet.sequence) {
            way.arrived += Bytes::new(packet.size.into());
        }
        if let Some(datagram) = way.take(packet.sequence) {
            let (flow, uplink) = (way.flow, way.uplink);
            self.upcalls.push(Upcall::Datagram(flow, uplink, Box::new(datagram)));
        }
    }

    /// A packet of an uplink will never arrive.
    pub(super) fn live_gone(&mut self, packet: &Packet, was_dropped: bool) {
        let way = &mut self.live[packet.owner as usize];
        if way.is_from_sender(packet.sequence) {
            *(if was_dropped { &mut way.dropped } else { &mut way.lost }) += 1;
        }
        way.take(packet.sequence);
    }
}
