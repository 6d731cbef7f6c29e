//! The playlists that players follow: which objects are segments of which, so that they are one session.
//!
//! A playlist that passes through tells its segments. A player that asks for one of them plays the session
//! that it belongs to: [`Presentation`]. A ladder's rungs and renditions are one session, where the playlist
//! that names them was read.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_film::playlist::{GroupId, SegmentId, TrackId};
use anabranch_media::playlist::{Listing, Place, PlaylistKind, Segment, listing};
use anabranch_units::Bytes;
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
    /// Playlists of segments.
    tracks: HashMap<Url, Track>,
    parts: Places<Part>,
}

struct Track {
    presentation: Arc<Presentation>,
    id: TrackId,
    group: GroupId,
    /// What it named last.
    named: Vec<Place>,
}

/// What a file, or a part of one, is a part of.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) presentation: Arc<Presentation>,
    /// `None`: it plays no time.
    pub(super) segment: Option<SegmentId>,
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

    /// A playlist has passed through. `memory` bounds what is fetched ahead of its player.
    pub(super) fn read(&self, kind: PlaylistKind, body: &[u8], url: &Url, memory: Bytes) {
        let Some(listing) = listing(kind, body, url) else { return };
        let mut known = self.lock();
        let more = match &listing {
            Listing::Renditions(renditions) => renditions.len(),
            Listing::Segments { segments, initializations, .. } => segments.len() + initializations.len(),
        };
        if known.parts.len() + known.tracks.len() + known.presentations.len() + more > MOST_KNOWN {
            *known = Known::default();
        }
        match listing {
            Listing::Renditions(renditions) => {
                let presentation = known.presentation(url, memory);
                for rendition in renditions {
                    let group = presentation.group(&rendition.group);
                    known.track(&rendition.url, &presentation, group);
                }
            }
            Listing::Segments { first, segments, initializations } => {
                if !known.tracks.contains_key(&plain(url)) {
                    let presentation = known.presentation(url, memory);
                    let group = presentation.group("");
                    known.track(url, &presentation, group);
                }
                known.segments(url, first, &segments, initializations);
            }
        }
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

    fn track(&mut self, url: &Url, presentation: &Arc<Presentation>, group: GroupId) {
        self.tracks.entry(plain(url)).or_insert_with(|| Track {
            presentation: presentation.clone(),
            id: presentation.new_track(),
            group,
            named: Vec::new(),
        });
    }

    /// What the playlist at `url` names now.
    fn segments(&mut self, url: &Url, first: u64, segments: &[Segment], initializations: Vec<Place>) {
        let Some(track) = self.tracks.get_mut(&plain(url)) else { return };
        let presentation = track.presentation.clone();
        for old in std::mem::take(&mut track.named) {
            self.parts.remove(&old);
        }
        for place in initializations {
            self.parts.insert(&place, Part { presentation: presentation.clone(), segment: None });
            track.named.push(place);
        }
        for (number, segment) in (first..).zip(segments) {
            let id = Some(SegmentId { track: track.id, number });
            self.parts.insert(&segment.place, Part { presentation: presentation.clone(), segment: id });
            track.named.push(segment.place.clone());
        }
        presentation.listed(track.id, track.group, first, segments);
    }
}

/// A URL as it is compared: without what no server is told of it.
fn plain(url: &Url) -> Url {
    let mut plain = url.clone();
    plain.set_fragment(None);
    let _ = (plain.set_username(""), plain.set_password(None));
    plain
}
