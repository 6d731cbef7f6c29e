//! BBRv3 as a sender against what its draft promises: full links, short queues, losses, shares, changes.

use std::path::Path;

use anabranch_sim::Simulation;
use anabranch_sim::report::{FlowSample, LinkSample, Observer, Totals};
use anabranch_sim::scenario::{Beside, parse};

/// A link between two nodes, `milliseconds` there and back, and the flows' part of the file.
struct World<'a> {
    mbps: f64,
    milliseconds: u64,
    queue: u64,
    link: &'a str,
    flows: String,
    seconds: u64,
    seed: u64,
}

/// What came of it, each second.
struct Course {
    mbps: f64,
    totals: Totals,
    /// By flow, payload in Mbps.
    flows: Vec<Vec<f64>>,
    /// By second, the mean wait in the queue in milliseconds.
    waits: Vec<f64>,
}

impl Observer for Course {
    fn flow(&mut self, sample: &FlowSample) {
        self.flows[sample.flow].push(sample.delivered.as_f64() * 8e-6);
    }

    fn link(&mut self, sample: &LinkSample) {
        if sample.link == 0 {
            self.waits.push(sample.waited.as_secs_f64() * 1e3 / sample.packets.max(1) as f64);
        }
    }
}

impl World<'_> {
    /// Bandwidth and delay, in packets of 1500 bytes.
    fn product(mbps: f64, milliseconds: u64) -> u64 {
        (mbps * 1e6 * milliseconds as f64 * 1e-3 / 12_000.0) as u64
    }

    fn run(&self) -> Course {
        let Self { mbps, milliseconds, queue, link, flows, seconds, seed } = self;
        let text = format!(
            r#"
            [run]
            duration = "{seconds}s"
            seed = {seed}
            sampling = "1s"
            [[node]]
            name = "sender"
            [[node]]
            name = "receiver"
            [[link]]
            from = "sender"
            to = "receiver"
            rate = "{mbps}Mbps"
            delay = "{}us"
            queue = "{queue} packets"
            {link}
            {flows}
            "#,
            milliseconds * 500
        );
        let model = parse("bbr.toml", &text, None, &mut Beside(Path::new("."))).expect("a scenario");
        let count = model.flows.len();
        let mut simulation = Simulation::new(model).expect("a possible model");
        let totals = simulation.totals();
        let mut course = Course { mbps: *mbps, totals, flows: vec![Vec::new(); count], waits: Vec::new() };
        simulation.run_until(simulation.end(), &mut course);
        course.totals = simulation.totals();
        course
    }
}

impl Course {
    /// A flow's mean payload in these seconds, Mbps.
    fn mean(&self, flow: usize, seconds: std::ops::Range<usize>) -> f64 {
        let part = &self.flows[flow][seconds];
        part.iter().sum::<f64>() / part.len() as f64
    }

    /// What part of the link's rate a flow had on the wire in these seconds: 1460 of 1500 bytes are payload.
    fn used(&self, flow: usize, seconds: std::ops::Range<usize>) -> f64 {
        self.mean(flow, seconds) * 1500.0 / 1460.0 / self.mbps
    }

    fn mean_wait(&self, seconds: std::ops::Range<usize>) -> f64 {
        let part = &self.waits[seconds];
        part.iter().sum::<f64>() / part.len() as f64
    }
}

/// A flow that always has something to send.
fn greedy(control: &str, more: &str) -> String {
    format!(
        "[[flow]]\nname = \"{control}\"\nkind = \"tcp\"\nfrom = \"sender\"\nto = \"receiver\"\ntcp = \
         {{ congestion = \"{control}\" }}\n{more}\n"
    )
}

fn world(mbps: f64, milliseconds: u64, products: f64, flows: String) -> World<'static> {
    let queue = (World::product(mbps, milliseconds) as f64 * products) as u64;
    World {
        mbps,
        milliseconds,
        queue: queue.max(40),
        link: "reverse = { loss = 0, changes = [] }",
        flows,
        seconds: 30,
        seed: 1,
    }
}

#[test]
fn a_clean_link_is_full_and_its_queue_short() {
    for (mbps, milliseconds) in [(2.0, 20), (10.0, 10), (10.0, 40), (10.0, 200), (50.0, 40), (200.0, 30)] {
        let course = world(mbps, milliseconds, 4.0, greedy("bbr", "")).run();
        let (used, wait) = (course.used(0, 5..30), course.mean_wait(5..30));
        println!(
            "{mbps} Mbps {milliseconds} ms: {used:.4} used, {wait:.2} ms in the queue, {} lost",
            course.totals.flows[0].dropped
        );
        assert!(used >= 0.95, "{mbps} Mbps, {milliseconds} ms: {used}");
        // One phase up raises what is in flight by a quarter of the product, for a few round trips in two to
        // three seconds; the window bounds it at twice the product. A tenth on the mean, and some packets on
        // a slow link: six in flight are the least that three quanta let it have.
        let packet = 12.0 / mbps;
        assert!(
            wait < 0.15 * milliseconds as f64 + 6.0 * packet,
            "{mbps} Mbps, {milliseconds} ms: {wait} ms"
        );
        assert_eq!(course.totals.flows[0].dropped, 0, "{mbps} Mbps, {milliseconds} ms");
    }
}

#[test]
fn losses_up_to_the_threshold_cost_what_one_cycle_forgets() {
    let of = |control: &str, loss: f64, seed| {
        let link = format!("loss = {loss}\nreverse = {{ loss = 0 }}");
        let course =
            World { link: &link, seconds: 60, seed, ..world(20.0, 40, 2.0, greedy(control, "")) }.run();
        course.used(0, 5..60)
    };
    let mean = |control: &str, loss| (1..=3).map(|seed| of(control, loss, seed)).sum::<f64>() / 3.0;
    for loss in [0.001, 0.01, 0.015] {
        let (bbr, reno) = (mean("bbr", loss), mean("reno", loss));
        // Between two probes the bandwidth follows what was delivered, which is by the losses less each round
        // trip (section 5.3.3.8 of the draft); 63 of them are the most, and the probe brings all of it back.
        // What losses take of the link itself comes to that, and what is paced and probed costs a twentieth,
        // as without losses.
        let kept = (1.0 - (1.0 - loss).powi(63)) / (63.0 * loss);
        let least = 0.95 * (1.0 - loss) * kept;
        println!("loss {loss}: bbr {bbr:.3} (at least {least:.3}), reno {reno:.3}");
        assert!(bbr > least, "loss {loss}: {bbr}");
        assert!(bbr > 2.0 * reno, "loss {loss}: {bbr} against {reno}");
    }
    // At the threshold every probe may be the one that loses too much; far above it losses are what they
    // mean.
    let (at, above) = (mean("bbr", 0.02), mean("bbr", 0.1));
    println!("loss 0.02: bbr {at:.3}; loss 0.1: bbr {above:.3}");
    assert!(at > 5.0 * mean("reno", 0.02) && at < 0.8, "{at}");
    assert!(above < 0.5 * at, "{above}");
}

#[test]
fn two_flows_come_to_equal_shares_wherever_the_second_begins() {
    for (milliseconds, products) in [(20, 3.0), (40, 1.0), (80, 3.0)] {
        let flows =
            greedy("bbr", "") + &greedy("bbr", "start = \"10s\"").replace("\"bbr\"\nkind", "\"later\"\nkind");
        let course = World { seconds: 120, ..world(20.0, milliseconds, products, flows) }.run();
        let (first, second) = (course.mean(0, 60..120), course.mean(1, 60..120));
        println!("{milliseconds} ms, {products} products: {first:.2} {second:.2} Mbps");
        assert!((0.75..1.33).contains(&(second / first)), "{milliseconds} ms: {first} {second}");
        assert!((first + second) * 1500.0 / 1460.0 / 20.0 > 0.93, "{first} {second}");
    }
}

#[test]
fn beside_cubic_and_reno_neither_starves() {
    for other in ["cubic", "reno"] {
        for products in [0.5, 1.0, 4.0, 10.0] {
            let flows = greedy("bbr", "") + &greedy(other, "start = \"1s\"");
            let course = World { seconds: 180, ..world(20.0, 40, products, flows) }.run();
            let (bbr, other_one) = (course.mean(0, 30..180), course.mean(1, 30..180));
            println!("{products} products: bbr {bbr:.2}, {other} {other_one:.2} Mbps");
            let share = bbr / (bbr + other_one);
            assert!((0.1..0.9).contains(&share), "{products} products: {bbr} {other_one}");
        }
    }
}

#[test]
fn an_application_that_sends_little_is_sent_at_its_rate() {
    let flow = greedy("bbr", "application = \"constant\"\nrate = \"2Mbps\"");
    let course = world(20.0, 40, 2.0, flow).run();
    let (rate, wait) = (course.mean(0, 2..30), course.mean_wait(2..30));
    println!("{rate:.3} Mbps, {wait:.3} ms");
    assert!((1.97..2.03).contains(&rate), "{rate}");
    // Its packets do not wait for each other: it has not come to think that the path is narrow or wide.
    assert!(wait < 1.0, "{wait}");
}

#[test]
fn a_rate_that_changes_is_found_again() {
    let change = |rate: &str| {
        format!("changes = [{{ at = \"20s\", rate = \"{rate}\" }}]\nreverse = {{ changes = [] }}")
    };
    // Twice as much: within two probes, which grow by a quarter each round trip or more.
    let link = change("40Mbps");
    let course = World { link: &link, seconds: 45, ..world(20.0, 40, 2.0, greedy("bbr", "")) }.run();
    let (before, after) = (course.mean(0, 10..20), course.mean(0, 28..45));
    println!("doubled: {before:.2} then {after:.2}; by second {:.1?}", &course.flows[0][19..30]);
    assert!((1.9..2.1).contains(&(after / before)), "{before} {after}");
    // Half: the link stays full. The filter forgets after two cycles, of up to three seconds and four round
    // trips of up to 0.2 s each, after the one that is under way, and a probe for the round trip begins one
    // of them anew: by thirteen seconds the queue is short again.
    let link = change("10Mbps");
    let course = World { link: &link, seconds: 45, ..world(20.0, 40, 2.0, greedy("bbr", "")) }.run();
    let after = course.mean(0, 22..45);
    println!("halved: {after:.2}; waits by second {:.1?}", &course.waits[19..35]);
    assert!((0.93..1.0).contains(&(after * 1500.0 / 1460.0 / 10.0)), "{after}");
    let wait = course.mean_wait(33..45);
    assert!(wait < 15.0, "{wait}");
}

#[test]
fn ten_flows_share_a_link_and_the_same_seed_gives_the_same_bytes() {
    let flows = greedy("bbr", "count = 10\nstart = [\"0s\", \"5s\"]");
    let world = World { seconds: 60, ..world(50.0, 30, 2.0, flows) };
    let (course, again) = (world.run(), world.run());
    assert_eq!(course.flows, again.flows);
    let rates: Vec<_> = (0..10).map(|flow| course.mean(flow, 30..60)).collect();
    let (sum, squares) =
        rates.iter().fold((0.0, 0.0), |(sum, squares), rate| (sum + rate, squares + rate * rate));
    // Jain's index.
    let index = sum * sum / (10.0 * squares);
    println!("{sum:.2} Mbps together, Jain's index {index:.3}: {rates:.2?}");
    assert!(index > 0.9, "{rates:?}");
    assert!(sum * 1500.0 / 1460.0 / 50.0 > 0.93, "{sum}");
    let other = World { seed: 2, ..world }.run();
    assert_ne!(course.flows, other.flows);
}
