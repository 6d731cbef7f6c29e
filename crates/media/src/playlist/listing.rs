//! What a playlist lists: which segments follow each other, and how long each plays.

use std::ops::Range;

use m3u8_rs::{ByteRange, MasterPlaylist, MediaPlaylist, Playlist};
use url::Url;

use anabranch_units::Duration;

use super::PlaylistKind;
use super::route::LARGEST_PLAYLIST;

/// Most segments, or renditions, that are listed of one playlist. A day of two-second segments has fewer.
const MOST_LISTED: usize = 50_000;
/// A longer segment is a mistake.
const LONGEST: f64 = 3600.0;

/// What a playlist lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listing {
    /// Other playlists, one for each rung or rendition.
    Renditions(Vec<Rendition>),
    /// Segments in the order of play.
    Segments {
        /// The number of the first one, which it keeps when the playlist moves on.
        first: u64,
        /// One after the other.
        segments: Vec<Segment>,
        /// What goes before segments and plays no time: the initialization of their media.
        initializations: Vec<Place>,
    },
}

/// A playlist that another one names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendition {
    /// Where it is.
    pub url: Url,
    /// Of which kind of media: the rungs of a ladder have the same, and one of them is played at a time.
    pub group: String,
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

/// What the playlist `body` lists that came from `base`; `None`: nothing that could be read here.
pub fn listing(kind: PlaylistKind, body: &[u8], base: &Url) -> Option<Listing> {
    if kind != PlaylistKind::Hls || body.len() > LARGEST_PLAYLIST {
        return None;
    }
    match m3u8_rs::parse_playlist_res(body).ok()? {
        Playlist::MasterPlaylist(master) => Some(Listing::Renditions(renditions(&master, base))),
        Playlist::MediaPlaylist(media) => segments(&media, base),
    }
}

fn renditions(master: &MasterPlaylist, base: &Url) -> Vec<Rendition> {
    let variants = master.variants.iter().filter(|variant| !variant.is_i_frame);
    let variants = variants.map(|variant| (Some(&variant.uri), String::new()));
    let others = master.alternatives.iter().map(|other| (other.uri.as_ref(), other.media_type.to_string()));
    let found = variants.chain(others).filter_map(|(uri, group)| {
        let url = join(base, uri?)?;
        Some(Rendition { url, group })
    });
    found.take(MOST_LISTED).collect()
}

fn segments(media: &MediaPlaylist, base: &Url) -> Option<Listing> {
    let mut initializations: Vec<Place> = Vec::new();
    let mut segments: Vec<Segment> = Vec::new();
    for listed in media.segments.iter().take(MOST_LISTED) {
        if let Some(map) = &listed.map
            && let Some(url) = join(base, &map.uri)
            && let Ok(bytes) = map.byte_range.as_ref().map(|range| part(range, 0)).transpose()
            && initializations.last().is_none_or(|last| last.url != url || last.bytes != bytes)
        {
            initializations.push(Place { url, bytes });
        }
        let url = join(base, &listed.uri)?;
        // Without an offset a part follows the one before it (RFC 8216, section 4.3.2.2).
        let before = segments.last().map(|segment| &segment.place).filter(|place| place.url == url);
        let follows = before.and_then(|place| Some(place.bytes.as_ref()?.end)).unwrap_or(0);
        let bytes = listed.byte_range.as_ref().map(|range| part(range, follows)).transpose().ok()?;
        let play_time = Duration::from_secs_f64(f64::from(listed.duration).clamp(0.0, LONGEST));
        segments.push(Segment { place: Place { url, bytes }, play_time });
    }
    Some(Listing::Segments { first: media.media_sequence, segments, initializations })
}

/// Nobody can ask for so many bytes, or for those.
struct Impossible;

/// The part of a file that a range is.
fn part(range: &ByteRange, follows: u64) -> Result<Range<u64>, Impossible> {
    let start = range.offset.unwrap_or(follows);
    let end = start.checked_add(range.length).ok_or(Impossible)?;
    (start < end).then_some(start..end).ok_or(Impossible)
}

fn join(base: &Url, reference: &str) -> Option<Url> {
    let mut url = base.join(reference.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    url.set_fragment(None);
    Some(url)
}
