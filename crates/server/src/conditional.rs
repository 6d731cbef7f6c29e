//! Conditional requests (RFC 9110 sections 13.1 and 13.2.2).

use http::{HeaderMap, HeaderName, header};
use httpdate::HttpDate;

/// What a file is recognised by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validators {
    /// A strong entity tag, in quotes.
    pub etag: String,
    /// When the file was changed; `None` when that is no date HTTP can write.
    pub modified: Option<HttpDate>,
}

/// What the preconditions of a request say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Do what the method says.
    Proceed,
    /// 304: the client has it.
    NotModified,
    /// 412: it is not what the client thinks it is.
    Failed,
}

/// Evaluates the preconditions of a GET or HEAD in the order of section 13.2.2. A date that does not parse is
/// ignored, as is a date when the file has none.
pub(super) fn evaluate(headers: &HeaderMap, file: &Validators) -> Verdict {
    if headers.contains_key(header::IF_MATCH) {
        if !any_tag(headers, header::IF_MATCH, |weak, tag| !weak && tag == file.etag) {
            return Verdict::Failed;
        }
    } else if let (Some(date), Some(modified)) = (date(headers, header::IF_UNMODIFIED_SINCE), file.modified)
        && modified > date
    {
        return Verdict::Failed;
    }
    if headers.contains_key(header::IF_NONE_MATCH) {
        if any_tag(headers, header::IF_NONE_MATCH, |_, tag| tag == file.etag) {
            return Verdict::NotModified;
        }
    } else if let (Some(date), Some(modified)) = (date(headers, header::IF_MODIFIED_SINCE), file.modified)
        && modified <= date
    {
        return Verdict::NotModified;
    }
    Verdict::Proceed
}

/// Whether a Range header counts (section 13.1.5): there is no If-Range, or it names exactly this file.
pub(super) fn range_applies(headers: &HeaderMap, file: &Validators) -> bool {
    let Some(value) = headers.get(header::IF_RANGE) else { return true };
    if value.as_bytes() == file.etag.as_bytes() {
        return true;
    }
    let date = date(headers, header::IF_RANGE);
    date.is_some() && date == file.modified
}

fn date(headers: &HeaderMap, name: HeaderName) -> Option<HttpDate> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

/// Whether `matches(weak, tag)` holds for a tag of the list, or the list is `*`.
fn any_tag(headers: &HeaderMap, name: HeaderName, matches: impl Fn(bool, &str) -> bool) -> bool {
    headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).any(|list| {
        let mut rest = list.trim();
        if rest == "*" {
            return true;
        }
        while !rest.is_empty() {
            let tag = rest.strip_prefix("W/");
            let weak = tag.is_some();
            let tag = tag.unwrap_or(rest);
            // A tag may contain commas, so it ends at its second quote.
            let Some(end) = tag.strip_prefix('"').and_then(|inner| inner.find('"')).map(|at| at + 2) else {
                break;
            };
            if matches(weak, &tag[..end]) {
                return true;
            }
            rest = tag[end..].trim_start_matches([' ', '\t', ',']);
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const EXACT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

    fn file() -> Validators {
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        Validators { etag: "\"a,b\"".into(), modified: Some(modified.into()) }
    }

    fn headers(list: &[(HeaderName, &str)]) -> HeaderMap {
        list.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn preconditions_are_evaluated_in_the_order_of_the_rfc() {
        use Verdict::{Failed, NotModified, Proceed};
        use header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE};
        let table: &[(&[(HeaderName, &str)], Verdict)] = &[
            (&[], Proceed),
            (&[(IF_MATCH, "\"a,b\"")], Proceed),
            (&[(IF_MATCH, "\"x\", W/\"y\" ,\"a,b\"")], Proceed),
            (&[(IF_MATCH, "\"x\""), (IF_MATCH, "\"a,b\"")], Proceed),
            (&[(IF_MATCH, "*")], Proceed),
            (&[(IF_MATCH, "W/\"a,b\"")], Failed),
            (&[(IF_MATCH, "\"a\"")], Failed),
            (&[(IF_MATCH, "a,b")], Failed),
            (&[(IF_MATCH, "\"a,b")], Failed),
            (&[(IF_UNMODIFIED_SINCE, BEFORE)], Failed),
            (&[(IF_UNMODIFIED_SINCE, EXACT)], Proceed),
            (&[(IF_UNMODIFIED_SINCE, "yesterday")], Proceed),
            // If-Match silences If-Unmodified-Since.
            (&[(IF_MATCH, "\"a,b\""), (IF_UNMODIFIED_SINCE, BEFORE)], Proceed),
            (&[(IF_NONE_MATCH, "\"a,b\"")], NotModified),
            (&[(IF_NONE_MATCH, "W/\"a,b\"")], NotModified),
            (&[(IF_NONE_MATCH, "*")], NotModified),
            (&[(IF_NONE_MATCH, "\"x\"")], Proceed),
            (&[(IF_MODIFIED_SINCE, BEFORE)], Proceed),
            (&[(IF_MODIFIED_SINCE, EXACT)], NotModified),
            (&[(IF_MODIFIED_SINCE, AFTER)], NotModified),
            // If-None-Match silences If-Modified-Since.
            (&[(IF_NONE_MATCH, "\"x\""), (IF_MODIFIED_SINCE, AFTER)], Proceed),
            // The first group comes first.
            (&[(IF_MATCH, "\"x\""), (IF_NONE_MATCH, "\"a,b\"")], Failed),
            (&[(IF_MATCH, "*"), (IF_NONE_MATCH, "\"a,b\"")], NotModified),
        ];
        for (list, verdict) in table {
            assert_eq!(evaluate(&headers(list), &file()), *verdict, "{list:?}");
        }
    }

    #[test]
    fn if_range_wants_the_very_same_file() {
        for (value, applies) in [
            ("\"a,b\"", true),
            ("W/\"a,b\"", false),
            ("\"x\"", false),
            (EXACT, true),
            (BEFORE, false),
            (AFTER, false),
            ("x", false),
        ] {
            assert_eq!(range_applies(&headers(&[(header::IF_RANGE, value)]), &file()), applies, "{value}");
        }
        assert!(range_applies(&HeaderMap::new(), &file()));
        let undated = Validators { modified: None, ..file() };
        assert!(!range_applies(&headers(&[(header::IF_RANGE, "x")]), &undated));
    }
}
