//! The points of a sweep: every combination, one after the other, or by chance.

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use toml::Value;

/// A value is drawn with so many significant digits: the last bits of a power are not the same on every
/// machine.
const DIGITS: usize = 6;

/// Where a parameter's values come from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Values {
    /// One of these.
    These(Vec<Value>),
    /// A number in a range.
    Range {
        low: f64,
        high: f64,
        /// Whether its logarithm is drawn evenly.
        is_logarithmic: bool,
        /// Whether it is a whole number.
        is_whole: bool,
        /// What stands behind it, such as `Mbps`; without a unit it is a number.
        unit: Option<String>,
    },
}

/// How values become points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Design {
    /// Every combination; the last parameter changes first.
    Grid,
    /// The first values of all, then the second ones, and so on.
    List,
    /// So many points by chance from a seed, each for itself.
    Random { points: usize, seed: u64 },
}

/// How many points there are; `None` when that cannot be counted.
pub(super) fn count(design: Design, parameters: &[Values]) -> Option<usize> {
    let mut lengths = parameters.iter().map(|values| match values {
        Values::These(values) => values.len(),
        Values::Range { .. } => 0,
    });
    match design {
        Design::Grid => lengths.try_fold(1usize, usize::checked_mul),
        Design::List => lengths.next(),
        Design::Random { points, .. } => Some(points),
    }
}

/// The values of a point. It depends on no other point, so that a share does not depend on the others.
pub(super) fn point(design: Design, parameters: &[Values], index: usize) -> Vec<Value> {
    let mut rest = index;
    let mut values: Vec<Value> = match design {
        Design::Grid => parameters
            .iter()
            .rev()
            .map(|values| {
                these(values, |count| {
                    let at = rest % count;
                    rest /= count;
                    at
                })
            })
            .collect(),
        Design::List => parameters.iter().map(|values| these(values, |_| index)).collect(),
        Design::Random { seed, .. } => {
            let mut random = generator(seed, index);
            return parameters.iter().map(|values| drawn(values, &mut random)).collect();
        }
    };
    if design == Design::Grid {
        values.reverse();
    }
    values
}

fn these(values: &Values, mut choose: impl FnMut(usize) -> usize) -> Value {
    match values {
        Values::These(values) => values.get(choose(values.len().max(1))).cloned(),
        Values::Range { .. } => None,
    }
    .unwrap_or(Value::Boolean(false))
}

/// A generator for a point: an odd factor spreads small numbers, and a multiplicative generator needs an odd
/// state.
fn generator(seed: u64, index: usize) -> Pcg64Mcg {
    let state =
        (u128::from(seed) << 64 | index as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    let mut random = Pcg64Mcg::new(state | 1);
    random.next_u64();
    random.next_u64();
    random
}

fn drawn(values: &Values, random: &mut Pcg64Mcg) -> Value {
    // 53 bits: every one of these numbers is a float.
    let part = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    match values {
        Values::These(values) => {
            these(&Values::These(values.clone()), |count| ((part * count as f64) as usize).min(count - 1))
        }
        Values::Range { low, high, is_logarithmic, is_whole, unit } => {
            let value = if *is_whole {
                (low + (part * (high - low + 1.0)).floor()).min(*high)
            } else if *is_logarithmic {
                rounded(low * (high / low).powf(part))
            } else {
                rounded(low + part * (high - low))
            };
            match unit {
                Some(unit) => Value::String(format!("{value}{unit}")),
                // A whole number of a scenario is no float.
                None if *is_whole => Value::Integer(value as i64),
                None => Value::Float(value),
            }
        }
    }
}

fn rounded(value: f64) -> f64 {
    format!("{value:.*e}", DIGITS - 1).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(values: &[i64]) -> Values {
        Values::These(values.iter().copied().map(Value::Integer).collect())
    }

    fn all(design: Design, parameters: &[Values]) -> Vec<Vec<i64>> {
        let points = 0..count(design, parameters).unwrap();
        let whole = |values: Vec<Value>| values.iter().map(|value| value.as_integer().unwrap()).collect();
        points.map(|index| whole(point(design, parameters, index))).collect()
    }

    #[test]
    fn a_grid_has_every_combination_and_a_list_goes_through() {
        let parameters = [numbers(&[1, 2]), numbers(&[10, 20, 30])];
        assert_eq!(all(Design::Grid, &parameters), [[1, 10], [1, 20], [1, 30], [2, 10], [2, 20], [2, 30]]);
        let parameters = [numbers(&[1, 2]), numbers(&[10, 20])];
        assert_eq!(all(Design::List, &parameters), [[1, 10], [2, 20]]);
        assert_eq!(count(Design::Grid, &vec![numbers(&[0; 1000]); 30]), None);
    }

    #[test]
    fn what_is_drawn_is_in_its_range_spread_and_always_the_same() {
        let range = |low, high, is_logarithmic, is_whole, unit: Option<&str>| Values::Range {
            low,
            high,
            is_logarithmic,
            is_whole,
            unit: unit.map(Into::into),
        };
        let parameters = [
            range(0.5, 8.0, false, false, Some("Mbps")),
            range(0.001, 0.1, true, false, None),
            range(1.0, 4.0, false, true, None),
            numbers(&[5, 6]),
        ];
        let design = Design::Random { points: 400, seed: 3 };
        let points: Vec<Vec<Value>> = (0..400).map(|index| point(design, &parameters, index)).collect();
        assert_eq!(points[7], point(design, &parameters, 7));
        assert_ne!(points[7], point(Design::Random { points: 400, seed: 4 }, &parameters, 7));
        let mut whole = [0; 5];
        let mut below = 0;
        for values in &points {
            let rate = values[0].as_str().unwrap().strip_suffix("Mbps").unwrap().parse::<f64>().unwrap();
            assert!((0.5..=8.0).contains(&rate));
            let loss = values[1].as_float().unwrap();
            assert!((0.001..=0.1).contains(&loss));
            // Half of them lie below the geometric mean.
            below += usize::from(loss < 0.01);
            whole[values[2].as_integer().unwrap() as usize] += 1;
        }
        assert!((150..250).contains(&below), "{below}");
        assert!(whole[0] == 0 && whole[1..].iter().all(|count| (60..140).contains(count)), "{whole:?}");
    }
}
