//! Weights, and what was served by them.

use std::fmt;
use std::str::FromStr;

/// How much a member counts among the others: from 1/1000 to 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(u64);

/// A weight of one, as it is stored.
const ONE: u64 = 1 << 16;

impl Weight {
    /// The weight of one.
    pub const ONE: Self = Self(ONE);

    /// The least that there is: 0.001.
    pub const LEAST: Self = Self(66);

    /// From a number between 0.001 and 1000; `None` for any other.
    pub fn new(weight: f64) -> Option<Self> {
        (0.001..=1000.0).contains(&weight).then(|| Self((weight * 65_536.0).round() as u64))
    }

    /// So many times as much, within what weights can be.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self::new((self.get() * factor).clamp(Self::LEAST.get(), 1000.0)).unwrap_or(self)
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0 as f64 / 65_536.0
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", (self.get() * 1000.0).round() / 1000.0)
    }
}

impl FromStr for Weight {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().ok().and_then(Self::new).ok_or("a weight is a number from 0.001 to 1000, such as 4")
    }
}

/// How much a member was granted, divided by its weight: who has least is owed most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Served(u128);

impl Served {
    /// So many bytes more.
    pub(crate) fn more(self, bytes: u64, weight: Weight) -> Self {
        Self(self.0 + by_weight(bytes, weight))
    }

    /// So many bytes less.
    pub(super) fn less(self, bytes: u64, weight: Weight) -> Self {
        Self(self.0.saturating_sub(by_weight(bytes, weight)))
    }
}

impl Served {
    /// The same for another weight: what the member has had beyond its turn, or is owed, stays as many bytes.
    pub(super) fn reweighed(self, clock: Self, old: Weight, new: Weight) -> Self {
        let scaled = |distance: u128| distance.saturating_mul(old.0.into()) / u128::from(new.0);
        if self >= clock {
            Self(clock.0.saturating_add(scaled(self.0 - clock.0)))
        } else {
            Self(clock.0.saturating_sub(scaled(clock.0 - self.0)))
        }
    }
}

/// In 2^-32 bytes of a member of weight one.
fn by_weight(bytes: u64, weight: Weight) -> u128 {
    // Dividing 128 bits takes several times as long.
    if bytes < 1 << 16 {
        return u128::from((bytes << 48) / weight.0);
    }
    (u128::from(bytes) << 48) / u128::from(weight.0)
}
