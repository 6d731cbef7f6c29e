//! What a description of DASH lists: for each representation the segments that its template, its list or its
//! index tells, over all periods (ISO/IEC 23009-1, section 5.3.9).
//!
//! A live one is listed where its segments have a timeline. Where only their length is told, which are there
//! is a matter of the clock.

use std::collections::HashMap;

use anabranch_units::{Bytes, Rate};
use url::Url;

use super::listed::{Listing, MOST_LISTED, Place, Segment, Track, join, play_time};
use super::mpd::{
    AdaptationSet, Description, Named, Period, Representation, SegmentList, SegmentTemplate, Text, Timeline,
    bytes, number, seconds,
};
use super::template::{Values, filled};

/// Of a live presentation the last segments of each representation are listed.
const MOST_LIVE: usize = 300;
/// What is left of a period that is shorter is no segment, in seconds: it comes from rounding.
const NOTHING: f64 = 0.001;

pub(super) fn listing(text: &str, base: &Url) -> Option<Listing> {
    let description: Description = quick_xml::de::from_str(text).ok()?;
    let is_live = description.kind.as_deref() == Some("dynamic");
    let base = base_of(&description.bases, base);
    let mut building = Building { is_live, ..Building::default() };
    for (index, period) in description.inside.iter().enumerate() {
        building.period(index, period, length(&description, index), &base);
    }
    Some(Listing::Tracks(building.tracks)).filter(|listing| *listing != Listing::Tracks(Vec::new()))
}

/// How long a period lasts in seconds, as far as that is told (section 5.3.2.1).
fn length(description: &Description, index: usize) -> Option<f64> {
    let period = description.inside.get(index)?;
    let start = || match (seconds(period.start.as_ref()), index) {
        (None, 0) => Some(0.0),
        (start, _) => start,
    };
    let end = || match description.inside.get(index + 1) {
        Some(next) => seconds(next.start.as_ref()),
        None => seconds(description.presentation_duration.as_ref()),
    };
    seconds(period.duration.as_ref()).or_else(|| Some(end()? - start()?))
}

/// What the set at this place of a period is called.
pub(super) fn group_of(set: &AdaptationSet, place: usize) -> String {
    set.id.clone().unwrap_or_else(|| format!("#{place}"))
}

/// What the representation at this place of a set is called.
pub(super) fn name_of(group: &str, representation: &Representation, place: usize) -> String {
    let id = representation.id.clone().unwrap_or_else(|| format!("#{place}"));
    format!("{group}/{id}")
}

/// The rate that a representation needs; zero where it is not told.
pub(super) fn rate(representation: &Representation) -> Rate {
    Rate::from_bps(number(representation.bandwidth.as_ref()).unwrap_or(0))
}

#[derive(Default)]
struct Building {
    is_live: bool,
    tracks: Vec<Track>,
    by_name: HashMap<String, usize>,
    /// By group: the number of the first segment of this period.
    numbers: HashMap<String, u64>,
    listed: usize,
}

/// What a representation has in a period.
struct Found {
    segments: Vec<Segment>,
    initialization: Option<Place>,
    index: Option<Place>,
}

impl Building {
    fn period(&mut self, index: usize, period: &Period, length: Option<f64>, base: &Url) {
        let base = base_of(&period.bases, base);
        for (place, set) in period.inside.iter().enumerate() {
            let group = group_of(set, place);
            let number = self.numbers.get(&group).copied().unwrap_or(0);
            let mut most = 0;
            for (rung, representation) in set.inside.iter().enumerate() {
                let levels = Levels { period, set, representation };
                let left = MOST_LISTED.saturating_sub(self.listed);
                let Some(mut found) = levels.found(&base, length, self.is_live, left) else { continue };
                if self.is_live {
                    let gone = found.segments.len().saturating_sub(MOST_LIVE);
                    found.segments.drain(..gone);
                }
                self.listed += found.segments.len();
                most = most.max(found.segments.len());
                let name = name_of(&group, representation, rung);
                self.add(name, (&group, rate(representation)), number, index, found);
            }
            self.numbers.insert(group, number.saturating_add(Bytes::of(most).get()));
        }
    }

    /// Goes on with a track, if it had a segment wherever its group had one; begins another one else.
    fn add(&mut self, name: String, of: (&str, Rate), number: u64, period: usize, found: Found) {
        let (group, rate) = of;
        let Found { segments, initialization, index } = found;
        let known = self.by_name.get(&name).and_then(|known| self.tracks.get_mut(*known));
        let goes_on = |track: &&mut Track| {
            let count = Bytes::of(track.segments.len()).get();
            index.is_none() && track.first.is_none_or(|first| first.saturating_add(count) == number)
        };
        if let Some(track) = known.filter(goes_on) {
            track.segments.extend(segments);
            track.initializations.extend(initialization);
            return;
        }
        let is_new = !self.by_name.contains_key(&name);
        let name = if is_new { name } else { format!("{name}@{period}") };
        self.by_name.insert(name.clone(), self.tracks.len());
        self.tracks.push(Track {
            name,
            group: group.to_owned(),
            rate,
            // What is live moves on, and tells no number that is kept.
            first: (!self.is_live).then_some(number),
            segments,
            initializations: initialization.into_iter().collect(),
            index,
        });
    }
}

/// A representation, and what it is in.
struct Levels<'a> {
    period: &'a Period,
    set: &'a AdaptationSet,
    representation: &'a Representation,
}

impl Levels<'_> {
    /// At most so many segments of it; `None`: it cannot be told which.
    fn found(&self, base: &Url, length: Option<f64>, is_live: bool, most: usize) -> Option<Found> {
        let Self { period, set, representation } = self;
        let base = base_of(&representation.bases, &base_of(&set.bases, base));
        let templates = [&representation.template, &set.template, &period.template];
        let list = [&representation.list, &set.list, &period.list].into_iter().flatten().next();
        let index = [&representation.base, &set.base, &period.base].into_iter().flatten().next();
        if templates.iter().any(|template| template.is_some()) {
            self.by_template(templates, &base, length, is_live, most)
        } else if let Some(list) = list {
            by_list(list, &base, most)
        } else {
            let index = index?;
            let index_place = Place { url: base.clone(), bytes: Some(bytes(index.index.as_ref()?)?) };
            let initialization = index.initialization.as_ref().and_then(|named| place(named, &base));
            Some(Found { segments: Vec::new(), initialization, index: Some(index_place) })
        }
    }

    /// Of what a template does not say, the one around it does.
    fn by_template(
        &self,
        templates: [&Option<SegmentTemplate>; 3],
        base: &Url,
        length: Option<f64>,
        is_live: bool,
        most: usize,
    ) -> Option<Found> {
        let templates: Vec<&SegmentTemplate> = templates.into_iter().flatten().collect();
        let text = |get: fn(&SegmentTemplate) -> &Option<String>| {
            templates.iter().find_map(|template| get(template).as_ref())
        };
        let timeline = templates.iter().find_map(|template| template.timeline.as_ref());
        if is_live && timeline.is_none() {
            return None;
        }
        let values = Values {
            representation: self.representation.id.as_deref().unwrap_or_default(),
            bandwidth: rate(self.representation).as_bps(),
            number: number(text(|template| &template.start_number)).unwrap_or(1),
            time: 0,
        };
        let named = |template: &str, values| {
            let url = join(base, &filled(template, values)?)?;
            Some(Place { url, bytes: None })
        };
        let times = Times {
            timescale: number(text(|template| &template.timescale)).filter(|scale| *scale > 0).unwrap_or(1),
            offset: number(text(|template| &template.offset)).unwrap_or(0),
            length,
            most,
        };
        let duration = number(text(|template| &template.duration));
        let times = times.of(timeline, duration)?;
        let media = text(|template| &template.media)?;
        let segments = (values.number..).zip(times).map(|(number, (time, seconds))| {
            let place = named(media, Values { number, time, ..values })?;
            Some(Segment { place, play_time: play_time(seconds) })
        });
        let segments: Vec<Segment> = segments.collect::<Option<_>>()?;
        let initialization = text(|template| &template.initialization);
        let initialization = initialization.and_then(|template| named(template, values));
        Some(Found { segments, initialization, index: None })
    }
}

fn by_list(list: &SegmentList, base: &Url, most: usize) -> Option<Found> {
    let timescale = number(list.timescale.as_ref()).filter(|scale| *scale > 0).unwrap_or(1);
    let most = most.min(list.segments.len());
    // How many there are is told, and not by the length of the period.
    let times = Times { timescale, offset: 0, length: Some(f64::INFINITY), most };
    let times = times.of(list.timeline.as_ref(), number(list.duration.as_ref()))?;
    let segments = list.segments.iter().zip(times).map(|(named, (_, seconds))| {
        Some(Segment { place: place(named, base)?, play_time: play_time(seconds) })
    });
    let segments: Vec<Segment> = segments.collect::<Option<_>>()?;
    let initialization = list.initialization.as_ref().and_then(|named| place(named, base));
    Some(Found { segments, initialization, index: None })
}

/// When segments begin, in what they are counted in.
struct Times {
    /// Units in a second.
    timescale: u64,
    /// Where the period begins.
    offset: u64,
    /// Seconds that it lasts, if that is known.
    length: Option<f64>,
    /// So many segments at most.
    most: usize,
}

impl Times {
    /// When each begins, and how many seconds it plays.
    fn of(&self, timeline: Option<&Timeline>, duration: Option<u64>) -> Option<Vec<(u64, f64)>> {
        let seconds = |units: u64| as_f64(units) / as_f64(self.timescale);
        let mut times = Vec::new();
        let Some(timeline) = timeline else {
            let (duration, length) = (duration.filter(|duration| *duration > 0)?, self.length?);
            let mut time = 0_u64;
            while times.len() < self.most && seconds(time) < length - NOTHING {
                times.push((time, seconds(duration).min(length - seconds(time))));
                time = time.checked_add(duration)?;
            }
            return Some(times);
        };
        let mut time = 0_u64;
        let mut runs = timeline.runs.iter().peekable();
        while let Some(run) = runs.next() {
            time = run.time.unwrap_or(time);
            if run.duration == 0 {
                return None;
            }
            let next = runs.peek().and_then(|next| next.time);
            let mut repeats = run.repeats.unwrap_or(0);
            let open = repeats < 0;
            let goes_on = |time: u64| match (next, self.length) {
                (Some(next), _) => time < next,
                (None, Some(length)) => seconds(time.saturating_sub(self.offset)) < length - NOTHING,
                (None, None) => false,
            };
            loop {
                if times.len() >= self.most {
                    return Some(times);
                }
                times.push((time, seconds(run.duration)));
                time = time.checked_add(run.duration)?;
                repeats -= i64::from(!open);
                if if open { !goes_on(time) } else { repeats < 0 } {
                    break;
                }
            }
        }
        Some(times)
    }
}

fn as_f64(number: u64) -> f64 {
    Bytes::new(number).as_f64()
}

/// What references count from inside of an element.
fn base_of(bases: &[Text], around: &Url) -> Url {
    bases.first().and_then(|base| join(around, &base.text)).unwrap_or_else(|| around.clone())
}

fn place(named: &Named, base: &Url) -> Option<Place> {
    let url = match &named.url {
        Some(reference) => join(base, reference)?,
        None => base.clone(),
    };
    Some(Place { url, bytes: named.range.as_ref().map(|range| bytes(range).ok_or(())).transpose().ok()? })
}
