//! Which version of a film an answer is of, as far as it says.

use std::time::SystemTime;

use ::http::HeaderValue;
use ::http::header::DATE;

use super::fields::EntityTag;
use super::head::ResponseHead;

/// What an answer says about the version of the film that its bytes belong to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    etag: Option<EntityTag>,
    modified: Option<HeaderValue>,
    /// Whether `modified` lies at least a second before the answer's own date. Where it does not, it may say
    /// no more than when the answer was made, or there were several versions within that second (RFC 9110,
    /// 8.8.2.2).
    at_rest: bool,
}

impl Version {
    /// What the head of an answer says.
    pub fn of(head: &ResponseHead) -> Self {
        let date = |value: &HeaderValue| -> Option<SystemTime> {
            httpdate::parse_http_date(value.to_str().ok()?).ok()
        };
        let age = || {
            let modified = date(head.last_modified.as_ref()?)?;
            date(head.headers.get(DATE)?)?.duration_since(modified).ok()
        };
        Self {
            etag: head.etag.clone(),
            modified: head.last_modified.clone(),
            at_rest: age().is_some_and(|age| age.as_secs() >= 1),
        }
    }

    /// A validator that is good for `If-Range`: a strong entity tag, else a date that is at rest (RFC 9110,
    /// 13.1.5).
    pub fn strong_validator(&self) -> Option<HeaderValue> {
        match &self.etag {
            Some(tag) if tag.weak => None,
            Some(tag) => HeaderValue::try_from(tag.to_string()).ok(),
            None => self.modified.clone().filter(|_| self.at_rest),
        }
    }

    /// Whether a later answer says by a strong entity tag that it is of the same version, byte for byte.
    pub fn is_that_of(&self, later: &Self) -> bool {
        let tags = self.etag.as_ref().zip(later.etag.as_ref());
        tags.is_some_and(|(then, now)| then == now && !then.weak)
    }

    /// What shows that a later answer is of another version; `None`: nothing does. An answer may leave out
    /// what an earlier one said (RFC 9110, 15.3.7).
    pub fn difference(&self, later: &Self) -> Option<String> {
        if let (Some(then), Some(now)) = (&self.etag, &later.etag) {
            if then.tag != now.tag {
                return Some(format!("its entity tag was {then} and is {now} now"));
            }
            if !then.weak && !now.weak {
                return None;
            }
        }
        let (then, now) = (self.modified.as_ref()?, later.modified.as_ref()?);
        let told = (self.at_rest || later.at_rest) && then != now;
        let text = |date: &HeaderValue| String::from_utf8_lossy(date.as_bytes()).into_owned();
        told.then(|| format!("its date was {} and is {} now", text(then), text(now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT";
    const NEWER: &str = "Last-Modified: Sun, 06 Nov 1994 08:49:40 GMT";
    const DATE: &str = "Date: Sun, 06 Nov 1994 08:49:40 GMT";

    fn version(lines: &[&str]) -> Version {
        let text = format!("HTTP/1.1 206 Partial Content\r\n{}\r\n\r\n", lines.join("\r\n"));
        Version::of(&ResponseHead::parse(text.as_bytes()).unwrap().unwrap().0)
    }

    #[test]
    fn only_strong_validators_hold_ranges_together() {
        assert_eq!(version(&[OLD, DATE]).strong_validator().unwrap(), OLD.split_once(": ").unwrap().1);
        for weak in [&[OLD][..], &[NEWER, DATE], &[OLD, DATE, "ETag: W/\"x\""], &[]] {
            assert_eq!(version(weak).strong_validator(), None, "{weak:?}");
        }
        assert_eq!(version(&[OLD, "ETag: \"x\""]).strong_validator().unwrap(), "\"x\"");
    }

    #[test]
    fn other_versions_are_noticed() {
        let (strong, weak) = (version(&["ETag: \"a\"", OLD]), version(&["ETag: W/\"a\""]));
        assert!(strong.is_that_of(&version(&["ETag: \"a\""])) && !weak.is_that_of(&weak));
        assert!(!strong.is_that_of(&weak) && !strong.is_that_of(&version(&[OLD, DATE])));
        for (then, now) in [
            (&["ETag: \"a\""][..], &["ETag: \"b\""][..]),
            (&["ETag: W/\"a\""], &["ETag: W/\"b\""]),
            (&["ETag: W/\"a\""], &["ETag: \"b\""]),
            (&["ETag: W/\"a\"", OLD, DATE], &["ETag: W/\"a\"", NEWER, DATE]),
            (&[OLD, DATE], &[NEWER, DATE]),
        ] {
            assert!(version(then).difference(&version(now)).is_some(), "{then:?} {now:?}");
        }
    }

    #[test]
    fn what_is_left_out_or_says_nothing_is_no_difference() {
        for (then, now) in [
            (&["ETag: \"a\"", OLD, DATE][..], &["ETag: \"a\"", NEWER, DATE][..]),
            (&["ETag: \"a\"", OLD, DATE], &["ETag: \"a\""]),
            (&["ETag: W/\"a\"", OLD, DATE], &[OLD]),
            (&[OLD, DATE], &[]),
            (&[], &[NEWER, DATE]),
            // A server that gives the date of the answer instead of the film's.
            (&[OLD, "Date: Sun, 06 Nov 1994 08:49:37 GMT"], &[NEWER, DATE]),
        ] {
            assert_eq!(version(then).difference(&version(now)), None, "{then:?} {now:?}");
        }
    }
}
