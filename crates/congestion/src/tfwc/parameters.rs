//! What can be set about TTFWC.

use std::fmt;
use std::str::FromStr;

use crate::loss_history::Weights;

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

/// What is added to the window of the equation where it begins to grow (alpha), and when it is decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addition {
    /// A part of the distance to Reno's window where the increase begins, if the window fell no further than
    /// equation (3.1) lets it (section 3.2, figures 3.2 and 3.3).
    #[default]
    Text,
    /// As the listings have it (figure 4.5, lines 28 to 33, and figure 4.6): at a loss event, a part of what
    /// the window is then above half of Reno's, if Reno's had come to the window before and the window fell
    /// to more than 0.81 of it (0.72 in the responsive mode), but fell. Where Reno's had not come so far, what
    /// was added before stays.
    Listing,
}

impl Addition {
    /// To what part the window may have fallen at the most (figure 4.6, lines 17 and 19).
    pub(super) fn least_left(tuning: Tuning) -> f64 {
        if tuning.is_responsive() { 0.72 } else { 0.81 }
    }
}

/// Everything that can be set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// tp.
    pub tuning: Tuning,
    /// How the mean loss interval is kept.
    pub update: Update,
    /// The weights of the loss intervals.
    pub weights: Weights,
    /// What is added.
    pub addition: Addition,
}

impl Parameters {
    /// TFWC, which adds nothing.
    pub const TFWC: Self = Self::tuned(Tuning::SMOOTHEST);

    /// TTFWC with this tuning parameter, the accurate mean and the weights of RFC 5348, after the text.
    pub const fn tuned(tuning: Tuning) -> Self {
        Self { tuning, update: Update::Accurate, weights: Weights::Rfc5348, addition: Addition::Text }
    }
}
