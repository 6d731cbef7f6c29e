//! MUL-TCP: MULTFRC's control of the number of connections, over TCP.
//!
//! M. Chen, A. Zakhor, "Multiple TFRC connections based rate control for wireless networks" (2006), section
//! V, names it as the form that is most likely to be adopted: only the number of connections has to be
//! controlled, the rest is TCP's. The paper leaves the details open. Here the receiver controls it, each path
//! for itself, as each has its own least round-trip time; windows are left to TCP. A connection that the
//! receiver holds back says nothing about the network: its round trips do not count, so that a stream that
//! has what it wants does not open more.

use std::collections::BTreeMap;

use anabranch_congestion::multfrc::MulTfrc;
use anabranch_units::{Duration, Time};

use crate::control::{ConnectionId, Order, PathId, RateController, Sample, What};
use crate::interval::Interval;
use crate::orders::{free_window, open};

pub use anabranch_congestion::multfrc::Parameters;

const BEGIN: &str = "one connection to begin with (MULTFRC III-B)";
const FREE: &str = "the window is left to TCP (MULTFRC V)";
const MORE: &str = "the round-trip time is near its least: one more connection (MULTFRC equation (9))";
const FEWER: &str = "the round-trip time tells of a queue: one connection less (MULTFRC equation (9))";

/// The rate controller of MUL-TCP.
#[derive(Clone, Debug)]
pub struct Mul {
    parameters: Parameters,
    paths: BTreeMap<PathId, Path>,
}

#[derive(Clone, Debug)]
struct Path {
    controller: MulTfrc,
    /// The established connections, the newest last.
    connections: Vec<ConnectionId>,
}

impl Mul {
    /// A controller that has not started.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters, paths: BTreeMap::new() }
    }

    fn path(&mut self, path: PathId) -> &mut Path {
        let parameters = self.parameters;
        self.paths
            .entry(path)
            .or_insert_with(|| Path { controller: MulTfrc::new(parameters), connections: Vec::new() })
    }
}

impl Path {
    /// Shows the controller the round trips of the interval.
    fn observe(&mut self, path: PathId, sample: &Sample<'_>) {
        let of_path = sample.connections.iter().filter(|connection| connection.path == path);
        let (sum, count) = of_path
            .filter(|connection| connection.network_limited && !connection.srtt.is_zero())
            .fold((Duration::ZERO, 0), |(sum, count), connection| (sum + connection.srtt, count + 1));
        if count > 0 {
            self.controller.rtt(sample.now, sum / count);
        }
    }
}

impl RateController for Mul {
    fn start(&mut self) -> Vec<Order> {
        vec![open(BEGIN)]
    }

    fn connected(&mut self, connection: ConnectionId, path: PathId, _sample: &Sample<'_>) -> Vec<Order> {
        let connections = &mut self.path(path).connections;
        if !connections.contains(&connection) {
            connections.push(connection);
        }
        vec![free_window(connection, FREE)]
    }

    fn closed(&mut self, connection: ConnectionId, _now: Time) {
        for path in self.paths.values_mut() {
            path.connections.retain(|known| *known != connection);
        }
    }

    fn measure(&mut self, sample: &Sample<'_>) -> Vec<Order> {
        let mut orders = Vec::new();
        for seen in sample.paths {
            let path = self.path(seen.path);
            path.observe(seen.path, sample);
            let target = usize::try_from(path.controller.connections()).unwrap_or(usize::MAX);
            if seen.may_open && seen.connections < target {
                let why = if seen.connections == 0 { BEGIN } else { MORE };
                orders.push(Order { what: What::Open(Some(seen.path)), why });
            } else if seen.connections > target && path.connections.len() > target {
                let newest = path.connections.pop();
                orders.extend(newest.map(|connection| Order { what: What::Close(connection), why: FEWER }));
            }
        }
        orders
    }

    fn interval(&self, rtt: Duration) -> Duration {
        Interval::RoundTrips(1).at(rtt)
    }
}

#[cfg(test)]
mod tests {
    use anabranch_units::{Bytes, Ratio};
    use proptest::prelude::*;

    use super::*;
    use crate::control::{ConnectionSample, PathSample};

    const PATH: PathId = PathId(0);

    /// A driver with one path, whose connections come up as soon as they are ordered.
    struct Driver {
        mul: Mul,
        now: Time,
        open: Vec<ConnectionId>,
        next: u32,
    }

    impl Driver {
        fn new(parameters: Parameters) -> Self {
            let mut driver = Self { mul: Mul::new(parameters), now: Time::ZERO, open: Vec::new(), next: 0 };
            let orders = driver.mul.start();
            driver.obey(&orders);
            driver
        }

        fn obey(&mut self, orders: &[Order]) {
            for order in orders {
                match order.what {
                    What::Open(_) => {
                        let id = ConnectionId(self.next);
                        self.next += 1;
                        self.open.push(id);
                        self.mul.connected(id, PATH, &Sample::default());
                    }
                    What::Close(id) => {
                        self.open.retain(|open| *open != id);
                        self.mul.closed(id, self.now);
                    }
                    What::SetWindow(..) | What::LimitRate(_) => {}
                }
            }
        }

        /// Round trips of a length; the number of connections after them.
        fn rounds(&mut self, count: u32, rtt: Duration, network_limited: bool) -> usize {
            for _ in 0..count {
                self.now += rtt;
                let of = |connection: &ConnectionId| ConnectionSample {
                    connection: *connection,
                    path: PATH,
                    delivered: Bytes::new(1000),
                    srtt: rtt,
                    packet_size: Bytes::new(1000),
                    silent: Duration::ZERO,
                    loss: 0.0,
                    network_limited,
                };
                let connections: Vec<ConnectionSample> = self.open.iter().map(of).collect();
                let path = PathSample {
                    path: PATH,
                    connections: self.open.len(),
                    may_open: self.open.len() < 20,
                    failing: false,
                };
                let sample =
                    Sample { now: self.now, connections: &connections, paths: &[path], ..Sample::default() };
                let orders = self.mul.measure(&sample);
                self.obey(&orders);
            }
            self.open.len()
        }
    }

    const SHORT: Duration = Duration::from_millis(100);
    const LONG: Duration = Duration::from_millis(130);

    #[test]
    fn connections_come_while_the_round_trip_is_short_and_go_when_it_is_long() {
        let mut driver = Driver::new(Parameters::PAPER);
        // 1, 2, 2.5, 2.9 and 3.2 after 50, 100, 150 and 200 round trips.
        assert_eq!(driver.rounds(49, SHORT, true), 1);
        assert_eq!(driver.rounds(152, SHORT, true), 3);
        assert_eq!(driver.rounds(50, LONG, true), 2);
        assert_eq!(driver.rounds(100, LONG, true), 1);
    }

    #[test]
    fn what_the_receiver_holds_back_opens_nothing() {
        let mut driver = Driver::new(Parameters::PAPER);
        assert_eq!(driver.rounds(1000, SHORT, false), 1);
    }

    #[test]
    fn a_lost_connection_is_opened_again() {
        let mut driver = Driver::new(Parameters::PAPER);
        driver.rounds(120, SHORT, true);
        let lost = driver.open.remove(0);
        driver.mul.closed(lost, driver.now);
        assert_eq!(driver.rounds(2, SHORT, true), 3);
        driver.open.clear();
        (0..3).for_each(|id| driver.mul.closed(ConnectionId(id), driver.now));
        assert!(driver.rounds(3, SHORT, true) > 0);
    }

    proptest! {
        #[test]
        fn the_number_stays_in_its_bounds(
            steps in prop::collection::vec((1u32..60, 1u64..100_000, any::<bool>()), 1..30), most in 0u32..9,
        ) {
            let parameters = Parameters {
                round_trips: 3, most_connections: most, tolerance: Ratio::new(1, 10), ..Parameters::PAPER
            };
            let mut driver = Driver::new(parameters);
            for (count, micros, limited) in steps {
                let open = driver.rounds(count, Duration::from_micros(micros), limited);
                prop_assert!((1..=usize::try_from(most.max(1)).unwrap()).contains(&open), "{open}");
            }
        }
    }
}
