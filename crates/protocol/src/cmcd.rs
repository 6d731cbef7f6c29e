//! What a player says of itself and of what it asks for next: Common Media Client Data (CTA-5004), in headers
//! or in a query. Nobody vouches for it.

use std::ops::Range;

use anabranch_units::{Duration, Rate};
use http::HeaderMap;
use percent_encoding::percent_decode_str;
use sfv::{BareItem, Dictionary, ListEntry, Parser};

/// The headers that have it.
const HEADERS: [&str; 4] = ["cmcd-request", "cmcd-object", "cmcd-status", "cmcd-session"];
/// What begins it in a query.
const QUERY: &str = "CMCD=";
/// Longest that is looked at.
const LONGEST: usize = 4096;
/// No player has more in its buffer, and no object plays longer.
const MOST: Duration = Duration::from_secs(3600);

/// What of it is of use here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cmcd {
    /// How much the player has in its buffer (`bl`).
    pub buffer: Option<Duration>,
    /// How long the object plays (`d`).
    pub play_time: Option<Duration>,
    /// Whether the player waits to begin, or to go on (`su`, `bs`).
    pub is_urgent: bool,
    /// Where the object is that is asked for next, seen from this one (`nor`).
    pub next: Option<String>,
    /// What the highest rung needs that the player may go to (`tb`).
    pub top: Option<Rate>,
    /// Which bytes of it, or of this object where no other is told (`nrr`).
    pub next_bytes: Option<Range<u64>>,
}

impl Cmcd {
    /// What a request says in its headers and, where these do not, in its query.
    pub fn of(headers: &HeaderMap, query: Option<&str>) -> Self {
        let lines = HEADERS.iter().flat_map(|name| headers.get_all(*name));
        let mut said = Self::default();
        lines.filter_map(|line| line.to_str().ok()).for_each(|line| said.read(line));
        for pair in query.unwrap_or_default().split('&').filter_map(|pair| pair.strip_prefix(QUERY)) {
            if pair.len() <= 3 * LONGEST {
                said.read(&percent_decode_str(pair).decode_utf8_lossy());
            }
        }
        said
    }

    /// How much the player has to play, as it says: nothing while it waits.
    pub fn to_play(&self) -> Option<Duration> {
        if self.is_urgent { Some(Duration::ZERO) } else { self.buffer }
    }

    /// Adds what a text says that was not said yet.
    fn read(&mut self, text: &str) {
        let keys = (text.len() <= LONGEST).then(|| Parser::new(text).parse::<Dictionary>().ok()).flatten();
        for (key, value) in keys.iter().flatten() {
            let ListEntry::Item(item) = value else { continue };
            let number = || match &item.bare_item {
                BareItem::Integer(number) => u64::try_from(i64::from(*number)).ok(),
                _ => None,
            };
            let duration = || number().map(|millis| Duration::from_millis(millis).min(MOST));
            let rate = || number().map(Rate::from_kbps);
            let text = || item.bare_item.as_string().map(|text| text.as_str());
            match key.as_str() {
                "bl" => self.buffer = self.buffer.or_else(duration),
                "d" => self.play_time = self.play_time.or_else(duration),
                "tb" => self.top = self.top.or_else(rate),
                "su" | "bs" => self.is_urgent |= item.bare_item.as_boolean() == Some(true),
                "nor" if self.next.is_none() => {
                    self.next = text().map(|next| percent_decode_str(next).decode_utf8_lossy().into_owned());
                }
                "nrr" if self.next_bytes.is_none() => self.next_bytes = text().and_then(bytes),
                _ => {}
            }
        }
    }
}

/// A query without what a player says in it.
pub fn without_cmcd(query: &str) -> Option<String> {
    let others: Vec<_> = query.split('&').filter(|pair| !pair.starts_with(QUERY)).collect();
    (!others.is_empty()).then(|| others.join("&"))
}

/// Whether a header is one of them.
pub fn is_cmcd(name: &str) -> bool {
    HEADERS.iter().any(|header| name.eq_ignore_ascii_case(header))
}

/// `FIRST-LAST`, or `FIRST-` up to the end.
fn bytes(text: &str) -> Option<Range<u64>> {
    let (first, last) = text.split_once('-')?;
    let first: u64 = first.parse().ok()?;
    let end = if last.is_empty() { u64::MAX } else { last.parse::<u64>().ok()?.checked_add(1)? };
    (first < end).then_some(first..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(text: &str) -> Cmcd {
        Cmcd::of(&HeaderMap::from_iter([("cmcd-request".parse().unwrap(), text.parse().unwrap())]), None)
    }

    #[test]
    fn what_is_of_use_is_read_from_headers_and_query() {
        let said =
            header(r#"bl=21300,br=3200,tb=6000,d=4000,nor="..%2F300kbps%2F35.m4v",nrr="10-19",sid="a,b",su"#);
        assert_eq!(said.buffer, Some(Duration::from_millis(21_300)));
        assert_eq!(said.play_time, Some(Duration::from_secs(4)));
        assert_eq!(
            (said.next.as_deref(), said.next_bytes.clone()),
            (Some("../300kbps/35.m4v"), Some(10..20))
        );
        assert!(said.is_urgent);
        assert_eq!(said.top, Some(Rate::from_kbps(6000)));
        let query = "token=1&CMCD=bl%3D500%2Csu%2Cnrr%3D%227-%22&x";
        let said = Cmcd::of(&HeaderMap::new(), Some(query));
        assert_eq!((said.buffer, said.next_bytes), (Some(Duration::from_millis(500)), Some(7..u64::MAX)));
        assert_eq!(without_cmcd(query).as_deref(), Some("token=1&x"));
        assert_eq!(without_cmcd("CMCD=bl%3D500"), None);
    }

    #[test]
    fn what_is_wrong_or_beyond_bounds_is_not_said() {
        for wrong in
            ["", "bl", "bl=-5", "bl=x", "bl=\"5\"", "bl=1,", &format!("sid=\"{}\",bl=5", "a".repeat(5000))]
        {
            assert_eq!(header(wrong).buffer, None, "{wrong}");
        }
        assert_eq!(header("bl=999999999999999").buffer, Some(MOST));
        for wrong in ["20-10", "-5", "a-b", "0-18446744073709551615"] {
            assert_eq!(header(&format!("nrr=\"{wrong}\"")).next_bytes, None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,100}") {
            let _ = Cmcd::of(&HeaderMap::new(), Some(&format!("CMCD={text}")));
            Cmcd::default().read(&text);
        }
    }
}
