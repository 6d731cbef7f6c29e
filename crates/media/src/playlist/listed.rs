//! What a playlist can list.

use std::ops::Range;

use anabranch_units::{Duration, Rate};
use url::Url;

/// Most segments, or renditions, that are listed of one playlist. A day of two-second segments has fewer.
pub(super) const MOST_LISTED: usize = 50_000;
/// A longer segment is a mistake, in seconds.
const LONGEST: f64 = 3600.0;

/// What a playlist lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listing {
    /// Other playlists, one for each rung or rendition.
    Renditions(Vec<Rendition>),
    /// Segments: one track (HLS), or one for each rung or rendition (DASH).
    Tracks(Vec<Track>),
}

/// A playlist that another one names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendition {
    /// Where it is.
    pub url: Url,
    /// Of which kind of media: the rungs of a ladder have the same, and one of them is played at a time.
    pub group: String,
    /// What it needs, as the playlist tells it: its mean rate, or else its highest; zero where it is not told.
    pub rate: Rate,
}

/// Segments that follow each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Track {
    /// What it is called in its playlist; empty where there is only one.
    pub name: String,
    /// Of which kind of media, as that of a [`Rendition`].
    pub group: String,
    /// What it needs; zero where it is not told here.
    pub rate: Rate,
    /// The number of the first segment, which it keeps when the playlist moves on, and which is that of
    /// what is played at the same time in the other rungs; `None`: segments are known by where they are.
    pub first: Option<u64>,
    /// In the order of play.
    pub segments: Vec<Segment>,
    /// What goes before segments and plays no time: the initialization of their media.
    pub initializations: Vec<Place>,
    /// Where the segments are listed, if not here: a [segment index](super::segments_of_index).
    pub index: Option<Place>,
}

/// Where something is that a playlist lists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The URL of a file.
    pub url: Url,
    /// Which bytes of the file, at least one; `None`: all of it.
    pub bytes: Option<Range<u64>>,
}

/// A segment of a playlist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it is.
    pub place: Place,
    /// How long it plays.
    pub play_time: Duration,
}

/// A play time in seconds, within bounds.
pub(super) fn play_time(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.clamp(0.0, LONGEST))
}

/// What `reference` leads to over HTTP.
pub(super) fn join(base: &Url, reference: &str) -> Option<Url> {
    let mut url = base.join(reference.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    url.set_fragment(None);
    Some(url)
}
