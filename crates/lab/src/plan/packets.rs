//! The packets of a flow one by one, from samples that are so short that few packets share one.

use std::collections::VecDeque;

use anabranch_sim::model::{FlowId, Kind, Model};
use anabranch_units::Bytes;

use crate::simulate::Recording;

/// A packet, in the order of sending.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Packet {
    /// How many connections were open when it was sent.
    pub(super) connections: u32,
    /// The end of the sample in which it left, in seconds.
    pub(super) sent: f64,
    /// The end of that in which it came to the receiver, in seconds; `None`: it was lost.
    pub(super) arrived: Option<f64>,
}

/// The size of a flow's packets on the wire, if all have the same.
pub(super) fn size(model: &Model, flow: FlowId) -> Option<Bytes> {
    match model.flows.get(flow).map(|flow| &flow.kind) {
        Some(Kind::Tfrc { size, .. } | Kind::Udp { size, .. }) => Some(*size),
        _ => None,
    }
}

/// A flow's packets, all of one size, which arrive in the order in which they left; those that were still on
/// their way at the end are left out.
///
/// A sample has to be as long as the way to the link that loses: what is lost there was sent in the sample
/// before the one that counts it.
pub(super) fn of_flow(run: &Recording, flow: FlowId, size: Bytes) -> Vec<Packet> {
    let mut packets: Vec<Packet> = Vec::new();
    // Those whose fate is not known yet.
    let mut under_way = VecDeque::new();
    for sample in run.flow(flow) {
        let at = sample.at.as_secs_f64();
        for _ in 0..sample.lost {
            under_way.pop_back();
        }
        for _ in 0..sample.sent {
            under_way.push_back(packets.len());
            packets.push(Packet { connections: sample.connections, sent: at, arrived: None });
        }
        for _ in 0..sample.arrived_wire.get() / size.get().max(1) {
            let arrived = under_way.pop_front().and_then(|place: usize| packets.get_mut(place));
            arrived.into_iter().for_each(|packet| packet.arrived = Some(at));
        }
    }
    packets.truncate(under_way.front().copied().unwrap_or(packets.len()));
    packets
}

/// Those that were sent from one second on and before another.
pub(super) fn within(packets: &[Packet], from: f64, to: f64) -> &[Packet] {
    let before = |moment: f64| packets.partition_point(|packet| packet.sent < moment);
    let end = before(to);
    packets.get(before(from).min(end)..end).unwrap_or_default()
}

/// The lengths of the bursts of losses, with the number of connections at the beginning of each.
pub(super) fn bursts(packets: &[Packet]) -> impl Iterator<Item = (u32, f64)> {
    packets
        .chunk_by(|one, next| one.arrived.is_none() == next.arrived.is_none())
        .filter(|burst| burst.iter().all(|packet| packet.arrived.is_none()))
        .filter_map(|burst| Some((burst.first()?.connections, burst.len() as f64)))
}

#[cfg(test)]
pub(super) mod tests {
    use anabranch_sim::report::FlowSample;
    use anabranch_units::{Duration, Time};

    use super::*;

    /// So many packets, each of which comes to the receiver so many seconds after the one before it.
    pub(in crate::plan) fn trace(count: usize, every: f64, is_lost: impl Fn(usize) -> bool) -> Vec<Packet> {
        let arrived = |number: usize| (!is_lost(number)).then(|| (number + 1) as f64 * every);
        (0..count).map(|number| Packet { connections: 1, sent: 0.0, arrived: arrived(number) }).collect()
    }

    #[test]
    fn bursts_are_losses_in_a_row() {
        let mut packets = trace(10, 1.0, |number| [1, 2, 5].contains(&number));
        packets[5].connections = 2;
        assert_eq!(bursts(&packets).collect::<Vec<_>>(), [(1, 2.0), (2, 1.0)]);
    }

    #[test]
    fn a_packet_is_lost_that_was_sent_in_the_sample_before() {
        let sample = |second: u64, sent: u64, lost: u64, arrived: u64| FlowSample {
            at: Time::ZERO + Duration::from_secs(second),
            connections: 1,
            sent,
            lost,
            arrived_wire: Bytes::new(1000 * arrived),
            ..FlowSample::default()
        };
        // Of the second and third packet the third is lost; the fourth is on its way at the end.
        let flows = vec![sample(1, 1, 0, 0), sample(2, 2, 0, 1), sample(3, 1, 1, 0), sample(4, 0, 0, 1)];
        let run = Recording { flows, ..Recording::default() };
        let packets = of_flow(&run, 0, Bytes::new(1000));
        let fates: Vec<_> = packets.iter().map(|packet| (packet.sent, packet.arrived)).collect();
        assert_eq!(fates, [(1.0, Some(2.0)), (2.0, Some(4.0)), (2.0, None)]);
        assert_eq!(within(&packets, 1.0, 2.0).len(), 1);
        assert_eq!(within(&packets, 2.0, 1.0), []);
    }
}
