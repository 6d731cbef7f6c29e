//! The segments of TCP connections in the network: data, acknowledgements, and the timers that send them.

use anabranch_queues::Codepoint;
use anabranch_units::Time;

use super::state::{HalfId, Kind, Network, Upcall};
use crate::packet::{PackedWindow, Packet, What, answered, blocks, marked};
use crate::report::Decision;
use crate::tcp::{Acknowledgement, Answer, Event, Segment};

const SACK_BLOCK_SIZE: u32 = 8;

impl Network {
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
        let bytes = u64::from(packet.size) - u64::from(half.header);
        let end = packet.sequence + bytes;
        let mut answer = half.receiver.segment(packet.sequence, end, packet.timestamp, now);
        if !packet.ecn.is_silent() {
            half.counters.marked += u64::from(packet.ecn.codepoint() == Codepoint::Ce);
            if half.receiver.notice(bytes, packet.ecn) {
                answer = Answer::Now;
            }
        }
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
    pub(super) fn send_ack(&mut self, id: HalfId) {
        let half = &mut self.halves[id as usize];
        let (next, window, blocks, timestamp) = half.receiver.acknowledge();
        let used = blocks.iter().filter(|(start, end)| start < end).count() as u32;
        let size = (half.header + SACK_BLOCK_SIZE * used) as u16;
        let mut packet = Packet::new(What::Ack, id, half.ack_path, next, size);
        packet.window = PackedWindow::new(window);
        packet.timestamp = timestamp;
        packet.ecn = half.receiver.echo();
        let marked = half.receiver.marked();
        if used > 0 || marked.is_some() {
            self.packets.set_extra(&mut packet, answered(next, blocks, marked.unwrap_or(0)));
        }
        self.send(packet);
    }

    #[inline]
    pub(super) fn ack_arrives(&mut self, packet: &Packet) {
        let now = self.now;
        let id = packet.owner;
        let extra = self.packets.extra(packet);
        let (blocks, marked) = (blocks(packet.sequence, extra), marked(extra));
        let half = &mut self.halves[id as usize];
        let acknowledgement = Acknowledgement {
            next: packet.sequence,
            window: packet.window.get(),
            blocks,
            echo: packet.timestamp,
            ecn: packet.ecn,
            marked,
        };
        if let Some(event) = half.sender.acknowledgement(&acknowledgement, now) {
            half.counters.loss_events += 1;
            let (what, why) = match event {
                Event::Loss => ("loss_event", "three segments beyond the missing one have arrived"),
                Event::Marks => ("marks", "segments have arrived that the path had marked"),
            };
            self.tell(id, what, why);
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

    /// Sees to it that the retransmission timer's event comes no later than its deadline. When the deadline
    /// has moved on by then, the event is put off, so that an acknowledgement costs no event.
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

    /// Sends what may be sent. With a random delay of sending, only what is urgent goes unless the delay is
    /// over.
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
        self.sync_departure(id);
    }

    /// Sees to it that a segment that waits for its departure time is asked for again then.
    #[inline]
    fn sync_departure(&mut self, id: HalfId) {
        let half = &mut self.halves[id as usize];
        let Some(at) = half.sender.departure() else { return };
        if at < half.departure_at {
            half.departure_at = at;
            self.schedule(at, Kind::Departure, id);
        }
    }

    pub(super) fn departure(&mut self, id: HalfId) {
        let half = &mut self.halves[id as usize];
        // Otherwise an earlier event took this one's place.
        if half.departure_at == self.now {
            half.departure_at = u64::MAX;
            self.pump(id, false);
        }
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
        packet.ecn = half.sender.ecn(&segment);
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
