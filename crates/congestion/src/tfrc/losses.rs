//! What the receiver knows of the losses of one connection, or of each of the virtual ones that its packets
//! stand for.

use anabranch_units::{Duration, Time};

use super::loss_events::{Arrival, LossDetector, LossEvents};
use super::{Filter, PacketInfo, Parameters, virtual_connections};
use crate::loss_history::LossHistory;

/// One connection's losses: found, joined to events, remembered.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    history: LossHistory,
    events: LossEvents,
    /// Known since the first packet.
    detector: Option<LossDetector>,
    newest: u64,
}

/// What a loss is judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judge {
    /// Losses within a round trip are one event.
    pub(super) rtt: Option<Duration>,
    /// The round of the newest packet, where events need a report.
    pub(super) round: Option<u64>,
}

impl Losses {
    fn new(parameters: &Parameters) -> Self {
        let history = LossHistory::new(parameters.intervals, parameters.discounting);
        Self {
            history: if parameters.lost_packet_counts { history } else { history.without_lost_packet() },
            events: LossEvents::default(),
            detector: None,
            newest: 0,
        }
    }

    /// A packet arrived. `false` if it is a duplicate, or comes after it was taken for lost.
    fn packet(&mut self, sequence: u64, later_packets: u32, now: Time) -> bool {
        let arrival = Arrival { sequence, time: now };
        let is_new = match &mut self.detector {
            Some(detector) => detector.packet(arrival),
            None => {
                self.detector = Some(LossDetector::new(arrival, later_packets));
                true
            }
        };
        self.newest = self.newest.max(sequence);
        is_new
    }

    /// Puts the losses that have become certain into the history, and answers with the number of loss events.
    fn take(&mut self, judge: Judge, mut first_interval: impl FnMut() -> f64) -> u64 {
        // One more event than intervals count: the first of them closes an interval of unknown length.
        let most = self.history.intervals() + 1;
        let mut count = 0;
        while let Some(hole) = self.detector.as_mut().and_then(LossDetector::next_hole) {
            for sequence in self.events.in_hole(&hole, judge.rtt, judge.round, most) {
                count += 1;
                if self.history.is_empty() {
                    self.history.begin(sequence, first_interval());
                } else {
                    self.history.event(sequence);
                }
            }
        }
        self.history.advance(self.newest);
        count
    }
}

/// The losses of all virtual connections of a flow; of a flow that is one connection, just its own.
#[derive(Clone, Debug)]
pub(super) struct FlowLosses {
    parameters: Parameters,
    connections: Vec<Losses>,
    /// How many connections the flow stands for (n): the last one may be a part of one.
    flows: f64,
}

impl FlowLosses {
    pub(super) fn new(parameters: Parameters) -> Self {
        Self { connections: vec![Losses::new(&parameters)], parameters, flows: 1.0 }
    }

    /// How many connections the flow stands for (n).
    pub(super) fn flows(&self) -> f64 {
        self.flows
    }

    /// The history of the first connection.
    pub(super) fn first_history(&self) -> &LossHistory {
        &self.connections[0].history
    }

    /// The flow stands for so many connections from now on. New ones take over what the others have seen of
    /// the path, as a history of their own would take long to come by.
    pub(super) fn set_flows(&mut self, flows: f64) {
        self.flows = virtual_connections::bounded(flows);
        let count = virtual_connections::count(self.flows);
        let known = self.mean_interval();
        self.connections.truncate(count);
        while self.connections.len() < count {
            let mut losses = Losses::new(&self.parameters);
            if let Some(interval) = known {
                losses.history.begin(0, interval);
            }
            self.connections.push(losses);
        }
    }

    /// A packet arrived. `false` if it is a duplicate, comes after it was taken for lost, or belongs to no
    /// connection.
    pub(super) fn packet(&mut self, packet: &PacketInfo, now: Time) -> bool {
        let Some(losses) = self.connections.get_mut(usize::from(packet.connection)) else { return false };
        if losses.detector.is_none() && !losses.history.is_empty() {
            // The interval that it took over begins here.
            let interval = losses.history.mean_interval().unwrap_or(1.0);
            losses.history.begin(packet.connection_sequence, interval);
        }
        losses.packet(packet.connection_sequence, self.parameters.later_packets, now)
    }

    /// Takes the losses that the last packet has made certain, and answers with the number of loss events.
    pub(super) fn take(&mut self, connection: u16, judge: Judge, first_interval: impl FnMut() -> f64) -> u64 {
        let losses = self.connections.get_mut(usize::from(connection));
        losses.map_or(0, |losses| losses.take(judge, first_interval))
    }

    /// The loss event rate (p) that a single connection would see.
    pub(super) fn loss_event_rate(&self) -> f64 {
        self.mean_interval().map_or(0.0, |packets| 1.0 / packets)
    }

    /// The mean loss interval over the connections that are looked at, each weighed with its part of a
    /// connection's packets. Those that have not lost anything yet say nothing.
    fn mean_interval(&self) -> Option<f64> {
        let looked_at = match self.parameters.filter {
            Filter::First => 1,
            Filter::All => self.connections.len(),
        };
        let (mut sum, mut weights) = (0.0, 0.0);
        for (index, losses) in self.connections[..looked_at].iter().enumerate() {
            if let Some(interval) = losses.history.mean_interval() {
                let weight = virtual_connections::part(self.flows, index);
                sum += weight * interval;
                weights += weight;
            }
        }
        (weights > 0.0).then(|| sum / weights)
    }
}
