//! The basic algorithm (section 6.3): a fixed number of connections, windows that follow the measured
//! throughput.

use anabranch_congestion::response::window_for;
use anabranch_units::{Bytes, Duration, Packets, Rate, Ratio, Time};

use super::windows::Windows;
use super::{MOST_CONNECTIONS, Parameters};
use crate::control::{ConnectionId, Order, PathId, RateController, Sample};
use crate::orders::{free_window, open, open_missing};

const INITIAL: &str = "its part of the window that the wanted rate needs (MultiTCP 6.3 step 2)";
const BELOW: &str = "measured throughput below the wanted (MultiTCP 6.3 step 3)";
const ABOVE: &str = "measured throughput above the wanted (MultiTCP 6.3 step 4)";
const SHARED: &str = "windows spread over another number of connections";
const NO_RATE: &str = "no wanted rate is known";

/// The basic algorithm of MultiTCP.
///
/// Without a wanted rate the windows are unlimited and the number of connections is the same.
#[derive(Clone, Debug)]
pub struct Basic {
    pub(super) parameters: Parameters,
    /// Connections that there should be.
    pub(super) target: usize,
    /// T_m.
    pub(super) throughput: Option<Rate>,
    pub(super) windows: Windows,
    phase: Phase,
}

/// Where a session is in the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The wanted rate or the round-trip time is not known: windows are unlimited.
    Unlimited,
    /// Windows are those of step 2.
    Initial,
    /// Steps 3 and 4 have changed windows.
    Running,
}

/// What the steps need of a sample: T_d, RTT and MTU, all above zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) wanted: Rate,
    rtt: Duration,
    packet_size: Bytes,
}

impl Measured {
    /// `None` as long as something is not known.
    pub(super) fn of(sample: &Sample<'_>) -> Option<Self> {
        let rtt = sample.mean_rtt();
        let packet_size = sample.packet_size(Bytes::ZERO);
        let wanted = sample.wanted.filter(|wanted| !wanted.is_zero())?;
        (!rtt.is_zero() && !packet_size.is_zero()).then_some(Self { wanted, rtt, packet_size })
    }

    /// Window that the wanted rate needs on a path without congestion (W_n = T_d RTT / MTU), in packets.
    pub(super) fn needed_window(&self) -> f64 {
        window_for(self.wanted, self.rtt, self.packet_size)
    }

    /// The same in whole packets, as near as they come.
    fn needed_packets(&self) -> Packets {
        Packets::from_f64_ceil(self.needed_window() - 0.5)
    }
}

impl Basic {
    /// A controller that has not started. The number of connections is taken into its bounds; an alpha of one
    /// or more, which would never learn anything, counts as zero.
    pub fn new(parameters: Parameters) -> Self {
        let parameters = Parameters {
            connections: parameters.connections.clamp(1, MOST_CONNECTIONS),
            smoothing: if parameters.smoothing < Ratio::ONE { parameters.smoothing } else { Ratio::ZERO },
            ..parameters
        };
        Self {
            parameters,
            target: usize::try_from(parameters.connections).unwrap_or(usize::MAX),
            throughput: None,
            windows: Windows::default(),
            phase: Phase::Unlimited,
        }
    }

    /// The exponential average of the measured throughput, T_m = alpha T_m + (1 - alpha) T_n (end of section
    /// 6.3); the first sample is its first value.
    pub(super) fn average(&mut self, sample: &Sample<'_>) {
        if sample.elapsed.is_zero() {
            return;
        }
        let (new, alpha) = (sample.throughput(), self.parameters.smoothing);
        let average =
            |mean: Rate| mean.as_f64() * alpha.as_f64() + new.as_f64() * alpha.complement().as_f64();
        // Rounded, not cut off: a bit less than T_d would be a packet more in step 3.
        self.throughput = Some(self.throughput.map_or(new, |mean| Rate::from_bps_f64(average(mean).round())));
    }

    /// Steps 2 to 5 on the windows; says why they changed.
    pub(super) fn steps(&mut self, measured: &Measured) -> Option<&'static str> {
        if self.phase == Phase::Unlimited {
            self.initial(measured);
            return Some(INITIAL);
        }
        let throughput = self.throughput?;
        let most = self.parameters.spike_factor.as_f64() * measured.needed_window();
        let why = if throughput < measured.wanted && self.windows.sum().as_f64() <= most {
            BELOW
        } else if throughput > measured.wanted + self.parameters.threshold {
            ABOVE
        } else {
            return None;
        };
        self.windows.adjust(measured.wanted, throughput, measured.rtt, measured.packet_size);
        self.phase = Phase::Running;
        Some(why)
    }

    /// Step 2: w_i = T_d RTT / (MTU N).
    fn initial(&mut self, measured: &Measured) {
        self.windows.spread(measured.needed_packets(), self.target);
        self.phase = Phase::Initial;
    }

    /// The windows as the connections have them by earlier orders.
    pub(super) fn ordered_windows(&self) -> Windows {
        if self.phase == Phase::Unlimited { Windows::default() } else { self.windows.clone() }
    }

    /// Lets the windows go, when no rate is wanted any more.
    pub(super) fn free(&mut self) -> Vec<Order> {
        if self.phase == Phase::Unlimited {
            return Vec::new();
        }
        self.phase = Phase::Unlimited;
        self.windows.connections().map(|connection| free_window(connection, NO_RATE)).collect()
    }
}

impl RateController for Basic {
    fn start(&mut self) -> Vec<Order> {
        (0..self.target).map(|_| open("the number of connections is fixed (MultiTCP 6.3 step 1)")).collect()
    }

    /// The paper has all connections from the start. Here one that comes while the windows are still those of
    /// step 2 gets its part of them. Later it gets its part of W_s, which is raised to T_d RTT / MTU where
    /// connections that broke have left less.
    fn connected(&mut self, connection: ConnectionId, _path: PathId, sample: &Sample<'_>) -> Vec<Order> {
        let (before, known) = (self.windows.clone(), self.ordered_windows());
        self.windows.insert(connection);
        let alone = before.len() == 0;
        let why = match Measured::of(sample) {
            None if alone || self.phase == Phase::Unlimited => {
                self.phase = Phase::Unlimited;
                return vec![free_window(connection, NO_RATE)];
            }
            Some(measured) if alone || self.phase != Phase::Running => {
                self.initial(&measured);
                INITIAL
            }
            measured => {
                let needed = measured.map_or(Packets::ZERO, |measured| measured.needed_packets());
                self.windows.spread(before.sum().max(needed), self.windows.len());
                SHARED
            }
        };
        self.windows.orders_since(&known, why)
    }

    fn closed(&mut self, connection: ConnectionId, _now: Time) {
        self.windows.remove(connection);
    }

    fn measure(&mut self, sample: &Sample<'_>) -> Vec<Order> {
        let mut orders = open_missing(self.windows.len(), self.target, sample, "a connection is missing");
        self.average(sample);
        if sample.wanted.is_none() {
            orders.extend(self.free());
        } else if let Some(measured) = Measured::of(sample) {
            let known = self.ordered_windows();
            if let Some(why) = self.steps(&measured) {
                orders.extend(self.windows.orders_since(&known, why));
            }
        }
        orders
    }

    fn interval(&self, rtt: Duration) -> Duration {
        self.parameters.interval.at(rtt)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::control::{ConnectionSample, What, Window};
    use crate::path_model::{Path, Run};

    const FILM: Rate = Rate::from_kbps(800);

    #[test]
    fn starts_with_the_windows_of_step_2() {
        // 800 kbps at 80 ms in packets of 1000 bytes: W_n = 8 over five connections.
        let mut run = Run::new(Basic::new(Parameters::TABLE_8_1), Path::default(), Some(FILM));
        run.intervals(1);
        assert_eq!(run.windows(), [2, 2, 2, 1, 1].map(|size| Some(Packets::new(size))));
    }

    #[test]
    fn golden_trace() {
        // A path of 6 Mbps and 80 ms (section 8.1.1) with greedy flows: none, 40 from the 21st interval, none
        // from the 101st.
        let mut run = Run::new(Basic::new(Parameters::TABLE_8_1), Path::default(), Some(FILM));
        let mut trace = Vec::new();
        for (cross, intervals) in [(0, 20), (40, 80), (0, 1), (0, 49)] {
            run.path.cross_flows = cross;
            run.intervals(intervals);
            trace.push((run.windows().len(), run.window_sum().get(), run.rate().as_bps() / 1000));
        }
        // Alone: W_n. Beside 40 flows five get 5/45 of 6 Mbps whatever the window, which grows to f W_n = 48
        // and one D_s more. Then the spike of f, and back to within lambda = 56 kbps of the wanted rate.
        assert_eq!(trace, [(5, 8, 800), (5, 50, 666), (5, 47, 5000), (5, 8, 800)]);
    }

    #[test]
    fn converges_to_the_wanted_rate_within_lambda() {
        for kbps in [100, 333, 800, 1234, 2850, 4000] {
            let wanted = Rate::from_kbps(kbps);
            let mut run = Run::new(Basic::new(Parameters::TABLE_8_1), Path::default(), Some(wanted));
            run.intervals(100);
            let mut mean = 0.0;
            for _ in 0..100 {
                run.intervals(1);
                mean += run.rate().as_f64() / 100.0;
            }
            let least_rate = 5.0 * 100e3;
            let above = mean - wanted.as_f64().max(least_rate);
            assert!((-56e3..=56e3).contains(&above), "{kbps} kbps: {mean}");
        }
    }

    #[test]
    fn without_a_wanted_rate_windows_are_unlimited() {
        let mut run = Run::new(Basic::new(Parameters::TABLE_8_1), Path::default(), None);
        run.intervals(5);
        assert_eq!(run.windows(), [None; 5]);
        run.wanted = Some(FILM);
        run.intervals(1);
        assert_eq!(run.window_sum(), Packets::new(8));
        run.wanted = None;
        run.intervals(1);
        assert_eq!(run.windows(), [None; 5]);
    }

    #[test]
    fn a_broken_connection_is_opened_again_and_the_windows_keep_their_sum() {
        let mut run = Run::new(Basic::new(Parameters::TABLE_8_1), Path::default(), Some(FILM));
        run.intervals(10);
        run.break_one();
        assert_eq!(run.windows().len(), 4);
        run.intervals(3);
        assert_eq!(run.windows().len(), 5);
        assert!(run.window_sum() >= Packets::new(8));
    }

    /// What can happen to a controller.
    #[derive(Clone, Debug)]
    enum Event {
        Connect,
        Close(usize),
        Measure { delivered: u64, rtt_ms: u64, wanted_kbps: Option<u64> },
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            Just(Event::Connect),
            (0usize..10).prop_map(Event::Close),
            (0u64..300_000, 0u64..2000, prop::option::of(0u64..20_000)).prop_map(
                |(delivered, rtt_ms, wanted_kbps)| Event::Measure { delivered, rtt_ms, wanted_kbps }
            ),
        ]
    }

    proptest! {
        #[test]
        fn windows_are_never_more_than_one_apart(events in prop::collection::vec(event(), 1..80)) {
            let mut basic = Basic::new(Parameters::TABLE_8_1);
            let mut ordered = std::collections::BTreeMap::new();
            let mut next = 0;
            let (mut delivered, mut rtt, mut wanted) = (0, Duration::from_millis(80), Some(FILM));
            for event in events {
                let ids: Vec<ConnectionId> = ordered.keys().copied().collect();
                let connect = matches!(event, Event::Connect);
                match event {
                    Event::Connect => { ordered.insert(ConnectionId(next), Window::Unlimited); next += 1; }
                    Event::Close(index) => {
                        if let Some(id) = ids.get(index) {
                            ordered.remove(id);
                            basic.closed(*id, Time::ZERO);
                        }
                        continue;
                    }
                    Event::Measure { delivered: bytes, rtt_ms, wanted_kbps } => {
                        (delivered, rtt, wanted) = (bytes, Duration::from_millis(rtt_ms), wanted_kbps.map(Rate::from_kbps));
                    }
                }
                let connections: Vec<_> = ordered.keys().map(|id| ConnectionSample {
                    connection: *id, path: PathId(0), delivered: Bytes::new(delivered), srtt: rtt,
                    packet_size: Bytes::new(1000), silent: Duration::ZERO, loss: 0.0, network_limited: false,
                }).collect();
                let sample = Sample {
                    elapsed: Duration::from_millis(300), wanted, connections: &connections, ..Sample::default()
                };
                let orders = if connect {
                    basic.connected(ConnectionId(next - 1), PathId(0), &sample)
                } else {
                    basic.measure(&sample)
                };
                for order in orders {
                    if let What::SetWindow(id, window) = order.what {
                        prop_assert!(ordered.insert(id, window).is_some(), "no such connection");
                    }
                }
                let sizes: Vec<Option<u64>> = ordered.values().map(|window| match window {
                    Window::Unlimited => None,
                    Window::Packets(packets) => Some(packets.get()),
                }).collect();
                prop_assert!(sizes.iter().all(Option::is_some) || sizes.iter().all(Option::is_none), "{:?}", sizes);
                if let (Some(Some(least)), Some(Some(most))) = (sizes.iter().min(), sizes.iter().max()) {
                    prop_assert!(*least >= 1 && most - least <= 1, "{:?}", sizes);
                }
            }
        }
    }
}
