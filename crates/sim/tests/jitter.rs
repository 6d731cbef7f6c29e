//! `auto` and the published controls over links whose packets have jitter, on routes that become longer, and
//! beside TCP. `cargo test -p anabranch-sim --test jitter -- --nocapture` prints the figures of
//! docs/live-control.md.

use anabranch_sim::Simulation;
use anabranch_sim::model::Model;
use anabranch_sim::report::{Decision, Observer};
use anabranch_sim::scenario::{self, Beside};
use anabranch_units::{Rate, Time};

const SEEDS: u64 = 2;
/// When the route becomes longer.
const LONGER_AT: f64 = 100.0;

/// A link and what is on it.
#[derive(Clone, Copy)]
struct Path {
    mbps: u64,
    /// One way, and what it becomes at [`LONGER_AT`].
    delay_ms: u64,
    longer_ms: Option<u64>,
    loss: f64,
    /// At the most, uniformly, each way; packets do not overtake each other.
    jitter_ms: u64,
    queue: u64,
    /// How many flows of TCP, and their control.
    tcp: (u64, &'static str),
}

const WIRELESS: Path =
    Path { mbps: 1, delay_ms: 80, longer_ms: None, loss: 0.02, jitter_ms: 0, queue: 50, tcp: (0, "cubic") };

/// What came of it, a mean of some seeds.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    /// Parts of the link.
    stream: f64,
    tcp: f64,
    /// Seconds until a longer route was found, the longest of all; infinite if it was not.
    found: f64,
}

#[derive(Default)]
struct Found(Option<Time>);

impl Observer for Found {
    fn decision(&mut self, decision: &Decision) {
        let is_late = decision.at.as_secs_f64() >= LONGER_AT;
        if is_late && decision.why.contains("the route has changed") {
            self.0.get_or_insert(decision.at);
        }
    }
}

fn model(path: &Path, scheme: &str, seed: u64) -> Model {
    let Path { mbps, delay_ms, longer_ms, loss, jitter_ms, queue, tcp: (count, congestion) } = *path;
    let changes = longer_ms.map_or(String::new(), |longer| {
        format!("changes = [{{ at = \"{LONGER_AT}s\", delay = \"{longer}ms\" }}]")
    });
    let comma = if changes.is_empty() { "" } else { ", " };
    let (duration, warm_up) = if longer_ms.is_some() { (240, 120) } else { (240, 50) };
    let mut text = format!(
        r#"
        [run]
        duration = "{duration}s"
        warm_up = "{warm_up}s"
        [[node]]
        name = "studio"
        [[node]]
        name = "street"
        [[link]]
        from = "street"
        to = "studio"
        rate = "{mbps}Mbps"
        delay = "{delay_ms}ms"
        queue = "{queue} packets"
        loss = {loss}
        jitter = "{jitter_ms}ms"
        {changes}
        reverse = {{ rate = "100Mbps", loss = 0.0{comma}{changes} }}
        [[flow]]
        name = "stream"
        kind = "tfrc"
        from = "street"
        to = "studio"
        scheme = {scheme}
        "#
    );
    for flow in 0..count {
        text += &format!(
            r#"
            [[flow]]
            name = "tcp{flow}"
            kind = "tcp"
            from = "street"
            to = "studio"
            start = "{}ms"
            tcp = {{ congestion = "{congestion}" }}
            "#,
            2000 + 130 * flow
        );
    }
    scenario::parse("jitter.toml", &text, Some(seed), &mut Beside(std::path::Path::new(".")))
        .expect("a scenario")
}

fn run(name: &str, path: Path, scheme: &str) -> Outcome {
    let mut outcome = Outcome::default();
    for seed in 1..=SEEDS {
        let mut simulation = Simulation::new(model(&path, scheme, seed)).expect("a possible model");
        let mut found = Found::default();
        simulation.run_until(simulation.end(), &mut found);
        let totals = simulation.totals();
        let part = |flow: usize| {
            let flow = &totals.flows[flow];
            Rate::of(flow.arrived_wire, totals.counted).as_f64() / (path.mbps as f64 * 1e6) / SEEDS as f64
        };
        outcome.stream += part(0);
        outcome.tcp += (1..totals.flows.len()).map(part).sum::<f64>();
        let after = found.0.map_or(f64::INFINITY, |found| found.as_secs_f64() - LONGER_AT);
        outcome.found = outcome.found.max(after);
    }
    println!("{name}, {scheme}: {outcome:.2?}");
    outcome
}

#[test]
fn auto_uses_links_whose_packets_have_jitter() {
    let fast = Path { mbps: 5, delay_ms: 40, loss: 0.01, queue: 60, ..WIRELESS };
    let rows = [
        ("1 Mbps, 168 ms, 2 %", WIRELESS, [0, 60, 80]),
        ("5 Mbps, 80 ms, 1 %", fast, [0, 20, 40]),
        (
            "2 Mbps, 120 ms, 3 %",
            Path { mbps: 2, delay_ms: 60, loss: 0.03, queue: 60, ..WIRELESS },
            [0, 30, 60],
        ),
    ];
    for (name, path, jitters) in rows {
        for jitter_ms in jitters {
            let name = format!("{name}, jitter {jitter_ms} ms");
            let path = Path { jitter_ms, ..path };
            let [auto, published] = ["\"auto\"", "\"multfrc\""].map(|scheme| run(&name, path, scheme));
            assert!(
                auto.stream > 0.8 && auto.stream + 0.02 > published.stream,
                "{name}: {auto:?}, {published:?}"
            );
        }
    }
}

#[test]
fn auto_finds_a_longer_route_within_seconds_also_with_jitter() {
    let fast = Path { mbps: 5, delay_ms: 40, longer_ms: Some(60), loss: 0.01, queue: 60, ..WIRELESS };
    let rows = [
        ("1 Mbps, 168 ms, 2 %, then 218 ms", Path { longer_ms: Some(105), ..WIRELESS }),
        ("5 Mbps, 80 ms, 1 %, then 120 ms", fast),
    ];
    for (name, path) in rows {
        let name = format!("{name}, jitter 6 ms");
        let path = Path { jitter_ms: 6, ..path };
        let [auto, published] = ["\"auto\"", "\"multfrc\""].map(|scheme| run(&name, path, scheme));
        assert!(auto.found <= 15.0 && auto.stream > 0.75, "{name}: {auto:?}");
        // It stays with one connection.
        assert!(published.stream < 0.5, "{name}: {published:?}");
    }
}

/// Others' queue is neither jitter nor a route: one connection is left, as without jitter.
#[test]
fn beside_tcp_auto_takes_no_more_than_one_tfrc_connection_would() {
    let path = Path { mbps: 10, delay_ms: 30, loss: 0.0, queue: 60, ..WIRELESS };
    for tcp in [(1, "cubic"), (3, "cubic"), (1, "bbr"), (3, "bbr")] {
        for jitter_ms in [0, 10] {
            let name = format!("10 Mbps, 60 ms, jitter {jitter_ms} ms, beside {} {}", tcp.0, tcp.1);
            let path = Path { jitter_ms, tcp, ..path };
            let [auto, one] =
                ["\"auto\"", "{ kind = \"fixed\", connections = 1 }"].map(|scheme| run(&name, path, scheme));
            assert!(auto.tcp > 0.9 * one.tcp, "{name}: {auto:?}, {one:?}");
        }
    }
}
