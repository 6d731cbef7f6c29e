//! Flows under TFRC: how many connections they have, or stand for.

use anabranch_congestion::multfrc::Decision as Choice;
use anabranch_units::{Duration, Time};

use super::state::{Network, Tfrc};
use crate::counted::FlowCounted;
use crate::model::FlowId;
use crate::report::Decision;

impl Network {
    /// A flow begins.
    pub(crate) fn begin_tfrc_flow(&mut self, group: u32) {
        let count = self.tfrc_flows[group as usize].aggregate.connections();
        self.open_tfrc(group, count as usize);
    }

    /// A flow sends no more packets.
    pub(crate) fn stop_tfrc_flow(&mut self, group: u32) {
        self.close_tfrc(group, 0);
    }

    /// What is counted of a flow.
    pub(crate) fn tfrc_flow_counted(&self, group: u32) -> FlowCounted {
        let mut counted = FlowCounted::default();
        for index in &self.tfrc_flows[group as usize].connections {
            counted += self.tfrc[*index as usize].counted();
        }
        counted
    }

    /// A flow's open connections, how many it stands for, and the mean of their smoothed round-trip times.
    pub(crate) fn tfrc_flow_state(&self, group: u32) -> (u32, f64, Duration) {
        let flow = &self.tfrc_flows[group as usize];
        let open = &flow.connections[..flow.open];
        let rtts = open.iter().filter_map(|index| self.tfrc[*index as usize].sender.rtt());
        let (sum, count) =
            rtts.fold((Duration::ZERO, 0), |(sum, count): (_, u64), rtt| (sum + rtt, count + 1));
        let flows = open.iter().map(|index| self.tfrc[*index as usize].sender.flows()).sum();
        (open.len() as u32, flows, if count > 0 { sum / count } else { Duration::ZERO })
    }

    /// A report brought a connection of a flow a round-trip time.
    pub(super) fn tfrc_flow_report(&mut self, connection: u32, group: u32, sample: Duration) {
        let now = Time::from_nanos(self.now);
        let flow = &mut self.tfrc_flows[group as usize];
        let usage = self.tfrc[connection as usize].sender.usage(None);
        let Some(choice) = flow.aggregate.report(now, sample, &usage) else { return };
        let (count, each, open) = (flow.aggregate.connections() as usize, flow.aggregate.flows(), flow.open);
        self.decisions.push(decision(flow.flow, &choice, now));
        if count > open {
            self.open_tfrc(group, count);
        } else {
            self.close_tfrc(group, count);
        }
        let flow = &self.tfrc_flows[group as usize];
        for index in &flow.connections[..flow.open] {
            self.tfrc[*index as usize].sender.set_flows(each);
        }
    }

    /// Opens connections until there are `count`: those that were closed last, then new ones.
    fn open_tfrc(&mut self, group: u32, count: usize) {
        while self.tfrc_flows[group as usize].open < count {
            let flow = &mut self.tfrc_flows[group as usize];
            if flow.open == flow.connections.len() {
                flow.connections.push(self.tfrc.len() as u32);
                let place = (group, flow.open as u32);
                self.tfrc.push(Tfrc::new(flow.flow, place, flow.size, flow.parameters, flow.paths));
            }
            let (index, parameters) = (flow.connections[flow.open], flow.parameters);
            flow.open += 1;
            self.begin_tfrc(index, parameters);
        }
    }

    /// Closes the connections that were opened last until there are `count`.
    fn close_tfrc(&mut self, group: u32, count: usize) {
        while self.tfrc_flows[group as usize].open > count {
            let flow = &mut self.tfrc_flows[group as usize];
            flow.open -= 1;
            let index = flow.connections[flow.open];
            self.stop_tfrc(index);
        }
    }
}

/// A choice as an event.
fn decision(flow: FlowId, choice: &Choice, now: Time) -> Decision {
    let Choice { connections, target, average, least, reason } = choice;
    Decision {
        at: now,
        flow,
        connection: None,
        what: "connections",
        value: Some(u64::from(*connections)),
        why: format!("{reason}: {average} on the mean, {least} at least; {target:.2} before it is rounded"),
    }
}
