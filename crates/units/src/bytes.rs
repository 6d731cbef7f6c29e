//! Amounts of data: bytes, and packets of one size.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

use crate::Ratio;

/// A number of bytes, or a position in a stream of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

/// A number of packets (TCP segments) of one size: the unit of windows in the papers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Packets(u64);

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// More than anything.
    pub const MAX: Self = Self(u64::MAX);

    /// `count` bytes.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// `count` KiB.
    pub const fn kib(count: u64) -> Self {
        Self(count.saturating_mul(1 << 10))
    }

    /// `count` MiB.
    pub const fn mib(count: u64) -> Self {
        Self(count.saturating_mul(1 << 20))
    }

    /// A float without its fraction; negative and not-a-number give zero.
    pub fn from_f64(count: f64) -> Self {
        Self(count as u64)
    }

    /// The length of a buffer.
    pub const fn of(length: usize) -> Self {
        Self(length as u64)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of bytes as a length in memory, saturating on small machines.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// The number of bytes as a float.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// Whether there are none.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// How many packets of `size` bytes hold these bytes, rounded up; zero when `size` is zero.
    pub fn in_packets(self, size: Self) -> Packets {
        if size.0 == 0 { Packets(0) } else { Packets(self.0.div_ceil(size.0)) }
    }
}

impl Packets {
    /// None.
    pub const ZERO: Self = Self(0);

    /// `count` packets.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// A float rounded up to whole packets; negative and not-a-number give zero.
    pub fn from_f64_ceil(count: f64) -> Self {
        Self(count.ceil() as u64)
    }

    /// The number of packets.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of packets as a float.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }
}

macro_rules! amount {
    ($name:ident) => {
        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }
        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }
        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }
        impl SubAssign for $name {
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }
        impl Mul<u64> for $name {
            type Output = Self;
            fn mul(self, times: u64) -> Self {
                Self(self.0.saturating_mul(times))
            }
        }
        impl Mul<Ratio> for $name {
            type Output = Self;
            fn mul(self, ratio: Ratio) -> Self {
                Self((self.0 as f64 * ratio.as_f64()) as u64)
            }
        }
        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
                iter.fold(Self(0), Add::add)
            }
        }
    };
}

amount!(Bytes);
amount!(Packets);

impl Mul<Bytes> for Packets {
    type Output = Bytes;
    fn mul(self, size: Bytes) -> Bytes {
        Bytes(self.0.saturating_mul(size.0))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
        match UNITS.iter().find(|(shift, _)| self.0 >> shift > 0) {
            Some((shift, unit)) => write!(f, "{:.1} {unit}", self.0 as f64 / (1u64 << shift) as f64),
            None => write!(f, "{} B", self.0),
        }
    }
}

impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} packet{}", self.0, if self.0 == 1 { "" } else { "s" })
    }
}
