//! Groups by their names. The kernel's programs know them by numbers.

use std::fmt;
use std::str::FromStr;

/// Bytes of a name in `struct rules` (bpf/weights.h), the zero behind it included.
const LONGEST: usize = 32;
/// Most groups.
pub const MOST_GROUPS: usize = 16;
/// Bytes of what is before the names in `struct rules`, and of all of it.
const BEFORE_NAMES: usize = 8;
pub(super) const GROUPS_SIZE: usize = BEFORE_NAMES + MOST_GROUPS * LONGEST;

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
pub(crate) struct Groups {
    names: [Option<GroupName>; MOST_GROUPS],
    /// Those that programs have asked for which give weights themselves, by their numbers' bits.
    asked_for: u32,
}

impl Default for Groups {
    fn default() -> Self {
        let mut names = [None; MOST_GROUPS];
        names[0] = Some(GroupName::DEFAULT);
        Self { names, asked_for: 0 }
    }
}

impl Groups {
    /// Groups of these names, which rules say, and of one that is `asked` for. One that was there `before` keeps
    /// its number, so that its members stay; a new one gets a number that nobody had, as long as there are such.
    /// One that was asked for stays as long as it `is_used`. `None`: there is no room for all of them.
    pub(super) fn following(
        before: &Self,
        names: impl Iterator<Item = GroupName> + Clone,
        asked: Option<GroupName>,
        is_used: impl Fn(u32) -> bool,
    ) -> Option<Self> {
        let mut groups = Self::default();
        for (number, name) in before.names.iter().enumerate() {
            let Some(name) = *name else { continue };
            let number_of_it = number as u32;
            let is_said = names.clone().chain(asked).any(|other| other == name);
            if is_said || (before.is_asked_for(number_of_it) && is_used(number_of_it)) {
                groups.names[number] = Some(name);
                groups.asked_for |= before.asked_for & 1 << number;
            }
        }
        for name in names.chain(asked) {
            if groups.number(name).is_some() {
                continue;
            }
            let is_free = |number: &usize| groups.names[*number].is_none();
            let fresh = (0..MOST_GROUPS).find(|number| is_free(number) && before.names[*number].is_none());
            let number = fresh.or_else(|| (0..MOST_GROUPS).find(is_free))?;
            groups.names[number] = Some(name);
        }
        if let Some(number) = asked.and_then(|asked| groups.number(asked)) {
            groups.asked_for |= 1 << number;
        }
        Some(groups)
    }

    /// Whether a program has asked for it.
    pub(crate) fn is_asked_for(&self, number: u32) -> bool {
        self.asked_for & 1 << number != 0
    }

    pub(crate) fn number(&self, name: GroupName) -> Option<u32> {
        self.names.iter().position(|other| *other == Some(name)).map(|number| number as u32)
    }

    pub(crate) fn name(&self, number: u32) -> Option<GroupName> {
        *self.names.get(number as usize)?
    }

    pub(super) fn to_bytes(self) -> [u8; GROUPS_SIZE] {
        let mut bytes = [0; GROUPS_SIZE];
        bytes[..4].copy_from_slice(&self.asked_for.to_ne_bytes());
        for (place, name) in bytes[BEFORE_NAMES..].chunks_exact_mut(LONGEST).zip(self.names) {
            place.copy_from_slice(&name.map_or([0; LONGEST], |name| name.0));
        }
        bytes
    }

    /// The inverse of [`Groups::to_bytes`]; `None` for what that never writes.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let asked_for = u32::from_ne_bytes(*bytes.first_chunk()?);
        let mut names = [None; MOST_GROUPS];
        for (group, name) in names.iter_mut().zip(bytes.get(BEFORE_NAMES..)?.chunks_exact(LONGEST)) {
            let text = str::from_utf8(name).ok()?.trim_end_matches('\0');
            *group = if text.is_empty() { None } else { Some(text.parse().ok()?) };
        }
        (names[0] == Some(GroupName::DEFAULT) && asked_for >> MOST_GROUPS == 0)
            .then_some(Self { names, asked_for })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<GroupName> {
        text.split(' ').map(|name| name.parse().unwrap()).collect()
    }

    /// Groups that rules say, and nobody asks for.
    fn said(before: &Groups, names: impl Iterator<Item = GroupName> + Clone) -> Groups {
        Groups::following(before, names, None, |_| true).unwrap()
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for right in ["a", "uplink-2", "Campus.north_1", &"x".repeat(31)] {
            assert_eq!(right.parse::<GroupName>().unwrap().as_str(), right);
        }
        for wrong in ["", "two words", "grün", "a\"", "a\nb", &"x".repeat(32)] {
            assert!(wrong.parse::<GroupName>().is_err(), "{wrong}");
        }
        let groups = said(&Groups::default(), names("a b").into_iter());
        assert_eq!(Groups::from_bytes(&groups.to_bytes()), Some(groups));
        assert_eq!(Groups::from_bytes(&[0; GROUPS_SIZE]), None);
        assert_eq!(Groups::from_bytes(&[0xff; GROUPS_SIZE]), None);
    }

    #[test]
    fn a_group_that_stays_keeps_its_number() {
        let before = said(&Groups::default(), names("a b c").into_iter());
        assert_eq!(
            [1, 2, 3].map(|number| before.name(number)),
            ["a", "b", "c"].map(|name| name.parse().ok())
        );
        // The number of the one that goes is nobody's, while others are free.
        let after = said(&before, names("c d a").into_iter());
        let numbers = names("default a c d").into_iter().map(|name| after.number(name));
        assert_eq!(numbers.collect::<Vec<_>>(), [Some(0), Some(1), Some(3), Some(4)]);
        // All at once are others.
        let many = |letter: char| (1..MOST_GROUPS).map(move |n| format!("{letter}{n}").parse().unwrap());
        let full = said(&before, many('x'));
        let other = said(&full, many('y'));
        assert!(many('y').all(|name| other.number(name).is_some()), "{other:?}");
    }
    #[test]
    fn a_group_that_was_asked_for_stays_while_it_is_used() {
        let name = |text: &str| text.parse::<GroupName>().unwrap();
        let ask = |before: &Groups, text: &str, is_used: bool| {
            Groups::following(before, names("a b").into_iter(), Some(name(text)), |_| is_used)
        };
        let before = ask(&Groups::default(), "campus", false).unwrap();
        assert_eq!(before.number(name("campus")), Some(3));
        assert!(before.is_asked_for(3) && !before.is_asked_for(1));
        assert_eq!(Groups::from_bytes(&before.to_bytes()), Some(before));
        let after =
            |is_used| Groups::following(&before, names("b c").into_iter(), None, |_| is_used).unwrap();
        assert_eq!((after(true).number(name("campus")), after(true).number(name("c"))), (Some(3), Some(4)));
        assert_eq!(after(false).number(name("campus")), None);

        // Rules and a program may mean the same one.
        let both = ask(&before, "a", true).unwrap();
        assert!(both.is_asked_for(1) && both.is_asked_for(3));

        // A full house has room for what nobody uses any more.
        let full =
            (3..MOST_GROUPS).try_fold(Groups::default(), |before, n| ask(&before, &format!("p{n}"), true));
        let full = full.unwrap();
        assert_eq!(ask(&full, "late", true), None);
        assert!(ask(&full, "late", false).is_some());
    }
}
