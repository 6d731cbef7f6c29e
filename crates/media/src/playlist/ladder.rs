//! The same media at several rates, of which one is played at a time.

use anabranch_units::Rate;
use url::Url;

/// Most rungs of a ladder that are looked at.
pub(super) const MOST_RUNGS: usize = 16;

/// A rung of a multivariant playlist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Where its media playlist is.
    pub url: Url,
    /// Its mean rate, or else its highest, as the playlist tells it.
    pub rate: Rate,
    /// The height of its picture, where that is told.
    pub height: Option<u64>,
}

/// The representations of an adaptation set in one period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RungSet {
    /// Whether they are pictures, as far as that is told.
    pub is_picture: bool,
    /// In the order of the description; at least one.
    pub rungs: Vec<SetRung>,
}

/// A representation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetRung {
    /// The name of its track in what the description lists.
    pub name: String,
    /// Its rate; zero where it is not told.
    pub rate: Rate,
    /// The height of its picture, where that is told.
    pub height: Option<u64>,
}
