//! What can be set about TTFWC.

use std::fmt;
use std::str::FromStr;

/// The tuning parameter tp: from 0 (as smooth as TFWC) to 1 (as fast as the equation allows). It decides two
/// things: how much of the distance to Reno's window is added where the window begins to grow, and how many
/// loss intervals are averaged.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Tuning(pub(super) f64);

impl Tuning {
    /// Nothing is added: TFWC.
    pub const SMOOTHEST: Self = Self(0.0);
    /// Everything is added.
    pub const FASTEST: Self = Self(1.0);

    /// From a number between 0 and 1; `None` for any other.
    pub fn new(tp: f64) -> Option<Self> {
        (0.0..=1.0).contains(&tp).then_some(Self(tp))
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// From 0.5 on it is the responsive mode, below it the smooth one (section 3.1).
    pub fn is_responsive(self) -> bool {
        self.0 >= 0.5
    }

    /// Which part of the distance to Reno's window is added: tp in the responsive mode, tp^2 in the smooth
    /// one (section 3.2).
    pub fn share(self) -> f64 {
        if self.is_responsive() { self.0 } else { self.0 * self.0 }
    }

    /// How many loss intervals are averaged: 8 in the responsive mode, 16 in the smooth one (section 3.3).
    pub fn intervals(self) -> u8 {
        if self.is_responsive() { 8 } else { 16 }
    }
}

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Tuning {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().ok().and_then(Self::new).ok_or("a tuning parameter is a number from 0 to 1, such as 0.9")
    }
}

/// How the mean loss interval follows the open one while the window grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Update {
    /// The mean is reckoned anew at each acknowledgement.
    #[default]
    Accurate,
    /// A packet is added to the mean after a fixed number of packets, the sum of the weights rounded up
    /// (section 4.1): no mean needs to be reckoned between loss events, which is what a kernel wants.
    Approximate,
}

/// Everything that can be set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// tp.
    pub tuning: Tuning,
    /// How the mean loss interval is kept.
    pub update: Update,
}

impl Parameters {
    /// TFWC, which adds nothing.
    pub const TFWC: Self = Self { tuning: Tuning::SMOOTHEST, update: Update::Accurate };

    /// TTFWC with this tuning parameter and the accurate mean.
    pub const fn tuned(tuning: Tuning) -> Self {
        Self { tuning, update: Update::Accurate }
    }
}
