//! What is known of files and of parts of them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use anabranch_media::playlist::Place;
use url::Url;

/// Something by the places where it is.
#[derive(Debug)]
pub(super) struct Places<T> {
    /// By where a part begins: where it ends, and what it is. A whole file has no end.
    files: HashMap<Url, BTreeMap<u64, (u64, T)>>,
    count: usize,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self { files: HashMap::new(), count: 0 }
    }
}

/// All of a file.
const WHOLE: Range<u64> = 0..u64::MAX;

impl<T> Places<T> {
    /// How many places are known.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// What is at a place from now on.
    pub(super) fn insert(&mut self, place: &Place, what: T) {
        let Range { start, end } = place.bytes.clone().unwrap_or(WHOLE);
        let parts = self.files.entry(place.url.clone()).or_default();
        if parts.insert(start, (end, what)).is_none() {
            self.count += 1;
        }
    }

    /// Nothing is known of a place any more.
    pub(super) fn remove(&mut self, place: &Place) {
        let start = place.bytes.as_ref().map_or(0, |bytes| bytes.start);
        let Some(parts) = self.files.get_mut(&place.url) else { return };
        if parts.remove(&start).is_some() {
            self.count -= 1;
        }
        if parts.is_empty() {
            self.files.remove(&place.url);
        }
    }

    /// What these bytes of a file are in (`None`: all of it), and where that is.
    pub(super) fn find(&self, url: &Url, asked: Option<Range<u64>>) -> Option<(Place, &T)> {
        let asked = asked.unwrap_or(WHOLE);
        let (start, (end, what)) = self.files.get(url)?.range(..=asked.start).next_back()?;
        let part = *start..*end;
        let bytes = (part != WHOLE).then_some(part);
        (asked.end <= *end).then(|| (Place { url: url.clone(), bytes }, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(bytes: Option<Range<u64>>) -> Place {
        Place { url: Url::parse("http://a.example/film").unwrap(), bytes }
    }

    #[test]
    fn what_is_asked_for_is_found_in_the_part_that_has_all_of_it() {
        let mut places = Places::default();
        for (bytes, name) in [(10..20, "one"), (20..30, "two"), (40..50, "three")] {
            places.insert(&place(Some(bytes)), name);
        }
        let url = place(None).url;
        let found = |asked: Option<Range<u64>>| {
            places.find(&url, asked).map(|(place, name)| (place.bytes.unwrap().start, *name))
        };
        assert_eq!(found(Some(10..20)), Some((10, "one")));
        assert_eq!(found(Some(25..26)), Some((20, "two")));
        for nothing in [Some(0..5), Some(15..25), Some(30..31), Some(40..51), Some(40..u64::MAX), None] {
            assert_eq!(found(nothing.clone()), None, "{nothing:?}");
        }
    }

    #[test]
    fn every_part_of_a_whole_file_is_that_file() {
        let mut places = Places::default();
        places.insert(&place(None), ());
        let url = place(None).url;
        for asked in [None, Some(0..1), Some(7..u64::MAX)] {
            assert_eq!(places.find(&url, asked), Some((place(None), &())));
        }
        places.remove(&place(None));
        assert_eq!((places.find(&url, None), places.len()), (None, 0));
    }
}
