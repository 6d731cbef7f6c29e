//! BBRv3 over paths on which packets overtake each other: what was taken for lost and has arrived after all
//! is taken back. `-- --nocapture` prints the figures.

use std::path::Path;

use anabranch_sim::Simulation;
use anabranch_sim::report::{Decision, FlowSample, Observer};
use anabranch_sim::scenario::{Beside, parse};

/// What came of a flow, payload in bytes by second, and when it took something for lost.
#[derive(Default)]
struct Course {
    delivered: Vec<u64>,
    losses: usize,
}

impl Observer for Course {
    fn flow(&mut self, sample: &FlowSample) {
        self.delivered.push(sample.delivered.get());
    }

    fn wants_loss_events(&self) -> bool {
        true
    }

    fn decision(&mut self, decision: &Decision) {
        self.losses += usize::from(decision.what == "loss_event");
    }
}

impl Course {
    /// Mean payload from the fifth second on, Mbps.
    fn goodput(&self) -> f64 {
        let part = &self.delivered[5..];
        part.iter().sum::<u64>() as f64 * 8e-6 / part.len() as f64
    }
}

/// A flow by itself over 20 Mbps and 40 ms, two products of queue, for 30 s; `link` and `tcp`: more keys.
fn run(link: &str, tcp: &str, seed: u64) -> Course {
    let text = format!(
        r#"
        [run]
        duration = "30s"
        seed = {seed}
        sampling = "1s"
        [[node]]
        name = "sender"
        [[node]]
        name = "receiver"
        [[link]]
        from = "sender"
        to = "receiver"
        rate = "20Mbps"
        delay = "20ms"
        queue = "132 packets"
        {link}
        [[flow]]
        name = "flow"
        kind = "tcp"
        from = "sender"
        to = "receiver"
        tcp = {{ congestion = "bbr"{tcp} }}
        "#
    );
    let model = parse("reordering.toml", &text, None, &mut Beside(Path::new("."))).expect("a scenario");
    let mut simulation = Simulation::new(model).expect("a possible model");
    let mut course = Course::default();
    simulation.run_until(simulation.end(), &mut course);
    course
}

/// How packets overtake each other, and what the flow has at least in Mbps with timestamps and without. What
/// it had before anything was taken back was 18.06, 7.98 and 7.34.
const REORDERS: [(&str, f64, f64); 3] = [
    (r#"{ kind = "exponential", mean = "400us", reorder = true }"#, 18.5, 18.5),
    (r#"{ kind = "exponential", mean = "1ms", reorder = true }"#, 17.0, 9.5),
    (r#"{ kind = "uniform", most = "5ms", reorder = true }"#, 16.5, 8.5),
];

#[test]
fn reordering_costs_little_where_it_is_seen() {
    for (jitter, with_timestamps, without) in REORDERS {
        for (tcp, least) in [("", with_timestamps), (", timestamps = false", without)] {
            let link = format!("jitter = {jitter}\nreverse = {{ jitter = \"0ms\" }}");
            let courses: Vec<_> = (1..=5).map(|seed| run(&link, tcp, seed)).collect();
            let goodputs: Vec<_> = courses.iter().map(Course::goodput).collect();
            let mean = goodputs.iter().sum::<f64>() / 5.0;
            println!("{jitter}{tcp}: {mean:.2} Mbps, {goodputs:.2?}, {} loss events", courses[0].losses);
            assert!(mean > least, "{jitter}{tcp}: {mean}");
        }
    }
}

#[test]
fn losses_stay_losses_where_packets_overtake_each_other_besides() {
    // Three in a hundred are lost: above the threshold of the model, whatever arrives late.
    let jitter = r#"jitter = { kind = "exponential", mean = "1ms", reorder = true }"#;
    let link = format!("loss = 0.03\n{jitter}\nreverse = {{ jitter = \"0ms\", loss = 0 }}");
    let goodputs: Vec<_> = (1..=5).map(|seed| run(&link, "", seed).goodput()).collect();
    println!("{goodputs:.2?} Mbps");
    assert!(goodputs.iter().all(|goodput| *goodput < 17.0 * 0.75), "{goodputs:?}");
}
