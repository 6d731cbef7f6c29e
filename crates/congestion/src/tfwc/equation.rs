//! The window that TCP has at a loss event rate.

/// The equation has no use for longer intervals: at this one the window is beyond 10^8 packets.
const LONGEST_INTERVAL: f64 = 1e16;

/// The window in packets at a mean loss interval in packets, the inverse of the loss event rate p (TTFWC,
/// equation 2.1):
///
/// ```text
/// 1 / (sqrt(2p/3) + 12 sqrt(3p/8) p (1 + 32 p^2))
/// ```
///
/// That is Padhye's equation with one packet for each acknowledgement and a retransmission time-out of four
/// round trips, so that the round trip falls out. An interval below one packet counts as one, not-a-number
/// too.
pub fn window(mean_interval: f64) -> f64 {
    let interval = if mean_interval >= 1.0 { mean_interval.min(LONGEST_INTERVAL) } else { 1.0 };
    let p = 1.0 / interval;
    let congestion_avoidance = (2.0 * p / 3.0).sqrt();
    let timeouts = 12.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p);
    1.0 / (congestion_avoidance + timeouts)
}

/// The mean loss interval at which the window is this, in packets: the inverse of [`window`], and at least
/// one. What TFRC calls the pseudo interval, because the history before the first loss event says nothing of
/// the path (RFC 5348, section 6.3.1).
pub fn interval(window_wanted: f64) -> f64 {
    // The window grows with the interval and is never above sqrt(3/2) of its root, so the answer lies between
    // these.
    let (mut short, mut long) = (1.0, LONGEST_INTERVAL);
    if window(long) <= window_wanted {
        return long;
    }
    for _ in 0..128 {
        let middle = 0.5 * (short + long);
        if window(middle) < window_wanted {
            short = middle;
        } else {
            long = middle;
        }
    }
    long
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_window_by_hand() {
        // p = 0.015: sqrt(0.01) = 0.1; 12 sqrt(0.005625) = 0.9; 0.9 * 0.015 * 1.0072 = 0.0135972.
        let expected = 1.0 / 0.113_597_2;
        assert!((window(1.0 / 0.015) - expected).abs() < 1e-9, "{}", window(1.0 / 0.015));
        // All lost: sqrt(2/3) + 12 sqrt(3/8) 33.
        assert!((window(1.0) - 1.0 / (0.816_496_6 + 242.499_5)).abs() < 1e-6, "{}", window(1.0));
        assert_eq!(window(f64::NAN), window(1.0));
        assert!(window(f64::INFINITY) > 1e8);
    }

    proptest! {
        #[test]
        fn an_interval_gives_back_its_window(packets in 1.0f64..1e9) {
            let found = interval(window(packets));
            prop_assert!((found / packets - 1.0).abs() < 1e-6, "{found} instead of {packets}");
        }

        #[test]
        fn longer_intervals_make_larger_windows(packets in 1.0f64..1e9, more in 0.0f64..1e6) {
            prop_assert!(window(packets + more) >= window(packets));
        }
    }
}
