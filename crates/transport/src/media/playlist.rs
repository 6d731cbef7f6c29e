//! Playlists: HLS (RFC 8216) and DASH (ISO/IEC 23009-1), rewritten so that what they refer to is fetched through a
//! local endpoint.
//!
//! The endpoint serves the film at `URL` as `PREFIXURL`, for example `http://127.0.0.1:8080/https://host/film.m3u8`.
//! A plain relative reference leads there by itself and stays as it is; every other one is made absolute and gets
//! the prefix.

mod dash;
mod hls;

use std::borrow::Cow;

use url::Url;

/// The longest playlist that is rewritten.
pub const LARGEST_PLAYLIST: usize = 8 << 20;
/// What a playlist may grow to.
const LARGEST_RESULT: usize = 32 << 20;
/// A longer reference stays as it is: no server takes it.
const LONGEST_REFERENCE: usize = 8 << 10;

/// A kind of playlist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaylistKind {
    /// HTTP Live Streaming, RFC 8216: lines of text.
    Hls,
    /// DASH, a media presentation description: XML.
    Dash,
}

/// Why a playlist was not rewritten.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaylistError {
    /// It is longer than [`LARGEST_PLAYLIST`], or would be four times as long after.
    #[error("the playlist is too long: {0} bytes")]
    TooLong(usize),
    /// It is not UTF-8.
    #[error("the playlist is not UTF-8 text")]
    NotText(#[from] std::str::Utf8Error),
    /// It is something else.
    #[error("this is no playlist: {0}")]
    NotPlaylist(&'static str),
    /// It is not well-formed XML.
    #[error("the media presentation description is not well-formed: {0}")]
    Xml(#[from] quick_xml::Error),
}

impl PlaylistKind {
    /// The kind of playlist that a server sends, by its content type, or by the extension of its URL when the server
    /// says nothing or nothing that helps.
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

/// Rewrites the playlist `body` that came from `base` so that every reference in it goes through `prefix`, which
/// ends in a slash.
///
/// # Errors
/// When the playlist is too long, no UTF-8 text, or not of its kind; it is best passed on as it is then.
pub fn rewrite(kind: PlaylistKind, body: &[u8], base: &Url, prefix: &str) -> Result<Vec<u8>, PlaylistError> {
    if body.len() > LARGEST_PLAYLIST {
        return Err(PlaylistError::TooLong(body.len()));
    }
    let text = std::str::from_utf8(body)?;
    match kind {
        PlaylistKind::Hls => hls::rewrite(text, base, prefix).map(String::into_bytes),
        PlaylistKind::Dash => dash::rewrite(text, base, prefix),
    }
}

/// A reference as it must be written to lead through `prefix`; `None` when it stays as it is.
fn through(reference: &str, base: &Url, prefix: &str) -> Option<String> {
    let trimmed = reference.trim();
    if trimmed.len() > LONGEST_REFERENCE || is_plain_relative(trimmed) || trimmed.starts_with(prefix) {
        return None;
    }
    let url = base.join(trimmed).ok()?;
    matches!(url.scheme(), "http" | "https").then(|| format!("{prefix}{url}"))
}

/// Whether a reference leads to the same place below `PREFIXURL` as below `URL`: it has no scheme, does not begin at
/// the root, and does not climb, which could lead above the root of `URL`.
fn is_plain_relative(reference: &str) -> bool {
    let path = reference.split(['?', '#']).next().unwrap_or_default();
    let climbs = path.contains("..") || path.to_ascii_lowercase().contains("%2e");
    let first = path.split('/').next().unwrap_or_default();
    !climbs && !path.starts_with('/') && !path.contains('\\') && !first.contains(':')
}

/// Adds to a result that may not grow without bound.
fn push(result: &mut String, text: &str) -> Result<(), PlaylistError> {
    if result.len() + text.len() > LARGEST_RESULT {
        return Err(PlaylistError::TooLong(result.len() + text.len()));
    }
    result.push_str(text);
    Ok(())
}

/// The reference through `prefix`, or itself.
fn through_or_same<'a>(reference: &'a str, base: &Url, prefix: &str) -> Cow<'a, str> {
    through(reference, base, prefix).map_or(Cow::Borrowed(reference), Cow::Owned)
}
