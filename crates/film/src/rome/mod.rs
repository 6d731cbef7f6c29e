//! The rate coordinator of TCP-ROME (sections III-B and III-C): a fixed number of connections, held where the
//! aggregate rate is enough, opened or shared out anew where it is not.

mod share;

use std::collections::BTreeMap;

use anabranch_congestion::response::TcpModel;
use anabranch_units::{Duration, Packets, Rate, Ratio, Time};

use crate::control::{ConnectionId, Order, PathId, RateController, Sample, Window};
use crate::interval::Interval;
use crate::orders::{free_window, open, open_missing, set_window};
use share::Estimate;
pub use share::{estimated_throughput, expected_throughput, proportional_rates, window_of};

/// Most connections that the coordinator takes as its number. Ours.
pub const MOST_CONNECTIONS: u32 = 256;

const BEGIN: &str = "the window opens until the wanted rate is there (TCP-ROME III-B)";
const ENOUGH: &str = "the rate is above R+: the connection keeps its size (TCP-ROME III-C)";
/// What a connection keeps at least above R+ or B+. It may have only just begun; with fewer packets it could
/// not even recover a loss by duplicate acknowledgements. Ours.
const LEAST_KEPT: Packets = Packets::new(4);
const FULL: &str = "the buffer is above B+: the connection keeps its size (TCP-ROME III-B)";
const FAIR: &str = "the rate is below R-: left to TCP (TCP-ROME III-C, strict fairness)";
const COMPENSATE: &str = "the rate is below R-: share of the wanted rate (TCP-ROME III-C, compensation)";
const DRY: &str = "the buffer is below B-: left to TCP (TCP-ROME III-B)";

/// What the coordinator does when the rate is below R- (section III-C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Model {
    /// Takes what TCP gives.
    StrictFairness,
    /// Shares the wanted rate out anew by equations (2) and (3).
    #[default]
    Compensation,
}

/// Parameters of the rate coordinator. The paper gives no values for them; those of [`Parameters::default`]
/// are ours, except where it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Number of connections (n), 1 to [`MOST_CONNECTIONS`].
    pub connections: u32,
    /// What happens below R-.
    pub model: Model,
    /// R- as a ratio of the wanted rate.
    pub low: Ratio,
    /// R+ as a ratio of the wanted rate.
    pub high: Ratio,
    /// B-: with an unknown rate, below it the rate must grow.
    pub buffer_low: Duration,
    /// B+: with an unknown rate, above it connections keep their size.
    pub buffer_high: Duration,
    /// b and T_0 of equation (2).
    pub tcp: TcpModel,
    /// Measuring interval (phi).
    pub interval: Interval,
    /// Waiting time after a change (varphi) as a multiple of RTT + phi, which it has to be above; at least
    /// one.
    pub waiting: Ratio,
    /// Weight of the past in the smoothed round-trip time (alpha of footnote 4), on top of that of the
    /// sample.
    pub smoothing: Ratio,
    /// Whether round-trip times and losses from before a change are forgotten with it, as section III-C ends.
    pub restart: bool,
}

impl Default for Parameters {
    /// Three connections as in section IV-A, phi = RTT as in footnote 5, alpha = 7/8 as in RFC 6298 section
    /// 2.3.
    fn default() -> Self {
        Self {
            connections: 3,
            model: Model::default(),
            low: Ratio::new(19, 20),
            high: Ratio::new(21, 20),
            buffer_low: Duration::from_secs(5),
            buffer_high: Duration::from_secs(15),
            tcp: TcpModel::default(),
            interval: Interval::RoundTrips(1),
            waiting: Ratio::new(5, 4),
            smoothing: Ratio::new(7, 8),
            restart: true,
        }
    }
}

/// The rate coordinator of TCP-ROME.
///
/// - "Maintains the congestion window at its actual size" is, at the receiver, a window of what the
///   connection delivers now: T_i srtt_i / MTU. A connection that is held already keeps its window.
/// - Section III-B states its objective as B+ < b(t) < B-; the two sentences after it have the thresholds the
///   right way round, and so has this.
/// - The start-up phase of section III-B lasts until the wanted rate is reached once; until then windows are
///   open and nothing is shared out, in both models.
/// - With an unknown rate there is nothing to share out: below B- both models leave the connections to TCP.
/// - A connection that comes later begins with an open window in both models.
#[derive(Clone, Debug)]
pub struct Rome {
    parameters: Parameters,
    target: usize,
    connections: BTreeMap<ConnectionId, Connection>,
    changed: Option<Time>,
    /// Whether the start-up phase is over.
    started_up: bool,
}

#[derive(Clone, Copy, Debug)]
struct Connection {
    window: Window,
    estimate: Option<Estimate>,
}

/// What a measurement asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Less(&'static str),
    More(&'static str),
    Share(Rate),
}

impl Rome {
    /// A coordinator that has not started; the number of connections is taken into its bounds.
    pub fn new(parameters: Parameters) -> Self {
        let connections = parameters.connections.clamp(1, MOST_CONNECTIONS);
        let target = usize::try_from(connections).unwrap_or(usize::MAX);
        Self { parameters, target, connections: BTreeMap::new(), changed: None, started_up: false }
    }

    /// Hysteresis: above the upper threshold less, below the lower one more, nothing in between.
    fn need(&self, sample: &Sample<'_>) -> Option<Need> {
        let parameters = &self.parameters;
        if let Some(wanted) = sample.wanted {
            let rate = sample.throughput();
            return if rate > wanted * parameters.high {
                Some(Need::Less(ENOUGH))
            } else if rate >= wanted * parameters.low {
                None
            } else {
                Some(match parameters.model {
                    Model::Compensation if self.started_up => Need::Share(wanted),
                    Model::Compensation | Model::StrictFairness => Need::More(FAIR),
                })
            };
        }
        match sample.buffer {
            Some(buffer) if buffer > parameters.buffer_high => Some(Need::Less(FULL)),
            Some(buffer) if buffer >= parameters.buffer_low => None,
            _ => Some(Need::More(DRY)),
        }
    }

    /// Whether the last change has had its time: varphi > RTT + phi.
    fn has_settled(&self, sample: &Sample<'_>) -> bool {
        let rtt = sample.mean_rtt();
        let least = rtt + self.interval(rtt);
        let waiting = least.max(least * self.parameters.waiting);
        self.changed.is_none_or(|changed| sample.now.since(changed) > waiting)
    }

    fn estimate(&mut self, sample: &Sample<'_>) {
        for one in sample.connections {
            if let Some(connection) = self.connections.get_mut(&one.connection) {
                match &mut connection.estimate {
                    Some(estimate) => estimate.add(one, self.parameters.smoothing),
                    none => *none = Some(Estimate::restarted(one)),
                }
            }
        }
    }

    /// The windows that satisfy a need, of the connections that this changes.
    fn windows(&self, need: Need, sample: &Sample<'_>) -> Vec<(ConnectionId, Window)> {
        let known = sample.connections.iter().filter_map(|one| {
            let connection = self.connections.get(&one.connection)?;
            Some((one, connection.window, connection.estimate?))
        });
        let windows: Vec<(ConnectionId, Window)> = match need {
            Need::Less(_) => known
                .filter(|(_, window, _)| *window == Window::Unlimited)
                .map(|(one, _, estimate)| {
                    let rate = Rate::of(one.delivered, sample.elapsed);
                    let window = window_of(rate, estimate.srtt, one.packet_size).max(LEAST_KEPT);
                    (one.connection, Window::Packets(window))
                })
                .collect(),
            Need::More(_) => known.map(|(one, ..)| (one.connection, Window::Unlimited)).collect(),
            Need::Share(wanted) => {
                let known: Vec<_> = known.collect();
                let estimated: Vec<Rate> = known
                    .iter()
                    .map(|(one, _, estimate)| {
                        estimated_throughput(
                            &self.parameters.tcp,
                            one.packet_size,
                            estimate.srtt,
                            estimate.loss(),
                        )
                    })
                    .collect();
                let shares = proportional_rates(&estimated, wanted);
                let windows = known.iter().zip(shares).map(|((one, _, estimate), rate)| {
                    (one.connection, Window::Packets(window_of(rate, estimate.srtt, one.packet_size)))
                });
                windows.collect()
            }
        };
        let is_new = |(connection, window): &(ConnectionId, Window)| {
            self.connections.get(connection).is_some_and(|known| known.window != *window)
        };
        windows.into_iter().filter(is_new).collect()
    }
}

impl RateController for Rome {
    fn start(&mut self) -> Vec<Order> {
        (0..self.target).map(|_| open("the number of connections is fixed (TCP-ROME III-A)")).collect()
    }

    fn connected(&mut self, connection: ConnectionId, _path: PathId, _sample: &Sample<'_>) -> Vec<Order> {
        self.connections.insert(connection, Connection { window: Window::Unlimited, estimate: None });
        vec![free_window(connection, BEGIN)]
    }

    fn closed(&mut self, connection: ConnectionId, _now: Time) {
        self.connections.remove(&connection);
    }

    fn measure(&mut self, sample: &Sample<'_>) -> Vec<Order> {
        let mut orders = open_missing(self.connections.len(), self.target, sample, "a connection is missing");
        if sample.elapsed.is_zero() {
            return orders;
        }
        self.estimate(sample);
        self.started_up |= sample.wanted.is_some_and(|wanted| sample.throughput() >= wanted);
        if !self.has_settled(sample) {
            return orders;
        }
        let Some(need) = self.need(sample) else { return orders };
        let windows = self.windows(need, sample);
        if windows.is_empty() {
            return orders;
        }
        self.changed = Some(sample.now);
        let why = match need {
            Need::Less(why) | Need::More(why) => why,
            Need::Share(_) => COMPENSATE,
        };
        for (id, window) in windows {
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.window = window;
            }
            orders.push(match window {
                Window::Unlimited => free_window(id, why),
                Window::Packets(packets) => set_window(id, packets, why),
            });
        }
        if self.parameters.restart {
            self.connections.values_mut().for_each(|connection| connection.estimate = None);
        }
        orders
    }

    fn interval(&self, rtt: Duration) -> Duration {
        self.parameters.interval.at(rtt)
    }
}

#[cfg(test)]
mod tests {
    use anabranch_units::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::control::{ConnectionSample, What};
    use crate::path_model::{Path, Run};

    const FILM: Rate = Rate::from_mbps(3);

    fn run(model: Model, wanted: Option<Rate>) -> Run<Rome> {
        Run::new(Rome::new(Parameters { model, ..Parameters::default() }), Path::default(), wanted)
    }

    fn packets(sizes: [u64; 3]) -> [Option<Packets>; 3] {
        sizes.map(|size| Some(Packets::new(size)))
    }

    /// Three connections on 6 Mbps; cross traffic comes, grows and goes. (rate in kbps, windows) at the end
    /// of each phase.
    fn trace(model: Model) -> Vec<(u64, Vec<Option<u64>>)> {
        let mut run = run(model, Some(FILM));
        [0, 3, 9, 0]
            .map(|cross_flows| {
                run.path.cross_flows = cross_flows;
                run.intervals(10);
                let windows = run.windows().into_iter().map(|window| window.map(Packets::get)).collect();
                (run.rate().as_bps() / 1000, windows)
            })
            .to_vec()
    }

    #[test]
    fn golden_trace_of_compensation() {
        // Held at what they had, 2 Mbps each; 3 flows leave just the wanted rate, nothing changes; 9 leave
        // half of it: each gets the window of a third of the wanted rate, 1 Mbps. Then the shares add up to
        // R_v.
        let (held, shared) = (vec![Some(20); 3], vec![Some(10); 3]);
        let expected = [(6000, held.clone()), (3000, held), (1500, shared.clone()), (3000, shared)];
        assert_eq!(trace(Model::Compensation), expected);
    }

    #[test]
    fn golden_trace_of_strict_fairness() {
        let (held, open) = (vec![Some(20); 3], vec![None; 3]);
        let expected = [(6000, held.clone()), (3000, held.clone()), (1500, open), (6000, held)];
        assert_eq!(trace(Model::StrictFairness), expected);
    }

    #[test]
    fn windows_stay_open_until_the_wanted_rate_was_reached() {
        let mut run = run(Model::Compensation, Some(FILM));
        run.path.cross_flows = 9;
        run.intervals(50);
        assert_eq!(run.windows(), [None; 3]);
    }

    #[test]
    fn a_change_has_its_time() {
        let mut run = run(Model::Compensation, Some(FILM));
        run.intervals(1);
        assert_eq!(run.windows(), packets([20; 3]));
        // varphi = 5/4 (RTT + phi) = 2.5 intervals: the third interval after a change is the first that may
        // change something.
        run.path.cross_flows = 9;
        run.intervals(2);
        assert_eq!(run.windows(), packets([20; 3]));
        run.intervals(1);
        assert_eq!(run.windows(), packets([10; 3]));
    }

    #[test]
    fn an_unknown_rate_goes_by_the_buffer() {
        let mut run = run(Model::Compensation, None);
        let mut windows_at = |seconds: Option<u64>| {
            run.buffer = seconds.map(Duration::from_secs);
            run.intervals(5);
            run.windows()
        };
        assert_eq!(windows_at(None), [None; 3]);
        assert_eq!(windows_at(Some(10)), [None; 3]);
        assert_eq!(windows_at(Some(16)), packets([20; 3]));
        assert_eq!(windows_at(Some(10)), packets([20; 3]));
        assert_eq!(windows_at(Some(4)), [None; 3]);
    }

    #[test]
    fn a_broken_connection_is_opened_again() {
        let mut run = run(Model::Compensation, Some(FILM));
        run.intervals(10);
        run.break_one();
        run.intervals(10);
        assert_eq!(run.windows().len(), 3);
    }

    /// A connection of a sample: payload in the interval of 100 ms, RTT, loss.
    fn connection(id: u32, delivered: u64, rtt: u64, loss: f64) -> ConnectionSample {
        ConnectionSample {
            connection: ConnectionId(id),
            path: PathId(0),
            delivered: Bytes::new(delivered),
            srtt: Duration::from_millis(rtt),
            packet_size: Bytes::new(1000),
            silent: Duration::ZERO,
            loss,
            network_limited: true,
        }
    }

    proptest! {
        #[test]
        fn windows_of_compensation_add_up_to_the_wanted_rate(
            paths in prop::collection::vec((0u64..2000, 1u64..500, 0.0f64..1.0), 1..12),
        ) {
            let ids = 0u32..;
            let connections: Vec<_> = ids
                .zip(&paths)
                .map(|(id, (delivered, rtt, loss))| connection(id, *delivered, *rtt, *loss))
                .collect();
            let mut rome = Rome::new(Parameters::default());
            for one in &connections {
                rome.connected(one.connection, one.path, &Sample::default());
            }
            rome.started_up = true;
            let elapsed = Duration::from_millis(100);
            let sample = Sample { elapsed, wanted: Some(FILM), connections: &connections, ..Sample::default() };
            // In floats: whole bits per second, times a window, would be hundreds off.
            let packet = |one: &ConnectionSample| one.packet_size.as_f64() * 8.0 / one.srtt.as_secs_f64();
            let mut sum = 0.0;
            for order in rome.measure(&sample) {
                if let What::SetWindow(id, Window::Packets(window)) = order.what {
                    let one = connections.iter().find(|one| one.connection == id).unwrap();
                    sum += window.as_f64() * packet(one);
                    prop_assert!(window.get() >= 1);
                }
            }
            // Rounded to the next whole packet, at least one: up to a packet a round trip more, half of one
            // less.
            let rounding: f64 = connections.iter().map(packet).sum();
            prop_assert!(sum >= FILM.as_f64() - rounding / 2.0 - 100.0 && sum <= FILM.as_f64() + rounding, "{sum}");
        }

        #[test]
        fn no_sequence_ends_in_a_window_of_nothing(
            phases in prop::collection::vec((0u64..40, 2usize..12, 0.0f64..1.0, 20u64..300, any::<bool>()), 1..15),
        ) {
            let mut run = run(Model::Compensation, Some(FILM));
            for (cross_flows, intervals, loss, rtt, breaks) in phases {
                run.path = Path { cross_flows, loss, rtt: Duration::from_millis(rtt), ..run.path };
                run.intervals(intervals);
                prop_assert!(run.windows().iter().flatten().all(|window| window.get() >= 1));
                prop_assert_eq!(run.windows().len(), 3);
                if breaks {
                    run.break_one();
                }
            }
        }
    }
}
