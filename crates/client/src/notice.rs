//! What happens in a stream, with reasons, for logs and `--stats`.

use anabranch_units::Duration;
use serde::Serialize;

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
pub struct Notice {
    /// Seconds since the stream began.
    pub at_s: f64,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

impl Notice {
    pub(super) fn new(at: Duration, event: Event) -> Self {
        Self { at_s: at.as_secs_f64(), event }
    }
}

/// What happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A connection is being set up.
    Open {
        /// Its number.
        connection: u32,
        /// Where to.
        url: String,
        /// Over which interface.
        #[serde(skip_serializing_if = "Option::is_none")]
        interface: Option<String>,
        /// Why.
        why: &'static str,
    },
    /// A connection was closed by us.
    Close {
        /// Its number.
        connection: u32,
        /// Why.
        why: &'static str,
    },
    /// A connection failed or could not be set up.
    ConnectionFailed {
        /// Its number.
        connection: u32,
        /// Where to.
        url: String,
        /// Why.
        error: String,
    },
    /// Bytes are asked for.
    Request {
        /// On which connection.
        connection: u32,
        /// First byte.
        first: u64,
        /// The byte behind the last one; null: to the end.
        end: Option<u64>,
        /// Why these.
        why: &'static str,
    },
    /// A receive window is set.
    Window {
        /// Whose.
        connection: u32,
        /// In bytes; null: not limited.
        bytes: Option<u64>,
        /// Why.
        why: &'static str,
    },
    /// Reading is limited to a rate.
    Limit {
        /// In bits per second; null: not limited.
        rate_bps: Option<u64>,
    },
    /// A replica cannot be used (any more).
    ReplicaLost {
        /// Which.
        url: String,
        /// Why.
        error: String,
    },
    /// A connection is in a stripe group: the server decides what goes over it.
    Striped {
        /// Its number.
        connection: u32,
        /// Where to.
        url: String,
    },
    /// Striping does not work although the server offers it; ranges are asked for instead.
    NotStriped {
        /// Which replica.
        url: String,
        /// Why.
        error: String,
    },
    /// No replica is up; the stream goes on when one returns.
    Waiting {
        /// What went wrong last.
        error: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each; a new one is to be added here, where the compiler asks for it.
    fn all() -> Vec<Event> {
        let (connection, why, bytes, interface) = (1, "it is needed", Some(1), Some("eth0".to_owned()));
        let text = || "http://a.example/".to_owned();
        let all = vec![
            Event::Open { connection, url: text(), interface, why },
            Event::Close { connection, why },
            Event::ConnectionFailed { connection, url: text(), error: text() },
            Event::Request { connection, first: 0, end: None, why },
            Event::Window { connection, bytes, why },
            Event::Limit { rate_bps: None },
            Event::ReplicaLost { url: text(), error: text() },
            Event::Striped { connection, url: text() },
            Event::NotStriped { url: text(), error: text() },
            Event::Waiting { error: text() },
        ];
        for event in &all {
            match event {
                Event::Open { .. }
                | Event::Close { .. }
                | Event::ConnectionFailed { .. }
                | Event::Request { .. }
                | Event::Window { .. }
                | Event::Limit { .. }
                | Event::ReplicaLost { .. }
                | Event::Striped { .. }
                | Event::NotStriped { .. }
                | Event::Waiting { .. } => {}
            }
        }
        all
    }

    #[test]
    fn every_event_and_key_is_documented() {
        let page = include_str!("../../../docs/statistics.md");
        let part = page.split_once("### Of `play`, `fetch` and `proxy`").unwrap().1;
        let part = part.split_once("### Of `send` and `receive`").unwrap().0;
        for event in all() {
            let value = serde_json::to_value(&event).unwrap();
            let name = value["event"].as_str().unwrap();
            assert!(part.contains(&format!("`{name}`")), "the event {name} is not on the page");
            for key in value.as_object().unwrap().keys() {
                assert!(part.contains(&format!("`{key}`")), "{key} of {name} is not on the page");
            }
        }
    }
}
