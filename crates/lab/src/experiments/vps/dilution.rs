//! Section 1: what becomes of the rate that an application leaves, when it limits one of two streams beside
//! two competitors.

use anabranch_sim::model::Source;
use anabranch_units::Rate;

use super::network::{ASSUMED, Setup};
use crate::case::{Case, Measured};
use crate::experiment::{Expected, Experiment, Job, Paper, Relation};
use crate::experiments::describe::table;
use crate::results::OneSeed;
use crate::scheme::{RENO, Scheme, VPS};
use crate::simulate::Recording;

const SECONDS: u64 = 300;
/// The limit of the first stream: far below its quarter of 8 Mbps.
const LIMIT: Rate = Rate::from_kbps(600);
const FREE: &str = "both as much as they can";
const LIMITED: &str = "the first limited";

const FIRST: &str = "first stream";
const SECOND: &str = "second stream";
const OTHERS: &str = "competitors";

fn measure(run: &Recording) -> Measured {
    let seconds = run.totals.counted.as_secs_f64();
    let rate = |flow: usize| {
        run.totals.flows.get(flow).map_or(f64::NAN, |flow| flow.delivered.as_f64() * 8e-6 / seconds)
    };
    Measured::default().figure(FIRST, rate(0), "Mbps").figure(SECOND, rate(1), "Mbps").figure(
        OTHERS,
        rate(2) + rate(3),
        "Mbps",
    )
}

/// Of what the first stream leaves, the part that the second one gets.
fn gained(scheme: Scheme) -> impl Fn(OneSeed<'_>) -> Option<f64> + Send + Sync {
    move |seed| {
        let (free, limited) = (seed.setting(FREE), seed.setting(LIMITED));
        let left = free.figure(scheme, 0.0, FIRST)? - limited.figure(scheme, 0.0, FIRST)?;
        Some((limited.figure(scheme, 0.0, SECOND)? - free.figure(scheme, 0.0, SECOND)?) / left)
    }
}

pub(super) fn dilution() -> Experiment {
    let settings = [(FREE, Source::Greedy), (LIMITED, Source::Constant(LIMIT))];
    let rows = [RENO, VPS].into_iter().flat_map(|scheme| {
        [FREE, LIMITED]
            .map(|setting| (format!("{}, {setting}", scheme.name), scheme, setting.to_owned(), 0.0))
    });
    let columns =
        [("first stream (Mbps)", FIRST), ("second stream (Mbps)", SECOND), ("competitors (Mbps)", OTHERS)];
    Experiment {
        id: "vps-dilution",
        title: "Dilution of what an application leaves",
        paper: Paper::Vps,
        place: "section 1",
        claim: "Of two streams beside two competitors, an application limits the first. Of the rate C that it leaves, C/3 reaches the second; with VPS \
                all of it does.",
        assumed: ASSUMED
            .into_iter()
            .chain(["8 Mbps for four flows; the first is limited to 600 kbps by its application; with VPS both have the weight one"])
            .map(Into::into)
            .collect(),
        random: true,
        jobs: Box::new(move |seed| {
            let mut jobs = Vec::new();
            for scheme in [RENO, VPS] {
                for (setting, source) in &settings {
                    let setup = Setup::new(scheme, &[1.0, 1.0], SECONDS);
                    jobs.push(Job {
                        case: Case { setting: (*setting).into(), ..Case::new(scheme, 0.0) },
                        models: vec![setup.with_sources(vec![source.clone(), Source::Greedy], 2, seed)],
                        decisions: &[],
                        measure: Box::new(|runs| runs.first().map_or_else(Measured::default, measure)),
                    });
                }
            }
            jobs
        }),
        relations: vec![
            Relation::new(
                ("reno", "part of C that the second stream gets, Reno (within 0.15)", "1/3", ""),
                gained(RENO),
                Expected::Between(1.0 / 3.0 - 0.15, 1.0 / 3.0 + 0.15),
            ),
            Relation::new(
                ("vps", "part of C that the second stream gets, VPS (within 0.15)", "1", ""),
                gained(VPS),
                Expected::Between(0.85, 1.15),
            ),
        ],
        plots: Vec::new(),
        tables: vec![table("rates", "Rates", &columns, rows)],
    }
}
