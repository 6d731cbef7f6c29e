//! Playlists for players that do not adapt: which rung they are shown, and how that is found.
//!
//! Of HLS whose rungs are interchangeable a player is shown the highest one. Its segments stand for those of the same
//! number in all of them: which one it gets is chosen for each. Of anything else one rung is chosen for the whole
//! film, by how fast the first segment of the lowest comes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_client::PlaylistSegment;
use anabranch_film::adaptation::{self, Adaptation, Choice, Rule};
use anabranch_media::playlist::{
    Place, PlaylistKind, RungSet, Variant, are_interchangeable, rung_sets, variants, with_rungs, with_variant,
};
use anabranch_units::Rate;
use bytes::Bytes;
use http::{HeaderMap, header};
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::Url;

use super::films::{Films, Role, Wanted};
use super::ladder::{Kept, RungOf};
use super::playlists::{Playlists, TrackKey};
use super::presentation::bring;
use super::reading::{read_index, read_whole};
use super::said::Said;
use super::secrets::Secrets;
use crate::arguments::RungChooser;
use crate::report::RungTold;

/// What the names of players begin with that take the first or the highest rung, whatever comes of it.
const DO_NOT_ADAPT: [&str; 2] = ["Lavf/", "libmpv"];
/// What takes longer holds no rung but the lowest.
const LONGEST_MEASURE: Duration = Duration::from_secs(10);
/// Of sound and the like the highest rung is taken that needs at most this part of what the paths give.
const FOR_SOUND: anabranch_units::Ratio = anabranch_units::Ratio::new(1, 10);

/// Whether rungs are chosen here for whoever says this.
pub(super) fn is_chosen_here(chooser: RungChooser, headers: &HeaderMap) -> bool {
    let name = || headers.get(header::USER_AGENT).and_then(|name| name.to_str().ok()).unwrap_or_default();
    match chooser {
        RungChooser::Player => false,
        RungChooser::Here => true,
        RungChooser::Auto => DO_NOT_ADAPT.iter().any(|begin| name().starts_with(begin)),
    }
}

/// Finds rungs with what the proxy has.
pub(super) struct Rungs<'a> {
    pub(super) films: &'a Arc<Films>,
    pub(super) playlists: &'a Playlists,
}

impl Rungs<'_> {
    /// The playlist that was read from `url`, with one rung of each ladder.
    pub(super) async fn with_one(&self, kind: PlaylistKind, body: &Bytes, url: &Url) -> Bytes {
        let shown = match kind {
            PlaylistKind::Hls => self.one_variant(body, url).await,
            PlaylistKind::Dash => self.one_of_each_set(body, url).await,
        };
        shown.unwrap_or_else(|| body.clone())
    }

    async fn one_variant(&self, body: &Bytes, url: &Url) -> Option<Bytes> {
        let variants = variants(body, url);
        if variants.len() < 2 {
            return None;
        }
        let presentation = self.playlists.presentation(url)?;
        if let Some(Kept::Variant(kept)) = presentation.kept() {
            return with_variant(body, url, &kept).ok().map(Bytes::from);
        }
        let lists = playlists_at(self.films, variants.iter().map(|variant| variant.url.clone())).await;
        let known: Vec<(&Variant, Bytes)> =
            variants.iter().zip(lists).filter_map(|(variant, list)| Some((variant, list?))).collect();
        let (highest, highest_list) = known.last()?;
        let mut rungs = Vec::new();
        for (variant, list) in &known {
            self.playlists.read(PlaylistKind::Hls, list, &variant.url, self.films.memory());
            if are_interchangeable((highest_list, &highest.url), (list, &variant.url))
                && let Some((_, track)) = self.playlists.track(&(variant.url.clone(), String::new()))
            {
                let Variant { url, rate, height } = (*variant).clone();
                rungs.push(RungOf { track, url, rate, height });
            }
        }
        let kept = if rungs.len() > 1 {
            presentation.adapts(rungs);
            highest.url.clone()
        } else {
            let rates: Vec<Rate> = known.iter().map(|(variant, _)| variant.rate).collect();
            let (lowest, _) = known.first()?;
            let (choice, estimate) = self.chosen_once(&(lowest.url.clone(), String::new()), &rates).await;
            let (variant, _) = known.get(choice.rung)?;
            self.films.reporter().rung(&RungTold {
                place: choice.rung,
                count: known.len(),
                rate: variant.rate,
                height: variant.height,
                segment: None,
                buffer: None,
                estimate,
                why: choice.why,
            });
            variant.url.clone()
        };
        presentation.keep(Kept::Variant(kept.clone()));
        with_variant(body, url, &kept).ok().map(Bytes::from)
    }

    async fn one_of_each_set(&self, body: &Bytes, url: &Url) -> Option<Bytes> {
        let sets = rung_sets(body);
        if sets.iter().all(|set| set.rungs.len() < 2) {
            return None;
        }
        let presentation = self.playlists.presentation(url)?;
        let kept = match presentation.kept() {
            Some(Kept::Rungs(kept)) if kept.len() == sets.len() => kept,
            _ => {
                let kept = self.best_of_sets(&sets, url).await;
                presentation.keep(Kept::Rungs(kept.clone()));
                kept
            }
        };
        with_rungs(body, &kept).ok().map(Bytes::from)
    }

    /// The place of the rung of each set that is shown.
    async fn best_of_sets(&self, sets: &[RungSet], url: &Url) -> Vec<usize> {
        let by_rate = |set: &RungSet| {
            let mut places: Vec<usize> = (0..set.rungs.len()).collect();
            places.sort_by_key(|place| set.rungs.get(*place).map(|rung| rung.rate));
            places
        };
        let rates = |set: &RungSet| {
            by_rate(set).iter().filter_map(|place| Some(set.rungs.get(*place)?.rate)).collect::<Vec<_>>()
        };
        let is_picture = |set: &&RungSet| set.is_picture && set.rungs.len() > 1;
        let main = sets.iter().find(is_picture).or_else(|| sets.iter().find(|set| set.rungs.len() > 1));
        let lowest = main.and_then(|set| set.rungs.get(*by_rate(set).first()?));
        let Some((main, lowest)) = main.zip(lowest) else { return vec![0; sets.len()] };
        let (choice, estimate) = self.chosen_once(&(url.clone(), lowest.name.clone()), &rates(main)).await;
        let is_like_main = |set: &RungSet| set.is_picture == main.is_picture && rates(set) == rates(main);
        let kept = sets.iter().map(|set| {
            let most = estimate.map_or(Rate::ZERO, |estimate| estimate * FOR_SOUND);
            let rung = match is_like_main(set) {
                true => choice.rung,
                false => rates(set).iter().rposition(|rate| *rate <= most).unwrap_or(0),
            };
            by_rate(set).get(rung).copied().unwrap_or(0)
        });
        let kept: Vec<usize> = kept.collect();
        let chosen = by_rate(main).get(choice.rung).and_then(|place| main.rungs.get(*place));
        if let Some(chosen) = chosen {
            self.films.reporter().rung(&RungTold {
                place: choice.rung,
                count: main.rungs.len(),
                rate: chosen.rate,
                height: chosen.height,
                segment: None,
                buffer: None,
                estimate,
                why: choice.why,
            });
        }
        kept
    }

    /// Which of these rates is played for the whole film, by how fast the first segment of a track comes, and what
    /// that says of the paths.
    async fn chosen_once(&self, lowest: &TrackKey, rates: &[Rate]) -> (Choice, Option<Rate>) {
        let parameters = adaptation::Parameters { rule: Rule::Throughput, ..Default::default() };
        let mut adaptation = Adaptation::new(parameters);
        if let Ok(Some((size, took))) = timeout(LONGEST_MEASURE, self.first_segment(lowest)).await {
            adaptation.came(size, took.into());
        }
        (adaptation.choose(rates, anabranch_units::Duration::ZERO), adaptation.estimate())
    }

    /// Gets the first segment of a track: its size, and how long that took.
    async fn first_segment(&self, track: &TrackKey) -> Option<(anabranch_units::Bytes, Duration)> {
        let get = async |place: Place, told| {
            let wanted = Wanted { place, secrets: Secrets::default() };
            self.films.get(&wanted, true, Role::Part(told), &Said::default()).await.ok()
        };
        if let Some(place) = self.playlists.index_of(track) {
            let film = get(place.clone(), None).await?;
            read_index(self.playlists, track, &place, &film.resource).await;
        }
        let (place, play_time) = self.playlists.first_segment(track)?;
        let told = PlaylistSegment::alone(play_time, anabranch_units::Duration::ZERO);
        let began = Instant::now();
        let film = get(place, Some(told)).await?;
        let brought = bring(&film, self.films.memory()).await.ok()?;
        Some((brought.size, began.elapsed()))
    }

    /// The playlist of a rung has come: those of the others among which is chosen have to be as new, where it is
    /// live.
    pub(super) async fn refresh(&self, body: &[u8], url: &Url) {
        let ended = std::str::from_utf8(body).is_ok_and(|text| text.contains("#EXT-X-ENDLIST"));
        let Some((presentation, track)) = self.playlists.track(&(url.clone(), String::new())) else { return };
        let others = presentation.rungs_beside(track);
        if ended || others.is_empty() {
            return;
        }
        let lists = playlists_at(self.films, others.iter().cloned()).await;
        for (url, list) in others.iter().zip(lists) {
            if let Some(list) = list {
                self.playlists.read(PlaylistKind::Hls, &list, url, self.films.memory());
            }
        }
    }
}

/// The playlists at these URLs, got at the same time. One that is elsewhere, or cannot be had, is none.
async fn playlists_at(films: &Arc<Films>, urls: impl Iterator<Item = Url>) -> Vec<Option<Bytes>> {
    let mut tasks = JoinSet::new();
    let mut found = Vec::new();
    for (index, url) in urls.enumerate() {
        found.push(None);
        let films = films.clone();
        tasks.spawn(async move { (index, playlist_at(&films, url).await) });
    }
    while let Some(done) = tasks.join_next().await {
        if let Ok((index, list)) = done
            && let Some(place) = found.get_mut(index)
        {
            *place = list;
        }
    }
    found
}

async fn playlist_at(films: &Films, url: Url) -> Option<Bytes> {
    let wanted = Wanted { place: Place { url: url.clone(), bytes: None }, secrets: Secrets::default() };
    let film = films.get(&wanted, true, Role::Part(None), &Said::default()).await.ok()?;
    films.forget(&wanted, &film);
    // Its references would count from there.
    let is_here = film.resource.film().info().location == url;
    if is_here { read_whole(&film.resource).await.ok().flatten() } else { None }
}
