//! Playlists: HLS (RFC 8216) and DASH (ISO/IEC 23009-1), rewritten so that what they refer to is fetched
//! through a local endpoint.
//!
//! The endpoint serves the film at `URL` as `PREFIXURL`, for example
//! `http://127.0.0.1:8080/https://host/film.m3u8`. A plain relative reference leads there by itself and stays
//! as it is; every other one is made absolute and gets the prefix that its [`Route`] says.

mod dash;
mod dash_ladder;
mod dash_listing;
mod hls;
mod hls_ladder;
mod hls_listing;
mod index;
mod ladder;
mod listed;
mod listing;
mod mpd;
mod route;
mod template;

use url::Url;

pub use dash_ladder::{rung_sets, with_rungs};
pub use hls_ladder::{are_interchangeable, variants, with_variant};
pub use index::{LARGEST_INDEX, segments_of_index};
pub use ladder::{RungSet, SetRung, Variant};
pub use listed::{Listing, Place, Rendition, Segment, Track};
pub use listing::listing;
pub use route::{LARGEST_PLAYLIST, PlaylistError, Route};

/// A kind of playlist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaylistKind {
    /// HTTP Live Streaming, RFC 8216: lines of text.
    Hls,
    /// DASH, a media presentation description: XML.
    Dash,
}

impl PlaylistKind {
    /// The kind of playlist that a server sends, by its content type, or by the extension of its URL when the
    /// server says nothing or nothing that helps.
    pub fn detect(content_type: Option<&str>, url: &Url) -> Option<Self> {
        const VAGUE: [&str; 6] = [
            "",
            "text/plain",
            "application/octet-stream",
            "binary/octet-stream",
            "application/xml",
            "text/xml",
        ];
        let essence = content_type.and_then(|name| name.split(';').next()).unwrap_or_default().trim();
        if !VAGUE.iter().any(|vague| essence.eq_ignore_ascii_case(vague)) {
            return Self::of_type(essence);
        }
        match url.path().rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "m3u8" => Some(Self::Hls),
            "mpd" => Some(Self::Dash),
            _ => None,
        }
    }

    /// The kind of playlist of a media type without parameters.
    pub(super) fn of_type(essence: &str) -> Option<Self> {
        const HLS: [&str; 5] = [
            "application/vnd.apple.mpegurl",
            "application/x-mpegurl",
            "application/mpegurl",
            "audio/mpegurl",
            "audio/x-mpegurl",
        ];
        const DASH: [&str; 2] = ["application/dash+xml", "video/vnd.mpeg.dash.mpd"];
        let is = |name: &&str| essence.eq_ignore_ascii_case(name);
        if HLS.iter().any(is) {
            Some(Self::Hls)
        } else if DASH.iter().any(is) {
            Some(Self::Dash)
        } else {
            None
        }
    }
}

/// Rewrites the playlist `body` that came from `base` so that every reference in it goes by `route`.
///
/// # Errors
/// When the playlist is too long, no UTF-8 text, or not of its kind; it is best passed on as it is then.
pub fn rewrite<R: Route + ?Sized>(
    kind: PlaylistKind,
    body: &[u8],
    base: &Url,
    route: &R,
) -> Result<Vec<u8>, PlaylistError> {
    if body.len() > LARGEST_PLAYLIST {
        return Err(PlaylistError::TooLong(body.len()));
    }
    let text = std::str::from_utf8(body)?;
    match kind {
        PlaylistKind::Hls => hls::rewrite(text, base, route).map(String::into_bytes),
        PlaylistKind::Dash => dash::rewrite(text, base, route),
    }
}
