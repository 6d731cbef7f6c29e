//! The lines of `--stats`, and what of them a person gets to see.

use anabranch_client::{Event, FilmInfo, Notice};
use anabranch_units::{Bytes, Duration, Rate};
use indicatif::ProgressStyle;
use serde::Serialize;

use super::films::Interval;
use super::rung::RungTold;
use super::summary::Summary;
use crate::output::counted;

/// A line. Times are seconds since the start of the run.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Line<'a> {
    /// The first.
    Start { at_s: f64, version: &'static str, command: &'static str, urls: Vec<String> },
    /// A film was opened.
    Film {
        at_s: f64,
        film: u32,
        size_bytes: Option<u64>,
        etag: Option<&'a str>,
        last_modified: Option<&'a str>,
        content_type: Option<&'a str>,
        accepts_ranges: bool,
        media_rate_bps: Option<u64>,
        replicas: &'a [String],
        /// Replicas that are not used, and why.
        lost: &'a [(String, String)],
        /// Replicas with another validator whose samples agree.
        differing: &'a [String],
    },
    /// The rung of a playlist is another one from here on.
    Rung {
        at_s: f64,
        rung: usize,
        rungs: usize,
        rung_rate_bps: u64,
        height: Option<u64>,
        segment: Option<u64>,
        buffer_s: Option<f64>,
        estimate_bps: Option<u64>,
        why: &'static str,
    },
    /// A second has passed.
    Interval(Interval),
    /// More happened at once than could be told.
    Missed { at_s: f64, film: u32, notices: u64 },
    /// The last.
    Summary {
        at_s: f64,
        #[serde(flatten)]
        summary: Summary,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    },
    /// The engine did or met something; it names its event itself.
    #[serde(untagged)]
    Notice {
        film: u32,
        #[serde(flatten)]
        notice: Notice,
    },
}

impl<'a> Line<'a> {
    pub(super) fn rung(at_s: f64, rung: &RungTold) -> Self {
        Self::Rung {
            at_s,
            rung: rung.place + 1,
            rungs: rung.count,
            rung_rate_bps: rung.rate.as_bps(),
            height: rung.height,
            segment: rung.segment,
            buffer_s: rung.buffer.map(Duration::as_secs_f64),
            estimate_bps: rung.estimate.map(Rate::as_bps),
            why: rung.why,
        }
    }

    pub(super) fn film(at_s: f64, film: u32, info: &'a FilmInfo) -> Self {
        Self::Film {
            at_s,
            film,
            size_bytes: info.size,
            etag: info.etag.as_deref(),
            last_modified: info.last_modified.as_deref(),
            content_type: info.content_type.as_deref(),
            accepts_ranges: info.accepts_ranges,
            media_rate_bps: info.media.as_ref().map(|media| media.mean_rate.as_bps()),
            replicas: &info.replicas,
            lost: &info.lost,
            differing: &info.differing,
        }
    }
}

/// A notice in words: its name, and its fields as they are in `--stats`.
pub(super) fn human(at_s: f64, event: &Event) -> String {
    let fields = match serde_json::to_value(event) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => return format!("{at_s:.3} s: {event:?}"),
    };
    let mut text = format!("{at_s:.3} s:");
    let name = fields.get("event").and_then(serde_json::Value::as_str).unwrap_or("notice");
    text.push_str(&format!(" {}", name.replace('_', " ")));
    for (name, value) in fields.iter().filter(|(name, _)| *name != "event" && *name != "why") {
        match value {
            serde_json::Value::String(value) => text.push_str(&format!(", {name} {value}")),
            value => text.push_str(&format!(", {name} {value}")),
        }
    }
    if let Some(why) = fields.get("why").and_then(serde_json::Value::as_str) {
        text.push_str(&format!(": {why}"));
    }
    text
}

/// How the progress line is drawn: one line, cut to the terminal's width.
pub fn style() -> ProgressStyle {
    ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// The progress line.
pub(super) fn progress(interval: &Interval) -> String {
    let rate = Rate::from_bps(interval.rate_bps);
    let mut text = format!("{rate}, {}", counted(interval.connections.len(), "connection"));
    if let Some(buffer) = interval.buffer_s {
        text.push_str(&format!(", buffer {buffer:.1} s"));
    }
    if interval.stalls > 0 {
        text.push_str(&format!(", stalls {} ({:.1} s)", interval.stalls, interval.stall_s));
    }
    let Some(have) = interval.have_bytes else { return text };
    match interval.size_bytes {
        Some(size) => {
            text.push_str(&format!(", {} of {}", Bytes::new(have), Bytes::new(size)));
            let left = rate.time_for(Bytes::new(size.saturating_sub(have)));
            if left < Duration::from_secs(360_000) {
                let seconds = left.as_millis().div_ceil(1000);
                text.push_str(&format!(
                    ", {}:{:02}:{:02} left",
                    seconds / 3600,
                    seconds / 60 % 60,
                    seconds % 60
                ));
            }
        }
        None => text.push_str(&format!(", {}", Bytes::new(have))),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_names_its_event_once() {
        let event = Event::Window { connection: 3, bytes: Some(65536), why: "its share of the rate" };
        let line = Line::Notice { film: 0, notice: Notice { at_s: 1.5, event: event.clone() } };
        let text = serde_json::to_string(&line).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(text.matches("\"event\"").count(), 1, "{text}");
        assert_eq!(value["event"], "window");
        assert_eq!(
            (value["film"].as_u64(), value["at_s"].as_f64(), value["bytes"].as_u64()),
            (Some(0), Some(1.5), Some(65536))
        );
        assert_eq!(value["why"], "its share of the rate");
        assert_eq!(human(1.5, &event), "1.500 s: window, bytes 65536, connection 3: its share of the rate");
    }

    #[test]
    fn every_key_is_documented() {
        const PART: &str = "### Of `play`, `fetch` and `proxy`";
        let is_told = |line: &Line<'_>| crate::documented::keys(PART, line);
        is_told(&Line::Start { at_s: 0.0, version: "1", command: "play", urls: Vec::new() });
        is_told(&Line::Film {
            at_s: 0.0,
            film: 0,
            size_bytes: None,
            etag: None,
            last_modified: None,
            content_type: None,
            accepts_ranges: true,
            media_rate_bps: None,
            replicas: &[],
            lost: &[],
            differing: &[],
        });
        is_told(&Line::rung(0.0, &RungTold::an_example()));
        is_told(&Line::Missed { at_s: 0.0, film: 0, notices: 1 });
        is_told(&Line::Interval(Interval::an_example()));
        is_told(&Line::Summary { at_s: 0.0, summary: Summary::an_example(), error: Some("gone") });
    }

    #[test]
    fn the_progress_line_tells_what_is_known() {
        let mut interval = Interval::an_example();
        assert_eq!(progress(&interval), "8.00 Mbps, 1 connection");
        interval.connections.clear();
        assert_eq!(progress(&interval), "8.00 Mbps, 0 connections");
        (interval.have_bytes, interval.size_bytes) = (Some(1 << 20), Some(62 << 20));
        (interval.buffer_s, interval.stalls, interval.stall_s) = (Some(2.25), 2, 1.5);
        assert_eq!(
            progress(&interval),
            "8.00 Mbps, 0 connections, buffer 2.2 s, stalls 2 (1.5 s), 1.0 MiB of 62.0 MiB, 0:01:04 left"
        );
        interval.rate_bps = 0;
        assert!(progress(&interval).ends_with("of 62.0 MiB"));
    }
}
