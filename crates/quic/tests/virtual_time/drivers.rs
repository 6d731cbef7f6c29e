//! The same control over the same path under two drivers: quinn's state machines and the simulator's TCP.

use std::path::Path as FilePath;

use anabranch_sim::Simulation;
use anabranch_sim::report::{FlowSample, Observer};
use anabranch_sim::scenario::{Beside, parse};

use crate::world::{Control, Path, World};

/// A full packet of quinn's over Ethernet has 1452 bytes above UDP, and so many of them are of a stream.
const PAYLOAD: u64 = 1416;
const PACKET: u64 = 1452;
/// What is measured, in seconds.
const FROM: u64 = 5;
const UNTIL: u64 = 20;
const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;

/// What each second delivered in bytes.
#[derive(Default)]
struct Delivered(Vec<u64>);

impl Observer for Delivered {
    fn flow(&mut self, sample: &FlowSample) {
        self.0.push(sample.delivered.get());
    }
}

/// The goodput under the simulator's TCP in Mbps: windows count as many packets, which are as large on the
/// wire, acknowledgements come for every second one, and the way back costs nothing, as in [`World`].
fn simulated(path: Path, control: &str, seed: u64) -> f64 {
    let text = format!(
        r#"
        [run]
        duration = "{UNTIL}s"
        seed = {seed}
        sampling = "1s"
        [[node]]
        name = "server"
        [[node]]
        name = "client"
        [[link]]
        from = "server"
        to = "client"
        rate = "{}kbps"
        delay = "{}us"
        queue = "{}B"
        loss = {}
        reverse = {{ rate = "1Gbps", queue = "10000 packets", loss = 0 }}
        [[flow]]
        name = "flow"
        kind = "tcp"
        from = "server"
        to = "client"
        [flow.tcp]
        congestion = "{control}"
        segment = "{PAYLOAD}B"
        header = "{}B"
        delayed_ack = {{ every = 2, delay = "25ms" }}
        "#,
        path.rate.as_bps() / 1000,
        path.round_trip.as_micros() / 2,
        path.queue.get(),
        path.loss,
        PACKET - PAYLOAD
    );
    let model = parse("drivers.toml", &text, None, &mut Beside(FilePath::new("."))).expect("a scenario");
    let mut simulation = Simulation::new(model).expect("a possible model");
    let mut delivered = Delivered::default();
    simulation.run_until(simulation.end(), &mut delivered);
    let bytes: u64 = delivered.0[FROM as usize..].iter().sum();
    bytes as f64 * 8e-6 / (UNTIL - FROM) as f64
}

/// The goodput under quinn in Mbps.
fn real(path: Path, control: &str, seed: u64) -> f64 {
    let algorithm = control.parse().expect("a control");
    let mut world = World::new(path, &[Control::Ours(algorithm)], seed);
    world.run(FROM);
    world.run(UNTIL)[0]
}

/// Means over the seeds under both for each control, and how far they may be apart.
fn compare(path: Path, bound: impl Fn(&str) -> f64) {
    let mean = |driver: fn(Path, &str, u64) -> f64, control: &str| {
        let goodputs: Vec<_> = SEEDS.map(|seed| driver(path, control, seed)).collect();
        (goodputs.iter().sum::<f64>() / goodputs.len() as f64, goodputs)
    };
    let mut misses = Vec::new();
    for control in ["cubic", "reno", "bbr", "ttfwc:0.9"] {
        let ((quinn, by_seed), (own, own_by_seed)) = (mean(real, control), mean(simulated, control));
        let (Path { rate, round_trip, loss, .. }, ratio) = (path, quinn / own);
        println!(
            "{rate}, {round_trip}, loss {loss}, {control}: quinn {quinn:.2}, TCP {own:.2} Mbps: {ratio:.3}"
        );
        println!("  {by_seed:.2?} {own_by_seed:.2?}");
        if (ratio - 1.0).abs() > bound(control) {
            misses.push((control, ratio));
        }
    }
    assert!(misses.is_empty(), "{misses:?}");
}

#[test]
fn drivers_agree_behind_a_queue_of_one_product() {
    compare(Path::new(20, 40, 1.0), |_| 0.15);
}

#[test]
fn drivers_agree_on_losses_at_random() {
    // To quinn's driver each acknowledged packet is an acknowledgement. A Reno whose receiver acknowledges every
    // second packet grows half as fast (RFC 5681, section 3.1): a root of two in its rate at the same losses.
    let bound = |control: &str| if control == "reno" { 2f64.sqrt() - 1.0 } else { 0.25 };
    compare(Path { loss: 0.01, ..Path::new(20, 40, 1.0) }, bound);
}

#[test]
fn drivers_agree_on_a_slow_path_with_a_long_queue() {
    compare(Path::new(2, 50, 4.0), |_| 0.15);
}

/// One flow under a control of ours and one under a control of quinn's own.
#[test]
fn ours_beside_quinns_own_controls_leave_each_other_a_share() {
    for control in ["cubic", "reno", "bbr", "ttfwc:0.9"] {
        for foreign in [Control::QuinnCubic, Control::QuinnNewReno] {
            let ours = Control::Ours(control.parse().expect("a control"));
            let mut world = World::new(Path::new(10, 40, 1.0), &[ours, foreign], 1);
            world.run(FROM);
            let rates = world.run(UNTIL + FROM);
            let share = rates[0] / (rates[0] + rates[1]);
            println!("{control} beside {foreign:?}: {rates:.2?} Mbps, {share:.2}");
            assert!((0.25..0.75).contains(&share), "{control} {foreign:?}: {rates:?}");
        }
    }
}
