//! The rate coordinator of TCP-ROME (sections III-B and III-C): a fixed number of connections, held where the
//! aggregate rate is enough, opened or shared out anew where it is not.

mod share;

use std::collections::BTreeMap;

use anabranch_congestion::response::TcpModel;
use anabranch_units::{Duration, Packets, Rate, Ratio, Time};

use crate::control::{ConnectionId, ConnectionSample, Order, PathId, RateController, Sample, Window};
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
const BOUND: &str = "the rate is above R+: share of the wanted rate as upper bound (TCP-ROME III-D)";
const AGAIN: &str = "the rate is not above R+ any more: left to TCP (TCP-ROME III-C)";
const FAIR: &str = "the rate is below R-: left to TCP (TCP-ROME III-C, strict fairness)";
const COMPENSATE: &str = "the rate is below R-: share of the wanted rate (TCP-ROME III-C, compensation)";
const NOT_ENOUGH: &str =
    "the rate is below R-, and the connections cannot make up: left to TCP (TCP-ROME IV-A)";
const DRY: &str = "the buffer is below B-: left to TCP (TCP-ROME III-B)";

/// What the coordinator does when the rate is below R- (section III-C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Model {
    /// Takes what TCP gives.
    StrictFairness,
    /// Shares the wanted rate out anew by equations (2) and (3).
    #[default]
    Compensation,
    /// The same where all connections together could bring the wanted rate by equation (2). Where they could
    /// not, the coordinator "does not adjust its rate since \[they\] cannot make up for a decline" (section
    /// IV-A): it takes what TCP gives.
    CompensationWhereEnough,
}

/// What the coordinator does when the rate is above R+. Section III-C has a connection that "ignores the
/// event [to open its congestion window] and maintains the congestion window at its actual size"; it does not
/// say until when, nor what becomes of a window that is larger than what the connection delivers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Above {
    /// A connection is held at what it delivers, once, until the rate is below R-.
    #[default]
    Keep,
    /// The same, and at each measurement above R+ again, where that is less.
    KeepAgain,
    /// As [`Above::KeepAgain`], but no longer than the rate is above R+: at R+ and below windows may open.
    KeepWhile,
    /// A connection gets the window of its T_i, which section III-D calls its upper bound.
    Share,
}

/// Parameters of the rate coordinator. The paper gives no values for them; those of [`Parameters::default`]
/// are ours, except where it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Number of connections (n), 1 to [`MOST_CONNECTIONS`].
    pub connections: u32,
    /// What happens below R-.
    pub model: Model,
    /// What happens above R+.
    pub above: Above,
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
            above: Above::default(),
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
///   connection delivers now: T_i srtt_i / MTU. How long it stays held: see [`Above`].
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
    Share(Rate, &'static str),
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
                Some(match parameters.above {
                    Above::Share => Need::Share(wanted, BOUND),
                    Above::Keep | Above::KeepAgain | Above::KeepWhile => Need::Less(ENOUGH),
                })
            } else if rate >= wanted * parameters.low {
                (parameters.above == Above::KeepWhile).then_some(Need::More(AGAIN))
            } else if !self.started_up {
                Some(Need::More(FAIR))
            } else {
                Some(match parameters.model {
                    Model::StrictFairness => Need::More(FAIR),
                    Model::CompensationWhereEnough if self.could_bring(sample) < wanted => {
                        Need::More(NOT_ENOUGH)
                    }
                    Model::Compensation | Model::CompensationWhereEnough => Need::Share(wanted, COMPENSATE),
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

    /// What a connection could get: equation (2).
    fn estimated(&self, one: &ConnectionSample, estimate: &Estimate) -> Rate {
        estimated_throughput(&self.parameters.tcp, one.packet_size, estimate.srtt, estimate.loss())
    }

    /// What all connections together could get.
    fn could_bring(&self, sample: &Sample<'_>) -> Rate {
        let known = sample.connections.iter().filter_map(|one| {
            let estimate = self.connections.get(&one.connection)?.estimate?;
            Some(self.estimated(one, &estimate))
        });
        known.sum()
    }

    /// The windows that satisfy a need, of the connections that this changes.
    fn windows(&self, need: Need, sample: &Sample<'_>) -> Vec<(ConnectionId, Window)> {
        let known = sample.connections.iter().filter_map(|one| {
            let connection = self.connections.get(&one.connection)?;
            Some((one, connection.window, connection.estimate?))
        });
        let windows: Vec<(ConnectionId, Window)> = match need {
            Need::Less(_) => known
                .filter_map(|(one, held, estimate)| {
                    let rate = Rate::of(one.delivered, sample.elapsed);
                    let window = window_of(rate, estimate.srtt, one.packet_size).max(LEAST_KEPT);
                    let keeps = match held {
                        Window::Unlimited => true,
                        Window::Packets(held) => self.parameters.above != Above::Keep && window < held,
                    };
                    keeps.then_some((one.connection, Window::Packets(window)))
                })
                .collect(),
            Need::More(_) => known.map(|(one, ..)| (one.connection, Window::Unlimited)).collect(),
            Need::Share(wanted, _) => {
                let known: Vec<_> = known.collect();
                let estimated: Vec<Rate> =
                    known.iter().map(|(one, _, estimate)| self.estimated(one, estimate)).collect();
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
            Need::Less(why) | Need::More(why) | Need::Share(_, why) => why,
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
mod tests;
