//! Rates of data.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

use crate::{Bytes, Duration, Ratio};

/// A rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// Nothing moves.
    pub const ZERO: Self = Self(0);
    /// As fast as can be.
    pub const MAX: Self = Self(u64::MAX);

    /// `bits` bits per second.
    pub const fn from_bps(bits: u64) -> Self {
        Self(bits)
    }

    /// `bits` thousand bits per second.
    pub const fn from_kbps(bits: u64) -> Self {
        Self(bits.saturating_mul(1_000))
    }

    /// `bits` million bits per second.
    pub const fn from_mbps(bits: u64) -> Self {
        Self(bits.saturating_mul(1_000_000))
    }

    /// Bits per second from a float; negative and not-a-number give zero.
    pub fn from_bps_f64(bits: f64) -> Self {
        Self(bits as u64)
    }

    /// The rate at which `amount` goes in `span`; zero in no time.
    pub fn of(amount: Bytes, span: Duration) -> Self {
        if span.is_zero() {
            return Self::ZERO;
        }
        Self(scaled(amount.get(), 8_000_000_000, span.as_nanos()))
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Bits per second as a float.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// Bytes per second as a float.
    pub fn bytes_per_second(self) -> f64 {
        self.0 as f64 / 8.0
    }

    /// Whether nothing moves.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// What goes in `span` at this rate.
    #[inline]
    pub fn amount_in(self, span: Duration) -> Bytes {
        Bytes::new(scaled(self.0, span.as_nanos(), 8_000_000_000))
    }

    /// How long `amount` takes at this rate, [`Duration::MAX`] at rate zero.
    #[inline]
    pub fn time_for(self, amount: Bytes) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        Duration::from_nanos(scaled(amount.get(), 8_000_000_000, self.0))
    }

    /// This rate as a multiple of `other`; zero when `other` is zero.
    pub fn ratio_to(self, other: Self) -> f64 {
        if other.0 == 0 { 0.0 } else { self.0 as f64 / other.0 as f64 }
    }
}

/// `value * factor / divisor`, rounded down and at most what fits. The divisor is not zero.
#[inline]
fn scaled(value: u64, factor: u64, divisor: u64) -> u64 {
    // Most products fit, and dividing 128 bits takes several times as long.
    if let Some(product) = value.checked_mul(factor) {
        return product / divisor;
    }
    u64::try_from(u128::from(value) * u128::from(factor) / u128::from(divisor)).unwrap_or(u64::MAX)
}

impl Add for Rate {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Rate {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Rate {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<Ratio> for Rate {
    type Output = Self;
    fn mul(self, ratio: Ratio) -> Self {
        Self((self.0 as f64 * ratio.as_f64()) as u64)
    }
}

impl std::iter::Sum for Rate {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..1_000 => write!(f, "{} bps", self.0),
            1_000..1_000_000 => write!(f, "{:.0} kbps", self.0 as f64 / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.2} Mbps", self.0 as f64 / 1e6),
            _ => write!(f, "{:.2} Gbps", self.0 as f64 / 1e9),
        }
    }
}
