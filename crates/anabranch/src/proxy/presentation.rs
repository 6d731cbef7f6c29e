//! One playlist that is played: carries out what its session in `anabranch-film` decides. A segment is
//! brought as a whole as soon as it is asked for, however fast its player takes it, and then the next ones.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use anabranch_client::{EngineError, ReadRate};
use anabranch_film::adaptation;
use anabranch_film::auto::Lasting;
use anabranch_film::playlist::{GroupId, Hints, Parameters, Playlist, SegmentId, TrackId};
use anabranch_media::playlist::{Place, Segment};
use anabranch_units::{Bytes, Duration, Rate, Ratio, Time};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use url::{Origin, Url};

use super::films::{Films, OpenFilm, Role, Wanted};
use super::ladder::{Adapting, Chosen, Kept, RungOf};
use super::said::Said;
use super::secrets::Secrets;

/// What is larger than this part of the memory is not brought before it is read.
const LARGEST: Ratio = Ratio::new(1, 4);
/// Hosts and kinds of media of which is known how many connections they need: a playlist may name ever new ones.
const MOST_CONTROLS: usize = 64;

/// A playlist that is played.
pub(super) struct Presentation {
    began: Instant,
    read_rate: Arc<ReadRate>,
    state: Mutex<State>,
    /// Something has come, or is not awaited any more.
    changed: Notify,
}

struct State {
    playlist: Playlist,
    groups: HashMap<String, GroupId>,
    tracks: HashMap<TrackId, Listed>,
    /// What is said for each kind of media, and to whom.
    secrets: HashMap<GroupId, (Origin, Secrets)>,
    bringing: HashMap<SegmentId, Bringing>,
    /// What decides about connections, for each kind of media and each host.
    controls: HashMap<(GroupId, Origin), Lasting>,
    /// What is left of the ladder for a player that does not adapt.
    kept: Option<Kept>,
    adapting: Option<Adapting>,
}

struct Listed {
    group: GroupId,
    first: u64,
    places: Vec<Place>,
}

/// Brings a segment, and then keeps it, until this is dropped.
struct Bringing(AbortHandle);

impl Drop for Bringing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Presentation {
    /// Nothing is known of it; `memory` bounds what is fetched ahead.
    pub(super) fn new(memory: Bytes) -> Self {
        let state = State {
            playlist: Playlist::new(Parameters { memory, ..Parameters::default() }),
            groups: HashMap::new(),
            tracks: HashMap::new(),
            secrets: HashMap::new(),
            bringing: HashMap::new(),
            controls: HashMap::new(),
            kept: None,
            adapting: None,
        };
        Self {
            began: Instant::now(),
            read_rate: Arc::default(),
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Time {
        Time::ZERO + Duration::from(self.began.elapsed())
    }

    /// The kind of media of this name.
    pub(super) fn group(&self, name: &str) -> GroupId {
        let mut state = self.lock();
        let new = GroupId(u32::try_from(state.groups.len()).unwrap_or(u32::MAX));
        *state.groups.entry(name.to_owned()).or_insert(new)
    }

    /// One more rung or rendition.
    pub(super) fn new_track(&self) -> TrackId {
        let mut state = self.lock();
        let id = TrackId(u32::try_from(state.tracks.len()).unwrap_or(u32::MAX));
        state.tracks.insert(id, Listed { group: GroupId(0), first: 0, places: Vec::new() });
        id
    }

    /// What a rung or rendition has now.
    pub(super) fn listed(&self, track: TrackId, group: GroupId, first: u64, segments: &[Segment]) {
        let mut state = self.lock();
        let places = segments.iter().map(|segment| segment.place.clone()).collect();
        state.tracks.insert(track, Listed { group, first, places });
        let durations = segments.iter().map(|segment| segment.play_time).collect();
        state.playlist.listed(track, group, first, durations);
    }

    /// What a rung needs, as its playlist tells it.
    pub(super) fn needs(&self, track: TrackId, rate: Rate) {
        self.lock().playlist.needs(track, rate);
    }

    /// What its player is shown of its ladder, where that was chosen here.
    pub(super) fn kept(&self) -> Option<Kept> {
        self.lock().kept.clone()
    }

    /// Its player is shown no more of its ladder than this.
    pub(super) fn keep(&self, kept: Kept) {
        self.lock().kept = Some(kept);
    }

    /// The rung of each segment is chosen here, of at least one.
    pub(super) fn adapts(&self, rungs: Vec<RungOf>) {
        let mut state = self.lock();
        let tracks = rungs.iter().map(|rung| (rung.track, rung.rate)).collect();
        state.playlist.adapts(tracks, adaptation::Parameters::default());
        state.adapting = Some(Adapting::new(rungs));
    }

    /// The playlists of the rungs among which is chosen here, if this track is one.
    pub(super) fn rungs_beside(&self, track: TrackId) -> Vec<Url> {
        self.lock().adapting.as_ref().map_or_else(Vec::new, |adapting| adapting.beside(track))
    }

    /// How long a segment plays.
    pub(super) fn duration(&self, segment: SegmentId) -> Option<Duration> {
        self.lock().playlist.duration(segment)
    }

    /// What the player gets that asks for a segment of a ladder whose rungs are chosen here. `goes_on`: it asks
    /// for the rest of what it got before. One that asks too soon waits.
    pub(super) async fn chosen(&self, asked: SegmentId, goes_on: bool) -> Option<Chosen> {
        loop {
            let changed = self.changed.notified();
            if !self.is_too_soon(asked)? {
                return self.choose(asked, goes_on);
            }
            changed.await;
        }
    }

    /// `None`: its rung is not chosen here.
    fn is_too_soon(&self, asked: SegmentId) -> Option<bool> {
        let now = self.now();
        let mut state = self.lock();
        let is_rung = state.adapting.as_ref()?.has(asked.track);
        is_rung.then(|| state.playlist.is_too_soon(asked.number, now))
    }

    fn choose(&self, asked: SegmentId, goes_on: bool) -> Option<Chosen> {
        let now = self.now();
        let mut state = self.lock();
        let rung = state.playlist.choose(asked.number, goes_on, now)?;
        let segment = SegmentId { track: rung.track, ..asked };
        // A live playlist that is behind the others: what was asked for then.
        let place = state.place(segment)?;
        let told = state.adapting.as_mut().and_then(|adapting| adapting.told(rung, asked.number));
        Some(Chosen { segment, place, told })
    }

    /// How fast its player gets what is there.
    pub(super) fn read_rate(&self) -> Arc<ReadRate> {
        self.read_rate.clone()
    }

    /// Its player asks for a segment, and says so of itself: what is known of it, and whether it was fetched ahead.
    pub(super) fn asked(
        &self,
        segment: SegmentId,
        wanted: &Wanted,
        said: Hints,
    ) -> Option<(anabranch_client::PlaylistSegment, bool)> {
        let now = self.now();
        let mut state = self.lock();
        let group = state.tracks.get(&segment.track)?.group;
        state.secrets.insert(group, (wanted.place.url.origin(), wanted.secrets.clone()));
        let is_ahead = state.playlist.asked(segment, said, now);
        state.tidy();
        let told = state.told(segment, now);
        drop(state);
        self.changed.notify_waiters();
        Some((told?, is_ahead))
    }

    /// The segment that its player asked for is open: brings it, and then goes on.
    pub(super) fn opened(
        self: &Arc<Self>,
        segment: SegmentId,
        wanted: Wanted,
        film: &Arc<OpenFilm>,
        began: Instant,
        films: &Arc<Films>,
    ) {
        let mut state = self.lock();
        if state.playlist.keeps(segment) && !state.bringing.contains_key(&segment) {
            let task =
                bring_and_keep(Arc::downgrade(self), segment, wanted, film.clone(), began, films.clone());
            state.bringing.insert(segment, Bringing(films.spawn(task)));
        }
        drop(state);
        // It may have been there already.
        self.go_on(films);
    }

    /// A segment cannot be had. Nothing is fetched ahead until another one has come.
    pub(super) fn failed(&self, segment: SegmentId) {
        let mut state = self.lock();
        state.playlist.failed(segment);
        state.bringing.remove(&segment);
        drop(state);
        self.changed.notify_waiters();
    }

    fn came(
        self: &Arc<Self>,
        segment: SegmentId,
        brought: Option<Brought>,
        began: Instant,
        films: &Arc<Films>,
    ) {
        let Some(Brought { size }) = brought else { return self.failed(segment) };
        let now = self.now();
        let mut state = self.lock();
        state.playlist.came(segment, size, began.elapsed().into(), now);
        self.read_rate.set_rate(state.playlist.delivery());
        drop(state);
        self.changed.notify_waiters();
        self.go_on(films);
    }

    /// Connections of a segment have nothing to do any more.
    fn ends(self: &Arc<Self>, segment: SegmentId, films: &Arc<Films>) {
        self.lock().playlist.ends(segment);
        self.go_on(films);
    }

    /// Fetches ahead what is next.
    fn go_on(self: &Arc<Self>, films: &Arc<Films>) {
        let now = self.now();
        let mut state = self.lock();
        let Some(segment) = state.playlist.next(now) else { return };
        let Some((wanted, told)) = state.wanted(segment).zip(state.told(segment, now)) else {
            return state.playlist.failed(segment);
        };
        let (own, all) = (Arc::downgrade(self), films.clone());
        let task = async move {
            let began = Instant::now();
            match all.get(&wanted, false, Role::Part(Some(told)), &Said::default()).await {
                Ok(film) => bring_and_keep(own, segment, wanted, film, began, all).await,
                // Its player finds out by itself.
                Err(_) => {
                    if let Some(own) = own.upgrade() {
                        own.failed(segment);
                    }
                }
            }
        };
        state.bringing.insert(segment, Bringing(films.spawn(task)));
    }

    /// Throws away what is of no use any more.
    pub(super) fn tidy(&self) {
        let now = self.now();
        let mut state = self.lock();
        if state.playlist.is_forgotten(now) {
            state.bringing.clear();
        }
        drop(state);
        self.changed.notify_waiters();
    }
}

impl State {
    fn tidy(&mut self) {
        let playlist = &self.playlist;
        self.bringing.retain(|segment, _| playlist.keeps(*segment));
    }

    /// What is told to a segment's film.
    fn told(&mut self, segment: SegmentId, now: Time) -> Option<anabranch_client::PlaylistSegment> {
        let of = (self.tracks.get(&segment.track)?.group, self.place(segment)?.url.origin());
        if self.controls.len() >= MOST_CONTROLS && !self.controls.contains_key(&of) {
            self.controls.clear();
        }
        Some(anabranch_client::PlaylistSegment {
            play_time: self.playlist.comes_within(segment)?,
            ahead: self.playlist.ahead(segment, now),
            most: Parameters::default().most,
            control: Some((self.controls.entry(of).or_default().clone(), now)),
            last_size: self.playlist.last_size(segment.track),
            next_rung: self.playlist.next_rung(segment.track),
        })
    }

    /// Where a segment is.
    fn place(&self, segment: SegmentId) -> Option<Place> {
        let listed = self.tracks.get(&segment.track)?;
        let index = Bytes::new(segment.number.checked_sub(listed.first)?).as_usize();
        listed.places.get(index).cloned()
    }

    /// As the player would ask for it.
    fn wanted(&self, segment: SegmentId) -> Option<Wanted> {
        let listed = self.tracks.get(&segment.track)?;
        let place = self.place(segment)?;
        let (origin, secrets) = self.secrets.get(&listed.group)?;
        // What is said to another host its player knows.
        (*origin == place.url.origin()).then(|| Wanted { place, secrets: secrets.clone() })
    }
}

/// A segment on its way. One that is thrown away before all of it is there is closed at once, unless somebody reads it:
/// nobody else has its connections until then, and they count where there are to be no more.
struct Coming {
    wanted: Wanted,
    film: Arc<OpenFilm>,
    films: Arc<Films>,
    is_there: bool,
}

impl Drop for Coming {
    fn drop(&mut self) {
        if !self.is_there {
            self.films.forget(&self.wanted, &self.film);
        }
    }
}

/// Brings a segment, tells it, and keeps the segment until this is dropped.
async fn bring_and_keep(
    presentation: Weak<Presentation>,
    segment: SegmentId,
    wanted: Wanted,
    film: Arc<OpenFilm>,
    began: Instant,
    films: Arc<Films>,
) {
    let mut coming = Coming { wanted, film, films, is_there: false };
    let Coming { film, films, .. } = &coming;
    let brought = {
        let mut bringing = pin!(bring(film, films.memory()));
        let lends = async {
            film.resource.film().lends().await;
            if let Some(presentation) = presentation.upgrade() {
                presentation.ends(segment, films);
            }
        };
        tokio::select! {
            biased;
            brought = &mut bringing => brought,
            () = lends => bringing.await,
        }
    };
    coming.is_there = true;
    if let Some(presentation) = presentation.upgrade() {
        presentation.came(segment, brought.ok(), began, &coming.films);
    }
    std::future::pending::<()>().await;
    drop(coming);
}

/// A segment that is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Brought {
    pub(super) size: Bytes,
}

/// Reads a film to its end, so that all of it is there.
pub(super) async fn bring(film: &OpenFilm, memory: Bytes) -> Result<Brought, EngineError> {
    let film = film.resource.film();
    let size = film.info().size.map(Bytes::new);
    let mut reader = film.reader(0..u64::MAX);
    while size.is_some_and(|size| size <= memory * LARGEST) && reader.next().await?.is_some() {}
    Ok(Brought { size: Bytes::new(reader.position()) })
}
