//! The Range header (RFC 9110 section 14).

use std::ops::Range;

use http::HeaderMap;
use http::header::{self, HeaderName};

/// More ranges than this in one request get the whole file instead (section 14.2 allows it).
const MOST_RANGES: usize = 16;

/// What of a file is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    /// All of it: no Range header, or one that is ignored.
    Whole,
    /// These parts, in this order; at least one, none of them empty, none overlapping.
    Parts(Vec<Range<u64>>),
    /// 416: no byte of it is in the file.
    Unsatisfiable,
}

/// The one range that a GET asks for without conditions; `None`: it asks for something else. One that is open
/// ends at [`u64::MAX`].
pub fn unconditional_range(headers: &HeaderMap) -> Option<Range<u64>> {
    const CONDITIONS: [HeaderName; 5] = [
        header::IF_RANGE,
        header::IF_MATCH,
        header::IF_NONE_MATCH,
        header::IF_MODIFIED_SINCE,
        header::IF_UNMODIFIED_SINCE,
    ];
    if CONDITIONS.iter().any(|name| headers.contains_key(name)) {
        return None;
    }
    match select(headers, u64::MAX) {
        Selection::Parts(parts) => <[_; 1]>::try_from(parts).ok().map(|[part]| part),
        Selection::Whole | Selection::Unsatisfiable => None,
    }
}

/// Reads the Range header of a GET for a file of `size` bytes. Ignored are: another unit, bad syntax, more
/// than one header, too many ranges, and ranges that overlap, which ask for more than the file.
pub(super) fn select(headers: &HeaderMap, size: u64) -> Selection {
    let mut values = headers.get_all(header::RANGE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return Selection::Whole };
    let Some(parts) = value.to_str().ok().and_then(|value| parse(value, size)) else {
        return Selection::Whole;
    };
    if parts.is_empty() {
        return Selection::Unsatisfiable;
    }
    let mut ordered: Vec<_> = parts.iter().collect();
    ordered.sort_by_key(|part| part.start);
    if ordered.windows(2).any(|pair| pair[0].end > pair[1].start) {
        return Selection::Whole;
    }
    Selection::Parts(parts)
}

/// The satisfiable ranges; `None` when the header is to be ignored.
fn parse(value: &str, size: u64) -> Option<Vec<Range<u64>>> {
    let (unit, set) = value.split_once('=')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let mut parts = Vec::new();
    let mut count = 0;
    // Empty list elements are allowed and mean nothing (section 5.6.1.2).
    for spec in set.split(',').map(|spec| spec.trim_matches([' ', '\t'])).filter(|spec| !spec.is_empty()) {
        count += 1;
        if count > MOST_RANGES {
            return None;
        }
        let part = match spec.split_once('-')? {
            ("", suffix) => size.saturating_sub(number(suffix)?)..size,
            (first, "") => number(first)?..size,
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                if last < first {
                    return None;
                }
                first..last.saturating_add(1).min(size)
            }
        };
        if !part.is_empty() {
            parts.push(part);
        }
    }
    (count > 0).then_some(parts)
}

/// Digits only (`parse` alone would take a sign); a number beyond any file is the largest there is.
fn number(digits: &str) -> Option<u64> {
    let valid = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    valid.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(value: &str, size: u64) -> Selection {
        select(&HeaderMap::from_iter([(header::RANGE, value.parse().unwrap())]), size)
    }

    #[test]
    #[allow(clippy::single_range_in_vec_init, reason = "a list of one part")]
    fn every_form() {
        use Selection::{Parts, Unsatisfiable, Whole};
        let many = format!("bytes={}", (0..17).map(|n| format!("{0}-{0},", n * 2)).collect::<String>());
        let table = [
            ("bytes=0-0", Parts(vec![0..1])),
            ("bytes=0-99", Parts(vec![0..100])),
            ("bytes=10-999", Parts(vec![10..100])),
            ("BYTES=10-", Parts(vec![10..100])),
            ("bytes=-10", Parts(vec![90..100])),
            ("bytes=-1000", Parts(vec![0..100])),
            ("bytes=99999999999999999999-", Unsatisfiable),
            ("bytes=5-99999999999999999999", Parts(vec![5..100])),
            ("bytes=100-", Unsatisfiable),
            ("bytes=-0", Unsatisfiable),
            ("bytes=100-,200-300", Unsatisfiable),
            ("bytes=100-,0-1", Parts(vec![0..2])),
            ("bytes=90-,0-9, 20-29", Parts(vec![90..100, 0..10, 20..30])),
            ("bytes=, 0-1 ,,", Parts(vec![0..2])),
            ("bytes=0-10,10-20", Whole),
            ("bytes=0-,0-,0-", Whole),
            (&many, Whole),
            ("bytes=5-4", Whole),
            ("bytes=", Whole),
            ("bytes=,", Whole),
            ("bytes=a-b", Whole),
            ("bytes=+1-2", Whole),
            ("bytes=1", Whole),
            ("bytes=-", Whole),
            ("bytes=0-1-2", Whole),
            ("lines=0-1", Whole),
            ("bytes 0-1", Whole),
        ];
        for (value, selection) in table {
            assert_eq!(of(value, 100), selection, "{value}");
        }
        assert_eq!(of("bytes=0-", 0), Unsatisfiable);
        assert_eq!(select(&HeaderMap::new(), 100), Whole);
        let twice: HeaderMap = ["bytes=0-1", "bytes=3-4"]
            .map(|value| (header::RANGE, value.parse().unwrap()))
            .into_iter()
            .collect();
        assert_eq!(select(&twice, 100), Whole);
    }

    #[test]
    fn a_range_without_conditions() {
        let asked = |fields: &[(HeaderName, &str)]| {
            let fields = fields.iter().map(|(name, value)| (name.clone(), value.parse().unwrap()));
            unconditional_range(&fields.collect())
        };
        assert_eq!(asked(&[(header::RANGE, "bytes=10-19")]), Some(10..20));
        assert_eq!(asked(&[(header::RANGE, "bytes=10-")]), Some(10..u64::MAX));
        assert_eq!(asked(&[(header::RANGE, "bytes=10-19,30-39")]), None);
        assert_eq!(asked(&[(header::RANGE, "bytes=10-19"), (header::IF_RANGE, "\"one\"")]), None);
        assert_eq!(asked(&[]), None);
    }

    proptest! {
        #[test]
        fn parts_are_in_the_file_and_never_more_than_it(value in "bytes=([0-9]{0,3}-[0-9]{0,3},?){0,20}", size in 0_u64..1000) {
            if let Selection::Parts(parts) = of(&value, size) {
                prop_assert!(parts.iter().all(|part| !part.is_empty() && part.end <= size));
                prop_assert!(parts.iter().map(|part| part.end - part.start).sum::<u64>() <= size);
            }
        }
    }
}
