//! What is read here of what passes through: playlists, and indexes of segments.

use anabranch_client::EngineError;
use anabranch_media::playlist::{LARGEST_INDEX, LARGEST_PLAYLIST, Place};
use bytes::{Bytes, BytesMut};

use super::playlists::{Playlists, TrackKey};
use crate::endpoint::FilmResource;

/// All of a playlist, or of an index; `None` when it is too long to be one.
pub(super) async fn read_whole(film: &FilmResource) -> Result<Option<Bytes>, EngineError> {
    let mut reader = film.film().reader(0..u64::MAX);
    let mut content = BytesMut::new();
    while let Some(piece) = reader.next().await? {
        content.extend_from_slice(&piece);
        if content.len() > LARGEST_PLAYLIST {
            return Ok(None);
        }
    }
    Ok(Some(content.freeze()))
}

/// What an index lists is known before its player knows it.
pub(super) async fn read_index(playlists: &Playlists, track: &TrackKey, place: &Place, film: &FilmResource) {
    if film.film().info().size.is_some_and(|size| size <= LARGEST_INDEX)
        // Its player finds out by itself.
        && let Ok(Some(index)) = read_whole(film).await
    {
        playlists.read_index(track, &index, place);
    }
}
