//! What the paper derives about one stream with several connections over a link that loses packets by itself:
//! sections II and III.C of [the paper](super).
//!
//! Rates that a connection would need, such as T_b, come from [`simple_rate`] or from any other model of
//! [`crate::response`].

use anabranch_units::{Bytes, Duration, Rate};

/// The rate of one connection by the simple model, equation (1); at the least round-trip time and with the
/// losses of the link alone its upper bound T_b, equation (3). `constant` is k, between 0.7 and 1.3 depending
/// on the derivation.
///
/// [`Rate::MAX`] without loss or without delay, and where the result is no number.
pub fn simple_rate(constant: f64, packet_size: Bytes, rtt: Duration, loss: f64) -> Rate {
    let divisor = rtt.as_secs_f64() * loss.max(0.0).sqrt();
    if divisor > 0.0 {
        Rate::from_bps_f64(8.0 * constant * packet_size.as_f64() / divisor)
    } else {
        Rate::MAX
    }
}

/// The loss rate from end to end: what the queue drops (p_c) and what the link loses of the rest (p_w),
/// equation (2).
pub fn end_to_end_loss(wireless: f64, congestion: f64) -> f64 {
    wireless + (1.0 - wireless) * congestion
}

/// Theorem 1, equation (4): whether one connection, which can get `bound` at most (T_b), leaves a part of the
/// link unused.
pub fn underutilizes(bound: Rate, bandwidth: Rate) -> bool {
    bound < bandwidth
}

/// The number of connections of `bound` each (T_b) that use a link fully and no more, equation (5). Infinite
/// when a connection gets nothing.
pub fn optimal_connections(bound: Rate, bandwidth: Rate) -> f64 {
    if bound.is_zero() { f64::INFINITY } else { bandwidth.ratio_to(bound) }
}

/// The same in whole connections, equation (6), at least one; `None` when they cannot be counted.
pub fn optimal_whole_connections(bound: Rate, bandwidth: Rate) -> Option<u32> {
    let whole =
        bandwidth.as_bps().checked_add(bound.as_bps().checked_sub(1)?)?.checked_div(bound.as_bps())?;
    u32::try_from(whole.max(1)).ok()
}

/// How many round trips equation (9) needs from `from` connections up to `to` (section III.C): m (N1^2 -
/// N2^2) / (2 alpha). Zero when there is nothing to go.
pub fn round_trips_up(from: f64, to: f64, increase: f64, round_trips: u32) -> f64 {
    (f64::from(round_trips) * (to * to - from * from) / (2.0 * increase)).max(0.0)
}

/// How many round trips equation (9) needs from `from` connections down to `to` (section III.C): m (N1 - N2)
/// / beta. Zero when there is nothing to go.
pub fn round_trips_down(from: f64, to: f64, decrease: f64, round_trips: u32) -> f64 {
    (f64::from(round_trips) * (from - to) / decrease).max(0.0)
}

/// The part of the link that equation (9) uses on the mean, equation (10): the number of connections falls by
/// beta (`decrease`) from `optimal` (n*) and rises again. It falls to one at the least (the paper's second
/// footnote).
///
/// At least 2/3 whatever beta; one when there is nothing to fall.
pub fn utilization(optimal: f64, decrease: f64) -> f64 {
    if optimal <= 1.0 || decrease <= 0.0 {
        return 1.0;
    }
    let ratio = (optimal - decrease).max(1.0) / optimal;
    2.0 / 3.0 * (1.0 + ratio + ratio * ratio) / (1.0 + ratio)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RTT: Duration = Duration::from_millis(168);
    const SIZE: Bytes = Bytes::new(1000);

    #[test]
    fn the_papers_example() {
        // At p_w = 0.04 and k = 1.22: 8000 * 1.22 / (0.168 * 0.2) = 290,476 bit/s, so 3.44 connections fill 1
        // Mbps.
        let bound = simple_rate(1.22, SIZE, RTT, 0.04);
        assert_eq!(bound.as_bps(), 290_476);
        let bandwidth = Rate::from_mbps(1);
        assert!(underutilizes(bound, bandwidth) && !underutilizes(bandwidth, bandwidth));
        assert!((optimal_connections(bound, bandwidth) - 3.443).abs() < 1e-3);
        assert_eq!(optimal_whole_connections(bound, bandwidth), Some(4));
        assert_eq!(optimal_whole_connections(Rate::from_kbps(500), bandwidth), Some(2));
        assert_eq!(optimal_whole_connections(Rate::MAX, bandwidth), None);
        assert_eq!(optimal_whole_connections(Rate::ZERO, bandwidth), None);
        assert_eq!(simple_rate(1.22, SIZE, RTT, 0.0), Rate::MAX);
        assert!((end_to_end_loss(0.1, 0.2) - 0.28).abs() < 1e-12);
    }

    #[test]
    fn rates_of_change_by_hand() {
        // From 3 to 7 with (1, 1): 50 * 40 / 2 = 1000 round trips, of 0.2 s about the 214 s of figure 9; down
        // 200.
        assert_eq!(round_trips_up(3.0, 7.0, 1.0, 50), 1000.0);
        assert_eq!(round_trips_down(7.0, 3.0, 1.0, 50), 200.0);
        assert_eq!((round_trips_up(7.0, 3.0, 1.0, 50), round_trips_down(3.0, 7.0, 1.0, 50)), (0.0, 0.0));
    }

    #[test]
    fn utilization_by_hand() {
        // n* = 4, beta = 1: 2/3 * (1 + 3/4 + 9/16) / (7/4) = 37/42.
        assert!((utilization(4.0, 1.0) - 37.0 / 42.0).abs() < 1e-12);
        // n* = 1.5: it falls to one, not to a half.
        assert!(
            (utilization(1.5, 1.0) - 2.0 / 3.0 * (1.0 + 2.0 / 3.0 + 4.0 / 9.0) / (5.0 / 3.0)).abs() < 1e-12
        );
        assert_eq!((utilization(1.0, 1.0), utilization(0.3, 1.0), utilization(5.0, 0.0)), (1.0, 1.0, 1.0));
    }

    proptest! {
        #[test]
        fn utilization_is_at_least_two_thirds(optimal in 0.1f64..1e6, decrease in 0.0f64..1e6) {
            let utilization = utilization(optimal, decrease);
            prop_assert!((2.0 / 3.0 - 1e-9..=1.0 + 1e-9).contains(&utilization), "{utilization}");
        }

        #[test]
        fn enough_connections_are_enough(bound in 1u64..1_000_000, bandwidth in 1u64..100_000_000) {
            let count = optimal_whole_connections(Rate::from_bps(bound), Rate::from_bps(bandwidth)).unwrap();
            prop_assert!(u64::from(count) * bound >= bandwidth && (u64::from(count) - 1) * bound < bandwidth);
        }
    }
}
