//! `auto` against a fluid model of paths: every connection gets its fair share of its path, at most a cap of
//! its own.

use anabranch_congestion::response::minimum_connections;

use super::*;
use crate::control::PathSample;

/// A path: capacity, flows of others, and what one connection can reach alone (loss, window of the sender).
#[derive(Clone, Copy)]
struct Path {
    capacity: Rate,
    cross_flows: u32,
    connection_cap: Rate,
}

impl Path {
    fn idle(capacity: Rate) -> Self {
        Self { capacity, cross_flows: 0, connection_cap: Rate::MAX }
    }
}

struct World {
    auto: Auto,
    paths: Vec<Path>,
    connections: Vec<(ConnectionId, PathId)>,
    wanted: Option<Rate>,
    media: Option<Rate>,
    buffer: f64,
    now: Time,
    next: u32,
    most: usize,
    stalled: f64,
    delivered: Rate,
    rtt: Duration,
    loss: f64,
    connecting: usize,
    sated: bool,
}

const RTT: Duration = Duration::from_millis(80);
const STEP: Duration = Duration::from_millis(200);
const PACKET: Bytes = Bytes::new(1448);

impl World {
    fn new(paths: &[Path], wanted: Option<Rate>, parameters: Parameters) -> Self {
        let mut world = Self {
            auto: Auto::new(parameters),
            paths: paths.to_vec(),
            connections: Vec::new(),
            wanted,
            media: wanted,
            buffer: 0.0,
            now: Time::ZERO,
            next: 0,
            most: 0,
            stalled: 0.0,
            delivered: Rate::ZERO,
            rtt: RTT,
            loss: 0.0,
            connecting: 0,
            sated: false,
        };
        let orders = world.auto.start();
        world.obey(&orders);
        world
    }

    fn path_samples(&self) -> Vec<PathSample> {
        let on = |path: PathId| self.connections.iter().filter(|(_, on)| *on == path).count();
        let ids = (0..self.paths.len()).map(|index| PathId(index as u16));
        ids.map(|path| PathSample {
            path,
            failing: false,
            connections: on(path),
            may_open: !self.paths[path.0 as usize].capacity.is_zero(),
        })
        .collect()
    }

    /// Flows of others fill the path's queue and let it drain, again and again.
    fn round_trip(&self, path: PathId) -> Duration {
        let sawtooth = (self.now.as_nanos() / STEP.as_nanos()) % 7;
        if self.paths[path.0 as usize].cross_flows == 0 {
            self.rtt
        } else {
            self.rtt + self.rtt / 10 * sawtooth
        }
    }

    fn obey(&mut self, orders: &[Order]) {
        for order in orders {
            match &order.what {
                What::Open(path) => {
                    let fewest = || {
                        let open = self.path_samples();
                        open.into_iter()
                            .filter(|path| path.may_open)
                            .min_by_key(|path| path.connections)
                            .unwrap()
                            .path
                    };
                    let path = path.unwrap_or_else(fewest);
                    self.connections.push((ConnectionId(self.next), path));
                    self.next += 1;
                }
                What::Close(connection) => {
                    self.connections.retain(|(id, _)| id != connection);
                    self.auto.closed(*connection, self.now);
                }
                What::SetWindow(..) | What::LimitRate(_) => {}
            }
        }
        self.most = self.most.max(self.connections.len());
    }

    /// One interval: fluid shares, windows, the limit; then the controller.
    fn step(&mut self) {
        let on = |path: PathId| self.connections.iter().filter(|(_, on)| *on == path).count() as f64;
        let offered: Vec<f64> = self
            .connections
            .iter()
            .map(|(_, path)| {
                let model = self.paths[path.0 as usize];
                (model.capacity.as_f64() / (on(*path) + f64::from(model.cross_flows)))
                    .min(model.connection_cap.as_f64())
            })
            .collect();
        let windows: Vec<f64> = self
            .connections
            .iter()
            .map(|(id, _)| match self.auto.windows.get(id) {
                Some(Window::Packets(packets)) => Rate::of(*packets * PACKET, self.rtt).as_f64(),
                _ => f64::INFINITY,
            })
            .collect();
        let got: Vec<f64> =
            offered.iter().zip(&windows).map(|(offered, window)| offered.min(*window)).collect();
        let sum: f64 = got.iter().sum();
        let limit = self.auto.limit.map_or(f64::INFINITY, Rate::as_f64);
        let scale = (limit / sum.max(1.0)).min(1.0);
        let samples: Vec<_> = self
            .connections
            .iter()
            .enumerate()
            .map(|(index, (connection, path))| ConnectionSample {
                connection: *connection,
                path: *path,
                delivered: Rate::from_bps_f64(got[index] * scale).amount_in(STEP),
                srtt: self.round_trip(*path),
                packet_size: PACKET,
                silent: Duration::ZERO,
                loss: self.loss,
                network_limited: scale == 1.0 && windows[index] > offered[index],
            })
            .collect();
        self.delivered = Rate::from_bps_f64(sum * scale);
        if let Some(media) = self.media {
            self.buffer += (self.delivered.ratio_to(media) - 1.0) * STEP.as_secs_f64();
            if self.buffer < 0.0 {
                self.stalled -= self.buffer;
                self.buffer = 0.0;
            }
        }
        self.now += STEP;
        let paths = self.path_samples();
        let sample = Sample {
            now: self.now,
            elapsed: STEP,
            wanted: self.wanted,
            buffer: self.media.map(|_| Duration::from_secs_f64(self.buffer)),
            connections: &samples,
            connecting: self.connecting,
            paths: &paths,
            aside: Bytes::ZERO,
            sated: self.sated,
            left: Bytes::ZERO,
            hungry: false,
            next_rung: None,
        };
        let orders = self.auto.measure(&sample);
        self.obey(&orders);
    }

    fn run(&mut self, seconds: u64) {
        for _ in 0..seconds * 5 {
            self.step();
        }
    }
}

fn film(paths: &[Path], kbps: u64) -> World {
    World::new(paths, Some(Rate::from_kbps(kbps)), Parameters::default())
}

#[test]
fn one_connection_where_one_holds_the_rate() {
    let mut world = film(&[Path::idle(Rate::from_mbps(6))], 800);
    world.run(120);
    assert_eq!((world.most, world.connections.len()), (1, 1));
    assert!((18.0..22.0).contains(&world.buffer), "the buffer settles at B+: {}", world.buffer);
    assert!(world.delivered.ratio_to(Rate::from_kbps(800)) < 1.05);
}

#[test]
fn slow_start_is_not_taken_for_a_missed_rate() {
    let mut world = film(&[Path::idle(Rate::from_mbps(6))], 800);
    for kbps in [100, 200, 400, 800, 1600] {
        world.paths[0].connection_cap = Rate::from_kbps(kbps);
        world.step();
    }
    world.run(5);
    assert_eq!(world.most, 1);
}

#[test]
fn beside_cross_traffic_no_more_than_the_bound_plus_one() {
    for (flows, kbps) in [(15, 800), (20, 800), (4, 2000), (40, 500)] {
        let capacity = Rate::from_mbps(6);
        let bound = minimum_connections(Rate::from_kbps(kbps), capacity, flows).unwrap();
        let path = Path { cross_flows: flows, ..Path::idle(capacity) };
        let mut world = film(&[path], kbps);
        world.run(20);
        world.stalled = 0.0;
        world.run(300);
        assert_eq!(world.stalled, 0.0, "{flows} flows");
        assert!(
            world.most as u64 <= u64::from(bound) + 1,
            "{flows} flows: {} connections, bound {bound}",
            world.most
        );
    }
}

#[test]
fn what_is_not_needed_any_more_is_given_back() {
    let path = Path { cross_flows: 15, ..Path::idle(Rate::from_mbps(6)) };
    let mut world = film(&[path], 800);
    world.run(60);
    assert!(world.connections.len() >= 3);
    world.paths[0].cross_flows = 0;
    world.run(60);
    assert_eq!(world.connections.len(), 1);
}

#[test]
fn a_full_path_is_answered_with_one() {
    // One connection takes all there is, as with a BBR sender: a second one brings nothing.
    let mut world = World::new(&[Path::idle(Rate::from_mbps(45))], None, Parameters::default());
    world.run(120);
    assert!(world.most <= 2 && world.connections.len() <= 2, "{} connections", world.most);
}

#[test]
fn a_player_whose_rate_is_not_known_gets_no_more_where_more_bring_nothing() {
    // It fills its buffer, and takes more than the path has: nobody can tell that from a film that is missed.
    let mut world = World::new(&[Path::idle(Rate::from_mbps(5))], None, Parameters::default());
    world.media = Some(Rate::from_mbps(10));
    world.run(1);
    world.rtt = RTT * 2;
    let mut with_one = 0;
    for _ in 0..60 {
        world.run(1);
        with_one += u32::from(world.connections.len() == 1);
    }
    assert!(world.most <= 4 && with_one > 30, "at most {}, with one for {with_one} s", world.most);
}

#[test]
fn many_where_each_brings_its_part() {
    let path = Path { connection_cap: Rate::from_kbps(1500), ..Path::idle(Rate::from_mbps(50)) };
    let mut world = World::new(&[path], None, Parameters::default());
    world.run(30);
    assert_eq!(world.connections.len(), 16);
}

#[test]
fn a_low_buffer_gets_at_once_what_the_shortfall_asks_for_up_to_fourfold() {
    let after_the_first_look = |cap_kbps: u64| {
        // Others are there, so that there is no room.
        let path = Path {
            connection_cap: Rate::from_kbps(cap_kbps),
            cross_flows: 1,
            ..Path::idle(Rate::from_mbps(50))
        };
        let mut world = film(&[path], 4200);
        while world.connections.len() <= 1 && world.now < Time::ZERO + Duration::from_secs(9) {
            world.step();
        }
        world.auto.target()
    };
    assert_eq!([2500, 1500, 300].map(after_the_first_look), [2, 3, 4]);
}

#[test]
fn one_of_several_may_have_no_more_in_flight_than_twice_what_all_may_take() {
    let auto = Auto::new(Parameters::default());
    let connection = ConnectionSample {
        connection: ConnectionId(0),
        path: PathId(0),
        delivered: Bytes::ZERO,
        srtt: RTT,
        packet_size: PACKET,
        silent: Duration::ZERO,
        loss: 0.0,
        network_limited: true,
    };
    let allowed = Rate::from_mbps(8);
    let pipes = |count: usize| {
        let window = auto.window(&connection, allowed, Bytes::ZERO, count, true);
        (window * PACKET).as_f64() / allowed.amount_in(RTT).as_f64()
    };
    for (count, most) in [(1, 6.0), (2, 2.0), (3, 2.0), (6, 1.0)] {
        assert!((most - 0.05..=most + 0.05).contains(&pipes(count)), "{} with {count}", pipes(count));
    }
}

#[test]
fn a_path_with_room_fills_a_low_buffer_beyond_the_rate() {
    // Losses give every connection 1.7 Mbit/s: three only just hold 5, and would leave the buffer as low as
    // it is.
    let path = Path { connection_cap: Rate::from_kbps(1700), ..Path::idle(Rate::from_mbps(50)) };
    let mut world = film(&[path], 5000);
    world.run(15);
    assert!(
        world.buffer > 5.0,
        "{} s in the buffer over {} connections",
        world.buffer,
        world.connections.len()
    );
    world.run(120);
    assert!((3..=4).contains(&world.connections.len()), "what only the filling needed is given back");
}

#[test]
fn one_connection_more_than_the_most_is_borne() {
    // One that was being closed goes on instead, and the rate is missed again.
    let path = Path { connection_cap: Rate::from_kbps(100), ..Path::idle(Rate::from_mbps(50)) };
    let parameters = Parameters { most: 3, ..Parameters::default() };
    let mut world = World::new(&[path], Some(Rate::from_mbps(3)), parameters);
    world.run(60);
    world.connections.extend((90..92).map(|id| (ConnectionId(id), PathId(0))));
    world.auto.target = 2;
    world.run(60);
    assert!(world.connections.len() <= 5, "{}", world.connections.len());
}

#[test]
fn replicas_that_only_together_carry_the_film() {
    let paths = [1500, 1800, 2500].map(|kbps| Path::idle(Rate::from_kbps(kbps)));
    let mut world = film(&paths, 3000);
    world.run(60);
    assert!(world.most <= 4, "{} connections", world.most);
    world.stalled = 0.0;
    // The first replica dies.
    world.paths[0].capacity = Rate::ZERO;
    let dead: Vec<_> = world.connections.iter().filter(|(_, path)| path.0 == 0).map(|(id, _)| *id).collect();
    for connection in dead {
        world.connections.retain(|(id, _)| *id != connection);
        world.auto.closed(connection, world.now);
    }
    world.run(60);
    assert_eq!(world.stalled, 0.0);
    assert!(world.buffer > 5.0);
}

#[test]
fn windows_hold_the_rate_and_not_much_more() {
    let mut world = film(&[Path::idle(Rate::from_mbps(20))], 8000);
    world.wanted = Some(Rate::from_mbps(8));
    world.media = None;
    world.run(10);
    let windows: Bytes = world
        .auto
        .windows
        .values()
        .map(|window| match window {
            Window::Packets(packets) => *packets * PACKET,
            Window::Unlimited => panic!("unlimited"),
        })
        .sum();
    let pipe = Rate::from_mbps(8).amount_in(RTT);
    assert!(windows <= pipe * Ratio::new(17, 10) && windows >= pipe, "{windows} for {pipe}");
}

#[test]
fn one_connection_takes_what_a_download_takes_and_several_what_the_film_needs() {
    // The path has seven times the rate: ten seconds of film are there after two.
    let mut alone = film(&[Path::idle(Rate::from_mbps(14))], 2000);
    alone.run(2);
    assert_eq!(alone.connections.len(), 1);
    assert!(alone.buffer > 9.0, "{} s in the buffer", alone.buffer);
    // Beside others one is not enough, and several take no more than the boost.
    let path = Path { cross_flows: 20, ..Path::idle(Rate::from_mbps(14)) };
    let mut beside = film(&[path], 2000);
    beside.run(15);
    assert!(beside.connections.len() > 1);
    let most = Rate::from_mbps(2) * Parameters::default().boost;
    for _ in 0..100 {
        beside.step();
        assert!(beside.delivered <= most * Ratio::new(101, 100), "{}", beside.delivered);
    }
}

#[test]
fn a_route_that_becomes_long_and_slow_is_answered_before_the_buffer_is_empty() {
    let path = Path { connection_cap: Rate::from_kbps(4000), ..Path::idle(Rate::from_mbps(50)) };
    let mut world = film(&[path], 2000);
    world.run(60);
    // Connections bring a tenth of what they brought, over a round trip of two thirds of a second. The buffer is
    // above B- all the time, but does not last as long as a few changes take to show.
    world.paths[0].connection_cap = Rate::from_kbps(400);
    world.rtt = Duration::from_millis(640);
    world.buffer = 16.0;
    world.run(12);
    assert!(world.buffer > 5.0, "{} s in the buffer", world.buffer);
    assert!(world.connections.len() >= 4, "{} connections", world.connections.len());
}

#[test]
fn what_a_full_path_does_not_need_is_given_back_though_the_network_holds_it_back() {
    // It brings a twentieth more than the film needs, over one connection as over five.
    let mut world = film(&[Path::idle(Rate::from_kbps(2150))], 2000);
    world.run(30);
    world.buffer = 8.0;
    world.auto.target = 5;
    world.connections.extend((90..94).map(|id| (ConnectionId(id), PathId(0))));
    world.run(90);
    assert_eq!(world.connections.len(), 1);
}

#[test]
fn nobody_is_added_where_each_would_have_fewer_packets_than_a_retransmission_needs() {
    // Ten flows have 2 Mbit/s at 80 ms: 14 packets in all, which is one and a half for each.
    let crowded = Path { cross_flows: 9, ..Path::idle(Rate::from_mbps(2)) };
    let most = |path: Path, loss: f64| {
        let mut world = film(&[path], 1000);
        world.loss = loss;
        world.run(60);
        world.most
    };
    assert_eq!(most(crowded, 0.1), 1);
    // Where nothing is lost, windows are small for another reason, such as a server's cap.
    assert!(most(crowded, 0.0) > 5);
    // Seven packets for each, and as many losses as that makes: one more is what the film needs.
    let fed = Path { cross_flows: 1, ..Path::idle(Rate::from_mbps(2)) };
    assert_eq!(most(fed, 0.06), 2);
}

#[test]
fn a_silent_path_gets_a_new_connection_before_the_timeouts_of_the_old_one_are_over() {
    let mut world = film(&[Path::idle(Rate::from_mbps(6))], 800);
    world.run(5);
    assert_eq!(world.connections.len(), 1);
    // Nothing comes any more, and another connection waits for an answer to its SYN.
    world.paths[0].connection_cap = Rate::ZERO;
    (world.connecting, world.buffer) = (1, 4.0);
    world.auto.target = 2;
    (0..7).for_each(|_| world.step());
    assert_eq!(world.connections.len(), 2, "after 1.4 s");
    world.run(20);
    // After 1, 2, 4, 8 and 16 s.
    assert!((4..=6).contains(&world.connections.len()), "ever more seldom: {}", world.connections.len());
}

#[test]
fn nobody_who_reads_leaves_one_connection_though_the_rate_is_not_known() {
    let path = Path { connection_cap: Rate::from_kbps(500), ..Path::idle(Rate::from_mbps(50)) };
    let mut world = World::new(&[path], None, Parameters::default());
    world.media = Some(Rate::from_mbps(20));
    world.run(30);
    assert_eq!(world.connections.len(), 16);
    // The viewer has left: nothing is asked for.
    (world.sated, world.paths[0].connection_cap) = (true, Rate::ZERO);
    world.connections.pop();
    world.step();
    assert_eq!(world.connections.len(), 15, "one that is lost is not replaced");
    world.run(30);
    assert_eq!(world.connections.len(), 1);
}
