//! What a packet's way takes beyond the link's delay.

use anabranch_scenario::model::Spread;
use anabranch_scenario::random::Random;

/// Draws it for one packet, in nanoseconds.
#[inline]
pub fn delay_beyond(spread: &Spread, random: &mut Random) -> u64 {
    match *spread {
        Spread::Uniform { most } => random.below(most.as_nanos().saturating_add(1)),
        Spread::Exponential { mean } => nanos(random.exponential(mean.as_secs_f64())),
        Spread::Normal { mean, deviation } => {
            nanos(random.normal(mean.as_secs_f64(), deviation.as_secs_f64()))
        }
    }
}

/// No packet arrives before the link's delay has passed.
fn nanos(seconds: f64) -> u64 {
    anabranch_units::Duration::from_secs_f64(seconds.max(0.0)).as_nanos()
}

#[cfg(test)]
mod tests {
    use anabranch_units::Duration;

    use super::*;

    /// Mean and standard deviation of what is drawn, in milliseconds.
    fn drawn(spread: Spread) -> (f64, f64) {
        let mut random = Random::new(3, 5);
        let values: Vec<f64> =
            (0..100_000).map(|_| delay_beyond(&spread, &mut random) as f64 / 1e6).collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        (mean, variance.sqrt())
    }

    #[test]
    fn distributions_have_their_moments() {
        let ms = Duration::from_millis;
        // Of a uniform distribution the deviation is its width over the root of twelve.
        for (spread, mean, deviation) in [
            (Spread::Uniform { most: ms(12) }, 6.0, 12.0 / 12f64.sqrt()),
            (Spread::Exponential { mean: ms(5) }, 5.0, 5.0),
            (Spread::Normal { mean: ms(20), deviation: ms(4) }, 20.0, 4.0),
        ] {
            let found = drawn(spread);
            assert!(
                (found.0 - mean).abs() < 0.05 && (found.1 - deviation).abs() < 0.1,
                "{spread:?}: {found:?}"
            );
        }
    }

    #[test]
    fn nothing_comes_before_its_time() {
        let (mean, _) = drawn(Spread::Normal { mean: Duration::ZERO, deviation: Duration::from_millis(4) });
        // The half below zero is zero: what is left has a mean of 4 over the root of 2 pi.
        assert!((mean - 4.0 / std::f64::consts::TAU.sqrt()).abs() < 0.05, "{mean}");
    }
}
