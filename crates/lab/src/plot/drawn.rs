//! The curves of a plot with their points, and how they look.

use crate::curve::Point;
use crate::experiment::{Curve, Plot, Points};
use crate::results::Results;
use crate::scheme::Scheme;

/// Markers of a curve over time: enough to tell it from others in print.
pub(super) const MARKERS: usize = 8;

/// A curve with its points.
pub(crate) struct Drawn {
    pub label: String,
    pub look: Scheme,
    pub style: Style,
    /// Whether real programs gave it.
    pub is_real: bool,
    pub points: Vec<Point>,
}

/// How the points of a curve are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// A line, a marker at every point, error bars.
    Figure,
    /// A line in a band, some markers.
    Course,
    /// Open markers.
    Published,
    /// A thin dotted line.
    Formula,
}

/// The curves of a plot with what the results have of them.
pub(crate) fn drawn(plot: &Plot, results: &Results) -> Vec<Drawn> {
    let curve = |curve: &Curve| Drawn {
        label: curve.label.clone(),
        look: curve.look,
        style: match curve.points {
            Points::Figure { .. } => Style::Figure,
            Points::Series { .. } => Style::Course,
            Points::Published(_) => Style::Published,
            Points::Formula(_) => Style::Formula,
        },
        is_real: false,
        points: curve.points(results),
    };
    plot.curves.iter().map(curve).collect()
}

/// The same curves from real runs, those that they have.
pub(crate) fn drawn_real(plot: &Plot, measured: &Results) -> Vec<Drawn> {
    let is_of_runs = |curve: &Drawn| matches!(curve.style, Style::Figure | Style::Course);
    let curves = drawn(plot, measured).into_iter().filter(is_of_runs);
    curves
        .filter(|curve| !curve.points.is_empty())
        .map(|curve| Drawn { label: format!("{}, measured", curve.label), is_real: true, ..curve })
        .collect()
}

/// A place on the page, to a tenth.
pub(super) fn at(place: f64) -> String {
    format!("{place:.1}")
}
