//! The wanted rate shared among connections in proportion to what each could get: equations (2) to (5) of
//! TCP-ROME.

use anabranch_congestion::response::{TcpModel, window_for};
use anabranch_units::{Bytes, Duration, Packets, Rate, Ratio};

use crate::control::ConnectionSample;

/// Throughput that Padhye's model gives a connection: r of equation (2).
pub fn estimated_throughput(tcp: &TcpModel, packet_size: Bytes, srtt: Duration, loss: f64) -> Rate {
    tcp.throughput(packet_size, srtt, loss)
}

/// Shares of the wanted rate in proportion to the estimated throughputs: T_i of equation (3).
///
/// They add up to `wanted` to the bit; when nothing is estimated, they are equal.
pub fn proportional_rates(estimated: &[Rate], wanted: Rate) -> Vec<Rate> {
    let all_zero = estimated.iter().all(|rate| rate.is_zero());
    let weights: Vec<u128> =
        estimated.iter().map(|rate| if all_zero { 1 } else { rate.as_bps().into() }).collect();
    let sum: u128 = weights.iter().sum();
    // Up to which bit the connections so far go: differences of whole numbers lose nothing.
    let mut weight_so_far = 0;
    let mut given = 0;
    let share = |weight: u128| {
        weight_so_far += weight;
        let end = scaled(wanted.as_bps().into(), weight_so_far, sum);
        let share = end - given;
        given = end;
        Rate::from_bps(share)
    };
    weights.into_iter().map(share).collect()
}

/// `value` * `part` / `whole` with `part <= whole`, rounded down.
fn scaled(value: u128, part: u128, whole: u128) -> u64 {
    // Weights add up to less than 2^64 a connection; shifted below 2^64, the product fits into 128 bits.
    let shift = u128::BITS.saturating_sub(whole.leading_zeros()).saturating_sub(u64::BITS);
    let (part, whole) = (part >> shift, whole >> shift);
    u64::try_from(value * part / whole.max(1)).unwrap_or(u64::MAX)
}

/// The window that bounds a connection to a rate, at least one packet: W_max = T_i srtt_i / MTU.
///
/// Section III-D prints it upside down, MTU / (srtt_i T_i), which is no number of packets; MultiTCP's (6.1)
/// is the same relation the right way up.
pub fn window_of(rate: Rate, srtt: Duration, packet_size: Bytes) -> Packets {
    Packets::from_f64_ceil(window_for(rate, srtt, packet_size) - 0.5).max(Packets::new(1))
}

/// Throughput of all connections at their shares: equations (4) and (5).
pub fn expected_throughput(estimated: &[Rate], shares: &[Rate]) -> Rate {
    estimated.iter().zip(shares).map(|(estimate, share)| *estimate.min(share)).sum()
}

/// What is known of one connection since the last change: smoothed round-trip time and loss.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    /// srtt_i.
    pub(super) srtt: Duration,
    received: f64,
    lost: f64,
}

impl Estimate {
    /// The first measurement after a change: srtt_0 is the first measured RTT (end of section III-C).
    pub(super) fn restarted(sample: &ConnectionSample) -> Self {
        let mut estimate = Self { srtt: sample.srtt, received: 0.0, lost: 0.0 };
        estimate.count(sample);
        estimate
    }

    /// One more measurement: srtt = alpha srtt + (1 - alpha) RTT (footnote 4), and lost and received packets
    /// counted.
    pub(super) fn add(&mut self, sample: &ConnectionSample, alpha: Ratio) {
        self.srtt = self.srtt * alpha + sample.srtt * alpha.complement();
        self.count(sample);
    }

    fn count(&mut self, sample: &ConnectionSample) {
        let packets = sample.delivered.in_packets(sample.packet_size).as_f64();
        self.received += packets;
        self.lost += packets * sample.loss.clamp(0.0, 1.0);
    }

    /// Loss probability p_i.
    ///
    /// Equation (2) has no value without loss. That none of n packets was lost says of p only that it is
    /// hardly above 1 / n, so 1 / (n + 1) is taken for the least. Ours; with it a connection that delivers
    /// more without loss counts for more.
    pub(super) fn loss(&self) -> f64 {
        let least = 1.0 / (self.received + 1.0);
        if self.received > 0.0 { (self.lost / self.received).max(least) } else { least }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACKET: Bytes = Bytes::new(1000);

    #[test]
    fn equation_3_by_hand() {
        // Two connections with p = 0.015, b = 1, T_0 = 1 s. At 100 ms a packet goes every 10 + 3.3993 ms,
        // 597,046 bit/s (see the test of equation (2)); at 200 ms every 20 + 3.3993 ms: 341,891 bit/s. Of 3
        // Mbps the first gets 597,046 / 938,937 = 63.587 %: 1,907,623 bit/s.
        let tcp = TcpModel { packets_per_ack: 1, timeout: Duration::from_secs(1) };
        let estimated =
            [100, 200].map(|rtt| estimated_throughput(&tcp, PACKET, Duration::from_millis(rtt), 0.015));
        assert_eq!(estimated.map(Rate::as_bps), [597_046, 341_891]);
        let shares = proportional_rates(&estimated, Rate::from_mbps(3));
        assert_eq!(shares.iter().map(|rate| rate.as_bps()).collect::<Vec<_>>(), [1_907_623, 1_092_377]);
        // (4), (5): both are above what the connections can get, so those remain.
        assert_eq!(expected_throughput(&estimated, &shares), Rate::from_bps(938_937));
        // W = 1,907,623 * 0.1 / 8000 = 23.8 packets.
        assert_eq!(window_of(shares[0], Duration::from_millis(100), PACKET), Packets::new(24));
        assert_eq!(window_of(Rate::ZERO, Duration::from_millis(100), PACKET), Packets::new(1));
    }

    #[test]
    fn shares_at_the_edges() {
        let wanted = Rate::from_bps(100);
        assert_eq!(proportional_rates(&[], wanted), []);
        assert_eq!(proportional_rates(&[Rate::ZERO; 3], wanted), [33, 33, 34].map(Rate::from_bps));
        assert_eq!(proportional_rates(&[Rate::ZERO, Rate::MAX], wanted), [0, 100].map(Rate::from_bps));
        assert_eq!(proportional_rates(&[Rate::MAX; 2], Rate::MAX).into_iter().sum::<Rate>(), Rate::MAX);
    }

    proptest! {
        #[test]
        fn shares_add_up_and_keep_the_order(
            estimated in prop::collection::vec(any::<u64>().prop_map(Rate::from_bps), 1..20), wanted in any::<u64>(),
        ) {
            let wanted = Rate::from_bps(wanted);
            let shares = proportional_rates(&estimated, wanted);
            let sum: u128 = shares.iter().map(|share| u128::from(share.as_bps())).sum();
            prop_assert_eq!(sum, u128::from(wanted.as_bps()));
            prop_assert!(expected_throughput(&estimated, &shares) <= wanted);
            for (one, share) in estimated.iter().zip(&shares) {
                let exact = wanted.as_f64() * one.as_f64() / estimated.iter().map(|rate| rate.as_f64()).sum::<f64>();
                prop_assert!((share.as_f64() - exact).abs() <= 2.0 + 1e-9 * wanted.as_f64());
            }
        }
    }
}
