//! Figures 5.13 to 5.18: TTFWC beside as many flows of Reno at several round trips.

use super::network::{model, rates};
use super::round_trips::{ASSUMED, FAST, SLOW, SPREAD_MS, path, senders, trips};
use crate::case::{Case, Measured};
use crate::experiment::{Axis, Curve, Expected, Experiment, Job, Jobs, Points, Relation};
use crate::experiments::describe::{Figure, explained, plot_figures, table};
use crate::papers;
use crate::results::OneSeed;
use crate::scheme::{RENO, Scheme, TTFWC_0_0, TTFWC_0_4, TTFWC_0_9};
use crate::simulate::Recording;

pub(super) const RATE: &str = "throughput of TTFWC";
pub(super) const TCP_RATE: &str = "throughput of TCP";

const FEW_SEEDS: &str = "too few seeds for a difference that is smaller than their spread: over 20 seeds it is 5.0 ± 1.6 % at 0.9 and 1.5 ± 1.5 % at 0.4 at 10 Mbps, \
    over 12 seeds 3.3 ± 3.2 % and 0.7 ± 2.3 % at 250 Mbps";

/// Mean throughputs of both halves, as parts of the fair share.
fn shares(run: &Recording, mbps: f64) -> Measured {
    let rates = rates(run);
    let fair = mbps * 1448.0 / 1500.0 / 6.0;
    let mean = |from: usize| rates.iter().skip(from).step_by(2).sum::<f64>() / 3.0 / fair;
    Measured::default().figure(RATE, mean(0), "").figure(TCP_RATE, mean(1), "")
}

/// The mean over round trips of a figure.
fn over_trips(seed: OneSeed<'_>, network: &str, scheme: Scheme, name: &'static str) -> Option<f64> {
    let trips = trips(network);
    let values: Option<Vec<f64>> = trips
        .iter()
        .map(|rtt| Figure { setting: network.into(), ..Figure::new(scheme, *rtt, name) }.of(seed))
        .collect();
    Some(values?.iter().sum::<f64>() / trips.len() as f64)
}

fn beside_tcp(id: &'static str, place: &'static str, network: &'static str, scheme: Scheme) -> Experiment {
    let schemes = if scheme == TTFWC_0_0 { vec![scheme] } else { vec![scheme, TTFWC_0_0] };
    let mut relations = vec![Relation::new(
        (
            "friendly",
            "throughput of TTFWC as a multiple of TCP's, mean over round trips (0.75 to 1.35)",
            if network == SLOW { "little difference" } else { "acceptable" },
            "",
        ),
        move |seed| {
            Some(over_trips(seed, network, scheme, RATE)? / over_trips(seed, network, scheme, TCP_RATE)?)
        },
        Expected::Between(0.75, 1.35),
    )];
    if scheme != TTFWC_0_0 {
        let expected =
            if scheme == TTFWC_0_9 { Expected::Between(0.02, 0.15) } else { Expected::AtLeast(0.0) };
        relations.push(Relation::new(
            (
                "gain",
                "throughput above that at 0.0, mean over round trips",
                if scheme == TTFWC_0_9 {
                    "4 % or 10 % (the chapters disagree)"
                } else {
                    "proportional to the parameter"
                },
                "",
            ),
            move |seed| {
                Some(
                    over_trips(seed, network, scheme, RATE)? / over_trips(seed, network, TTFWC_0_0, RATE)?
                        - 1.0,
                )
            },
            expected,
        ));
    }
    if network == FAST && scheme == TTFWC_0_9 {
        let ratio = |seed: OneSeed<'_>, rtt| {
            let of = |name| seed.setting(FAST).figure(TTFWC_0_9, rtt, name);
            Some(of(RATE)? / of(TCP_RATE)?)
        };
        relations.push(Relation::new(
            ("short", "throughput of TTFWC as a multiple of TCP's at 16 ms", "more than TCP", ""),
            move |seed| ratio(seed, 16.0),
            Expected::Above(1.0),
        ));
        relations.push(Relation::new(
            (
                "long",
                "throughput of TTFWC as a multiple of TCP's at 320 ms (0.75 to 1.25)",
                "no difference",
                "",
            ),
            move |seed| ratio(seed, 320.0),
            Expected::Between(0.75, 1.25),
        ));
    }
    let curve = |label: &str, look, name: &str| Curve {
        label: label.into(),
        look,
        points: Points::Figure { scheme, setting: network.into(), name: name.into() },
    };
    let mut plot = plot_figures(
        ("throughput", &format!("Normalized throughput, {network}"), RATE),
        Axis::new("round trip", "ms"),
        Axis::new("normalized throughput", ""),
        &[],
        Vec::new(),
    );
    plot.curves = vec![curve(scheme.name, scheme, RATE), curve("TCP beside it", RENO, TCP_RATE)];
    let rows = trips(network).iter().map(|rtt| (format!("{rtt} ms"), scheme, network.to_owned(), *rtt));
    Experiment {
        id: id.into(),
        title: "Throughput beside TCP at several round trips".into(),
        paper: papers::of("ttfwc"),
        place: place.into(),
        claim: if network == SLOW {
            "Three flows of TTFWC beside three of Reno at 10 Mbps: the throughputs differ little, and rise with the parameter.".into()
        } else {
            "Three flows of TTFWC beside three of Reno at 250 Mbps: the throughput rises with the parameter; 0.9 gets more than TCP when the delay is short, \
             and no more when it is long.".into()
        },
        assumed: ASSUMED.map(Into::into).into(),
        random: true,
        jobs: Jobs::new(move |seed| {
            let mut jobs = Vec::new();
            for scheme in &schemes {
                for rtt in trips(network) {
                    let path = path(network);
                    jobs.push(Job {
                        case: Case { setting: network.into(), ..Case::new(*scheme, *rtt) },
                        models: vec![model(
                            &path,
                            &senders((*scheme, *rtt), (RENO, *rtt), SPREAD_MS),
                            None,
                            seed,
                        )],
                        decisions: &[],
                        measure: Box::new(move |runs| {
                            runs.first().map_or_else(Measured::default, |run| shares(run, path.mbps))
                        }),
                    });
                }
            }
            jobs
        }),
        relations: explained(relations, &[("gain", FEW_SEEDS)]),
        plots: vec![plot],
        tables: vec![table(
            "round-trips",
            "Normalized throughputs",
            &[(RATE, RATE), (TCP_RATE, TCP_RATE)],
            rows,
        )],
    }
}

pub(super) fn experiments() -> Vec<Experiment> {
    vec![
        beside_tcp("ttfwc-fig5.13", "section 5.2.2, figure 5.13", FAST, TTFWC_0_0),
        beside_tcp("ttfwc-fig5.14", "section 5.2.2, figure 5.14", FAST, TTFWC_0_4),
        beside_tcp("ttfwc-fig5.15", "section 5.2.2, figure 5.15", FAST, TTFWC_0_9),
        beside_tcp("ttfwc-fig5.16", "section 5.2.2, figure 5.16", SLOW, TTFWC_0_0),
        beside_tcp("ttfwc-fig5.17", "section 5.2.2, figure 5.17", SLOW, TTFWC_0_4),
        beside_tcp("ttfwc-fig5.18", "section 5.2.2, figure 5.18", SLOW, TTFWC_0_9),
    ]
}
