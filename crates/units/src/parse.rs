//! Quantities as people write them: rates `800k`, `3M`, `1.5Mbps`; sizes `64KiB`, `2MB`; times `200ms`, `10s`.

use std::fmt;
use std::str::FromStr;

use crate::{Bytes, Duration, Rate};

/// A quantity that could not be read; its text says what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    what: &'static str,
    input: String,
    examples: &'static str,
}

impl ParseError {
    /// How such a quantity is written.
    pub const fn examples(&self) -> &'static str {
        self.examples
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a {}; write it like {}", self.input, self.what, self.examples)
    }
}

impl std::error::Error for ParseError {}

/// Splits a number from its unit, and finds the unit's factor.
fn number_and_factor(input: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = input.trim();
    let split = text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().ok()?;
    let unit = unit.trim();
    let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| factor)?;
    let value = number * factor;
    (value.is_finite() && value < 1.8e19).then_some(value)
}

impl FromStr for Rate {
    type Err = ParseError;

    fn from_str(input: &str) -> Result<Self, ParseError> {
        const UNITS: [(&str, f64); 12] = [
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
        match number_and_factor(input, &UNITS) {
            Some(bits) if bits >= 1.0 => Ok(Self::from_bps_f64(bits)),
            _ => Err(ParseError {
                what: "rate",
                input: input.into(),
                examples: "800k, 3M or 1.5Mbps (bits per second, above zero)",
            }),
        }
    }
}

impl FromStr for Bytes {
    type Err = ParseError;

    fn from_str(input: &str) -> Result<Self, ParseError> {
        const UNITS: [(&str, f64); 11] = [
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
        number_and_factor(input, &UNITS).map(|bytes| Self::new(bytes as u64)).ok_or_else(|| ParseError {
            what: "size",
            input: input.into(),
            examples: "64KiB, 2MB or 1.5GiB",
        })
    }
}

impl FromStr for Duration {
    type Err = ParseError;

    fn from_str(input: &str) -> Result<Self, ParseError> {
        const UNITS: [(&str, f64); 6] =
            [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("", 1.0), ("m", 60.0), ("h", 3600.0)];
        number_and_factor(input, &UNITS).map(Self::from_secs_f64).ok_or_else(|| ParseError {
            what: "time",
            input: input.into(),
            examples: "200ms, 10s, 5m or 2h",
        })
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
