//! MultiTCP: a wanted rate over several TCP connections by their number and their receive windows (chapter
//! 6).
//!
//! - [`Basic`]: a fixed number of connections (section 6.3).
//! - [`Advanced`]: a number that follows congestion (section 6.5).
//!
//! The paper's MTU is the payload of a full packet here ([`crate::control::ConnectionSample::packet_size`]).

mod advanced;
mod basic;
mod windows;

pub use advanced::{Advanced, AdvancedParameters, PreviousRatio};
use anabranch_units::{Duration, Rate, Ratio};
pub use basic::Basic;

use crate::interval::Interval;

/// Most connections that a MultiTCP controller takes as its number. Ours: the papers use up to eight.
pub const MOST_CONNECTIONS: u32 = 256;

/// Parameters of the basic algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Number of connections (N), for the advanced algorithm the largest number; 1 to [`MOST_CONNECTIONS`].
    pub connections: u32,
    /// Measuring interval (delta).
    pub interval: Interval,
    /// Weight of the past in the average of the measured throughput (alpha), below one.
    pub smoothing: Ratio,
    /// How far the measured throughput may be above the wanted one (lambda).
    ///
    /// The tables give it as "bytes"; added to a throughput in T_d + lambda it is bytes per second.
    pub threshold: Rate,
    /// The sum of the windows grows to this multiple of T_d RTT / MTU (f), above two.
    pub spike_factor: Ratio,
}

/// A throughput in bytes per second, as the tables give lambda.
const fn bytes_per_second(bytes: u64) -> Rate {
    Rate::from_bps(bytes * 8)
}

impl Parameters {
    /// Table 8.1 (simulations), with N = 5, the default of section 6.3 and the largest number of section
    /// 8.1.1.
    pub const TABLE_8_1: Self = Self {
        connections: 5,
        interval: Interval::Fixed(Duration::from_millis(300)),
        smoothing: Ratio::new(9, 10),
        threshold: bytes_per_second(7000),
        spike_factor: Ratio::new(6, 1),
    };

    /// Table 8.2 (Internet, basic algorithm), with N = 8, the larger number of section 8.1.2 and the one that
    /// held the rate.
    pub const TABLE_8_2: Self = Self {
        connections: 8,
        interval: Interval::RoundTrips(6),
        smoothing: Ratio::new(9, 10),
        threshold: bytes_per_second(3000),
        spike_factor: Ratio::new(10, 1),
    };

    /// Table 8.3 (Internet, advanced algorithm) as far as it concerns the basic steps, with at most 5
    /// connections.
    ///
    /// The table says "0 - 0.9" for alpha. This is the lower end: with 0.9 the average lags behind the
    /// windows for ten intervals while a connection may come or go in each, and their number swings between
    /// one and N (a test shows it).
    pub const TABLE_8_3: Self =
        Self { connections: 5, smoothing: Ratio::ZERO, spike_factor: Ratio::new(6, 1), ..Self::TABLE_8_2 };
}

impl Default for Parameters {
    /// Table 8.1 with delta = 8 RTT, which section 6.3 recommends.
    fn default() -> Self {
        Self { interval: Interval::RoundTrips(8), ..Self::TABLE_8_1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_the_values_of_the_tables() {
        assert_eq!(Parameters::TABLE_8_1.threshold, Rate::from_kbps(56));
        assert_eq!(Parameters::TABLE_8_1.interval.at(Duration::ZERO), Duration::from_millis(300));
        assert_eq!(Parameters::TABLE_8_2.threshold, Rate::from_kbps(24));
        assert_eq!(Parameters::TABLE_8_2.spike_factor, Ratio::from_f64(10.0));
        assert_eq!(Parameters::TABLE_8_3.interval.at(Duration::from_millis(50)), Duration::from_millis(300));
        assert_eq!(Parameters::TABLE_8_3.spike_factor, Ratio::from_f64(6.0));
        assert_eq!(AdvancedParameters::TABLE_8_3.congestion_factor, Ratio::from_f64(5.0));
        assert_eq!(Parameters::default().connections, 5);
    }
}
