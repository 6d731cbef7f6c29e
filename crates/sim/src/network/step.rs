//! One event after the other: what each of them is for.

use super::state::{Kind, Network, Upcall};
use crate::model::FlowId;
use crate::packet::What;
use crate::route::Hop;

/// The state of so many connections stays in a processor's own memory, and reading ahead only costs.
const FEW_HALVES: usize = 512;

impl Network {
    /// Lets the next event before `until` happen; `false` when there is none.
    #[inline]
    pub(crate) fn step(&mut self, until: u64) -> bool {
        if self.queue.prepare() && self.halves.len() > FEW_HALVES {
            self.touch_due();
        }
        let Some((at, event)) = self.queue.pop_before(until) else { return false };
        debug_assert!(at >= self.now, "time goes back");
        self.now = at;
        self.events += 1;
        let (kind, number) = event.open();
        match kind {
            Kind::Packet => {
                if self.hops[self.packets.get(number).hop as usize] == Hop::ARRIVED {
                    self.deliver(number);
                } else {
                    self.forward(number);
                }
            }
            Kind::Retransmission => self.retransmission_timer(number),
            Kind::DelayedAck => self.delayed_ack(number),
            Kind::Jitter => self.jitter_over(number),
            Kind::Departure => self.departure(number),
            Kind::Flow => self.flow_timer(number as FlowId),
            Kind::Service => self.serve(number),
            Kind::Stop => self.upcalls.push(Upcall::Stop(number as FlowId)),
            Kind::Tfrc => self.tfrc_timer(number),
            Kind::Pace => self.pace_timer(number),
        }
        true
    }

    /// Reads of what the next events need, so that the memory has brought it by then: all at once costs
    /// little more than one after the other would each. With ten thousand flows hardly anything is still in a
    /// processor's own memory.
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
        if hop != Hop::ARRIVED {
            self.links[hop.link()].touch();
        } else if packet.what == What::Data {
            self.halves[packet.owner as usize].touch_receiver();
        } else if packet.what == What::Ack {
            self.halves[packet.owner as usize].touch_sender();
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
            What::Live => self.live_arrives(&packet),
            What::Syn => self.syn_arrives(&packet),
            What::SynAck => self.syn_ack_arrives(&packet),
            What::Reset => self.reset_arrives(&packet),
        }
    }
}
