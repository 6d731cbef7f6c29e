//! The figures and series of a run: how each is made, and what it is in a recording.

use anabranch_sim::model::Model;
use anabranch_sim::scenario::{Fault, Span};
use anabranch_units::{Duration, Rate};
use exmex::{Express, FlatEx};

use super::companies;
use super::measure::{self, Bound, Details, Window};
use super::packets;
use super::quantity::Quantity;
use super::take::{Bins, Summary, Take};
use super::viewer;
use crate::case::Measured;
use crate::simulate::Recording;

/// A number of a run.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) how: How,
}

/// How a number is made.
#[derive(Clone, Debug)]
pub(super) enum How {
    Measured(Box<Measurement>),
    Computed(Formula),
    /// What becomes of a series' values, by its place.
    OfSeries(usize, Take),
}

/// A course of a run.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) how: Course,
}

/// How a course is made.
#[derive(Clone, Debug)]
pub(super) enum Course {
    Measured(Box<Measurement>, Along),
    Computed(Formula),
}

/// What a course is along.
#[derive(Clone, Debug)]
pub(super) enum Along {
    /// Time, in bins of so many seconds.
    Time(f64),
    /// The length of bins: these many seconds, and what becomes of the values of all bins.
    Scales(Vec<f64>, Take),
}

/// A formula, and what its variables are in their order.
#[derive(Clone, Debug)]
pub(super) struct Formula {
    pub(super) formula: Box<FlatEx<f64>>,
    pub(super) variables: Vec<Variable>,
}

/// What a formula is of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Variable {
    /// A figure or series before it, by its place.
    Before(usize),
    /// The run's point.
    Point,
    /// Where on its course.
    X,
}

/// A quantity of flows and links by their names.
#[derive(Clone, Debug)]
pub(super) struct Measurement {
    pub(super) quantity: Quantity,
    /// What the unit is in SI units.
    pub(super) unit: f64,
    pub(super) flows: Vec<String>,
    /// Only those flows whose receiver is behind an access link that is faster than this.
    pub(super) access_above: Option<Rate>,
    pub(super) links: Vec<String>,
    /// Flows that those are compared with.
    pub(super) others: Vec<String>,
    /// What becomes of the flows' values, each by itself.
    pub(super) each: Option<Take>,
    /// Bins of time, and what becomes of their values.
    pub(super) bins: Option<(Bins, Summary)>,
    pub(super) window: Option<Window>,
    pub(super) at: Span,
    pub(super) details: Details,
}

/// Figures and series of a run's model.
pub(super) struct Numbers {
    figures: Vec<(Figure, Option<Bound>)>,
    series: Vec<(Series, Option<Bound>)>,
    point: f64,
}

impl Numbers {
    /// Finds the flows and links in a model.
    pub(super) fn bind(
        figures: &[Figure],
        series: &[Series],
        model: &Model,
        point: f64,
    ) -> Result<Self, Fault> {
        let figures = figures.iter().map(|figure| {
            let bound = match &figure.how {
                How::Measured(measurement) => Some(measurement.bind(model)?),
                How::Computed(_) | How::OfSeries(..) => None,
            };
            Ok::<_, Fault>((figure.clone(), bound))
        });
        let series = series.iter().map(|series| {
            let bound = match &series.how {
                Course::Measured(measurement, _) => Some(measurement.bind(model)?),
                Course::Computed(_) => None,
            };
            Ok::<_, Fault>((series.clone(), bound))
        });
        Ok(Self {
            figures: figures.collect::<Result<_, Fault>>()?,
            series: series.collect::<Result<_, Fault>>()?,
            point,
        })
    }

    /// What they are in a recording.
    pub(super) fn of(&self, run: &Recording) -> Measured {
        let courses = self.courses(run);
        let mut values: Vec<f64> = Vec::new();
        for (figure, bound) in &self.figures {
            values.push(match (&figure.how, bound) {
                (How::Measured(measurement), Some(bound)) => bound.of(run) / measurement.unit,
                (How::Measured(_), None) => f64::NAN,
                (How::Computed(formula), _) => {
                    formula.of(self.point, f64::NAN, |place| values.get(place).copied())
                }
                (How::OfSeries(place, take), _) => {
                    let course = courses.get(*place).into_iter().flatten().map(|(_, value)| *value);
                    let finite: Vec<f64> = course.filter(|value| value.is_finite()).collect();
                    take.of(&finite).unwrap_or(f64::NAN)
                }
            });
        }
        let named = self.figures.iter().zip(values);
        let measured = named.fold(Measured::default(), |measured, ((figure, _), value)| {
            measured.figure(&figure.name, value, &figure.unit)
        });
        let names = self.series.iter().map(|(series, _)| series.name.as_str());
        names.zip(courses).fold(measured, |measured, (name, course)| measured.series(name, course))
    }

    fn courses(&self, run: &Recording) -> Vec<Vec<(f64, f64)>> {
        let mut courses: Vec<Vec<(f64, f64)>> = Vec::new();
        for (series, bound) in &self.series {
            courses.push(match (&series.how, bound) {
                (Course::Measured(measurement, along), Some(bound)) => {
                    let course = match along {
                        Along::Time(bin) => bound.course(run, *bin),
                        Along::Scales(scales, take) => bound.over_scales(run, scales, *take),
                    };
                    course.into_iter().map(|(at, value)| (at, value / measurement.unit)).collect()
                }
                (Course::Measured(..), None) => Vec::new(),
                (Course::Computed(formula), _) => formula.course(self.point, &courses),
            });
        }
        courses
    }
}

impl Formula {
    fn of(&self, point: f64, x: f64, before: impl Fn(usize) -> Option<f64>) -> f64 {
        let variable = |variable: &Variable| match variable {
            Variable::Before(place) => before(*place),
            Variable::Point => Some(point),
            Variable::X => Some(x),
        };
        let variables: Option<Vec<f64>> = self.variables.iter().map(variable).collect();
        variables.and_then(|variables| self.formula.eval(&variables).ok()).unwrap_or(f64::NAN)
    }

    /// At the places of the first course that it is of, or of the one before it, where all have a value.
    fn course(&self, point: f64, before: &[Vec<(f64, f64)>]) -> Vec<(f64, f64)> {
        let of = |variable: &Variable| match variable {
            Variable::Before(place) => before.get(*place),
            _ => None,
        };
        let Some(places) = self.variables.iter().find_map(of).or(before.last()) else { return Vec::new() };
        let at = |number: usize, x: f64, place: usize| {
            let course = before.get(place)?;
            let beside = course.get(number).filter(|(at, _)| *at == x);
            beside.or_else(|| course.iter().find(|(at, _)| *at == x)).map(|(_, value)| *value)
        };
        let value =
            |(number, (x, _)): (usize, &(f64, f64))| (*x, self.of(point, *x, |place| at(number, *x, place)));
        places.iter().enumerate().map(value).collect()
    }
}

impl Measurement {
    fn bind(&self, model: &Model) -> Result<Bound, Fault> {
        let known = model.flows.iter().map(|flow| &*flow.name);
        let mut flows = named(self.at, "flow", &self.flows, known.clone())?;
        if let Some(least) = self.access_above {
            flows.retain(|flow| measure::access(model, *flow) > least);
        }
        let others = named(self.at, "flow", &self.others, known)?;
        let links = named(self.at, "link", &self.links, model.links.iter().map(|link| &*link.name))?;
        let weights = flows.iter().map(|flow| measure::weight(model, *flow)).collect();
        let rates = flows.iter().map(|flow| viewer::media_rate(model, *flow)).collect();
        let sizes: Vec<_> = flows.iter().map(|flow| packets::size(model, *flow)).collect();
        if self.quantity.is_of_packets() && !matches!(sizes[..], [Some(_)]) {
            let told = "this is measured of one flow of kind udp or tfrc, whose packets have one size";
            return Err(Fault::new(self.at, told));
        }
        let bottlenecks = match self.quantity.is_by_bottleneck() {
            true => companies::bottlenecks(model),
            false => Vec::new(),
        };
        let delays = links.iter().filter_map(|link| model.links.get(*link)).map(|link| link.delay);
        let delay = delays.map(Duration::as_secs_f64).sum();
        Ok(Bound {
            quantity: self.quantity,
            flows,
            links,
            others,
            weights,
            each: self.each,
            bins: self.bins,
            window: self.window,
            rates,
            sizes,
            bottlenecks,
            delay,
            details: self.details,
        })
    }
}

/// The numbers of those with these names; one that ends with `*` means all that begin so.
fn named<'a>(
    at: Span,
    what: &str,
    names: &[String],
    known: impl Iterator<Item = &'a str> + Clone,
) -> Result<Vec<usize>, Fault> {
    let mut found = Vec::new();
    for name in names {
        let before = found.len();
        let means = |known: &str| match name.strip_suffix('*') {
            Some(beginning) => known.starts_with(beginning),
            None => known == name,
        };
        found.extend(known.clone().enumerate().filter(|(_, known)| means(known)).map(|(index, _)| index));
        if found.len() == before {
            let known: Vec<&str> = known.take(20).collect();
            let fault = Fault::new(at, format_args!("the scenario has no {what} '{name}'"));
            return Err(fault.help(format_args!("there are: {}", known.join(", "))));
        }
    }
    Ok(found)
}
