//! Datagrams in the network: sent at their times.

use super::state::{Datagrams, Network, Upcall};
use crate::model::FlowId;
use crate::packet::{Packet, What};

impl Network {
    /// The timer of a flow: of datagrams the next one, otherwise its user's business.
    #[inline]
    pub(super) fn flow_timer(&mut self, flow: FlowId) {
        match self.datagrams_of.get(flow).copied().flatten() {
            Some(index) => self.next_datagram(index),
            None => self.upcalls.push(Upcall::Flow(flow)),
        }
    }

    /// Makes a flow one of datagrams.
    pub(crate) fn add_datagrams(&mut self, datagrams: Datagrams) {
        let flow = datagrams.flow;
        if self.datagrams_of.len() <= flow {
            self.datagrams_of.resize(flow + 1, None);
        }
        self.datagrams_of[flow] = Some(self.datagrams.len() as u32);
        self.datagrams.push(datagrams);
    }

    fn next_datagram(&mut self, index: u32) {
        let now = self.now;
        let datagrams = &mut self.datagrams[index as usize];
        if datagrams.is_stopped {
            return;
        }
        let random = &mut self.random[datagrams.flow];
        if datagrams.sent == 0 && datagrams.next == 0.0 {
            let first = datagrams.begin(now, random);
            if first > now {
                let flow = datagrams.flow;
                self.call_flow(flow, first);
                return;
            }
        }
        let packet =
            Packet::new(What::Datagram, index, datagrams.path, datagrams.sent, datagrams.size as u16);
        datagrams.sent += 1;
        let flow = datagrams.flow;
        let next = datagrams.advance(random);
        self.send(packet);
        self.call_flow(flow, next);
    }

    /// A flow sends no more datagrams.
    pub(crate) fn stop_datagrams(&mut self, flow: FlowId) {
        if let Some(index) = self.datagrams_of.get(flow).copied().flatten() {
            self.datagrams[index as usize].is_stopped = true;
        }
    }
}
