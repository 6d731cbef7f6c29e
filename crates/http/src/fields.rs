//! Values of header fields: ranges, entity tags, waiting times.

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use anabranch_units::Duration;

use super::error::Malformed;

/// Which bytes a response holds (RFC 9110, 14.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// Position of the first byte.
    pub first: u64,
    /// Position of the last byte, not before `first`.
    pub last: u64,
    /// Size of the whole, above `last`; `None` when the server does not know.
    pub total: Option<u64>,
}

/// Digits only, without the sign that `u64::from_str` would take.
pub(super) fn decimal(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// What comes after the unit `bytes`, which is the only one that is asked for.
fn after_bytes_unit(text: &str) -> Option<&str> {
    let (unit, rest) = text.trim().split_once(' ')?;
    unit.eq_ignore_ascii_case("bytes").then(|| rest.trim_start())
}

impl FromStr for ContentRange {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let parsed = || {
            let (range, total) = after_bytes_unit(text)?.split_once('/')?;
            let (first, last) = range.split_once('-')?;
            let total = if total == "*" { None } else { Some(decimal(total)?) };
            Some(Self { first: decimal(first)?, last: decimal(last)?, total })
        };
        parsed()
            // A length of 2^64 would not fit its own type.
            .filter(|range| range.first <= range.last && range.last < range.total.unwrap_or(u64::MAX))
            .ok_or(Malformed("its Content-Range makes no sense"))
    }
}

impl ContentRange {
    /// How many bytes there are, at least one.
    pub fn length(&self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }

    /// The size of the whole in the `Content-Range` of a 416 response, `bytes */SIZE`.
    pub(super) fn unsatisfied_total(text: &str) -> Option<u64> {
        decimal(after_bytes_unit(text)?.strip_prefix("*/")?)
    }
}

impl fmt::Display for ContentRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bytes {}-{}", self.first, self.last)
    }
}

/// The name of one version of a film (RFC 9110, 8.8.3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EntityTag {
    /// Only equal in meaning, perhaps not in every byte: no use for putting ranges together.
    pub weak: bool,
    /// What is between the quotes.
    pub tag: String,
}

impl FromStr for EntityTag {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let (weak, quoted) = match text.trim().strip_prefix("W/") {
            Some(rest) => (true, rest),
            None => (false, text.trim()),
        };
        quoted
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
            .filter(|tag| tag.chars().all(|c| c > ' ' && c != '"' && c != '\x7f'))
            .map(|tag| Self { weak, tag: tag.into() })
            .ok_or(Malformed("its ETag makes no sense"))
    }
}

impl fmt::Display for EntityTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\"{}\"", if self.weak { "W/" } else { "" }, self.tag)
    }
}

/// How long a server asks to wait (RFC 9110, 10.2.3): seconds, or a date seen from the server's own clock.
pub(super) fn retry_after(text: &str, server_now: Option<SystemTime>) -> Option<Duration> {
    if let Some(seconds) = decimal(text.trim()).filter(|_| !text.trim().is_empty()) {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(text.trim()).ok()?;
    Some(until.duration_since(server_now?).unwrap_or_default().into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn content_ranges() {
        let range = |first, last, total| Ok(ContentRange { first, last, total });
        assert_eq!("bytes 0-0/1".parse(), range(0, 0, Some(1)));
        assert_eq!("Bytes  500-999/1234".parse(), range(500, 999, Some(1234)));
        assert_eq!("bytes 7-9/*".parse(), range(7, 9, None));
        for wrong in [
            "",
            "bytes",
            "bytes 0-0",
            "bytes */7",
            "bytes 5-4/10",
            "bytes 0-10/10",
            "bytes +0-1/2",
            "bytes 0-1/-",
            "items 0-1/2",
            "bytes 0-1/2/3",
            "bytes -1/2",
            "bytes 0-/2",
            "bytes 0-18446744073709551615/*",
            "bytes 0-18446744073709551616/*",
            "bytes 0 - 1/2",
        ] {
            assert!(wrong.parse::<ContentRange>().is_err(), "{wrong}");
        }
        assert_eq!(ContentRange::unsatisfied_total("bytes */1234"), Some(1234));
        assert_eq!(ContentRange::unsatisfied_total("bytes 0-1/1234"), None);
    }

    #[test]
    fn entity_tags() {
        let tag = |text: &str| text.parse::<EntityTag>();
        assert_eq!(tag("\"abc\""), Ok(EntityTag { weak: false, tag: "abc".into() }));
        assert_eq!(tag("W/\"\""), Ok(EntityTag { weak: true, tag: String::new() }));
        assert_eq!(tag("W/\"x\"").unwrap().to_string(), "W/\"x\"");
        for wrong in ["", "abc", "\"", "\"a\"b\"", "w/\"a\"", "\"a\n\"", "\"a b\""] {
            assert!(tag(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn waiting_times() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        assert_eq!(retry_after(" 120 ", None), Some(Duration::from_secs(120)));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:50:07 GMT", Some(now)), Some(Duration::from_secs(30)));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:00:00 GMT", Some(now)), Some(Duration::ZERO));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:50:07 GMT", None), None);
        for wrong in ["", "-1", "soon", "1.5"] {
            assert_eq!(retry_after(wrong, Some(now)), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(bytes )?[0-9*/ -]{0,50}|\\PC*") {
            if let Ok(range) = text.parse::<ContentRange>() {
                prop_assert!(range.first <= range.last && range.length() >= 1);
                let whole = range.total.map_or("*".to_owned(), |total| total.to_string());
                prop_assert_eq!(format!("{range}/{whole}").parse::<ContentRange>(), Ok(range));
            }
            if let Ok(tag) = text.parse::<EntityTag>() {
                prop_assert_eq!(tag.to_string().parse::<EntityTag>(), Ok(tag));
            }
            let _ = retry_after(&text, Some(SystemTime::UNIX_EPOCH));
        }
    }
}
