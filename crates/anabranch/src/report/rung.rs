//! What is told of the rung that a player gets which does not adapt.

use anabranch_units::{Duration, Rate};

use crate::output::counted;

/// A rung that was chosen, and why.
#[derive(Clone, Debug)]
pub struct RungTold {
    /// Its place in the ladder, from the lowest, 0,
    pub place: usize,
    /// of so many.
    pub count: usize,
    /// Its rate, as the playlist tells it.
    pub rate: Rate,
    /// The height of its picture, where that is told.
    pub height: Option<u64>,
    /// The number of the first segment that is of it; `None`: the whole film is.
    pub segment: Option<u64>,
    /// What there was to play before that segment.
    pub buffer: Option<Duration>,
    /// What segments came at, where some had come.
    pub estimate: Option<Rate>,
    /// What decided.
    pub why: &'static str,
}

impl RungTold {
    /// For a person.
    pub(super) fn in_words(&self) -> String {
        let mut text = match self.segment {
            Some(segment) => format!("from segment {segment} on"),
            None => "for the whole film".to_owned(),
        };
        let height = self.height.map(|height| format!(", {height} lines")).unwrap_or_default();
        let of = counted(self.count, "rung");
        text.push_str(&format!(" rung {} of {of}, {}{height}: {}", self.place + 1, self.rate, self.why));
        let known: Vec<String> = [
            self.estimate.map(|estimate| format!("segments come at {estimate}")),
            self.buffer.map(|buffer| format!("{:.1} s to play", buffer.as_secs_f64())),
        ]
        .into_iter()
        .flatten()
        .collect();
        if !known.is_empty() {
            text.push_str(&format!(" ({})", known.join(", ")));
        }
        text
    }

    /// For the tests of what is documented.
    #[cfg(test)]
    pub(super) fn an_example() -> Self {
        Self {
            place: 1,
            count: 4,
            rate: Rate::from_kbps(1600),
            height: Some(360),
            segment: Some(7),
            buffer: Some(Duration::from_millis(12_500)),
            estimate: Some(Rate::from_mbps(2)),
            why: "the buffer has risen",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rung_in_words() {
        let mut rung = RungTold::an_example();
        let text = "from segment 7 on rung 2 of 4 rungs, 1.60 Mbps, 360 lines: the buffer has risen (segments \
                    come at 2.00 Mbps, 12.5 s to play)";
        assert_eq!(rung.in_words(), text);
        (rung.segment, rung.buffer, rung.estimate, rung.height) = (None, None, None, None);
        assert_eq!(rung.in_words(), "for the whole film rung 2 of 4 rungs, 1.60 Mbps: the buffer has risen");
    }
}
