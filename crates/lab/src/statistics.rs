//! Means over seeds and how sure they are. Only operations that every machine rounds alike, so that a report
//! is the same everywhere.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The mean of a sample and its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The sample's standard deviation (with n - 1); `None` with a single value.
    pub deviation: Option<f64>,
    /// Half the length of the mean's 95 % confidence interval, by Student's t; `None` with a single value.
    pub half_width: Option<f64>,
    /// How many values there were.
    pub count: usize,
}

impl Estimate {
    /// The estimate from a sample; `None` of an empty one or with a value that is not finite.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mean = mean(values).filter(|mean| mean.is_finite())?;
        let count = values.len();
        if count == 1 {
            return Some(Self { mean, deviation: None, half_width: None, count });
        }
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let deviation = (squares / (count - 1) as f64).sqrt();
        let half_width = student_t(count - 1) * deviation / (count as f64).sqrt();
        Some(Self { mean, deviation: Some(deviation), half_width: Some(half_width), count })
    }

    /// The 95 % confidence interval; `None` with a single value.
    pub fn interval(&self) -> Option<[f64; 2]> {
        self.half_width.map(|half| [self.mean - half, self.mean + half])
    }
}

impl fmt::Display for Estimate {
    /// Mean ± half the interval, in a reader's digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&significant(self.mean, 4))?;
        self.half_width.map_or(Ok(()), |half| write!(f, " ± {}", significant(half, 2)))
    }
}

/// The arithmetic mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The coefficient of variation: standard deviation (with n) over mean; `None` of nothing.
pub fn variation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some((squares / values.len() as f64).sqrt() / mean)
}

/// Jain's fairness index (Jain, Chiu and Hawe 1984): 1 when all are equal, 1/n when one has everything.
/// `None` when nobody has anything.
pub fn jain_index(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// The 0.975 quantile of Student's t distribution.
///
/// From a table up to 30 degrees of freedom; beyond it the expansion of Abramowitz and Stegun (26.7.5), whose
/// error is below 1e-5 there.
pub fn student_t(degrees_of_freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004, 2.262_157,
        2.228_139, 2.200_985, 2.178_813, 2.160_369, 2.144_787, 2.131_450, 2.119_905, 2.109_816, 2.100_922,
        2.093_024, 2.085_963, 2.079_614, 2.073_873, 2.068_658, 2.063_899, 2.059_539, 2.055_529, 2.051_831,
        2.048_407, 2.045_230, 2.042_272,
    ];
    /// The same quantile of the normal distribution.
    const NORMAL: f64 = 1.959_963_985;
    if let Some(value) = degrees_of_freedom.checked_sub(1).and_then(|index| TABLE.get(index)) {
        return *value;
    }
    if degrees_of_freedom == 0 {
        return f64::INFINITY;
    }
    let (x, n) = (NORMAL, degrees_of_freedom as f64);
    let (x3, x5) = (x * x * x, x * x * x * x * x);
    let g1 = (x3 + x) / 4.0;
    let g2 = (5.0 * x5 + 16.0 * x3 + 3.0 * x) / 96.0;
    let g3 = (3.0 * x5 * x * x + 19.0 * x5 + 17.0 * x3 - 15.0 * x) / 384.0;
    x + g1 / n + g2 / (n * n) + g3 / (n * n * n)
}

/// A number with so many significant digits, without an exponent where a reader needs none.
pub fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    // Through the decimal exponent of the rounded number, so that 9.996 with three digits is 10.0.
    let scientific = format!("{value:.*e}", digits.saturating_sub(1));
    let exponent: i32 =
        scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    if !(-5..=8).contains(&exponent) {
        return scientific;
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_five_values_by_hand() {
        // Mean 3, variance 10 / 4, t(4) = 2.776445: half width 2.776445 * sqrt(2.5 / 5).
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(estimate.mean, 3.0);
        assert!((estimate.deviation.unwrap() - 2.5f64.sqrt()).abs() < 1e-12);
        assert!((estimate.half_width.unwrap() - 1.963_243_3).abs() < 1e-6);
        let [low, high] = estimate.interval().unwrap();
        assert!((low - 1.036_757).abs() < 1e-5 && (high - 4.963_243).abs() < 1e-5);
    }

    #[test]
    fn one_value_has_no_interval_and_none_no_estimate() {
        assert_eq!(Estimate::of(&[7.0]).unwrap().interval(), None);
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn student_t_is_that_of_the_tables() {
        // Published values beyond the table: 40, 60 and 120 degrees of freedom, and the limit.
        for (degrees, published) in
            [(1, 12.706), (4, 2.776), (30, 2.042), (40, 2.021), (60, 2.000), (120, 1.980)]
        {
            assert!((student_t(degrees) - published).abs() < 6e-4, "{degrees}: {}", student_t(degrees));
        }
        assert!((student_t(1_000_000) - 1.96).abs() < 1e-4);
        // The expansion goes on where the table ends.
        assert!((student_t(31) - 2.039_513).abs() < 1e-5);
        assert!((1..200).all(|n| student_t(n + 1) < student_t(n)));
    }

    #[test]
    fn jain_at_its_ends() {
        assert_eq!(jain_index(&[2.0, 2.0, 2.0]), Some(1.0));
        assert_eq!(jain_index(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain_index(&[0.0]), None);
        assert_eq!(jain_index(&[]), None);
    }

    #[test]
    fn significant_digits() {
        for (value, text) in [
            (612.345, "612.3"),
            (0.04, "0.04000"),
            (12345.6, "12346"),
            (9.9996, "10.00"),
            (-3.0, "-3.000"),
            (0.0, "0"),
        ] {
            assert_eq!(significant(value, 4), text);
        }
        assert_eq!(significant(1.5e12, 3), "1.50e12");
    }
}
