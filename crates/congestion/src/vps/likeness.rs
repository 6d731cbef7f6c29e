//! How unlikely it is that the delays of two queues go together by chance.
//!
//! The correlation of two signals that have nothing to do with each other is zero on the mean, and deviates from it
//! the more, the longer their movements last: of `n` values it has the variance of as many as are independent,
//! `n` by the sum over all lags of the products of both autocorrelations (M. S. Bartlett, "Some aspects of the
//! time-correlation problem in regard to tests of significance", Journal of the Royal Statistical Society 98,
//! 1935). By R. A. Fisher's transformation it is about normal.

use super::delays::{Comparison, without_mean};

/// Movements are followed for so many intervals, 16 s of 200 ms: longer than a period of Reno, or what comes back
/// with each period would count as new every time.
const LAGS: usize = 80;

/// The autocorrelation of a signal at the lags from one interval on.
#[derive(Clone, Debug)]
pub(super) struct Persistence([f64; LAGS]);

impl Persistence {
    /// Intervals of which nothing is known count as the mean.
    pub(super) fn of(signal: &[f64]) -> Self {
        let mut signal = signal.to_vec();
        without_mean(&mut signal);
        signal.iter_mut().filter(|value| value.is_nan()).for_each(|value| *value = 0.0);
        let product = |lag: usize| -> f64 {
            signal.iter().zip(signal.get(lag..).unwrap_or_default()).map(|(one, later)| one * later).sum()
        };
        let square = product(0).max(f64::MIN_POSITIVE);
        Self(std::array::from_fn(|lag| product(lag + 1) / square))
    }
}

/// By how many standard deviations two signals are more alike than two that have nothing to do with each other.
pub(super) fn likeness(compared: &Comparison, one: &Persistence, other: &Persistence) -> f64 {
    let products: f64 = one.0.iter().zip(&other.0).map(|(one, other)| one * other).sum();
    let independent = compared.count / (1.0 + 2.0 * products).max(1.0);
    libm::atanh(compared.concordance().clamp(-0.9999, 0.9999)) * (independent - 1.0).max(0.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a sawtooth whose teeth are of these lengths, in turn.
    fn teeth(lengths: &[usize], count: usize) -> Vec<f64> {
        lengths.iter().cycle().flat_map(|length| (0..*length).map(|at| at as f64)).take(count).collect()
    }

    fn alike(one: &[f64], other: &[f64]) -> f64 {
        let compared = Comparison::of(one, other, 50).expect("enough");
        likeness(&compared, &Persistence::of(one), &Persistence::of(other))
    }

    #[test]
    fn the_same_is_the_surer_the_more_often_it_falls() {
        let seldom = teeth(&[60, 41], 100);
        let often = teeth(&[7, 9, 4, 11, 6], 100);
        assert!(alike(&seldom, &seldom) < 0.6 * alike(&often, &often));
        assert!(alike(&often, &often) > 20.0);
    }

    #[test]
    fn one_rise_and_fall_is_like_another_and_that_says_little() {
        let hill = |top: f64| (0..100).map(|at| (f64::from(at) - top).abs()).collect::<Vec<f64>>();
        let concordance = Comparison::of(&hill(48.0), &hill(52.0), 50).expect("enough").concordance();
        assert!(concordance > 0.95, "{concordance}");
        assert!(alike(&hill(48.0), &hill(52.0)) < 5.0, "{}", alike(&hill(48.0), &hill(52.0)));
    }
}
