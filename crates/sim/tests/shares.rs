//! Live senders that share an uplink by weights (`crates/sim/scenarios/live-group.toml`): what they have of
//! it, and what others keep.

use anabranch_sim::report::Totals;
use anabranch_sim::scenario::{self, Beside};
use anabranch_sim::{Simulation, model::Model};

const SCENARIO: &str = include_str!("../scenarios/live-group.toml");
const WEIGHTS: [f64; 3] = [4.0, 2.0, 1.0];
/// Strangers that are TFRC flows as the senders are, packets and parameters included.
const TFRC: (&str, &str) =
    ("kind = \"tcp\"", "kind = \"tfrc\"\nparameters = \"live\"\npacket_size = \"1394B\"");

fn model(text: &str, seed: u64) -> Model {
    // The seed also draws when flows begin.
    scenario::parse("shares.toml", text, Some(seed), &mut Beside(".".as_ref()))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn run(text: &str, seed: u64) -> Totals {
    let mut simulation = Simulation::new(model(text, seed)).expect("a possible model");
    simulation.run_until(simulation.end(), &mut ());
    simulation.totals()
}

/// The scenario with changes, each of which has to be one.
fn changed(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(SCENARIO.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    })
}

/// The same senders, each for itself.
fn alone(text: &str) -> String {
    text.lines()
        .filter(|line| !line.starts_with("group ="))
        .fold(String::new(), |text, line| text + line + "\n")
}

/// What arrived of each of the senders and of all strangers, in kbps from 20 s on.
fn rates(totals: &Totals) -> ([f64; 3], f64) {
    let kbps: Vec<f64> = totals.flows.iter().map(|flow| flow.arrived_wire.as_f64() * 8.0 / 60e3).collect();
    ([kbps[0], kbps[1], kbps[2]], kbps[3..].iter().sum())
}

/// A group's rates beside those of the same senders each for itself.
#[derive(Debug)]
struct Beneath {
    /// What each has of its part, by the weights.
    of_part: [f64; 3],
    group: f64,
    strangers: f64,
    group_alone: f64,
    strangers_alone: f64,
}

fn compare(text: &str, seed: u64) -> Beneath {
    let (shared, strangers) = rates(&run(text, seed));
    let (each, strangers_alone) = rates(&run(&alone(text), seed));
    let group: f64 = shared.iter().sum();
    let mut of_part = WEIGHTS.map(|weight| group * weight / WEIGHTS.iter().sum::<f64>());
    of_part.iter_mut().zip(shared).for_each(|(part, rate)| *part = rate / *part);
    Beneath { of_part, group, strangers, group_alone: each.iter().sum(), strangers_alone }
}

/// The mean of some values, and the half of its interval of 95 %.
fn interval(values: &[f64]) -> (f64, f64) {
    /// Student's t, for 1 to 9 degrees of freedom.
    const T: [f64; 9] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, T[(values.len() - 2).min(8)] * (squares / (count - 1.0) / count).sqrt())
}

/// Compares with so many seeds, and prints what came of it.
fn measure(name: &str, text: &str, seeds: u64) -> Vec<Beneath> {
    let runs: Vec<Beneath> = (1..=seeds).map(|seed| compare(text, seed)).collect();
    let of = |value: fn(&Beneath) -> f64| interval(&runs.iter().map(value).collect::<Vec<_>>());
    let parts = [of(|run| run.of_part[0]), of(|run| run.of_part[1]), of(|run| run.of_part[2])];
    let told = |(mean, half): (f64, f64)| format!("{mean:.3} +- {half:.3}");
    println!(
        "{name}: of their parts {}; group {} of alone ({:.0} kbps); strangers {} of before ({:.0} kbps)",
        parts.map(told).join(", "),
        told(of(|run| run.group / run.group_alone)),
        of(|run| run.group_alone).0,
        told(of(|run| run.strangers / run.strangers_alone)),
        of(|run| run.strangers_alone).0,
    );
    runs
}

#[test]
fn senders_share_by_their_weights_what_each_would_have_had_and_strangers_keep_theirs() {
    for changes in [&[][..], &[TFRC]] {
        let runs = measure(&format!("{changes:?}"), &changed(changes), 4);
        let mean = |value: fn(&Beneath) -> f64| runs.iter().map(value).sum::<f64>() / 4.0;
        assert!(runs.iter().flat_map(|run| run.of_part).all(|part| (0.9..1.1).contains(&part)), "{runs:?}");
        // One seed differs from the next by a tenth.
        assert!((0.85..1.15).contains(&mean(|run| run.group / run.group_alone)), "{runs:?}");
        assert!(mean(|run| run.strangers / run.strangers_alone) > 0.88, "{runs:?}");
    }
}

/// Nobody else is there.
const BY_THEMSELVES: (&str, &str) = ("count = 3\n", "stop = \"1s\"\n");

#[test]
fn who_wants_less_leaves_the_rest_to_the_others() {
    let less = (
        "rate = \"6Mbps\"\nlatency = \"500ms\"\nscheme = \"tfrc\"\nstart = [\"0s\", \"500ms\"]\n\
                 group = { name = \"cameras\", weight = 2 }",
        "rate = \"500kbps\"\nlatency = \"500ms\"\nscheme = \"tfrc\"\ngroup = { name = \"cameras\", weight = 2 }",
    );
    let ([stage, hall, door], _) = rates(&run(&changed(&[BY_THEMSELVES, less]), 1));
    // With headers, and what was sent again.
    assert!((500.0..600.0).contains(&hall), "{hall} kbps");
    assert!((3.6..4.4).contains(&(stage / door)), "{stage} and {door} kbps");
    assert!(stage + hall + door > 5400.0, "{stage}, {hall}, {door} kbps");
}

#[test]
fn who_ends_has_no_part_any_more() {
    let ends = (
        "start = [\"0s\", \"500ms\"]\ngroup = { name = \"cameras\", weight = 4 }",
        "stop = \"19s\"\ngroup = { name = \"cameras\", weight = 4 }",
    );
    let ([stage, hall, door], _) = rates(&run(&changed(&[BY_THEMSELVES, ends]), 1));
    assert!(stage < 60.0, "{stage} kbps");
    assert!((1.8..2.2).contains(&(hall / door)), "{hall} and {door} kbps");
    assert!(hall + door > 5400.0, "{hall} and {door} kbps");
}

#[test]
fn a_group_without_a_common_uplink_is_told() {
    let other = SCENARIO.replacen(
        "from = \"machine\"\nto = \"studio\"\nrate = \"6Mbps\"\nlatency",
        "from = \"studio\"\nto = \"machine\"\nrate = \"6Mbps\"\nlatency",
        1,
    );
    let told = Simulation::new(model(&other, 1)).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(told.contains("'cameras' share an uplink"), "{told}");
    for (wrong, problem) in [
        ("{ name = \"cameras\", weight = 0 }", "from 0.001 to 1000"),
        ("{ name = \"cameras\", watch = true }", "watch"),
        ("{ weight = 4 }", "name"),
    ] {
        let text = changed(&[("{ name = \"cameras\", weight = 4 }", wrong)]);
        let told = scenario::parse("shares.toml", &text, None, &mut Beside(".".as_ref())).unwrap_err();
        assert!(told.to_string().contains(problem), "{wrong}: {told}");
    }
}

/// What docs/live.md tells: `cargo test --release -p anabranch-sim --test shares -- --ignored --nocapture`,
/// with `ONLY` the paths whose names have it.
#[test]
#[ignore = "it takes minutes, and asserts nothing: it makes the figures"]
fn figures() {
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(10);
    let only = std::env::var("ONLY").unwrap_or_default();
    let auto = ("scheme = \"tfrc\"", "scheme = \"auto\"");
    let links = [
        ("6 Mbps, 60 ms, 50 packets", vec![]),
        (
            "20 Mbps, 30 ms, 100 packets",
            vec![
                ("rate = \"6Mbps\"", "rate = \"20Mbps\""),
                ("delay = \"30ms\"", "delay = \"15ms\""),
                ("queue = \"50 packets\"", "queue = \"100 packets\""),
            ],
        ),
        (
            "6 Mbps, 60 ms, FQ-CoDel",
            vec![("queue = \"50 packets\"", "queue = { kind = \"fq-codel\", limit = \"200 packets\" }")],
        ),
        (
            "6 Mbps, 60 ms, PIE",
            vec![("queue = \"50 packets\"", "queue = { kind = \"pie\", limit = \"200 packets\" }")],
        ),
    ];
    for (link, changes) in links {
        for (strangers, change) in [("TCP", None), ("TFRC", Some(TFRC))] {
            for (scheme, scheme_change) in [("tfrc", None), ("auto", Some(auto))] {
                let name = format!("{link}, {scheme} beside three {strangers}");
                if name.contains(&only) {
                    let mut all = changes.clone();
                    all.extend(change.into_iter().chain(scheme_change));
                    measure(&name, &changed(&all), seeds);
                }
            }
        }
    }
}
