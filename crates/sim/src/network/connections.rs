//! TCP connections in the network: set-up, what applications do, and the end.

use super::state::{Answer, Half, HalfId, Network, Role, Upcall};
use crate::model::{FlowId, Tcp};
use crate::packet::{Packet, What};
use crate::tcp::NO_LIMIT;

const SET_UP_SIZE: u16 = 40;

impl Network {
    /// Adds a half connection that is not set up yet.
    pub(crate) fn add_half(
        &mut self,
        flow: FlowId,
        connection: u32,
        tcp: &Tcp,
        role: Role,
        paths: (u32, u32),
        written: u64,
    ) -> HalfId {
        let id = self.halves.len() as HalfId;
        if let Role::Answerer(opener) = role {
            self.halves[opener as usize].other = Some(id);
        }
        let seed = self.seed.wrapping_add(u64::from(id) << 32);
        self.halves.push(Half::new(flow, connection, tcp, role, paths, written, seed));
        if let Some(share) = &tcp.share {
            self.add_to_group(id, share, tcp);
        }
        id
    }

    /// Begins to set up the connection that this half's sender opens.
    pub(crate) fn open(&mut self, id: HalfId) {
        let now = self.now;
        let half = &mut self.halves[id as usize];
        half.set_up_sent = now;
        half.set_up_tries += 1;
        half.sender.set_up_begins(now);
        let hop = half.data_path;
        self.sync_timer(id);
        self.send_control(id, What::Syn, hop);
    }

    pub(super) fn send_control(&mut self, id: HalfId, what: What, hop: u32) {
        let packet = Packet::new(what, id, hop, 0, SET_UP_SIZE);
        self.send(packet);
    }

    pub(super) fn syn_arrives(&mut self, packet: &Packet) {
        let half = &self.halves[packet.owner as usize];
        let hop = half.ack_path;
        if let Some(other) = half.other {
            match self.servers.asked(other) {
                Answer::Accept => {}
                Answer::Refuse => return self.send_control(packet.owner, What::Reset, hop),
                Answer::Nothing => return,
            }
            // The answerer may send as soon as something was asked of it; the first round trip is measured on
            // data.
            let now = self.now;
            self.halves[other as usize].sender.established(None, now);
        }
        self.send_control(packet.owner, What::SynAck, hop);
    }

    pub(super) fn syn_ack_arrives(&mut self, packet: &Packet) {
        let now = self.now;
        let half = &mut self.halves[packet.owner as usize];
        if half.sender.is_established() || half.is_closed {
            return;
        }
        let sent = (half.set_up_tries == 1).then_some(half.set_up_sent);
        half.sender.established(sent, now);
        if half.tells {
            self.upcalls.push(Upcall::Connected(packet.owner));
        }
        self.pump(packet.owner, false);
    }

    /// How long the set-up of the connection took that this half opened.
    pub(crate) fn set_up_time(&self, id: HalfId) -> u64 {
        self.now - self.halves[id as usize].set_up_sent
    }

    /// The application has written everything before `end`.
    pub(crate) fn write_to(&mut self, id: HalfId, end: u64) {
        self.halves[id as usize].sender.write_to(end.min(NO_LIMIT));
        self.pump(id, false);
    }

    /// Drives the receive window of this half's receiver.
    pub(crate) fn set_window(&mut self, id: HalfId, window: u64) {
        let half = &mut self.halves[id as usize];
        // While data flows, acknowledgements carry the window soon enough.
        if half.receiver.set_window(window) && half.sender.is_established() {
            self.send_ack(id);
        }
    }

    /// The application at this half's receiver reads what it had left unread.
    pub(crate) fn read(&mut self, id: HalfId, bytes: u64) {
        if self.halves[id as usize].receiver.read(bytes) {
            self.send_ack(id);
        }
    }

    /// The receiver of this half, and the sender of the other, leave; the far end hears of it.
    pub(crate) fn close(&mut self, id: HalfId) {
        let half = &mut self.halves[id as usize];
        half.is_closed = true;
        let (other, hop) = (half.other, half.ack_path);
        if let Some(other) = other {
            let other = &mut self.halves[other as usize];
            other.sender.abort();
            other.timer_at = u64::MAX;
        }
        self.send_control(id, What::Reset, hop);
    }

    pub(super) fn reset_arrives(&mut self, packet: &Packet) {
        let half = &mut self.halves[packet.owner as usize];
        if half.is_opener && half.tells && !half.is_closed && !half.sender.is_established() {
            self.upcalls.push(Upcall::Refused(packet.owner));
        }
        half.sender.abort();
        half.timer_at = u64::MAX;
        if let Some(other) = half.other {
            self.halves[other as usize].is_closed = true;
        }
        self.leave_group(packet.owner);
        self.servers.left(packet.owner);
    }
}
