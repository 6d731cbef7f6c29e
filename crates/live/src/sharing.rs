//! What a sender that shares its uplinks knows of the others ([`anabranch_congestion::shares`]).

use std::collections::BTreeMap;

use anabranch_congestion::shares::{Board, Standing};
use anabranch_congestion::vps::Weight;
use anabranch_units::Time;

use super::UplinkId;

/// Its own weight, and what the others said on each uplink.
#[derive(Clone, Debug)]
pub(super) struct Sharing {
    weight: Weight,
    boards: BTreeMap<UplinkId, Board>,
}

impl Sharing {
    pub(super) fn new(weight: Weight) -> Self {
        Self { weight, boards: BTreeMap::new() }
    }

    pub(super) fn weight(&self) -> Weight {
        self.weight
    }

    /// How another sender stands on an uplink; `None`: it is gone from there.
    pub(super) fn hear(&mut self, link: UplinkId, member: u64, standing: Option<Standing>, now: Time) {
        let board = self.boards.entry(link).or_default();
        match standing {
            Some(standing) => board.hear(member, standing, now),
            None => board.leave(member),
        }
    }

    /// How many others there are, on the uplink with most of them.
    pub(super) fn others(&self) -> usize {
        self.boards.values().map(Board::others).max().unwrap_or(0)
    }

    /// How much of what it is allowed itself a sender has that stands so.
    pub(super) fn share(&mut self, link: UplinkId, own: Standing, now: Time) -> f64 {
        self.boards.get_mut(&link).map_or(1.0, |board| board.part(own, now).ratio_to(own.allowed))
    }
}
