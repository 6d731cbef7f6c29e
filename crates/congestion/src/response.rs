//! Response functions: the rate that TCP gets from a path, and what several connections change about it.
//!
//! Sources: equation (2) of TCP-ROME (Padhye's model), and chapter 6 of MultiTCP. The papers' MTU is the
//! payload of a full packet here.

use anabranch_units::{Bytes, Duration, Packets, Rate};

const BITS_PER_BYTE: f64 = 8.0;

/// The two properties of TCP's end systems in Padhye's model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpModel {
    /// Packets that one ACK acknowledges (b): 2 with delayed ACKs.
    pub packets_per_ack: u32,
    /// The sender's retransmission timeout (T_0).
    pub timeout: Duration,
}

impl Default for TcpModel {
    /// Delayed ACKs as RFC 9293 section 3.8.6.3 has them, and the least timeout of RFC 6298 section 2.4.
    fn default() -> Self {
        Self { packets_per_ack: 2, timeout: Duration::from_secs(1) }
    }
}

/// Mean window of CUBIC at a round-trip time of a second and a loss rate of one, packets: (C (3 + beta) / (4
/// (1 - beta)))^(1/4).
const CUBIC_WINDOW: f64 = 1.054;

/// The forms of Padhye's equation. They differ where most losses lead to a timeout, above 30 % with b = 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Equation {
    /// At most every loss leads to a timeout (TCP-ROME equation (2)).
    Padhye,
    /// Without that bound (RFC 5348, section 3.1).
    Rfc5348,
    /// The same for a connection that grows its window as most of today's do, by CUBIC: its mean window is
    /// the larger one of Reno's and of CUBIC's own, 1.054 RTT^(3/4) / p^(3/4) (RFC 9438, section 5.1, figure
    /// 6, with C = 0.4 and beta = 0.7).
    Cubic,
}

impl Equation {
    const fn most_timeouts_per_loss(self) -> f64 {
        match self {
            Self::Padhye => 1.0,
            Self::Rfc5348 | Self::Cubic => f64::INFINITY,
        }
    }

    /// One by the mean window, without timeouts, where that of Reno gives `reno`.
    fn round_trips_per_packet(self, reno: f64, srtt: Duration, p: f64) -> f64 {
        match self {
            Self::Padhye | Self::Rfc5348 => reno,
            Self::Cubic => reno.min(libm::pow(p / srtt.as_secs_f64(), 0.75) / CUBIC_WINDOW),
        }
    }
}

impl TcpModel {
    /// Throughput of one TCP connection at a smoothed round-trip time and a loss probability (TCP-ROME
    /// equation (2)).
    ///
    /// Where the equation has no value it is continued: without loss nothing bounds the rate, so `loss` of
    /// zero or not-a-number gives [`Rate::MAX`]; a `loss` above one counts as one. At a round-trip time of
    /// zero only the timeout term remains, and without that as well the rate is [`Rate::MAX`].
    pub fn throughput(&self, packet_size: Bytes, srtt: Duration, loss: f64) -> Rate {
        self.throughput_by(Equation::Padhye, packet_size, srtt, loss)
    }

    /// The same by either form of the equation.
    pub fn throughput_by(&self, equation: Equation, packet_size: Bytes, srtt: Duration, loss: f64) -> Rate {
        let b = f64::from(self.packets_per_ack);
        let p = if loss > 0.0 { loss.min(1.0) } else { return Rate::MAX };
        let round_trips = equation.round_trips_per_packet((2.0 * b * p / 3.0).sqrt(), srtt, p);
        let congestion_avoidance = srtt.as_secs_f64() * round_trips;
        let timeouts_per_loss = (3.0 * (3.0 * b * p / 8.0).sqrt()).min(equation.most_timeouts_per_loss());
        let timeouts = self.timeout.as_secs_f64() * timeouts_per_loss;
        packets_every(congestion_avoidance + timeouts * p * (1.0 + 32.0 * p * p), packet_size)
    }

    /// The loss probability at which a connection gets `rate`: the inverse of [`Self::throughput_by`].
    ///
    /// One when it gets more than that even if all is lost, and never zero.
    pub fn loss_at(&self, equation: Equation, packet_size: Bytes, srtt: Duration, rate: Rate) -> f64 {
        let gets = |loss| self.throughput_by(equation, packet_size, srtt, loss);
        if gets(1.0) > rate {
            return 1.0;
        }
        // The equation falls with the loss, so halving finds it; 60 halvings are as fine as a float near one.
        let (mut too_little, mut enough) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = 0.5 * (too_little + enough);
            if gets(middle) > rate {
                too_little = middle;
            } else {
                enough = middle;
            }
        }
        enough
    }

    /// The square-root law: equation (2) of TCP-ROME without its timeout term, good for little loss.
    ///
    /// [`Rate::MAX`] at a loss or a round-trip time of zero; a `loss` above one counts as one.
    pub fn square_root_law(&self, packet_size: Bytes, srtt: Duration, loss: f64) -> Rate {
        Self { timeout: Duration::ZERO, ..*self }.throughput(packet_size, srtt, loss)
    }
}

/// One packet every so many seconds, as a rate.
fn packets_every(seconds: f64, packet_size: Bytes) -> Rate {
    if seconds > 0.0 {
        Rate::from_bps_f64((packet_size.as_f64() * BITS_PER_BYTE / seconds).round())
    } else {
        Rate::MAX
    }
}

/// Rate of a connection that its window limits (MultiTCP equation (6.1)): one window every round trip.
///
/// On a path without delay a window does not limit: [`Rate::MAX`].
pub fn window_rate(window: Packets, packet_size: Bytes, rtt: Duration) -> Rate {
    if rtt.is_zero() { Rate::MAX } else { Rate::of(window * packet_size, rtt) }
}

/// The window, in packets and not yet rounded, that gives `rate`: MultiTCP equation (6.1) solved for the
/// window.
///
/// Zero when `packet_size` is zero.
pub fn window_for(rate: Rate, rtt: Duration, packet_size: Bytes) -> f64 {
    if packet_size.is_zero() {
        0.0
    } else {
        rate.bytes_per_second() * rtt.as_secs_f64() / packet_size.as_f64()
    }
}

/// The least number of connections that get `wanted` beside `cross_flows` greedy TCP connections on a path of
/// `capacity`: N_min = ceil(T_d n / (C - T_d)), at least one.
///
/// It follows from fair shares, N C / (N + n) >= T_d (MultiTCP section 6.2 argues with them). `None` when the
/// path cannot carry the rate, or only with more connections than can be counted.
pub fn minimum_connections(wanted: Rate, capacity: Rate, cross_flows: u32) -> Option<u32> {
    if cross_flows == 0 {
        return (wanted <= capacity).then_some(1);
    }
    let left = capacity.as_bps().checked_sub(wanted.as_bps()).filter(|left| *left > 0)?;
    let connections = (u128::from(wanted.as_bps()) * u128::from(cross_flows)).div_ceil(left.into());
    u32::try_from(connections.max(1)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACKET: Bytes = Bytes::new(1000);
    const RTT: Duration = Duration::from_millis(100);

    fn model(b: u32, timeout_ms: u64) -> TcpModel {
        TcpModel { packets_per_ack: b, timeout: Duration::from_millis(timeout_ms) }
    }

    #[test]
    fn throughput_by_hand() {
        // b = 1, p = 0.015: sqrt(2 * 0.015 / 3) = sqrt(0.01) = 0.1, so the first term is 0.1 s * 0.1 = 10 ms.
        // 3 sqrt(3 * 0.015 / 8) = 3 * 0.075 = 0.225; 0.225 * 0.015 * (1 + 32 * 0.000225) = 0.0033993 times
        // T_0 = 1 s. 1 packet of 8000 bits every 13.3993 ms: 597,046 bit/s.
        assert_eq!(model(1, 1000).throughput(PACKET, RTT, 0.015).as_bps(), 597_046);
        // b = 2, p = 0.5: sqrt(2/3) * 0.1 = 81.65 ms; min(1, 3 sqrt(3/8) = 1.837) = 1; 0.5 * (1 + 8) = 4.5 s.
        // 8000 bits every 4.58165 s: 1746 bit/s.
        assert_eq!(model(2, 1000).throughput(PACKET, RTT, 0.5).as_bps(), 1746);
        // Without the bound 1.837 * 4.5 s = 8.268 s: 8000 bits every 8.350 s.
        let unbounded = model(2, 1000).throughput_by(Equation::Rfc5348, PACKET, RTT, 0.5);
        assert_eq!(unbounded.as_bps(), 958);
        // The law alone: 8000 bits every 10 ms.
        assert_eq!(model(1, 1000).square_root_law(PACKET, RTT, 0.015), Rate::from_kbps(800));
    }

    #[test]
    fn throughput_at_its_edges() {
        let tcp = TcpModel::default();
        for no_loss in [0.0, -1.0, f64::NAN] {
            assert_eq!(tcp.throughput(PACKET, RTT, no_loss), Rate::MAX);
        }
        assert_eq!(tcp.throughput(PACKET, RTT, 7.0), tcp.throughput(PACKET, RTT, 1.0));
        // Only timeouts remain: min(1, ..) * 1 * 33 s with T_0 = 1 s.
        assert_eq!(tcp.throughput(PACKET, Duration::ZERO, 1.0).as_bps(), 8000 / 33);
        assert_eq!(tcp.square_root_law(PACKET, Duration::ZERO, 0.1), Rate::MAX);
    }

    #[test]
    fn windows_and_rates_of_the_papers_examples() {
        // MultiTCP section 8.1.1: 800 kbps need a window of 8 at an RTT of 80 ms and packets of 1000 bytes.
        let rtt = Duration::from_millis(80);
        assert_eq!(window_rate(Packets::new(8), PACKET, rtt), Rate::from_kbps(800));
        assert!((window_for(Rate::from_kbps(800), rtt, PACKET) - 8.0).abs() < 1e-9);
        assert_eq!(window_rate(Packets::new(8), PACKET, Duration::ZERO), Rate::MAX);
        assert_eq!(window_for(Rate::from_kbps(800), rtt, Bytes::ZERO), 0.0);
    }

    #[test]
    fn minimum_connections_by_hand() {
        let film = Rate::from_kbps(800);
        // 0.8 * 15 / 5.2 = 2.31 and 0.8 * 20 / 5.2 = 3.08.
        assert_eq!(minimum_connections(film, Rate::from_mbps(6), 15), Some(3));
        assert_eq!(minimum_connections(film, Rate::from_mbps(6), 20), Some(4));
        assert_eq!(minimum_connections(film, Rate::from_mbps(6), 0), Some(1));
        assert_eq!(minimum_connections(film, film, 0), Some(1));
        assert_eq!(minimum_connections(film, film, 1), None);
        assert_eq!(minimum_connections(film, Rate::from_kbps(700), 0), None);
        assert_eq!(minimum_connections(Rate::ZERO, film, 9), Some(1));
    }

    proptest! {
        #[test]
        fn more_loss_or_delay_never_gives_more(
            loss in 1e-6f64..1.0, more in 0.0f64..1.0, rtt in 1u64..1_000_000, longer in 0u64..1_000_000, b in 1u32..4,
        ) {
            let tcp = model(b, 400);
            let rate = tcp.throughput(PACKET, Duration::from_micros(rtt), loss);
            prop_assert!(tcp.throughput(PACKET, Duration::from_micros(rtt), loss + more) <= rate);
            prop_assert!(tcp.throughput(PACKET, Duration::from_micros(rtt + longer), loss) <= rate);
            prop_assert!(tcp.square_root_law(PACKET, Duration::from_micros(rtt), loss) >= rate);
        }

        #[test]
        fn a_loss_gives_back_its_rate(loss in 1e-6f64..1.0, rtt in 1_000u64..1_000_000) {
            let rtt = Duration::from_micros(rtt);
            let tcp = TcpModel { packets_per_ack: 1, timeout: rtt * 4 };
            for equation in [Equation::Padhye, Equation::Rfc5348] {
                let rate = tcp.throughput_by(equation, PACKET, rtt, loss);
                let found = tcp.loss_at(equation, PACKET, rtt, rate);
                // As near as rates of whole bits per second allow.
                prop_assert!((found / loss - 1.0).abs() < 1e-3 + 4.0 / rate.as_f64(), "{found}");
            }
        }

        #[test]
        fn the_least_number_of_connections_is_the_least(
            wanted in 1u64..10_000_000, spare in 1u64..10_000_000, cross in 1u32..100,
        ) {
            let (rate, capacity) = (Rate::from_bps(wanted), Rate::from_bps(wanted + spare));
            let count = u64::from(minimum_connections(rate, capacity, cross).unwrap());
            let enough = |n: u64| {
                u128::from(n) * u128::from(wanted + spare) >= u128::from(wanted) * u128::from(n + u64::from(cross))
            };
            prop_assert!(enough(count) && (count == 1 || !enough(count - 1)));
        }

        #[test]
        fn a_window_gives_back_its_rate(packets in 1u64..100_000, rtt in 1_000u64..1_000_000) {
            let rtt = Duration::from_micros(rtt);
            let window = window_for(window_rate(Packets::new(packets), PACKET, rtt), rtt, PACKET);
            prop_assert!((window - Packets::new(packets).as_f64()).abs() < 0.01);
        }
    }

    #[test]
    fn the_windows_of_cubic_are_those_of_the_rfc() {
        let tcp = TcpModel { packets_per_ack: 1, timeout: Duration::ZERO };
        let (size, rtt) = (Bytes::new(1000), Duration::from_millis(100));
        let window = |equation, loss| {
            tcp.throughput_by(equation, size, rtt, loss).bytes_per_second() * rtt.as_secs_f64()
                / size.as_f64()
        };
        // RFC 9438, table 2, C = 0.4; there Reno's are 1.2 / sqrt(p), less from a loss of 0.01 % down.
        for (loss, packets) in [(1e-4, 187.0), (1e-5, 1054.0), (1e-6, 5926.0)] {
            let cubic = window(Equation::Cubic, loss);
            assert!((cubic - packets).abs() < 0.01 * packets, "{cubic} at {loss}");
        }
        assert_eq!(window(Equation::Cubic, 0.05).to_bits(), window(Equation::Rfc5348, 0.05).to_bits());
        // The inverse, and round trips of nothing.
        let rate = tcp.throughput_by(Equation::Cubic, size, rtt, 1e-4);
        assert!((tcp.loss_at(Equation::Cubic, size, rtt, rate) / 1e-4 - 1.0).abs() < 1e-3);
        assert_eq!(tcp.throughput_by(Equation::Cubic, size, Duration::ZERO, 0.1), Rate::MAX);
    }
}
