//! Numbers and quantities within the bounds of what a simulation can hold.

use std::ops::RangeInclusive;

use anabranch_units::{Bytes, Duration, Quantity, Rate, Ratio, Time};
use toml::de::DeValue;

use crate::error::Fault;
use crate::table::Item;

/// Rates above it are slips of the pen.
const FASTEST: Rate = Rate::from_bps(1_000_000_000_000);
/// So are times above it: a year.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);
/// So are sizes above it: an exbibyte.
const LARGEST: Bytes = Bytes::new(1 << 60);

impl Item<'_> {
    fn quantity<T: Quantity>(self) -> Result<T, Fault> {
        match self.value {
            // What a number means is in its unit.
            DeValue::String(text) => T::read_with_unit(text).map_err(|error| self.fault(error)),
            _ => {
                let fault = self.expected("a text with its unit");
                Err(fault.help(format_args!("write it like {}", T::EXAMPLES)))
            }
        }
    }

    /// A rate above zero.
    ///
    /// # Errors
    /// It is something else.
    pub fn rate(self) -> Result<Rate, Fault> {
        let rate: Rate = self.quantity()?;
        if rate > FASTEST { Err(self.fault(format_args!("a rate is at most {FASTEST}"))) } else { Ok(rate) }
    }

    /// A time, which can be zero.
    ///
    /// # Errors
    /// It is something else.
    pub fn duration(self) -> Result<Duration, Fault> {
        let span: Duration = self.quantity()?;
        if span > LONGEST { Err(self.fault("a time is at most 366 days (8784h)")) } else { Ok(span) }
    }

    /// A time above zero.
    ///
    /// # Errors
    /// It is something else.
    pub fn positive_duration(self) -> Result<Duration, Fault> {
        let span = self.duration()?;
        if span.is_zero() { Err(self.fault(format_args!("`{}` is above zero", self.key))) } else { Ok(span) }
    }

    /// A moment, counted from the beginning of the run.
    ///
    /// # Errors
    /// It is something else.
    pub fn moment(self) -> Result<Time, Fault> {
        self.duration().map(|span| Time::ZERO + span)
    }

    /// A size, which can be zero.
    ///
    /// # Errors
    /// It is something else.
    pub fn size(self) -> Result<Bytes, Fault> {
        let size: Bytes = self.quantity()?;
        if size > LARGEST { Err(self.fault("a size is at most an exbibyte")) } else { Ok(size) }
    }

    /// A size above zero.
    ///
    /// # Errors
    /// It is something else.
    pub fn positive_size(self) -> Result<Bytes, Fault> {
        self.size_within(Bytes::new(1), LARGEST)
    }

    /// A size within bounds.
    ///
    /// # Errors
    /// It is something else.
    pub fn size_within(self, least: Bytes, most: Bytes) -> Result<Bytes, Fault> {
        let size = self.size()?;
        if (least..=most).contains(&size) {
            Ok(size)
        } else {
            Err(self.fault(format_args!("`{}` is a size from {least} to {most}", self.key)))
        }
    }

    /// A whole number within bounds.
    ///
    /// # Errors
    /// It is something else.
    pub fn whole(self, bounds: RangeInclusive<u64>) -> Result<u64, Fault> {
        let (least, most) = (bounds.start(), bounds.end());
        let wanted = match *most {
            u64::MAX => format!("a whole number from {least} on"),
            _ => format!("a whole number from {least} to {most}"),
        };
        let DeValue::Integer(number) = self.value else { return Err(self.expected(wanted)) };
        // Signs and underscores are gone or make it no number here, as they should.
        match u64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) if bounds.contains(&number) => Ok(number),
            _ => Err(self.fault(format_args!("`{}` is {wanted}", self.key))),
        }
    }

    /// A whole number within bounds that are small.
    ///
    /// # Errors
    /// It is something else.
    pub fn count(self, bounds: RangeInclusive<u32>) -> Result<u32, Fault> {
        let number = self.whole(u64::from(*bounds.start())..=u64::from(*bounds.end()))?;
        u32::try_from(number).map_err(|error| self.fault(error))
    }

    /// A number within what is said.
    ///
    /// # Errors
    /// It is something else.
    pub fn number(self, is_right: impl Fn(f64) -> bool, bounds: &str) -> Result<f64, Fault> {
        let text = match self.value {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return Err(self.expected(format_args!("a number {bounds}"))),
        };
        match text.parse::<f64>() {
            Ok(number) if is_right(number) => Ok(number),
            _ => Err(self.fault(format_args!("`{}` is a number {bounds}", self.key))),
        }
    }

    /// A probability.
    ///
    /// # Errors
    /// It is something else.
    pub fn probability(self) -> Result<f64, Fault> {
        self.number(|number| (0.0..=1.0).contains(&number), "from 0 to 1 (a probability)")
    }

    /// A ratio from 0 to below 1.
    pub(crate) fn part(self) -> Result<Ratio, Fault> {
        self.number(|number| (0.0..1.0).contains(&number), "from 0 to below 1").map(Ratio::from_f64)
    }

    /// A factor above zero.
    pub(crate) fn factor(self) -> Result<Ratio, Fault> {
        self.number(|number| number > 0.0 && number <= 1000.0, "above 0, up to 1000").map(Ratio::from_f64)
    }

    /// A ratio within bounds.
    pub(crate) fn ratio(self, bounds: RangeInclusive<f64>) -> Result<Ratio, Fault> {
        let text = format!("from {} to {}", bounds.start(), bounds.end());
        self.number(|number| bounds.contains(&number), &text).map(Ratio::from_f64)
    }
}
