//! What the experiments of chapter 8 have in common: one stream over the dumbbell under several algorithms,
//! in phases.

use anabranch_sim::model::Algorithm;
use anabranch_units::Duration;

use super::measure::{
    CONNECTIONS, CROSS, MEAN_CONNECTIONS, MOST_CONNECTIONS, Phase, STALLED, STALLS, THROUGHPUT, WINDOW,
    during, measure,
};
use super::network::{AS_PRINTED, ASSUMED, Cross, DEPHASED, Path, Stream, VARIANTS, model};
use crate::case::{Case, Measured};
use crate::experiment::{
    Axis, Cell, Curve, Expected, Experiment, Job, Jobs, Plot, Points, Relation, Row, Table,
};
use crate::papers;
use crate::results::OneSeed;
use crate::scheme::{self, Scheme};

/// An experiment of chapter 8.
pub(super) struct Setup {
    pub id: &'static str,
    pub title: &'static str,
    pub place: &'static str,
    pub claim: &'static str,
    /// Besides [`ASSUMED`].
    pub assumed: &'static [&'static str],
    pub path: Path,
    pub stream: Stream,
    pub cross: &'static [Cross],
    pub duration: Duration,
    pub phases: &'static [Phase],
    /// The phases with cross traffic, in which it is compared what is left to it.
    pub crossed: &'static [&'static str],
    /// Why `auto` does not come off better in something: the relation's name and the cause.
    pub worse: &'static [(&'static str, &'static str)],
    /// The figure's algorithms, the first one that of a single connection.
    pub schemes: Vec<(Scheme, Algorithm)>,
}

impl Setup {
    /// The experiment: `auto` runs beside the figure's algorithms, and is told apart in the tables.
    pub(super) fn experiment(mut self, mut relations: Vec<Relation>) -> Experiment {
        relations.extend(self.ours());
        self.schemes.push((scheme::AUTO, Algorithm::Auto(anabranch_film::auto::Parameters::default())));
        let looks: Vec<Scheme> = self.schemes.iter().map(|(scheme, _)| *scheme).collect();
        let tables = VARIANTS.iter().flat_map(|variant| [self.rates(variant), self.costs(variant)]).collect();
        Experiment {
            id: self.id.into(),
            title: self.title.into(),
            paper: papers::of("multitcp"),
            place: self.place.into(),
            claim: self.claim.into(),
            assumed: ASSUMED.iter().chain(self.assumed).map(|text| (*text).to_owned()).collect(),
            random: true,
            relations,
            plots: plots(&looks),
            tables,
            jobs: Jobs::new(move |seed| {
                let jobs = VARIANTS.into_iter().flat_map(|variant| {
                    self.schemes.iter().map(move |(scheme, algorithm)| (variant, *scheme, algorithm))
                });
                jobs.map(|(variant, scheme, algorithm)| self.job(variant, scheme, algorithm, seed)).collect()
            }),
        }
    }

    /// `auto` against the last of the figure's algorithms, the thesis' best: less of everything but what is
    /// left to the others.
    fn ours(&self) -> Vec<Relation> {
        let Some((best, _)) = self.schemes.last().cloned() else { return Vec::new() };
        let more = |id: &str, claim: &str, unit: &'static str, names: Vec<String>, expected: Expected| {
            let count = names.len() as f64;
            let value = move |seed: OneSeed<'_>| {
                let of = |scheme: Scheme| {
                    names.iter().map(|name| seed.figure(scheme, 0.0, name)).sum::<Option<f64>>()
                };
                Some((of(scheme::AUTO)? - of(best)?) / count)
            };
            Relation {
                value: Box::new(value),
                cause: self.worse.iter().find(|(worse, _)| *worse == id).map(|(_, cause)| (*cause).into()),
                ..one(
                    id,
                    &format!("{claim} with auto, more than with {}", best.name),
                    "ours, not in the thesis",
                    unit,
                    (best, String::new()),
                    expected,
                )
            }
        };
        let crossed = self.crossed.iter().map(|phase| during(CROSS, phase)).collect();
        vec![
            more("auto-stalls", "stall time", "s", vec![STALLED.into()], Expected::AtMost(0.0)),
            more(
                "auto-connections",
                "mean connections",
                "",
                vec![MEAN_CONNECTIONS.into()],
                Expected::AtMost(0.0),
            ),
            more(
                "auto-cross",
                "mean throughput of the cross traffic",
                "kbps",
                crossed,
                Expected::AtLeast(0.0),
            ),
        ]
    }

    fn job(&self, variant: &'static str, scheme: Scheme, algorithm: &Algorithm, seed: u64) -> Job {
        let (phases, rate) = (self.phases, self.stream.rate);
        let plays = scheme == scheme::AUTO;
        Job {
            case: Case { variant: variant.into(), ..Case::new(scheme, 0.0) },
            models: vec![model(&self.path, self.stream, algorithm, self.cross, self.duration, variant, seed)],
            decisions: &[],
            measure: Box::new(move |recordings| {
                recordings.first().map_or_else(Measured::default, |run| measure(run, phases, rate, plays))
            }),
        }
    }

    fn table(&self, id: &str, title: &str, variant: &'static str, columns: &[Column]) -> Table {
        let mut heads = vec!["algorithm".to_owned()];
        heads.extend(columns.iter().map(|(head, _)| head.clone()));
        let row = |scheme: Scheme| Row {
            label: scheme.name.into(),
            cells: (columns.iter())
                .map(|(_, name)| {
                    let name = name.clone();
                    Cell { published: None, value: Box::new(move |seed| seed.figure(scheme, 0.0, &name)) }
                })
                .collect(),
        };
        Table {
            id: format!("{id}-{}", variant.replace(' ', "-")),
            title: format!("{title}, {variant}"),
            variant: variant.into(),
            columns: heads,
            rows: self.schemes.iter().map(|(scheme, _)| row(*scheme)).collect(),
        }
    }

    /// Throughput and connections in each phase.
    fn rates(&self, variant: &'static str) -> Table {
        let in_each_phase = |quantity: &'static str, unit: &'static str| {
            self.phases.iter().map(move |phase| {
                let name = during(quantity, phase.0);
                (format!("{name}{unit}"), name)
            })
        };
        let columns: Vec<Column> =
            in_each_phase(THROUGHPUT, " (kbps)").chain(in_each_phase(CONNECTIONS, "")).collect();
        self.table("rates", "Throughput and connections in each phase", variant, &columns)
    }

    /// Stalls, connections, and what is left to the cross traffic.
    fn costs(&self, variant: &'static str) -> Table {
        let columns = [(STALLS, ""), (STALLED, " (s)"), (MEAN_CONNECTIONS, ""), (MOST_CONNECTIONS, "")]
            .map(|(name, unit)| (format!("{name}{unit}"), name.to_owned()));
        let title = "What the player sees, and what it costs the others";
        let mut table = self.table("costs", title, variant, &columns);
        let single = self.schemes.first().map(|(scheme, _)| *scheme);
        for phase in self.crossed {
            table.columns.push(format!("{} (kbps)", during(CROSS, phase)));
            table.columns.push(format!("taken from it, {phase} (kbps)"));
            for (row, (scheme, _)) in table.rows.iter_mut().zip(&self.schemes) {
                let (name, scheme) = (during(CROSS, phase), *scheme);
                let left = move |seed: OneSeed<'_>, scheme| seed.figure(scheme, 0.0, &name);
                let again = left.clone();
                row.cells.push(Cell { published: None, value: Box::new(move |seed| left(seed, scheme)) });
                row.cells.push(Cell {
                    published: None,
                    value: Box::new(move |seed| Some(again(seed, single?)? - again(seed, scheme)?)),
                });
            }
        }
        table
    }
}

/// A column's head and the name of its figure.
type Column = (String, String);

fn plots(looks: &[Scheme]) -> Vec<Plot> {
    let quantities = [
        ("throughput", "Throughput", THROUGHPUT, "kbps"),
        ("window", "Sum of the receive windows", WINDOW, "kB"),
        ("connections", "Connections", CONNECTIONS, ""),
    ];
    let plot = |variant: &'static str, (id, title, name, unit): (&str, &str, &str, &str)| Plot {
        id: format!("{id}-{}", variant.replace(' ', "-")),
        title: format!("{title}, {variant}"),
        variant: variant.into(),
        x: Axis::new("time", "s"),
        y: Axis::new(name, unit),
        curves: (looks.iter())
            .map(|scheme| Curve {
                label: scheme.name.into(),
                look: *scheme,
                points: Points::Series {
                    scheme: *scheme,
                    setting: String::new(),
                    point: 0.0,
                    name: name.into(),
                },
            })
            .collect(),
    };
    let dephased = quantities.map(|quantity| plot(DEPHASED, quantity));
    dephased.into_iter().chain([plot(AS_PRINTED, quantities[0])]).collect()
}

/// A figure of a scheme that must lie somewhere, judged on [`DEPHASED`].
pub(super) fn one(
    id: &str,
    claim: &str,
    published: &str,
    unit: &'static str,
    (scheme, name): (Scheme, String),
    expected: Expected,
) -> Relation {
    let value = move |seed: OneSeed<'_>| seed.figure(scheme, 0.0, &name);
    Relation { variant: DEPHASED.into(), ..Relation::new((id, claim, published, unit), value, expected) }
}

/// What one figure is as a multiple of another one.
pub(super) fn ratio(
    id: &str,
    claim: &str,
    published: &str,
    (scheme, name): (Scheme, String),
    (other, other_name): (Scheme, String),
    expected: Expected,
) -> Relation {
    let value = move |seed: OneSeed<'_>| {
        Some(seed.figure(scheme, 0.0, &name)? / seed.figure(other, 0.0, &other_name)?)
    };
    Relation { value: Box::new(value), ..one(id, claim, published, "", (scheme, String::new()), expected) }
}

/// A relation with the cause of its difference.
pub(super) fn because(cause: &str, relation: Relation) -> Relation {
    Relation { cause: Some(cause.into()), ..relation }
}
