//! L4S beside classic flows behind DualPI2 (RFC 9332), and DCTCP (RFC 8257), held against what their designs
//! promise.

use std::collections::BTreeMap;

use anabranch_sim::Simulation;
use anabranch_sim::model::{FlowId, LinkId, Model};
use anabranch_sim::report::{Observer, PacketKind, PacketRecord, Totals};
use anabranch_sim::scenario::{Beside, parse};
use anabranch_units::Time;

const DCTCP: &str = r#"{ congestion = "dctcp", ecn = "l4s" }"#;
/// Of the access links: a packet's way to the bottleneck takes so long beyond its transmission, nanoseconds.
const ACCESS: u64 = 1_000_000;
/// Nanoseconds of a full segment's transmission there.
const ACCESS_SEGMENT: u64 = 12_000;

/// A dumbbell behind 40 Mbps with a round trip of 20 ms, but for the queue: `count` flows of each of these
/// TCPs, in this order.
fn scenario(discipline: &str, count: u32, tcps: &[&str]) -> Model {
    let pairs = count * tcps.len() as u32;
    let flows = tcps.iter().enumerate().map(|(kind, tcp)| {
        format!(
            r#"
            [[flow]]
            name = "kind{kind}-{{i}}"
            kind = "tcp"
            count = {count}
            from = "sender{{i}}"
            to = "receiver{{i}}"
            start = ["0s", "1s"]
            tcp = {tcp}
            "#
        )
    });
    let text = format!(
        r#"
        run = {{ duration = "100s", warm_up = "20s" }}
        [topology]
        kind = "dumbbell"
        pairs = {pairs}
        access = {{ rate = "1Gbps", delay = "1ms" }}
        bottleneck = {{ rate = "40Mbps", delay = "8ms", queue = "1000 packets", discipline = {discipline} }}
        {}
        "#,
        flows.collect::<String>()
    );
    parse("l4s.toml", &text, None, &mut Beside(".".as_ref())).expect("a scenario")
}

/// How long data waited at the bottleneck, for each flow.
struct Waits {
    bottleneck: LinkId,
    from: Time,
    /// When a flow's segment began its way, by its first byte.
    left: BTreeMap<(FlowId, u64), Time>,
    seconds: Vec<Vec<f64>>,
}

impl Observer for Waits {
    fn wants_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, packet: &PacketRecord) {
        let PacketKind::Data(position) = packet.what else { return };
        let key = (packet.flow, position);
        if packet.link != self.bottleneck {
            self.left.entry(key).or_insert(packet.at);
        } else if let Some(left) = self.left.remove(&key)
            && packet.at > self.from
        {
            let waited = packet.at.since(left).as_nanos().saturating_sub(ACCESS + ACCESS_SEGMENT);
            self.seconds[packet.flow].push(waited as f64 / 1e9);
        }
    }
}

impl Waits {
    /// Mean and 99th percentile over some flows, milliseconds.
    fn of(&self, flows: std::ops::Range<usize>) -> (f64, f64) {
        let mut all: Vec<f64> = self.seconds[flows].concat();
        all.sort_by(f64::total_cmp);
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        (mean * 1e3, all[all.len() * 99 / 100] * 1e3)
    }
}

fn run(model: Model) -> (Totals, Waits, f64) {
    let bottleneck = model.links.iter().position(|link| link.name == "left-right").expect("a bottleneck");
    let mut waits = Waits {
        bottleneck,
        from: Time::ZERO + model.run.warm_up,
        left: BTreeMap::new(),
        seconds: vec![Vec::new(); model.flows.len()],
    };
    let mut simulation = Simulation::new(model).expect("a possible model");
    simulation.run_until(simulation.end(), &mut waits);
    let totals = simulation.totals();
    let used = totals.links[bottleneck].transmitted.as_f64() * 8.0 / 40e6 / totals.counted.as_secs_f64();
    (totals, waits, used)
}

/// The part of what some flows sent that was marked, or dropped.
fn part(totals: &Totals, flows: std::ops::Range<usize>) -> f64 {
    let (told, sent) = totals.flows[flows]
        .iter()
        .fold((0, 0), |(told, sent), flow| (told + flow.marked + flow.dropped, sent + flow.sent));
    told as f64 / sent as f64
}

fn delivered(totals: &Totals, flows: std::ops::Range<usize>) -> f64 {
    totals.flows[flows].iter().map(|flow| flow.delivered.as_f64()).sum()
}

/// One flow's window swings about the step: between two reductions it has marks in one round trip, and their
/// part is sqrt(2/W) (Alizadeh et al. 2010, section 3.3).
#[test]
fn dctcp_alone_keeps_a_step_s_queue_and_loses_nothing() {
    let step = r#"{ kind = "dualpi2", threshold = "2ms", range = "0s" }"#;
    let (totals, waits, used) = run(scenario(step, 1, &[DCTCP]));
    let flow = &totals.flows[0];
    let (mean, late) = waits.of(0..1);
    assert!(flow.dropped == 0 && flow.retransmitted == 0, "{flow:?}");
    assert!(used > 0.97 && (0.7..2.0).contains(&mean) && late < 3.5, "{used}, {mean} ms, {late} ms");
    let window =
        flow.delivered.as_f64() / 1460.0 * flow.rtt_mean.as_secs_f64() / totals.counted.as_secs_f64();
    let ratio = part(&totals, 0..1) / (2.0 / window).sqrt();
    assert!((0.6..1.4).contains(&ratio), "{ratio}");
}

/// Section 2.1: the coupling gives both kinds about the same rate, the classic queue is at its target and the
/// other at the ramp of 0.8 to 1.2 ms.
#[test]
fn both_kinds_share_and_only_classic_packets_wait() {
    for (count, classic) in [
        (1, r#"{ congestion = "cubic" }"#),
        (2, r#"{ congestion = "cubic", ecn = "classic" }"#),
        (4, r#"{ congestion = "reno", ecn = "classic", delayed_ack = false }"#),
        (8, r#"{ congestion = "cubic", ecn = "classic" }"#),
    ] {
        let n = count as usize;
        let (totals, waits, used) = run(scenario(r#""dualpi2""#, count, &[classic, DCTCP]));
        let share = delivered(&totals, n..2 * n) / delivered(&totals, 0..n);
        let ((classic_mean, _), (_, late)) = (waits.of(0..n), waits.of(n..2 * n));
        let told = format!(
            "{count} and {count} of {classic}: {share}, used {used}, waits {classic_mean} ms and {late} ms"
        );
        println!("{told}");
        assert!((0.5..2.0).contains(&share) && used > 0.95, "{told}");
        assert!((7.0..20.0).contains(&classic_mean) && late < 2.0, "{told}");
        assert_eq!(totals.flows[n..].iter().map(|flow| flow.dropped).sum::<u64>(), 0, "{told}");
    }
}

/// p_CL = k p' and p_C = p'^2 (section 2.1), where L4S packets are marked by the coupling alone.
#[test]
fn marks_of_both_kinds_are_coupled_by_a_square() {
    for coupling in [1.5, 2.0, 3.0] {
        let classic = r#"{ congestion = "reno", ecn = "classic", delayed_ack = false }"#;
        let dualpi2 = format!(r#"{{ kind = "dualpi2", coupling = {coupling:?}, threshold = "50ms" }}"#);
        let (totals, ..) = run(scenario(&dualpi2, 8, &[classic, DCTCP]));
        let ratio = part(&totals, 8..16) / (coupling * part(&totals, 0..8).sqrt());
        println!("{coupling}: {ratio}");
        assert!((0.85..1.1).contains(&ratio), "{coupling}: {ratio}");
    }
}

/// More L4S flows than two segments a round trip of each have room for: marks are not enough, and drops keep
/// the queues short (section 4.2.3).
#[test]
fn overload_is_dropped_and_the_queue_stays_short() {
    let mut model = scenario(r#""dualpi2""#, 16, &[DCTCP]);
    for link in model.links.iter_mut().filter(|link| link.name == "left-right") {
        link.rate = anabranch_units::Rate::from_mbps(10);
    }
    let (totals, waits, _) = run(model);
    let dropped: u64 = totals.flows.iter().map(|flow| flow.dropped).sum();
    let (mean, _) = waits.of(0..16);
    println!("{dropped} dropped, {mean} ms");
    assert!(dropped > 50 && mean < 25.0, "{dropped} dropped, {mean} ms");
}
