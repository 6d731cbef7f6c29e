//! Groups by their names. The kernel's programs know them by numbers.

use std::fmt;
use std::str::FromStr;

/// Bytes of a name in `struct rules` (bpf/weights.h), the zero behind it included.
const LONGEST: usize = 32;
/// Most groups.
pub const MOST_GROUPS: usize = 16;
/// Bytes of all names.
pub(super) const NAMES_SIZE: usize = MOST_GROUPS * LONGEST;

/// What a group is called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct GroupName([u8; LONGEST]);

impl GroupName {
    /// The group of what no rule is for, and of rules that name none.
    pub const DEFAULT: Self = {
        let mut name = [0; LONGEST];
        let bytes = *b"default";
        let mut at = 0;
        while at < bytes.len() {
            name[at] = bytes[at];
            at += 1;
        }
        Self(name)
    };

    /// The name.
    pub fn as_str(&self) -> &str {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(LONGEST);
        str::from_utf8(&self.0[..end]).unwrap_or_default()
    }
}

impl FromStr for GroupName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_right = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if text.is_empty() || text.len() >= LONGEST || !text.chars().all(is_right) {
            return Err(format!(
                "a group's name has 1 to {} letters, digits, '-', '_' or '.', such as \"uplink\"",
                LONGEST - 1
            ));
        }
        let mut name = [0; LONGEST];
        name[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self(name))
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// The groups by their numbers. The first one is always [`GroupName::DEFAULT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Groups([Option<GroupName>; MOST_GROUPS]);

impl Default for Groups {
    fn default() -> Self {
        let mut groups = [None; MOST_GROUPS];
        groups[0] = Some(GroupName::DEFAULT);
        Self(groups)
    }
}

impl Groups {
    /// Groups of these names. One that was there `before` keeps its number, so that its members stay; a new
    /// one gets a number that nobody had, as long as there are such.
    pub(super) fn following(before: &Self, names: impl Iterator<Item = GroupName> + Clone) -> Self {
        let mut groups = Self::default();
        for (number, name) in before.0.iter().enumerate() {
            let stays = name.is_some_and(|name| names.clone().any(|other| other == name));
            groups.0[number] = if stays { *name } else { groups.0[number] };
        }
        for name in names {
            if groups.number(name).is_some() {
                continue;
            }
            let is_free = |number: &usize| groups.0[*number].is_none();
            let fresh = (0..MOST_GROUPS).find(|number| is_free(number) && before.0[*number].is_none());
            if let Some(number) = fresh.or_else(|| (0..MOST_GROUPS).find(is_free)) {
                groups.0[number] = Some(name);
            }
        }
        groups
    }

    pub(super) fn number(&self, name: GroupName) -> Option<u32> {
        self.0.iter().position(|other| *other == Some(name)).map(|number| number as u32)
    }

    pub(crate) fn name(&self, number: u32) -> Option<GroupName> {
        *self.0.get(number as usize)?
    }

    pub(super) fn to_bytes(self) -> [u8; NAMES_SIZE] {
        let mut bytes = [0; NAMES_SIZE];
        for (place, name) in bytes.chunks_exact_mut(LONGEST).zip(self.0) {
            place.copy_from_slice(&name.map_or([0; LONGEST], |name| name.0));
        }
        bytes
    }

    /// The inverse of [`Groups::to_bytes`]; `None` for what that never writes.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut groups = [None; MOST_GROUPS];
        for (group, name) in groups.iter_mut().zip(bytes.chunks_exact(LONGEST)) {
            let text = str::from_utf8(name).ok()?.trim_end_matches('\0');
            *group = if text.is_empty() { None } else { Some(text.parse().ok()?) };
        }
        (groups[0] == Some(GroupName::DEFAULT)).then_some(Self(groups))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<GroupName> {
        text.split(' ').map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for right in ["a", "uplink-2", "Campus.north_1", &"x".repeat(31)] {
            assert_eq!(right.parse::<GroupName>().unwrap().as_str(), right);
        }
        for wrong in ["", "two words", "grün", "a\"", "a\nb", &"x".repeat(32)] {
            assert!(wrong.parse::<GroupName>().is_err(), "{wrong}");
        }
        let groups = Groups::following(&Groups::default(), names("a b").into_iter());
        assert_eq!(Groups::from_bytes(&groups.to_bytes()), Some(groups));
        assert_eq!(Groups::from_bytes(&[0; NAMES_SIZE]), None);
        assert_eq!(Groups::from_bytes(&[0xff; NAMES_SIZE]), None);
    }

    #[test]
    fn a_group_that_stays_keeps_its_number() {
        let before = Groups::following(&Groups::default(), names("a b c").into_iter());
        assert_eq!(
            [1, 2, 3].map(|number| before.name(number)),
            ["a", "b", "c"].map(|name| name.parse().ok())
        );
        // The number of the one that goes is nobody's, while others are free.
        let after = Groups::following(&before, names("c d a").into_iter());
        let numbers = names("default a c d").into_iter().map(|name| after.number(name));
        assert_eq!(numbers.collect::<Vec<_>>(), [Some(0), Some(1), Some(3), Some(4)]);
        // All at once are others.
        let many = |letter: char| (1..MOST_GROUPS).map(move |n| format!("{letter}{n}").parse().unwrap());
        let full = Groups::following(&before, many('x'));
        let other = Groups::following(&full, many('y'));
        assert!(many('y').all(|name| other.number(name).is_some()), "{other:?}");
    }
}
