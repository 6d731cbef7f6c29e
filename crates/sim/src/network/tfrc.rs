//! Connections under TFRC in the network: packets at its rate, reports, timers.

use anabranch_congestion::tfrc::{Feedback, PacketInfo, Parameters, Receiver, Sender};
use anabranch_units::{Bytes, Duration, Rate, Time};

use super::state::{Kind, Network, TIMER_BITS, TIMERS, Timer};
use crate::packet::{Extra, Packet, What};
use crate::report::Decision;

/// IP, UDP and 12 bytes of a report; ns-2 has the same.
const FEEDBACK_SIZE: u16 = 40;
/// The connection that a packet belongs to, below the packet's number there.
const CONNECTION_BITS: u32 = 16;
/// In place of an RTT that is not known yet.
const NO_RTT: u64 = u64::MAX;

/// What a packet of data carries beside its number.
fn info_to_extra(info: &PacketInfo) -> Extra {
    let rtt = info.rtt.map_or(NO_RTT, Duration::as_nanos);
    let connection = info.connection_sequence << CONNECTION_BITS | u64::from(info.connection);
    [info.timestamp.as_nanos(), rtt, info.round, info.flows.to_bits(), connection]
}

/// The inverse of [`info_to_extra`].
fn info_of(sequence: u64, extra: Extra) -> PacketInfo {
    let [timestamp, rtt, round, flows, connection] = extra;
    PacketInfo {
        sequence,
        timestamp: Time::from_nanos(timestamp),
        rtt: (rtt != NO_RTT).then_some(Duration::from_nanos(rtt)),
        round,
        flows: f64::from_bits(flows),
        connection: (connection & ((1 << CONNECTION_BITS) - 1)) as u16,
        connection_sequence: connection >> CONNECTION_BITS,
    }
}

impl Network {
    /// A connection begins, or begins anew.
    pub(super) fn begin_tfrc(&mut self, index: u32, parameters: Parameters) {
        let tfrc = &mut self.tfrc[index as usize];
        tfrc.loss_events_before = tfrc.loss_events();
        tfrc.sender = Sender::new(parameters, Bytes::new(tfrc.size.into()));
        tfrc.receiver = Receiver::new(parameters);
        tfrc.timer_at = [u64::MAX; TIMERS.len()];
        tfrc.life += 1;
        tfrc.is_running = true;
        self.send_tfrc(index);
    }

    /// A connection sends no more packets.
    pub(super) fn stop_tfrc(&mut self, index: u32) {
        self.tfrc[index as usize].is_running = false;
    }

    /// A timer's event.
    pub(super) fn tfrc_timer(&mut self, number: u32) {
        let (index, timer) = (number >> TIMER_BITS, TIMERS[(number & ((1 << TIMER_BITS) - 1)) as usize]);
        let now = self.now;
        let tfrc = &mut self.tfrc[index as usize];
        if tfrc.timer_at[timer as usize] != now {
            // An earlier event took this one's place.
            return;
        }
        tfrc.timer_at[timer as usize] = u64::MAX;
        if tfrc.deadline(timer) > now {
            self.sync_tfrc_timer(index, timer);
            return;
        }
        match timer {
            Timer::Send => self.send_tfrc(index),
            Timer::NoFeedback => {
                tfrc.sender.tick(Time::from_nanos(now));
                self.send_tfrc(index);
            }
            Timer::Report => {
                let report = tfrc.receiver.tick(Time::from_nanos(now));
                self.report(index, report);
            }
        }
    }

    /// Sees to it that a timer's event comes no later than its deadline. When the deadline has moved on by
    /// then, the event is put off.
    fn sync_tfrc_timer(&mut self, index: u32, timer: Timer) {
        let now = self.now;
        let tfrc = &mut self.tfrc[index as usize];
        let deadline = tfrc.deadline(timer).max(now);
        if deadline < tfrc.timer_at[timer as usize] {
            tfrc.timer_at[timer as usize] = deadline;
            self.schedule(deadline, Kind::Tfrc, index << TIMER_BITS | timer as u32);
        }
    }

    /// Sends what may leave now.
    fn send_tfrc(&mut self, index: u32) {
        let now = Time::from_nanos(self.now);
        loop {
            let tfrc = &mut self.tfrc[index as usize];
            if !tfrc.is_running || tfrc.sender.next_send() > now {
                break;
            }
            let info = tfrc.sender.sent(now, true);
            tfrc.sent += 1;
            let mut packet =
                Packet::new(What::TfrcData, index, tfrc.data_path, info.sequence, tfrc.size as u16);
            packet.timestamp = tfrc.life;
            self.packets.set_extra(&mut packet, info_to_extra(&info));
            self.data_packets += 1;
            self.send(packet);
        }
        self.sync_tfrc_timer(index, Timer::Send);
        self.sync_tfrc_timer(index, Timer::NoFeedback);
    }

    pub(super) fn tfrc_data_arrives(&mut self, packet: &Packet) {
        let now = Time::from_nanos(self.now);
        let tfrc = &mut self.tfrc[packet.owner as usize];
        tfrc.arrived += 1;
        if packet.timestamp != tfrc.life {
            return;
        }
        let info = info_of(packet.sequence, self.packets.extra(packet));
        let before = tfrc.receiver.loss_events();
        let report = tfrc.receiver.packet(&info, Bytes::new(packet.size.into()), now);
        if self.tells_loss_events {
            self.decisions.extend((before..tfrc.receiver.loss_events()).map(|_| Decision {
                at: now,
                flow: tfrc.flow,
                connection: Some(tfrc.connection),
                what: "loss_event",
                value: None,
                why: "packets are missing for longer than a round trip after the last event".to_owned(),
            }));
        }
        self.report(packet.owner, report);
    }

    /// Sends a report if there is one.
    fn report(&mut self, index: u32, report: Option<Feedback>) {
        if let Some(report) = report {
            let tfrc = &mut self.tfrc[index as usize];
            tfrc.reports += 1;
            let number = tfrc.reports - 1;
            let mut packet =
                Packet::new(What::TfrcFeedback, index, tfrc.feedback_path, number, FEEDBACK_SIZE);
            let extra = [
                report.timestamp.as_nanos(),
                report.delay.as_nanos(),
                report.receive_rate.as_bps(),
                report.loss_event_rate.to_bits(),
                0,
            ];
            packet.timestamp = tfrc.life;
            self.packets.set_extra(&mut packet, extra);
            self.send(packet);
        }
        self.sync_tfrc_timer(index, Timer::Report);
    }

    pub(super) fn tfrc_feedback_arrives(&mut self, packet: &Packet) {
        let now = Time::from_nanos(self.now);
        let tfrc = &mut self.tfrc[packet.owner as usize];
        if packet.timestamp != tfrc.life || !tfrc.is_running {
            return;
        }
        let [timestamp, delay, receive_rate, loss_event_rate, _] = self.packets.extra(packet);
        let feedback = Feedback {
            timestamp: Time::from_nanos(timestamp),
            delay: Duration::from_nanos(delay),
            receive_rate: Rate::from_bps(receive_rate),
            loss_event_rate: f64::from_bits(loss_event_rate),
        };
        let group = tfrc.group;
        if let Some(sample) = tfrc.sender.feedback(&feedback, now) {
            tfrc.rtt.0 += sample.as_nanos();
            tfrc.rtt.1 += 1;
            self.tfrc_flow_report(packet.owner, group, sample);
        }
        self.send_tfrc(packet.owner);
    }
}
