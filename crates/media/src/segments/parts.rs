//! Parts of segments in the playlist, for low latency (draft-pantos-hls-rfc8216bis, section 4.4.4.9): those of the
//! segment that grows, and of the newest ones.

use std::collections::VecDeque;

use anabranch_units::{Bytes, Duration};
use chrono::{DateTime, SecondsFormat, Utc};
use m3u8_rs::ExtTag;

/// A piece of a segment that players get before the segment is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The number of its segment among those of the segmenter, from 0 on.
    pub segment: u64,
    /// Whole packets. Those of all parts are the segment.
    pub bytes: Vec<u8>,
    /// From its first picture to that of the next part.
    pub duration: Duration,
    /// Whether it begins with a key frame.
    pub is_independent: bool,
    /// The first one tells of its segment.
    pub start: Option<Start>,
}

/// What is known of a segment when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// When its first picture came, since 1970.
    pub date: Duration,
    /// Whether it does not go on where the one before ended (RFC 8216, 4.3.2.3).
    pub is_discontinuity: bool,
}

/// Parts of segments that are older by so many target durations are not listed any more (6.2.2).
const LISTED_TARGETS: u64 = 3;
/// Players keep so many parts' distance to the end (4.4.3.8).
const HOLD_BACK: u64 = 3;

/// The parts of a segment.
#[derive(Clone, Debug, Default)]
pub(super) struct OfSegment {
    start: Option<Start>,
    tags: Vec<ExtTag>,
    files: Vec<String>,
    size: Bytes,
    /// How long the segment is, once it is whole.
    duration: Duration,
}

/// The parts that players may come for.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    target: Duration,
    growing: OfSegment,
    /// Those of whole segments, the newest last.
    listed: VecDeque<OfSegment>,
    /// Not listed any more since the last segment.
    kept: Vec<OfSegment>,
}

impl Parts {
    /// No part is longer than `target`.
    pub(super) fn new(target: Duration) -> Self {
        Self { target, growing: OfSegment::default(), listed: VecDeque::new(), kept: Vec::new() }
    }

    /// Another part of the segment that grows, and its file.
    pub(super) fn push(&mut self, part: &Part, file: String) {
        let independent = if part.is_independent { ",INDEPENDENT=YES" } else { "" };
        let rest = format!("DURATION={:.3},URI=\"{file}\"{independent}", part.duration.as_secs_f64());
        self.growing.tags.push(ExtTag { tag: "X-PART".to_owned(), rest: Some(rest) });
        self.growing.files.push(file);
        self.growing.start = self.growing.start.or(part.start);
        self.growing.size += Bytes::of(part.bytes.len());
    }

    /// How many the segment that grows has.
    pub(super) fn count(&self) -> usize {
        self.growing.files.len()
    }

    /// The segment that grew is whole. Answers with the files that nobody needs any more.
    pub(super) fn whole(&mut self, duration: Duration, target: Duration) -> Vec<String> {
        let gone = std::mem::take(&mut self.kept).into_iter().flat_map(|parts| parts.files).collect();
        self.listed.push_back(OfSegment { duration, ..std::mem::take(&mut self.growing) });
        let newer = |listed: &VecDeque<OfSegment>| -> Duration {
            listed.iter().skip(1).map(|parts| parts.duration).sum()
        };
        while newer(&self.listed) >= target * LISTED_TARGETS {
            self.kept.extend(self.listed.pop_front());
        }
        gone
    }

    /// The tags of the segment that is so far from the newest whole one.
    pub(super) fn of_segment(&self, from_newest: usize) -> Vec<ExtTag> {
        let place = self.listed.len().checked_sub(from_newest + 1);
        place.and_then(|place| self.listed.get(place)).map(|parts| parts.tags.clone()).unwrap_or_default()
    }

    /// The lines of the segment that grows.
    pub(super) fn of_growing(&self) -> String {
        let mut lines = String::new();
        if let Some(start) = self.growing.start {
            if start.is_discontinuity {
                lines.push_str("#EXT-X-DISCONTINUITY\n");
            }
            if let Some(date) = time_of_day(start.date) {
                let date = date.to_rfc3339_opts(SecondsFormat::Millis, true);
                lines.push_str(&format!("#EXT-X-PROGRAM-DATE-TIME:{date}\n"));
            }
        }
        self.growing.tags.iter().for_each(|tag| lines.push_str(&format!("{tag}\n")));
        lines
    }

    /// What the playlist says of all parts.
    pub(super) fn header(&self) -> String {
        let (target, back) = (self.target.as_secs_f64(), (self.target * HOLD_BACK).as_secs_f64());
        format!(
            "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK={back:.3}\n\
             #EXT-X-PART-INF:PART-TARGET={target:.3}\n"
        )
    }

    pub(super) fn size(&self) -> Bytes {
        let all = self.listed.iter().chain(&self.kept).chain([&self.growing]);
        all.fold(Bytes::ZERO, |sum, parts| sum + parts.size)
    }
}

/// A time since 1970, where the calendar has it.
pub(super) fn time_of_day(date: Duration) -> Option<DateTime<Utc>> {
    i64::try_from(date.as_millis()).ok().and_then(DateTime::from_timestamp_millis)
}
