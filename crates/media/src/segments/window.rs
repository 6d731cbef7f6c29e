//! The playlist of a live stream: its newest segments (RFC 8216, section 6.2.2).

use std::collections::VecDeque;

use anabranch_units::{Bytes, Duration};
use m3u8_rs::{MediaPlaylist, MediaSegment, Playlist};

use super::cutter::Cut;
use super::parts::{Part, Parts, time_of_day};
use crate::playlist::LARGEST_PLAYLIST;

/// Version of the format: durations are decimal (RFC 8216, section 7).
const VERSION: usize = 3;
/// The same with parts of segments.
const VERSION_WITH_PARTS: usize = 9;
/// Fewest segments that are listed: players keep a distance of three target durations to the end (6.3.3).
const LEAST: usize = 3;
/// Most segments that are listed, and most that are kept beside these.
const MOST: usize = 500;

/// A segment of the playlist.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its number, which names its file.
    pub number: u64,
    size: Bytes,
    duration: Duration,
    segment: MediaSegment,
}

/// A playlist that cannot be gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// It is too long.
    #[error("the playlist there is too long")]
    TooLong,
    /// It is no media playlist.
    #[error("the playlist there is none of a live stream")]
    Format,
}

/// The newest segments, and those that players may still be getting.
#[derive(Clone, Debug)]
pub struct Window {
    /// What the file of a segment is called before and behind its number.
    name: (&'static str, &'static str),
    length: Duration,
    space: Bytes,
    target: Duration,
    listed: VecDeque<Listed>,
    /// No more in the playlist, and how much has come since.
    kept: VecDeque<(Listed, Duration)>,
    next: u64,
    discontinuities: u64,
    parts: Option<Parts>,
}

impl Window {
    /// Lists segments of `length` in all, and keeps as many that were listed, in no more than `space` together.
    /// A file is called by its number between two strings.
    pub fn new(name: (&'static str, &'static str), length: Duration, space: Bytes) -> Self {
        Self {
            name,
            length,
            space,
            target: Duration::ZERO,
            listed: VecDeque::new(),
            kept: VecDeque::new(),
            next: 0,
            discontinuities: 0,
            parts: None,
        }
    }

    /// There are parts of segments as well, no longer than `target` each.
    #[must_use]
    pub fn with_parts(mut self, target: Duration) -> Self {
        self.parts = Some(Parts::new(target));
        self
    }

    /// Goes on with the playlist of a program that has ended; `size` tells how large the file of a number is, if
    /// it is there.
    ///
    /// # Errors
    /// It is none of such a window.
    pub fn resume(
        &mut self,
        playlist: &[u8],
        size: impl Fn(u64) -> Option<Bytes>,
    ) -> Result<(), WindowError> {
        if playlist.len() > LARGEST_PLAYLIST {
            return Err(WindowError::TooLong);
        }
        let Ok(Playlist::MediaPlaylist(before)) = m3u8_rs::parse_playlist_res(playlist) else {
            return Err(WindowError::Format);
        };
        self.target = Duration::from_secs(before.target_duration.min(MOST_TARGET_SECONDS));
        self.discontinuities = before.discontinuity_sequence;
        self.next = before.media_sequence;
        for mut segment in before.segments {
            // Parts of the program that has ended.
            segment.unknown_tags.clear();
            // Numbers that are not in order are not ours.
            if self.number(&segment.uri) != Some(self.next) {
                return Err(WindowError::Format);
            }
            let duration = Duration::from_secs_f64(segment.duration.into());
            match size(self.next) {
                Some(size) => self.listed.push_back(Listed { number: self.next, size, duration, segment }),
                // What is behind a gap cannot be listed without it.
                None => {
                    let gone = self.listed.drain(..).map(|listed| listed.segment).chain([segment]);
                    self.discontinuities += count(gone.filter(|segment| segment.discontinuity));
                }
            }
            self.next = self.next.checked_add(1).ok_or(WindowError::Format)?;
        }
        Ok(())
    }

    /// The target duration of the playlist that is gone on with.
    pub fn target(&self) -> Option<Duration> {
        (!self.target.is_zero()).then_some(self.target)
    }

    /// The number of the segment in a file of this name.
    pub fn number(&self, file: &str) -> Option<u64> {
        let number = file.strip_prefix(self.name.0)?.strip_suffix(self.name.1)?;
        number.parse().ok().filter(|parsed: &u64| parsed.to_string() == number)
    }

    /// The name of a segment's file.
    pub fn file(&self, number: u64) -> String {
        format!("{}{number}{}", self.name.0, self.name.1)
    }

    /// Whether a file of this name is a part of a segment.
    pub fn is_part(&self, file: &str) -> bool {
        let numbers = file.strip_prefix(self.name.0).and_then(|rest| rest.strip_suffix(self.name.1));
        numbers.and_then(|numbers| numbers.split_once('.')).is_some_and(|(segment, part)| {
            [segment, part]
                .iter()
                .all(|number| number.parse::<u64>().is_ok_and(|it| it.to_string() == *number))
        })
    }

    /// The name of the file of the next part of the next segment.
    pub fn part_file(&self) -> String {
        let count = self.parts.as_ref().map_or(0, Parts::count);
        format!("{}{}.{count}{}", self.name.0, self.next, self.name.1)
    }

    /// Another part of the next segment, whose file is there.
    pub fn push_part(&mut self, part: &Part) {
        let file = self.part_file();
        if let Some(parts) = &mut self.parts {
            parts.push(part, file);
        }
    }

    /// Whether a segment's file is still needed.
    pub fn has(&self, number: u64) -> bool {
        let kept = self.kept.iter().map(|(listed, _)| listed);
        self.listed.iter().chain(kept).any(|listed| listed.number == number)
    }

    /// The number of the next segment.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Another segment, whose file is there, and the target duration as it is now. Answers with the
    /// files that nobody needs any more.
    pub fn push(&mut self, cut: &Cut, target: Duration) -> Vec<String> {
        self.target = target;
        let segment = MediaSegment {
            uri: self.file(self.next),
            // A millisecond is what players reckon with.
            duration: (cut.duration.as_secs_f64() * 1000.0).round() as f32 / 1000.0,
            discontinuity: cut.is_discontinuity,
            program_date_time: time_of_day(cut.date).map(|date| date.fixed_offset()),
            ..MediaSegment::default()
        };
        let (number, duration) = (self.next, cut.duration);
        self.listed.push_back(Listed { number, size: Bytes::of(cut.bytes.len()), duration, segment });
        self.next += 1;
        self.kept.iter_mut().for_each(|(_, since)| *since += duration);
        let parts = self.parts.as_mut().map(|parts| parts.whole(duration, target));
        let mut gone = Vec::new();
        while self.is_long() {
            self.retire();
        }
        // A player that has read the playlist may come for any segment of it (6.2.2).
        let lasts = self.span();
        while self.kept.front().is_some_and(|(listed, since)| *since >= lasts + listed.duration)
            || self.kept.len() > MOST
            || (self.size() > self.space && !self.kept.is_empty())
        {
            gone.extend(self.kept.pop_front().map(|(listed, _)| listed.number));
        }
        while self.size() > self.space && self.listed.len() > 1 {
            self.retire();
            gone.extend(self.kept.pop_front().map(|(listed, _)| listed.number));
        }
        gone.into_iter().map(|number| self.file(number)).chain(parts.into_iter().flatten()).collect()
    }

    /// The playlist; the last one when nothing comes any more.
    pub fn playlist(&self, is_last: bool) -> Vec<u8> {
        let parts = self.parts.as_ref().filter(|_| !is_last);
        let newest = self.listed.len().saturating_sub(1);
        let segment = |(place, listed): (usize, &Listed)| MediaSegment {
            unknown_tags: parts.map(|parts| parts.of_segment(newest - place)).unwrap_or_default(),
            ..listed.segment.clone()
        };
        let playlist = MediaPlaylist {
            version: Some(if parts.is_some() { VERSION_WITH_PARTS } else { VERSION }),
            target_duration: self.target.as_millis() / 1000,
            media_sequence: self.listed.front().map_or(self.next, |listed| listed.number),
            discontinuity_sequence: self.discontinuities,
            segments: self.listed.iter().enumerate().map(segment).collect(),
            end_list: is_last,
            ..MediaPlaylist::default()
        };
        let mut text = Vec::new();
        // Memory takes everything.
        let _ = playlist.write_to(&mut text);
        let Some(parts) = parts else { return text };
        // The writer knows no tags of the playlist but its own.
        let first = text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |end| end + 1);
        text.splice(first..first, parts.header().into_bytes());
        text.extend(parts.of_growing().into_bytes());
        text
    }

    fn span(&self) -> Duration {
        self.listed.iter().map(|listed| listed.duration).sum()
    }

    fn size(&self) -> Bytes {
        let kept = self.kept.iter().map(|(listed, _)| listed);
        let parts = self.parts.as_ref().map_or(Bytes::ZERO, Parts::size);
        self.listed.iter().chain(kept).fold(parts, |sum, listed| sum + listed.size)
    }

    /// Whether the first segment is beyond what is listed: without it there is still enough.
    fn is_long(&self) -> bool {
        let Some(first) = self.listed.front() else { return false };
        let rest = self.span() - first.duration;
        let is_enough = rest >= self.length.max(self.target * LEAST as u64);
        (is_enough && self.listed.len() > LEAST) || self.listed.len() > MOST
    }

    fn retire(&mut self) {
        if let Some(first) = self.listed.pop_front() {
            self.discontinuities += u64::from(first.segment.discontinuity);
            self.kept.push_back((first, Duration::ZERO));
        }
    }
}

/// A target duration that is longer is none of ours.
const MOST_TARGET_SECONDS: u64 = 60;

fn count<T>(items: impl Iterator<Item = T>) -> u64 {
    items.fold(0, |count, _| count + 1)
}
