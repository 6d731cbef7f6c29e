//! The points of curves, read from results.

use std::collections::BTreeMap;

use crate::experiment::{Curve, Points};
use crate::results::Results;
use crate::statistics::Estimate;

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Where.
    pub x: f64,
    /// The estimate over seeds; of published points and formulas, one value.
    pub y: Estimate,
}

impl Curve {
    /// The points, in the order of their places.
    pub fn points(&self, results: &Results) -> Vec<Point> {
        let mut values: BTreeMap<OrderedPlace, Vec<f64>> = BTreeMap::new();
        let mut add = |x: f64, y: f64| values.entry(OrderedPlace(x)).or_default().push(y);
        match &self.points {
            Points::Published(points) | Points::Formula(points) => {
                points.iter().for_each(|(x, y)| add(*x, *y));
            }
            Points::Figure { scheme, setting, name } => {
                for x in results.points(setting, *scheme) {
                    let seeds = results.each_seed().map(|seed| seed.setting(setting));
                    seeds.filter_map(|seed| seed.figure(*scheme, x, name)).for_each(|y| add(x, y));
                }
            }
            Points::Series { scheme, setting, point, name } => {
                let seeds = results.each_seed().map(|seed| seed.setting(setting));
                let series = seeds.filter_map(|seed| seed.series(*scheme, *point, name));
                series.flatten().for_each(|(x, y)| add(*x, *y));
            }
        }
        let point =
            |(place, values): (OrderedPlace, Vec<f64>)| Some(Point { x: place.0, y: Estimate::of(&values)? });
        values.into_iter().filter_map(point).collect()
    }
}

/// A place in the total order of floats.
struct OrderedPlace(f64);

impl Ord for OrderedPlace {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for OrderedPlace {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OrderedPlace {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for OrderedPlace {}
