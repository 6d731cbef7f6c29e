//! Quantities as people write them: rates `800k`, `3M`, `1.5Mbps`; sizes `64KiB`, `2MB`; times `200ms`,
//! `10s`.

use std::fmt;
use std::str::FromStr;

use crate::{Bytes, Duration, Rate};

/// A quantity that could not be read; its text says what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    input: String,
    problem: String,
    examples: &'static str,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' {}; write it like {}", self.input, self.problem, self.examples)
    }
}

impl std::error::Error for ParseError {}

/// A quantity that people write as a number and a unit.
pub trait Quantity: Sized {
    /// What it is called.
    const NAME: &'static str;
    /// How it is written.
    const EXAMPLES: &'static str;
    /// Its units, and what each is in the smallest one. The empty one is what a bare number means where it
    /// may stand.
    const UNITS: &'static [(&'static str, f64)];

    /// From a number of the smallest unit, finite and not negative; none where that is no such quantity.
    fn of(number: f64) -> Option<Self>;

    /// Reads a number and its unit; a bare number is taken as well, as on a command line.
    ///
    /// # Errors
    /// It is something else.
    fn read(input: &str) -> Result<Self, ParseError> {
        let text = input.trim();
        let split = text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let factor = Self::UNITS.iter().find(|(name, _)| *name == unit.trim()).map(|(_, factor)| factor);
        let value = number.parse().ok().zip(factor).map(|(number, factor): (f64, _)| number * factor);
        value
            .filter(|value| value.is_finite() && *value < 1.8e19)
            .and_then(Self::of)
            .ok_or_else(|| Self::error(input, format!("is not a {}", Self::NAME)))
    }

    /// Reads a number that has its unit, as it has to in a file: nobody means 10 bits per second by `10`.
    /// Only nought needs none.
    ///
    /// # Errors
    /// It is something else, or its unit is missing.
    fn read_with_unit(input: &str) -> Result<Self, ParseError> {
        let quantity = Self::read(input)?;
        match input.trim().parse::<f64>() {
            Ok(bare) if bare != 0.0 => Err(Self::error(input, "has no unit".into())),
            _ => Ok(quantity),
        }
    }

    /// The error about an input.
    fn error(input: &str, problem: String) -> ParseError {
        ParseError { input: input.into(), problem, examples: Self::EXAMPLES }
    }
}

impl Quantity for Rate {
    const NAME: &'static str = "rate";
    const EXAMPLES: &'static str = "800k, 3M or 1.5Mbps (bits per second, above zero)";
    const UNITS: &'static [(&'static str, f64)] = &[
        ("", 1.0),
        ("bps", 1.0),
        ("bit/s", 1.0),
        ("k", 1e3),
        ("kbps", 1e3),
        ("kbit/s", 1e3),
        ("M", 1e6),
        ("Mbps", 1e6),
        ("Mbit/s", 1e6),
        ("G", 1e9),
        ("Gbps", 1e9),
        ("Gbit/s", 1e9),
    ];

    fn of(bits: f64) -> Option<Self> {
        (bits >= 1.0).then(|| Self::from_bps_f64(bits))
    }
}

impl Quantity for Bytes {
    const NAME: &'static str = "size";
    const EXAMPLES: &'static str = "64KiB, 2MB or 1.5GiB";
    const UNITS: &'static [(&'static str, f64)] = &[
        ("", 1.0),
        ("B", 1.0),
        ("k", 1e3),
        ("kB", 1e3),
        ("KiB", 1024.0),
        ("M", 1e6),
        ("MB", 1e6),
        ("MiB", 1_048_576.0),
        ("G", 1e9),
        ("GB", 1e9),
        ("GiB", 1_073_741_824.0),
    ];

    fn of(bytes: f64) -> Option<Self> {
        Some(Self::new(bytes as u64))
    }
}

impl Quantity for Duration {
    const NAME: &'static str = "time";
    const EXAMPLES: &'static str = "200ms, 10s, 5m or 2h";
    const UNITS: &'static [(&'static str, f64)] =
        &[("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("", 1.0), ("m", 60.0), ("h", 3600.0)];

    fn of(seconds: f64) -> Option<Self> {
        Some(Self::from_secs_f64(seconds))
    }
}

impl FromStr for Rate {
    type Err = ParseError;

    fn from_str(input: &str) -> Result<Self, ParseError> {
        Self::read(input)
    }
}

impl FromStr for Bytes {
    type Err = ParseError;

    fn from_str(input: &str) -> Result<Self, ParseError> {
        Self::read(input)
    }
}

impl FromStr for Duration {
    type Err = ParseError;

    fn from_str(input: &str) -> Result<Self, ParseError> {
        Self::read(input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_as_people_write_them() {
        assert_eq!("800k".parse(), Ok(Rate::from_kbps(800)));
        assert_eq!("3M".parse(), Ok(Rate::from_mbps(3)));
        assert_eq!("1.5Mbps".parse(), Ok(Rate::from_kbps(1500)));
        assert_eq!("2 Mbit/s".parse(), Ok(Rate::from_mbps(2)));
        for wrong in ["", "fast", "3 apples", "-3M", "0", "0.5", "1e99G", "NaN", "."] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_and_times() {
        assert_eq!("64KiB".parse(), Ok(Bytes::kib(64)));
        assert_eq!("2MB".parse(), Ok(Bytes::new(2_000_000)));
        assert_eq!("200ms".parse(), Ok(Duration::from_millis(200)));
        assert_eq!("1.5s".parse(), Ok(Duration::from_millis(1500)));
        assert!("5 parsecs".parse::<Duration>().is_err());
    }

    #[test]
    fn a_number_without_a_unit_is_no_quantity_of_a_file() {
        for bare in ["10", " 10 ", "1.5", "10."] {
            let error = Rate::read_with_unit(bare).unwrap_err().to_string();
            assert!(error.contains("has no unit; write it like 800k"), "{error}");
            assert!(
                Bytes::read_with_unit(bare).is_err() && Duration::read_with_unit(bare).is_err(),
                "{bare}"
            );
        }
        assert_eq!(Rate::read_with_unit("10M"), Ok(Rate::from_mbps(10)));
        assert_eq!(Duration::read_with_unit("0"), Ok(Duration::ZERO));
        assert_eq!(Bytes::read_with_unit("0.0"), Ok(Bytes::ZERO));
        let error = Rate::read_with_unit("0").unwrap_err().to_string();
        assert!(error.contains("'0' is not a rate"), "{error}");
    }

    #[test]
    fn errors_say_what_would_be_right() {
        let error = "fast".parse::<Rate>().unwrap_err().to_string();
        assert!(error.contains("'fast'") && error.contains("3M"), "{error}");
    }

    #[test]
    fn a_rate_and_its_amounts_agree() {
        let rate = Rate::from_mbps(8);
        assert_eq!(rate.amount_in(Duration::from_secs(1)), Bytes::new(1_000_000));
        assert_eq!(rate.time_for(Bytes::new(1_000_000)), Duration::from_secs(1));
        assert_eq!(Rate::of(Bytes::new(1_000_000), Duration::from_secs(1)), rate);
        assert_eq!(Rate::ZERO.time_for(Bytes::new(1)), Duration::MAX);
        assert_eq!(Rate::of(Bytes::MAX, Duration::from_nanos(1)), Rate::MAX);
    }
}
