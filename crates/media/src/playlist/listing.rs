//! What a playlist lists: which segments follow each other, and how long each plays.

use url::Url;

use super::PlaylistKind;
use super::listed::Listing;
use super::route::LARGEST_PLAYLIST;
use super::{dash_listing, hls_listing};

/// What the playlist `body` lists that came from `base`; `None`: nothing that could be read here.
pub fn listing(kind: PlaylistKind, body: &[u8], base: &Url) -> Option<Listing> {
    if body.len() > LARGEST_PLAYLIST {
        return None;
    }
    match kind {
        PlaylistKind::Hls => hls_listing::listing(body, base),
        PlaylistKind::Dash => dash_listing::listing(std::str::from_utf8(body).ok()?, base),
    }
}
