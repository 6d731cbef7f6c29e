//! The paper's two metrics (section 4.1), over bins of time.

use crate::case::Measured;
use crate::statistics::{mean, variation};

/// The time scales at which figures 3 and 5 look, seconds.
pub(super) const SCALES: [usize; 6] = [1, 2, 5, 10, 20, 60];

/// The seconds of figure 4 that are early.
const EARLY: usize = 10;

pub(super) const ACCURACY: &str = "allocation accuracy";
pub(super) const FAIRNESS: &str = "fairness ratio";
pub(super) const ACCURACY_VARIATION: &str = "variation of the accuracy";
pub(super) const FAIRNESS_VARIATION: &str = "variation of the fairness";
pub(super) const LEAST_ACCURACY: &str = "least accuracy of a second";
pub(super) const AGGREGATE: &str = "rate of the weighted flows";
pub(super) const PLAIN: &str = "rate of the plain flows";

/// Overall allocation accuracy A (equations 1 and 2) of what flows with weights were delivered; `None` when
/// nothing was.
fn accuracy(delivered: &[f64], weights: &[f64]) -> Option<f64> {
    let (total, sum): (f64, f64) = (delivered.iter().sum(), weights.iter().sum());
    if total <= 0.0 {
        return None;
    }
    let each: Vec<f64> =
        delivered.iter().zip(weights).map(|(rate, weight)| rate / total * sum / weight).collect();
    let squares: f64 = each.iter().map(|one| one * one).sum();
    Some(each.iter().sum::<f64>().powi(2) / (each.len() as f64 * squares))
}

/// Accuracy and fairness ratio (equation 3) in every bin of so many seconds; bins without any delivery are
/// left out.
fn bins(seconds: &[Vec<f64>], weights: &[f64], plain: usize, scale: usize) -> (Vec<f64>, Vec<f64>) {
    let count = weights.len();
    let (mut accuracies, mut ratios) = (Vec::new(), Vec::new());
    for bin in seconds.chunks_exact(scale) {
        let sums: Vec<f64> =
            (0..count + plain).map(|flow| bin.iter().filter_map(|second| second.get(flow)).sum()).collect();
        let (group, others) = sums.split_at(count);
        accuracies.extend(accuracy(group, weights));
        let others: f64 = others.iter().sum();
        if others > 0.0 {
            ratios.push(group.iter().sum::<f64>() / others);
        }
    }
    (accuracies, ratios)
}

/// Both metrics over all time scales, and of the whole run, of what each flow delivered in every second:
/// first those with weights, then as many plain ones, or the sum of these. The first `warm_up` seconds do not
/// count.
pub(super) fn metrics_of(all: &[Vec<f64>], weights: &[f64], warm_up: usize) -> Measured {
    let counted = all.get(warm_up.min(all.len() / 2)..).unwrap_or_default();
    let plain = weights.len();
    let mut series: [Vec<(f64, f64)>; 4] = Default::default();
    let mut measured = Measured::default();
    for scale in SCALES {
        let (accuracies, ratios) = bins(counted, weights, plain, scale);
        let at = scale as f64;
        series[0].push((at, mean(&accuracies).unwrap_or(f64::NAN)));
        series[1].push((at, variation(&accuracies).unwrap_or(f64::NAN)));
        series[2].push((at, mean(&ratios).unwrap_or(f64::NAN)));
        series[3].push((at, variation(&ratios).unwrap_or(f64::NAN)));
        if scale == 1 {
            measured =
                measured.figure(LEAST_ACCURACY, accuracies.iter().copied().fold(f64::NAN, f64::min), "");
        }
    }
    let (accuracies, ratios) = bins(counted, weights, plain, counted.len().max(1));
    let rate = |flows: std::ops::Range<usize>| {
        let of = |second: &Vec<f64>| second.iter().skip(flows.start).take(flows.len()).sum::<f64>();
        let sum: f64 = counted.iter().map(of).sum();
        sum / counted.len().max(1) as f64
    };
    measured = measured
        .figure(ACCURACY, mean(&accuracies).unwrap_or(f64::NAN), "")
        .figure(FAIRNESS, mean(&ratios).unwrap_or(f64::NAN), "")
        .figure(AGGREGATE, rate(0..plain), "Mbps")
        .figure(PLAIN, rate(plain..2 * plain), "Mbps");
    for (name, points) in [ACCURACY, ACCURACY_VARIATION, FAIRNESS, FAIRNESS_VARIATION].into_iter().zip(series)
    {
        measured = measured.series(name, points);
    }
    measured
}

/// Figure 4's: how accurate the seconds are from that on in which all send, and the first ten of them.
pub(super) fn early_accuracies(all: &[Vec<f64>], weights: &[f64]) -> Measured {
    let all_send = |second: &&Vec<f64>| second.iter().take(weights.len()).all(|rate| *rate > 0.0);
    let begun = all.iter().position(|second| all_send(&second)).unwrap_or(all.len());
    let (accuracies, _) = bins(&all[begun..], weights, 1, 1);
    let early = &accuracies[..accuracies.len().min(EARLY)];
    Measured::default()
        .figure("early accuracy", mean(early).unwrap_or(f64::NAN), "")
        .figure(ACCURACY, mean(&accuracies).unwrap_or(f64::NAN), "")
        .figure("least accuracy", accuracies.iter().copied().fold(f64::NAN, f64::min), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracy_counts_from_the_second_in_which_all_send() {
        let mut seconds = vec![vec![1.0, 0.0, 9.0]; 3];
        seconds.extend(vec![vec![3.0, 3.0, 9.0]; 10]);
        seconds.extend(vec![vec![1.0, 3.0, 9.0]; 10]);
        let figures = early_accuracies(&seconds, &[1.0, 3.0]).figures;
        let values: Vec<f64> = figures.into_iter().map(|(_, value, _)| value).collect();
        for (value, due) in values.into_iter().zip([0.8, 0.9, 0.8]) {
            assert!((value - due).abs() < 1e-12, "{value} and {due}");
        }
    }

    #[test]
    fn accuracy_by_hand() {
        assert_eq!(accuracy(&[1.0, 4.0, 8.0], &[1.0, 4.0, 8.0]), Some(1.0));
        assert_eq!(accuracy(&[0.0, 0.0], &[1.0, 1.0]), None);
        // Shares of 1/2 each where 1/4 and 3/4 are due: A_i = 2 and 2/3; (8/3)^2 / (2 (4 + 4/9)) = 0.8.
        assert!((accuracy(&[3.0, 3.0], &[1.0, 3.0]).unwrap() - 0.8).abs() < 1e-12);
    }

    #[test]
    fn plain_flows_may_be_told_as_their_sum() {
        let each = vec![vec![1.0, 3.0, 1.5, 0.5]; 4];
        let sum = vec![vec![1.0, 3.0, 2.0]; 4];
        let metrics = |seconds: &[Vec<f64>]| metrics_of(seconds, &[1.0, 3.0], 1);
        assert_eq!(metrics(&each), metrics(&sum));
        let fairness = metrics(&sum).figures.into_iter().find(|(name, ..)| name == FAIRNESS).unwrap();
        assert_eq!(fairness.1, 2.0);
    }

    #[test]
    fn bins_sum_before_they_divide() {
        // Exact over two seconds, half the truth in each.
        let seconds = vec![vec![2.0, 0.0, 1.0, 1.0], vec![0.0, 2.0, 1.0, 1.0]];
        let (one, _) = bins(&seconds, &[1.0, 1.0], 2, 1);
        assert_eq!(one, [0.5, 0.5]);
        let (two, ratios) = bins(&seconds, &[1.0, 1.0], 2, 2);
        assert_eq!((two, ratios), (vec![1.0], vec![1.0]));
    }
}
