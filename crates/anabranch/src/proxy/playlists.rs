//! The playlists that players follow: which files, and which parts of files, are segments of which, so that
//! they are one session.
//!
//! A playlist that passes through tells its segments. A player that asks for one of them plays the session
//! that it belongs to: [`Presentation`]. A ladder's rungs and renditions are one session, where the playlist
//! that names them was read.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_film::playlist::{GroupId, Hints, SegmentId, TrackId};
use anabranch_media::playlist::{self, Listing, Place, PlaylistKind, Segment, listing, segments_of_index};
use anabranch_protocol::cmcd::Cmcd;
use anabranch_units::{Bytes, Duration, Rate};
use url::Url;

use super::places::Places;
use super::presentation::Presentation;

/// So many places are known at most. When there are more, all are forgotten: a player asks for its playlist
/// again or gets its segments as any other objects.
const MOST_KNOWN: usize = 200_000;

/// What is known of playlists.
#[derive(Default)]
pub(super) struct Playlists(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// By the URL of the playlist that began them.
    presentations: HashMap<Url, Arc<Presentation>>,
    tracks: HashMap<TrackKey, Track>,
    parts: Places<Part>,
}

/// The URL of a playlist, and what it calls the track.
pub(super) type TrackKey = (Url, String);

struct Track {
    presentation: Arc<Presentation>,
    id: TrackId,
    group: GroupId,
    /// What it named last: its segments,
    segments: Vec<Place>,
    /// and what goes before them.
    heads: Vec<Place>,
    /// The number of the segment behind the last one.
    end: u64,
}

/// What a file, or a part of one, is a part of.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) presentation: Arc<Presentation>,
    pub(super) what: What,
}

/// What it is there.
#[derive(Clone)]
pub(super) enum What {
    Segment(SegmentId),
    /// It plays no time.
    Initialization,
    /// It lists the segments of a track.
    Index(TrackKey),
}

impl Part {
    /// Whose segment it is, if it is one.
    pub(super) fn segment(&self) -> Option<(&Arc<Presentation>, SegmentId)> {
        match self.what {
            What::Segment(segment) => Some((&self.presentation, segment)),
            What::Initialization | What::Index(_) => None,
        }
    }
}

impl Playlists {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What these bytes of a file (`None`: all of it) are part of, if that is known, and which bytes those
    /// are all together.
    pub(super) fn part(&self, url: &Url, asked: Option<Range<u64>>) -> Option<(Part, Option<Range<u64>>)> {
        let known = self.lock();
        let (place, part) = known.parts.find(&plain(url), asked)?;
        Some((part.clone(), place.bytes))
    }

    /// What a player that asks for something at `url` says of its presentation.
    pub(super) fn hints(&self, cmcd: &Cmcd, url: &Url, presentation: &Arc<Presentation>) -> Hints {
        let next = || {
            let url = match &cmcd.next {
                Some(next) => url.join(next).ok()?,
                None => url.clone(),
            };
            let (part, _) = self.part(&url, cmcd.next_bytes.clone())?;
            part.segment().filter(|(its, _)| Arc::ptr_eq(its, presentation)).map(|(_, segment)| segment)
        };
        let tells_next = cmcd.next.is_some() || cmcd.next_bytes.is_some();
        Hints { buffer: cmcd.to_play(), next: if tells_next { next() } else { None }, top: cmcd.top }
    }

    /// A playlist has passed through. `memory` bounds what is fetched ahead of its player.
    pub(super) fn read(&self, kind: PlaylistKind, body: &[u8], url: &Url, memory: Bytes) {
        let Some(listing) = listing(kind, body, url) else { return };
        let mut known = self.lock();
        let more = match &listing {
            Listing::Renditions(renditions) => renditions.len(),
            Listing::Tracks(tracks) => {
                tracks.iter().map(|track| 2 + track.segments.len() + track.initializations.len()).sum()
            }
        };
        known.make_room(more);
        match listing {
            Listing::Renditions(renditions) => {
                let presentation = known.presentation(url, memory);
                for rendition in renditions {
                    let group = presentation.group(&rendition.group);
                    known.track((plain(&rendition.url), String::new()), &presentation, group, rendition.rate);
                }
            }
            Listing::Tracks(tracks) => {
                for track in tracks {
                    let key = (plain(url), track.name.clone());
                    if !known.tracks.contains_key(&key) {
                        let presentation = known.presentation(url, memory);
                        let group = presentation.group(&track.group);
                        known.track(key.clone(), &presentation, group, track.rate);
                    }
                    known.listed(&key, track);
                }
            }
        }
    }

    /// An index has come that lists the segments of a track.
    pub(super) fn read_index(&self, key: &TrackKey, index: &[u8], place: &Place) {
        let Some(segments) = segments_of_index(index, place) else { return };
        let mut known = self.lock();
        known.make_room(segments.len());
        known.segments(key, Some(0), &segments);
    }

    /// What is played from the playlist at a URL.
    pub(super) fn presentation(&self, url: &Url) -> Option<Arc<Presentation>> {
        self.lock().presentations.get(&plain(url)).cloned()
    }

    /// Whose track it is.
    pub(super) fn track(&self, (url, name): &TrackKey) -> Option<(Arc<Presentation>, TrackId)> {
        let known = self.lock();
        let track = known.tracks.get(&(plain(url), name.clone()))?;
        Some((track.presentation.clone(), track.id))
    }

    /// The first segment of a track, and how long it plays.
    pub(super) fn first_segment(&self, (url, name): &TrackKey) -> Option<(Place, Duration)> {
        let known = self.lock();
        let track = known.tracks.get(&(plain(url), name.clone()))?;
        let number = track.end.checked_sub(Bytes::of(track.segments.len()).get())?;
        let play_time = track.presentation.duration(SegmentId { track: track.id, number })?;
        Some((track.segments.first()?.clone(), play_time))
    }

    /// Where the segments of a track are listed, if not in its playlist.
    pub(super) fn index_of(&self, (url, name): &TrackKey) -> Option<Place> {
        let known = self.lock();
        let track = known.tracks.get(&(plain(url), name.clone()))?;
        let is_index = |place: &&Place| {
            let found = known.parts.find(&place.url, place.bytes.clone());
            found.is_some_and(|(_, part)| matches!(part.what, What::Index(_)))
        };
        track.heads.iter().find(is_index).cloned()
    }

    /// Throws away what nobody plays.
    pub(super) fn sweep(&self) {
        self.lock().presentations.values().for_each(|presentation| presentation.tidy());
    }
}

impl Known {
    fn presentation(&mut self, url: &Url, memory: Bytes) -> Arc<Presentation> {
        let made = || Arc::new(Presentation::new(memory));
        self.presentations.entry(plain(url)).or_insert_with(made).clone()
    }

    fn track(&mut self, key: TrackKey, presentation: &Arc<Presentation>, group: GroupId, rate: Rate) {
        let track = self.tracks.entry(key).or_insert_with(|| {
            let id = presentation.new_track();
            // Its player may go there, though its segments are not known.
            presentation.listed(id, group, 0, &[]);
            let presentation = presentation.clone();
            Track { presentation, id, group, segments: Vec::new(), heads: Vec::new(), end: 0 }
        });
        track.presentation.needs(track.id, rate);
    }

    /// What a track has now.
    fn listed(&mut self, key: &TrackKey, listed: playlist::Track) {
        let playlist::Track { first, segments, initializations, index, .. } = listed;
        if index.is_none() {
            self.segments(key, first, &segments);
        }
        let Some(track) = self.tracks.get_mut(key) else { return };
        for old in std::mem::take(&mut track.heads) {
            self.parts.remove(&old);
        }
        let index = index.map(|place| (place, What::Index(key.clone())));
        for (place, what) in
            initializations.into_iter().map(|place| (place, What::Initialization)).chain(index)
        {
            self.parts.insert(&place, Part { presentation: track.presentation.clone(), what });
            track.heads.push(place);
        }
    }

    /// The segments that a track has now.
    fn segments(&mut self, key: &TrackKey, first: Option<u64>, segments: &[Segment]) {
        let Some(track) = self.tracks.get_mut(key) else { return };
        // One that it had before keeps its number; what is all new comes behind.
        let known = |(index, segment): (u64, &Segment)| {
            let (_, part) = self.parts.find(&segment.place.url, segment.place.bytes.clone())?;
            let (_, known) = part.segment().filter(|(_, known)| known.track == track.id)?;
            known.number.checked_sub(index)
        };
        let first = first.or_else(|| (0..).zip(segments).find_map(known)).unwrap_or(track.end);
        for old in std::mem::take(&mut track.segments) {
            self.parts.remove(&old);
        }
        track.end = first.saturating_add(Bytes::of(segments.len()).get());
        for (number, segment) in (first..).zip(segments) {
            let what = What::Segment(SegmentId { track: track.id, number });
            self.parts.insert(&segment.place, Part { presentation: track.presentation.clone(), what });
            track.segments.push(segment.place.clone());
        }
        track.presentation.listed(track.id, track.group, first, segments);
    }

    /// Forgets everything where so much more would be too much.
    fn make_room(&mut self, more: usize) {
        if self.parts.len() + self.tracks.len() + self.presentations.len() + more > MOST_KNOWN {
            *self = Self::default();
        }
    }
}

/// A URL as it is compared: without what no server is told of it.
fn plain(url: &Url) -> Url {
    let mut plain = url.clone();
    plain.set_fragment(None);
    let _ = (plain.set_username(""), plain.set_password(None));
    plain
}

#[cfg(test)]
mod tests;
