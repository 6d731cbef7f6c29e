//! The rungs of a description of DASH, and that description with one of each set alone.

use quick_xml::Writer;
use quick_xml::events::Event;
use quick_xml::reader::Reader;

use super::dash_listing::{group_of, name_of, rate};
use super::ladder::{MOST_RUNGS, RungSet, SetRung};
use super::mpd::{AdaptationSet, Description, number};
use super::route::{LARGEST_PLAYLIST, LARGEST_RESULT, PlaylistError};

/// The sets of all periods, in the order of the description; none where it cannot be read.
pub fn rung_sets(body: &[u8]) -> Vec<RungSet> {
    let text = std::str::from_utf8(body).ok().filter(|text| text.len() <= LARGEST_PLAYLIST);
    let Some(description) = text.and_then(|text| quick_xml::de::from_str::<Description>(text).ok()) else {
        return Vec::new();
    };
    let sets = description.inside.iter().flat_map(|period| period.inside.iter().enumerate());
    sets.filter(|(_, set)| !set.inside.is_empty()).map(|(place, set)| rungs(place, set)).collect()
}

fn rungs(place: usize, set: &AdaptationSet) -> RungSet {
    let group = group_of(set, place);
    let kinds = [&set.content_type, &set.mime_type];
    let of_rungs = set.inside.iter().map(|rung| &rung.mime_type);
    let is_picture = kinds.into_iter().chain(of_rungs).flatten().any(|kind| kind.starts_with("video"));
    let rungs = set.inside.iter().enumerate().take(MOST_RUNGS).map(|(index, rung)| SetRung {
        name: name_of(&group, rung, index),
        rate: rate(rung),
        height: number(rung.height.as_ref()),
    });
    RungSet { is_picture, rungs: rungs.collect() }
}

/// The description with one representation of each set: that at the place in `keep`, which has one for each set of
/// [`rung_sets`].
///
/// # Errors
/// It is no well-formed text, or too long.
pub fn with_rungs(body: &[u8], keep: &[usize]) -> Result<Vec<u8>, PlaylistError> {
    if body.len() > LARGEST_PLAYLIST {
        return Err(PlaylistError::TooLong(body.len()));
    }
    let mut reader = Reader::from_str(std::str::from_utf8(body)?);
    let mut writer = Writer::new(Vec::with_capacity(body.len()));
    let mut sets = keep.iter();
    // Of the set that is being read: which is kept, and how many were there.
    let mut set: (Option<usize>, usize) = (None, 0);
    loop {
        let event = reader.read_event()?;
        let is_representation = match &event {
            Event::Start(start) | Event::Empty(start) => start.local_name().as_ref() == "Representation",
            _ => false,
        };
        if is_representation {
            let (kept, place) = &mut set;
            // The first of a set.
            if *place == 0 {
                *kept = sets.next().copied();
            }
            let is_kept = kept.is_none_or(|kept| kept == *place);
            *place += 1;
            if !is_kept {
                if let Event::Start(start) = &event {
                    reader.read_to_end(start.name())?;
                }
                continue;
            }
        }
        match event {
            Event::Eof => break,
            Event::End(end) => {
                if end.local_name().as_ref() == "AdaptationSet" {
                    set = (None, 0);
                }
                writer.write_event(Event::End(end)).map_err(quick_xml::Error::from)?;
            }
            other => writer.write_event(other).map_err(quick_xml::Error::from)?,
        }
        if writer.get_ref().len() > LARGEST_RESULT {
            return Err(PlaylistError::TooLong(writer.get_ref().len()));
        }
    }
    Ok(writer.into_inner())
}
