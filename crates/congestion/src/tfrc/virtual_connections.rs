//! How the packets of one flow are divided among the connections that it stands for.
//!
//! A flow that sends at n times TFRC's rate must not take the losses of all its packets for those of one
//! connection: within a round trip it would see n times as many, and they would still be one loss event. So
//! each packet belongs to one of n virtual connections, in turn, and loss events are found in each of these
//! alone. That is the bandwidth filter of D. E. Ott, T. Sparks, K. Mayer-Patel, "Aggregate congestion control
//! for distributed multimedia applications" (INFOCOM 2004), which AIO-TFRC uses: a stream of packets with the
//! bandwidth of a single connection.

/// The most connections that a flow stands for: it bounds what the receiver keeps.
pub(super) const MOST_FLOWS: u16 = 100;

/// A number of connections within its bounds: at least one. No number is one.
pub(super) fn bounded(flows: f64) -> f64 {
    // `max` passes over what is no number.
    flows.max(1.0).min(f64::from(MOST_FLOWS))
}

/// How many virtual connections there are, the one included that is only a part of one.
pub(super) fn count(flows: f64) -> usize {
    (1..=usize::from(MOST_FLOWS)).find(|&count| part(flows, count) <= 0.0).unwrap_or(usize::from(MOST_FLOWS))
}

/// Which part of a connection's bandwidth the virtual connection `index` has: one, or for the last what is
/// left.
pub(super) fn part(flows: f64, index: usize) -> f64 {
    let index = u16::try_from(index).map_or(f64::MAX, f64::from);
    (flows - index).clamp(0.0, 1.0)
}

/// Numbers the packets at the sender.
#[derive(Clone, Debug)]
pub(super) struct Numbering {
    flows: f64,
    /// Where the next packet falls in the round of all connections, from zero to `flows`.
    position: f64,
    /// The next number of each connection. They go on where they were when a connection returns.
    next: Vec<u64>,
}

impl Numbering {
    pub(super) fn new() -> Self {
        Self { flows: 1.0, position: 0.0, next: vec![0] }
    }

    pub(super) fn flows(&self) -> f64 {
        self.flows
    }

    pub(super) fn set_flows(&mut self, flows: f64) {
        self.flows = bounded(flows);
        if self.position >= self.flows {
            self.position = 0.0;
        }
        let count = count(self.flows).max(self.next.len());
        self.next.resize(count, 0);
    }

    /// The connection of the next packet, and its number there.
    pub(super) fn take(&mut self) -> (u16, u64) {
        let mut connection = 0;
        while f64::from(connection + 1) <= self.position && connection + 1 < MOST_FLOWS {
            connection += 1;
        }
        self.position += 1.0;
        if self.position >= self.flows {
            self.position = (self.position - self.flows).min(1.0);
        }
        let next = &mut self.next[usize::from(connection)];
        let number = *next;
        *next = number.saturating_add(1);
        (connection, number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_connection_has_all_packets() {
        let mut numbering = Numbering::new();
        assert_eq!([numbering.take(), numbering.take(), numbering.take()], [(0, 0), (0, 1), (0, 2)]);
    }

    #[test]
    fn counts_and_parts() {
        for (flows, connections) in [(1.0, 1), (1.25, 2), (2.0, 2), (3.85, 4), (100.0, 100)] {
            assert_eq!(count(flows), connections, "{flows}");
        }
        assert_eq!((part(2.5, 1), part(2.5, 2), part(2.5, 3)), (1.0, 0.5, 0.0));
        let absurd = [f64::NAN, 0.0, -3.0, f64::NEG_INFINITY];
        assert!(absurd.iter().all(|flows| bounded(*flows) == 1.0));
        assert_eq!(bounded(f64::INFINITY), f64::from(MOST_FLOWS));
    }

    proptest! {
        #[test]
        fn each_connection_gets_its_part(flows in 1.0f64..20.0) {
            let mut numbering = Numbering::new();
            numbering.set_flows(flows);
            let mut packets = vec![0u32; count(flows)];
            const ROUNDS: f64 = 2000.0;
            for _ in 0..(ROUNDS * flows) as u32 {
                let (connection, number) = numbering.take();
                let packets = &mut packets[usize::from(connection)];
                prop_assert_eq!(number, u64::from(*packets));
                *packets += 1;
            }
            for (index, packets) in packets.into_iter().enumerate() {
                let expected = ROUNDS * part(flows, index);
                prop_assert!((f64::from(packets) - expected).abs() < 2.0 + 0.02 * ROUNDS, "{index}: {packets}");
            }
        }

        #[test]
        fn changes_keep_it_within_bounds(steps in prop::collection::vec((any::<f64>(), 0usize..50), 1..30)) {
            let mut numbering = Numbering::new();
            for (flows, packets) in steps {
                numbering.set_flows(flows);
                for _ in 0..packets {
                    let (connection, _) = numbering.take();
                    prop_assert!(usize::from(connection) < count(numbering.flows()));
                }
            }
        }
    }
}
