//! What the tests of a session begin with, and the world in which most of them play.

pub(crate) mod world;

use anabranch_protocol::ranges::RangeSet;
use anabranch_units::{Bytes, Duration, Rate};

use super::{Config, Pace};
use crate::content::Policy;
use crate::control::RateController;
use crate::playback;

/// A session over `paths` to a film of `size` bytes, none of them there.
pub(super) fn config(size: u64, paths: usize, controller: Box<dyn RateController>, pace: Pace) -> Config {
    Config {
        policy: Policy { unhurried_from: Some(Duration::from_secs(5)), ..Policy::expected(Bytes::mib(64)) },
        controller,
        pace,
        playback: playback::Parameters::default(),
        media_rate: None,
        size: Some(size),
        have: RangeSet::new(),
        ranges: true,
        path_caps: vec![8; paths],
        give_up_after: Duration::from_secs(30),
        silent_after: Duration::from_secs(8),
    }
}

/// The size of a film.
pub(super) fn film(seconds: u64, kbps: u64) -> u64 {
    Rate::from_kbps(kbps).amount_in(Duration::from_secs(seconds)).get()
}

/// The pace of a player of a film whose rate is known.
pub(super) fn play(kbps: u64) -> Pace {
    Pace::Media(Some(Rate::from_kbps(kbps)))
}
