//! What a playlist of HLS lists.

use std::ops::Range;

use anabranch_units::Rate;
use m3u8_rs::{ByteRange, MasterPlaylist, MediaPlaylist, Playlist, VariantStream};
use url::Url;

use super::listed::{Listing, MOST_LISTED, Place, Rendition, Segment, Track, join, play_time};

pub(super) fn listing(body: &[u8], base: &Url) -> Option<Listing> {
    match m3u8_rs::parse_playlist_res(body).ok()? {
        Playlist::MasterPlaylist(master) => Some(Listing::Renditions(renditions(&master, base))),
        Playlist::MediaPlaylist(media) => Some(Listing::Tracks(vec![track(&media, base)?])),
    }
}

fn renditions(master: &MasterPlaylist, base: &Url) -> Vec<Rendition> {
    let variants = master.variants.iter().filter(|variant| !variant.is_i_frame);
    let variants = variants.map(|variant| (Some(&variant.uri), String::new(), mean_rate(variant)));
    let others = master.alternatives.iter();
    let others = others.map(|other| (other.uri.as_ref(), other.media_type.to_string(), Rate::ZERO));
    let found = variants.chain(others).filter_map(|(uri, group, rate)| {
        let url = join(base, uri?)?;
        Some(Rendition { url, group, rate })
    });
    found.take(MOST_LISTED).collect()
}

/// The mean rate of a variant where it is told, or else its highest.
pub(super) fn mean_rate(variant: &VariantStream) -> Rate {
    Rate::from_bps(variant.average_bandwidth.unwrap_or(variant.bandwidth))
}

fn track(media: &MediaPlaylist, base: &Url) -> Option<Track> {
    let mut track = Track { first: Some(media.media_sequence), ..Track::default() };
    for listed in media.segments.iter().take(MOST_LISTED) {
        if let Some(map) = &listed.map
            && let Some(url) = join(base, &map.uri)
            && let Ok(bytes) = map.byte_range.as_ref().map(|range| part(range, 0)).transpose()
            && track.initializations.last().is_none_or(|last| last.url != url || last.bytes != bytes)
        {
            track.initializations.push(Place { url, bytes });
        }
        let url = join(base, &listed.uri)?;
        // Without an offset a part follows the one before it (RFC 8216, section 4.3.2.2).
        let before = track.segments.last().map(|segment| &segment.place).filter(|place| place.url == url);
        let follows = before.and_then(|place| Some(place.bytes.as_ref()?.end)).unwrap_or(0);
        let bytes = listed.byte_range.as_ref().map(|range| part(range, follows)).transpose().ok()?;
        let play_time = play_time(f64::from(listed.duration));
        track.segments.push(Segment { place: Place { url, bytes }, play_time });
    }
    Some(track)
}

/// Nobody can ask for so many bytes, or for those.
struct Impossible;

/// The part of a file that a range is.
fn part(range: &ByteRange, follows: u64) -> Result<Range<u64>, Impossible> {
    let start = range.offset.unwrap_or(follows);
    let end = start.checked_add(range.length).ok_or(Impossible)?;
    (start < end).then_some(start..end).ok_or(Impossible)
}
