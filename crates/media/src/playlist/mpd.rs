//! A media presentation description (ISO/IEC 23009-1, section 5), as far as it tells where segments are and
//! how long they play. What is written wrongly is taken as not written.

use std::ops::Range;

use serde::Deserialize;

/// The whole: periods, of adaptation sets, of representations.
pub(super) type Description = Level<Period>;
/// A period.
pub(super) type Period = Level<AdaptationSet>;
/// An adaptation set.
pub(super) type AdaptationSet = Level<Representation>;
/// A representation.
pub(super) type Representation = Level<Nothing>;

/// An element that may say what holds for all inside of it.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "Inner: Deserialize<'de>"))]
pub(super) struct Level<Inner> {
    #[serde(rename = "@id")]
    pub(super) id: Option<String>,
    /// `static` or `dynamic`.
    #[serde(rename = "@type")]
    pub(super) kind: Option<String>,
    #[serde(rename = "@mediaPresentationDuration")]
    pub(super) presentation_duration: Option<String>,
    #[serde(rename = "@start")]
    pub(super) start: Option<String>,
    #[serde(rename = "@duration")]
    pub(super) duration: Option<String>,
    #[serde(rename = "@bandwidth")]
    pub(super) bandwidth: Option<String>,
    #[serde(rename = "@contentType")]
    pub(super) content_type: Option<String>,
    #[serde(rename = "@mimeType")]
    pub(super) mime_type: Option<String>,
    #[serde(rename = "@height")]
    pub(super) height: Option<String>,
    /// The first is what references count from.
    #[serde(default, rename = "BaseURL")]
    pub(super) bases: Vec<Text>,
    #[serde(rename = "SegmentBase")]
    pub(super) base: Option<SegmentBase>,
    #[serde(rename = "SegmentList")]
    pub(super) list: Option<SegmentList>,
    #[serde(rename = "SegmentTemplate")]
    pub(super) template: Option<SegmentTemplate>,
    #[serde(default, rename = "Period", alias = "AdaptationSet", alias = "Representation")]
    pub(super) inside: Vec<Inner>,
}

/// What is inside of a representation is of no use here.
#[derive(Debug, Deserialize)]
pub(super) struct Nothing {}

/// An element's text.
#[derive(Debug, Deserialize)]
pub(super) struct Text {
    #[serde(default, rename = "$text")]
    pub(super) text: String,
}

/// One segment, which may have an index.
#[derive(Debug, Deserialize)]
pub(super) struct SegmentBase {
    #[serde(rename = "@indexRange")]
    pub(super) index: Option<String>,
    #[serde(rename = "Initialization")]
    pub(super) initialization: Option<Named>,
}

/// Segments one by one.
#[derive(Debug, Deserialize)]
pub(super) struct SegmentList {
    #[serde(rename = "@timescale")]
    pub(super) timescale: Option<String>,
    #[serde(rename = "@duration")]
    pub(super) duration: Option<String>,
    #[serde(rename = "Initialization")]
    pub(super) initialization: Option<Named>,
    #[serde(rename = "SegmentTimeline")]
    pub(super) timeline: Option<Timeline>,
    #[serde(default, rename = "SegmentURL")]
    pub(super) segments: Vec<Named>,
}

/// How segments are called.
#[derive(Debug, Deserialize)]
pub(super) struct SegmentTemplate {
    #[serde(rename = "@timescale")]
    pub(super) timescale: Option<String>,
    #[serde(rename = "@duration")]
    pub(super) duration: Option<String>,
    #[serde(rename = "@startNumber")]
    pub(super) start_number: Option<String>,
    #[serde(rename = "@presentationTimeOffset")]
    pub(super) offset: Option<String>,
    #[serde(rename = "@media")]
    pub(super) media: Option<String>,
    #[serde(rename = "@initialization")]
    pub(super) initialization: Option<String>,
    #[serde(rename = "SegmentTimeline")]
    pub(super) timeline: Option<Timeline>,
}

/// A file, or a part of one.
#[derive(Debug, Deserialize)]
pub(super) struct Named {
    #[serde(rename = "@media", alias = "@sourceURL")]
    pub(super) url: Option<String>,
    #[serde(rename = "@mediaRange", alias = "@range")]
    pub(super) range: Option<String>,
}

/// When segments begin and how long they play.
#[derive(Debug, Deserialize)]
pub(super) struct Timeline {
    #[serde(default, rename = "S")]
    pub(super) runs: Vec<Run>,
}

/// Segments of one length.
#[derive(Debug, Deserialize)]
pub(super) struct Run {
    #[serde(rename = "@t")]
    pub(super) time: Option<u64>,
    #[serde(rename = "@d")]
    pub(super) duration: u64,
    /// How many there are besides the first; negative: up to the next run, or to the period's end.
    #[serde(rename = "@r")]
    pub(super) repeats: Option<i64>,
}

/// A whole number.
pub(super) fn number(text: Option<&String>) -> Option<u64> {
    text?.trim().parse().ok()
}

/// Bytes, written as `FIRST-LAST`.
pub(super) fn bytes(text: &str) -> Option<Range<u64>> {
    let (first, last) = text.trim().split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last && last < u64::MAX).then(|| first..last + 1)
}

/// A duration of XML Schema in seconds, without years and months, whose length varies.
pub(super) fn seconds(text: Option<&String>) -> Option<f64> {
    let (days, time) =
        text?.trim().strip_prefix('P').map(|text| text.split_once('T').unwrap_or((text, "")))?;
    let mut seconds = 0.0;
    for (part, units) in [(days, &[('D', 86_400.0)][..]), (time, &[('H', 3600.0), ('M', 60.0), ('S', 1.0)])] {
        let mut rest = part;
        while let Some(end) = rest.find(|c: char| !c.is_ascii_digit() && c != '.') {
            let (_, length) = units.iter().find(|(unit, _)| rest[end..].starts_with(*unit))?;
            seconds += rest[..end].parse::<f64>().ok()? * length;
            rest = &rest[end + 1..];
        }
        if !rest.is_empty() {
            return None;
        }
    }
    Some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_xml_schema() {
        let of = |text: &str| seconds(Some(&text.to_owned()));
        assert_eq!(of("PT1H2M3.5S"), Some(3723.5));
        assert_eq!(of("P1DT0S"), Some(86_400.0));
        assert_eq!(of("PT0H10M54.00S"), Some(654.0));
        for wrong in ["", "P1Y", "P1M", "PT5", "1S", "PTxS", "PT1S2", "PT1é"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn bytes_from_the_first_to_the_last() {
        assert_eq!(bytes("0-0"), Some(0..1));
        assert_eq!(bytes("100-199"), Some(100..200));
        for wrong in ["", "5", "5-", "-5", "6-5", "0-18446744073709551615", "a-b"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }
}
