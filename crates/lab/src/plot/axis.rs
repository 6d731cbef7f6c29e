//! Axes: what they span, and where their ticks are.

use crate::experiment::{Axis, Scale};

/// An axis laid out on the page.
pub(super) struct Layout {
    scale: Scale,
    low: f64,
    high: f64,
    /// Where `low` and `high` are on the page.
    page: (f64, f64),
    /// The ticks, in the axis' unit.
    pub ticks: Vec<f64>,
}

impl Layout {
    /// Lays an axis out so that it spans `values` and what it is to show.
    pub fn new(axis: &Axis, values: impl Iterator<Item = f64>, page: (f64, f64)) -> Self {
        let drawable = |value: &f64| value.is_finite() && (axis.scale == Scale::Linear || *value > 0.0);
        let asked = axis.shows.into_iter().flat_map(|(low, high)| [low, high]);
        let (low, high) = values
            .chain(asked)
            .filter(drawable)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        match axis.scale {
            Scale::Linear => Self::linear(low, high, page),
            Scale::Logarithmic => Self::logarithmic(low, high, page),
        }
    }

    fn linear(low: f64, high: f64, page: (f64, f64)) -> Self {
        let (low, high) = widened(low, high);
        let step = round_step((high - low) / 6.0);
        let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
        let ticks: Vec<f64> = (first..=last).map(|index| index as f64 * step).collect();
        Self { scale: Scale::Linear, low: first as f64 * step, high: last as f64 * step, page, ticks }
    }

    fn logarithmic(low: f64, high: f64, page: (f64, f64)) -> Self {
        let (low, high) = if low <= high { (low, high) } else { (1.0, 10.0) };
        let (first, mut last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        last = last.max(first + 1);
        // Whole powers alone leave a short axis without enough ticks.
        let within: &[f64] = if last - first > 3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let mut ticks: Vec<f64> = (first..last)
            .flat_map(|power| within.iter().map(move |times| times * 10f64.powi(power)))
            .collect();
        ticks.push(10f64.powi(last));
        Self { scale: Scale::Logarithmic, low: 10f64.powi(first), high: 10f64.powi(last), page, ticks }
    }

    /// Where a value is on the page; `None` where it cannot be drawn.
    pub fn place(&self, value: f64) -> Option<f64> {
        let part = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic if value > 0.0 => (value / self.low).log10() / (self.high / self.low).log10(),
            Scale::Logarithmic => return None,
        };
        let place = self.page.0 + part.clamp(0.0, 1.0) * (self.page.1 - self.page.0);
        place.is_finite().then_some(place)
    }

    /// How a tick is written: no digits that the steps do not need.
    pub fn text(&self, tick: f64) -> String {
        let step = match self.scale {
            Scale::Linear => self.ticks.get(1).map_or(1.0, |second| second - self.ticks[0]),
            Scale::Logarithmic => tick,
        };
        if tick != 0.0 && !(1e-4..1e7).contains(&tick.abs()) {
            return format!("{tick:e}");
        }
        let decimals = (-(step * 1.000_001).log10().floor()).max(0.0) as usize;
        format!("{tick:.decimals$}").replace('-', "\u{2212}")
    }
}

/// A span that is not empty.
fn widened(low: f64, high: f64) -> (f64, f64) {
    if low < high {
        (low, high)
    } else if low.is_finite() && low != 0.0 {
        (low.min(0.0), low.max(0.0))
    } else {
        (0.0, 1.0)
    }
}

/// The next of 1, 2 and 5 times a power of ten.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let times = [1.0, 2.0, 5.0].into_iter().find(|times| times * power >= least * 0.999_999).unwrap_or(10.0);
    times * power
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn axis(scale: Scale, shows: Option<(f64, f64)>) -> Axis {
        Axis { label: "x".into(), unit: String::new(), scale, shows }
    }

    fn texts(axis: &Axis, values: &[f64]) -> Vec<String> {
        let layout = Layout::new(axis, values.iter().copied(), (0.0, 100.0));
        layout.ticks.iter().map(|tick| layout.text(*tick)).collect()
    }

    #[test]
    fn ticks_are_round() {
        let linear = axis(Scale::Linear, Some((0.0, 0.0)));
        assert_eq!(texts(&linear, &[812.0]), ["0", "200", "400", "600", "800", "1000"]);
        assert_eq!(texts(&linear, &[0.16]), ["0.00", "0.05", "0.10", "0.15", "0.20"]);
        assert_eq!(texts(&linear, &[-1.0, 1.0]), ["\u{2212}1.0", "\u{2212}0.5", "0.0", "0.5", "1.0"]);
        let logarithmic = axis(Scale::Logarithmic, None);
        assert_eq!(texts(&logarithmic, &[0.3, 7.0]), ["0.1", "0.2", "0.5", "1", "2", "5", "10"]);
        assert_eq!(texts(&logarithmic, &[0.05, 900.0]), ["0.01", "0.1", "1", "10", "100", "1000"]);
    }

    #[test]
    fn nothing_to_draw_is_no_trouble() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            for values in [&[][..], &[f64::NAN], &[0.0], &[-3.0]] {
                let layout = Layout::new(&axis(scale, None), values.iter().copied(), (0.0, 100.0));
                assert!((2..20).contains(&layout.ticks.len()), "{scale:?} {values:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn every_value_is_on_the_page_between_the_ticks(values in prop::collection::vec(-1e9f64..1e9, 1..20)) {
            let layout = Layout::new(&axis(Scale::Linear, None), values.iter().copied(), (10.0, 110.0));
            prop_assert!((2..=12).contains(&layout.ticks.len()), "{:?}", layout.ticks);
            for value in values {
                prop_assert!(layout.ticks[0] <= value && value <= layout.ticks[layout.ticks.len() - 1]);
                prop_assert!((10.0..=110.0).contains(&layout.place(value).unwrap()));
            }
        }
    }
}
