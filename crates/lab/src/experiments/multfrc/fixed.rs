//! Figure 2: a fixed number of TFRC connections.

use anabranch_congestion::aggregate::Scheme as Connections;
use anabranch_congestion::tfrc::Parameters;

use super::describe::{Figure, explained, extreme, plot_figures, table};
use super::sending::{ASSUMED, Sending};
use super::wireless::{CONNECTIONS, LOSS, LOSS_RATIO, RTT, RTT_RATIO, THROUGHPUT, UTILIZATION, Wireless};
use crate::case::Case;
use crate::experiment::{Axis, Curve, Expected, Experiment, Jobs, Points, Relation};
use crate::papers;
use crate::results::OneSeed;
use crate::scheme::{N1, N2, N4, N8, N16, N32, Scheme};

const PATH: Wireless = Wireless { seconds: 1000, warm_up: 20, ..Wireless::FAST };
const LOSSES: [f64; 9] = [0.0, 0.02, 0.04, 0.06, 0.08, 0.10, 0.12, 0.14, 0.16];
const COUNTS: [(Scheme, u32); 6] = [(N1, 1), (N2, 2), (N4, 4), (N8, 8), (N16, 16), (N32, 32)];
/// The rules of TFRC: those of the RFC, on which it is judged, and those of ns-2.
const NS2: &str = "ns-2";
/// Bandwidth over what one connection gets, as the stock ns-2 has it.
const NS2_OPTIMAL: [(f64, f64); 4] = [(0.10, 9.7), (0.12, 12.4), (0.14, 15.9), (0.16, 19.7)];
const RULES: &str =
    "TFRC's rules: the stock ns-2 gives 4.03, and ours with ns-2's rules 4.1 on the mean (4.06 to 4.35)";
const NO_LEAP: &str = "the stock ns-2 has no leap either: bandwidth over the throughput of one connection is 9.7, 12.4, 15.9 and 19.7 at p_w = 0.10, 0.12, 0.14 and 0.16 there";

/// The bandwidth over what one connection gets.
fn optimal(seed: OneSeed<'_>, loss: f64) -> Option<f64> {
    Some(PATH.kbps / seed.figure(N1, loss, THROUGHPUT)?)
}

pub(super) fn figure_2() -> Experiment {
    let at = |scheme: Scheme, name: &'static str| {
        move |seed: OneSeed<'_>| Figure::new(scheme, 0.04, name).of(seed)
    };
    let near = |loss: f64, ns2: f64| {
        Relation::new(
            (
                &format!("ns2-{loss:.2}"),
                &format!(
                    "n_opt at p_w = {loss} by ns-2's rules of TFRC, against that of the stock ns-2 (within 10 %)"
                ),
                &format!("{ns2} (stock ns-2)"),
                "",
            ),
            move |seed| optimal(seed.setting(NS2), loss),
            Expected::about(ns2, 0.1),
        )
    };
    let mut relations = vec![
        Relation::new(
            (
                "saturates-16",
                "least utilization of 16 connections over all p_w up to 0.1",
                "saturates at B_w (1 - p_w)",
                "",
            ),
            extreme(N16, &LOSSES[..6], UTILIZATION, f64::min),
            Expected::AtLeast(0.97),
        ),
        Relation::new(
            (
                "grows",
                "throughput of 2 connections as a multiple of that of one at p_w = 0.04",
                "grows with n",
                "",
            ),
            |seed| Some(seed.figure(N2, 0.04, THROUGHPUT)? / seed.figure(N1, 0.04, THROUGHPUT)?),
            Expected::about(2.0, 0.1),
        ),
        Relation::new(
            (
                "n-opt",
                "n_opt at p_w = 0.04: bandwidth over what one connection gets (within 10 %)",
                "3.85",
                "",
            ),
            |seed| optimal(seed, 0.04),
            Expected::about(3.85, 0.1),
        ),
        Relation::new(
            ("four", "utilization of 4 connections at p_w = 0.04", "slightly more than 4 needed", ""),
            at(N4, UTILIZATION),
            Expected::Between(0.75, 0.99),
        ),
        Relation::new(
            (
                "rtt-8",
                "round trip of 8 connections at p_w = 0.04 as a multiple of the least",
                "increased",
                "",
            ),
            at(N8, RTT_RATIO),
            Expected::Above(1.2),
        ),
        Relation::new(
            ("loss-8", "loss of 8 connections at p_w = 0.04 as a multiple of p_w", "not increased", ""),
            at(N8, LOSS_RATIO),
            Expected::Below(1.05),
        ),
        Relation::new(
            ("loss-16", "loss of 16 connections at p_w = 0.04 as a multiple of p_w", "increased", ""),
            at(N16, LOSS_RATIO),
            Expected::Above(1.1),
        ),
        Relation::new(
            (
                "loss-32",
                "loss of 32 connections at p_w = 0.04 as a multiple of that of 16",
                "increased further",
                "",
            ),
            |seed| Some(seed.figure(N32, 0.04, LOSS)? / seed.figure(N16, 0.04, LOSS)?),
            Expected::Above(1.1),
        ),
        Relation::new(
            (
                "leap",
                "n_opt at p_w = 0.12 as a multiple of that at 0.10",
                "an abrupt increase (at least half as much again)",
                "",
            ),
            |seed| Some(optimal(seed, 0.12)? / optimal(seed, 0.10)?),
            Expected::AtLeast(1.5),
        ),
    ];
    relations.extend(NS2_OPTIMAL.map(|(loss, ns2)| near(loss, ns2)));
    let looks = COUNTS.map(|(scheme, _)| scheme);
    let axis = || Axis::new("wireless channel error rate p_w", "");
    let rows = COUNTS.iter().flat_map(|(scheme, count)| {
        LOSSES.map(|loss| (format!("{count} at p_w = {loss}"), *scheme, String::new(), loss))
    });
    let capacity = Curve {
        label: "B_w (1 - p_w)".into(),
        look: N1,
        points: Points::Formula(LOSSES.map(|loss| (loss, PATH.kbps * (1.0 - loss))).into()),
    };
    Experiment {
        id: "multfrc-fig2".into(),
        title: "A fixed number of TFRC connections over a lossy link".into(),
        paper: papers::of("multfrc"),
        place: "section II.C, figure 2".into(),
        claim: "Throughput grows with the number of connections and saturates at B_w (1 - p_w). At p_w = 0.04 n_opt is 3.85, and a little more than 4 \
                connections are needed. More of them make the round trip longer first (8) and then the losses more (16, 32). n_opt leaps beyond \
                p_w = 0.1.".into(),
        assumed: ASSUMED
            .into_iter()
            .chain(["10 + 70 ms one way and a queue of 50 packets, as in the reference runs of ns-2"])
            .map(Into::into)
            .collect(),
        random: true,
        jobs: Jobs::new(|seed| {
            let rules = [("", Parameters::RFC5348), (NS2, Parameters::NS2)];
            let mut jobs = Vec::new();
            for (setting, tfrc) in rules {
                for (scheme, count) in COUNTS {
                    if !setting.is_empty() && count > 1 {
                        continue;
                    }
                    for loss in LOSSES {
                        let case = Case { setting: setting.into(), ..Case::new(scheme, loss) };
                        let sending = Sending { tfrc, ..Sending::new(scheme, Connections::TFRC) };
                        jobs.push(PATH.job(case, sending, count, loss, seed));
                    }
                }
            }
            jobs
        }),
        relations: explained(relations, &[("n-opt", RULES), ("leap", NO_LEAP)]),
        plots: vec![
            plot_figures(
                ("throughput", "Throughput", THROUGHPUT),
                axis(),
                Axis::new("throughput", "kbps"),
                &looks,
                vec![capacity],
            ),
            plot_figures(
                ("loss", "Losses from end to end", LOSS),
                axis(),
                Axis::new("loss", ""),
                &looks,
                Vec::new(),
            ),
            plot_figures(
                ("rtt", "Round trip", RTT),
                axis(),
                Axis::new("round trip", "ms"),
                &looks,
                Vec::new(),
            ),
        ],
        tables: vec![table(
            "figures",
            "Means",
            &[
                ("throughput (kbps)", THROUGHPUT),
                ("utilization", UTILIZATION),
                ("loss", LOSS),
                ("round trip (ms)", RTT),
                ("connections", CONNECTIONS),
            ],
            rows,
        )],
    }
}
