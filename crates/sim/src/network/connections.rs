//! TCP in the network: set-up, segments, acknowledgements, timers.

use std::hint::black_box;

use anabranch_units::Time;

use super::{Kind, Network, Upcall};
use crate::model::{FlowId, Tcp};
use crate::packet::{Packet, What, Window, blocks, sack};
use crate::report::Decision;
use crate::tcp::{Acknowledgement, Answer, Event, NO_LIMIT, Receiver, Segment, Sender};

/// A half connection's place in [`Network::halves`].
pub(crate) type HalfId = u32;

/// Which of a connection's ends a half's data comes from, and what set it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The sender opens the connection.
    Opener,
    /// The receiver opens the connection; its own half is this one.
    Answerer(HalfId),
}

/// Counted since the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub sent: u64,
    pub dropped: u64,
    pub lost: u64,
    pub retransmitted: u64,
    pub loss_events: u64,
    pub timeouts: u64,
    pub arrived_wire: u64,
    /// Data packets that arrived, and those of them that came beyond a gap.
    pub arrived: u64,
    pub out_of_order: u64,
}

/// Data of a connection in one direction: a sender at one end, a receiver at the other.
#[derive(Debug)]
pub(crate) struct Half {
    pub flow: FlowId,
    pub connection: u32,
    pub is_opener: bool,
    pub sender: Sender,
    pub receiver: Receiver,
    pub counters: Counters,
    pub header: u32,
    /// The half of the other direction that is set up together with this one.
    other: Option<HalfId>,
    segment: u64,
    data_path: u32,
    ack_path: u32,
    /// Where the receiver stopped listening.
    is_closed: bool,
    /// Whether the set-up and arrivals are told to the user.
    pub tells: bool,
    set_up_sent: u64,
    set_up_tries: u32,
    /// When the retransmission timer's event comes; [`u64::MAX`]: there is none. The deadline may be later by then.
    timer_at: u64,
    /// When the delayed acknowledgement's event comes, and when it is due: events are put off like those of the timer.
    delayed_ack_at: u64,
    delayed_ack_due: u64,
    jitter: u64,
    jitter_is_pending: bool,
}

const SET_UP_SIZE: u16 = 40;
const SACK_BLOCK_SIZE: u32 = 8;

impl Half {
    /// Payload of a full segment.
    pub(crate) fn segment(&self) -> u64 {
        self.segment
    }

    /// Reads of what an arriving acknowledgement needs; see [`Network::touch_due`].
    #[inline]
    pub(super) fn touch_sender(&self) {
        self.sender.touch();
        black_box((self.counters.sent, self.timer_at));
    }

    /// Reads of what an arriving segment needs.
    #[inline]
    pub(super) fn touch_receiver(&self) {
        self.receiver.touch();
        black_box((self.counters.arrived, self.timer_at));
    }

    /// The path of the sender's packets, or that of the receiver's.
    pub(super) fn path(&self, is_from_sender: bool) -> u32 {
        if is_from_sender { self.data_path } else { self.ack_path }
    }
}

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
        let other = match role {
            Role::Opener => None,
            Role::Answerer(opener) => {
                self.halves[opener as usize].other = Some(id);
                Some(opener)
            }
        };
        self.halves.push(Half {
            flow,
            connection,
            is_opener: role == Role::Opener,
            sender: Sender::new(tcp, written.min(NO_LIMIT)),
            receiver: Receiver::new(tcp),
            counters: Counters::default(),
            header: tcp.header.get() as u32,
            other,
            segment: tcp.segment.get(),
            data_path: paths.0,
            ack_path: paths.1,
            is_closed: false,
            tells: false,
            set_up_sent: 0,
            set_up_tries: 0,
            timer_at: u64::MAX,
            delayed_ack_at: u64::MAX,
            delayed_ack_due: u64::MAX,
            jitter: tcp.send_jitter.as_nanos(),
            jitter_is_pending: false,
        });
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

    fn send_control(&mut self, id: HalfId, what: What, hop: u32) {
        let packet = Packet::new(what, id, hop, 0, SET_UP_SIZE);
        self.send(packet);
    }

    pub(super) fn syn_arrives(&mut self, packet: &Packet) {
        let half = &self.halves[packet.owner as usize];
        let hop = half.ack_path;
        if let Some(other) = half.other {
            // The answerer may send as soon as something was asked of it; the first round trip is measured on data.
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
        half.sender.abort();
        half.timer_at = u64::MAX;
        if let Some(other) = half.other {
            self.halves[other as usize].is_closed = true;
        }
    }

    #[inline]
    pub(super) fn data_arrives(&mut self, packet: &Packet) {
        let now = self.now;
        let id = packet.owner;
        let half = &mut self.halves[id as usize];
        if half.is_closed {
            return;
        }
        half.counters.arrived_wire += u64::from(packet.size);
        half.counters.arrived += 1;
        half.counters.out_of_order += u64::from(packet.sequence > half.receiver.next());
        let before = half.receiver.next();
        let end = packet.sequence + u64::from(packet.size) - u64::from(half.header);
        let answer = half.receiver.segment(packet.sequence, end, packet.timestamp, now);
        let news = half.receiver.next() - before;
        if news > 0 && half.tells {
            self.upcalls.push(Upcall::Delivered(id, news));
        }
        match answer {
            Answer::Now => self.send_ack(id),
            Answer::By(at) => {
                half.delayed_ack_due = at;
                if at < half.delayed_ack_at {
                    half.delayed_ack_at = at;
                    self.schedule(at, Kind::DelayedAck, id);
                }
            }
            Answer::Later => {}
        }
    }

    pub(super) fn delayed_ack(&mut self, id: HalfId) {
        let half = &mut self.halves[id as usize];
        if half.delayed_ack_at != self.now {
            // An earlier event took this one's place.
            return;
        }
        half.delayed_ack_at = u64::MAX;
        if !half.receiver.owes_ack() || half.is_closed {
            return;
        }
        let due = half.delayed_ack_due;
        if due <= self.now {
            self.send_ack(id);
        } else {
            half.delayed_ack_at = due;
            self.schedule(due, Kind::DelayedAck, id);
        }
    }

    #[inline]
    fn send_ack(&mut self, id: HalfId) {
        let half = &mut self.halves[id as usize];
        let (next, window, blocks, timestamp) = half.receiver.acknowledge();
        let used = blocks.iter().filter(|(start, end)| start < end).count() as u32;
        let size = (half.header + SACK_BLOCK_SIZE * used) as u16;
        let mut packet = Packet::new(What::Ack, id, half.ack_path, next, size);
        packet.window = Window::new(window);
        packet.timestamp = timestamp;
        if used > 0 {
            self.packets.set_extra(&mut packet, sack(next, blocks));
        }
        self.send(packet);
    }

    #[inline]
    pub(super) fn ack_arrives(&mut self, packet: &Packet) {
        let now = self.now;
        let id = packet.owner;
        let blocks = blocks(packet.sequence, self.packets.extra(packet));
        let half = &mut self.halves[id as usize];
        let acknowledgement = Acknowledgement {
            next: packet.sequence,
            window: packet.window.get(),
            blocks,
            echo: packet.timestamp,
        };
        if half.sender.acknowledgement(&acknowledgement, now) == Event::Loss {
            half.counters.loss_events += 1;
            self.tell(id, "loss_event", "three segments beyond the missing one have arrived");
        }
        self.pump(id, false);
    }

    pub(super) fn retransmission_timer(&mut self, id: HalfId) {
        let half = &mut self.halves[id as usize];
        if half.timer_at != self.now {
            // An earlier event took this one's place.
            return;
        }
        half.timer_at = u64::MAX;
        let deadline = half.sender.deadline();
        if deadline <= self.now {
            half.sender.timer(self.now);
            if half.sender.is_established() {
                half.counters.timeouts += 1;
                half.counters.loss_events += 1;
                self.tell(id, "timeout", "no acknowledgement came in time");
            } else {
                half.set_up_tries += 1;
                let hop = half.data_path;
                self.send_control(id, What::Syn, hop);
            }
            self.pump(id, false);
        } else {
            self.sync_timer(id);
        }
    }

    /// Sees to it that the retransmission timer's event comes no later than its deadline. When the deadline has moved on
    /// by then, the event is put off, so that an acknowledgement costs no event.
    #[inline]
    pub(super) fn sync_timer(&mut self, id: HalfId) {
        let half = &mut self.halves[id as usize];
        let deadline = half.sender.deadline();
        if deadline < half.timer_at {
            half.timer_at = deadline;
            self.schedule(deadline, Kind::Retransmission, id);
        }
    }

    pub(super) fn jitter_over(&mut self, id: HalfId) {
        self.halves[id as usize].jitter_is_pending = false;
        self.pump(id, true);
    }

    /// Sends what may be sent. With a random delay of sending, only what is urgent goes unless the delay is over.
    #[inline]
    pub(super) fn pump(&mut self, id: HalfId, delay_is_over: bool) {
        if self.halves[id as usize].sender.is_shared() {
            self.share(id, delay_is_over);
            return;
        }
        let now = self.now;
        loop {
            let half = &mut self.halves[id as usize];
            if half.jitter > 0 && !delay_is_over && !half.sender.is_urgent() {
                if half.sender.may_send() {
                    self.delay_sending(id);
                }
                break;
            }
            let Some(segment) = half.sender.poll(now) else { break };
            self.transmit(id, segment);
        }
        self.sync_timer(id);
    }

    /// Sending waits for the random delay, if it does not yet; `false` where there is none.
    pub(super) fn delay_sending(&mut self, id: HalfId) -> bool {
        let half = &mut self.halves[id as usize];
        if half.jitter == 0 {
            return false;
        }
        if !std::mem::replace(&mut half.jitter_is_pending, true) {
            let (flow, longest) = (half.flow, half.jitter);
            let delay = self.random(flow).below(longest);
            self.schedule(self.now + delay, Kind::Jitter, id);
        }
        true
    }

    #[inline]
    pub(super) fn transmit(&mut self, id: HalfId, segment: Segment) {
        let half = &mut self.halves[id as usize];
        half.counters.sent += 1;
        half.counters.retransmitted += u64::from(segment.is_retransmission);
        self.data_packets += 1;
        let size = (segment.end - segment.start) as u32 + half.header;
        let mut packet = Packet::new(What::Data, id, half.data_path, segment.start, size as u16);
        packet.timestamp = (self.now / 1000) as u32;
        self.send(packet);
    }

    fn tell(&mut self, id: HalfId, what: &'static str, why: &str) {
        if self.tells_loss_events {
            let half = &self.halves[id as usize];
            self.decisions.push(Decision {
                at: Time::from_nanos(self.now),
                flow: half.flow,
                connection: Some(half.connection),
                what,
                value: Some(half.sender.cwnd()),
                why: why.to_owned(),
            });
        }
    }
}
