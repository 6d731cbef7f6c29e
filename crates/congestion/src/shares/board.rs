//! What the members of a group said last.

use std::collections::BTreeMap;

use anabranch_units::{Duration, Rate, Time};

use super::{Standing, parts};

/// A member tells the others how it stands this often.
pub const TELL_INTERVAL: Duration = Duration::from_millis(100);
/// One that has told nothing for so long is not there any more.
const FORGOTTEN: Duration = Duration::from_secs(1);
/// Most members of a group.
pub const MOST_MEMBERS: usize = 64;

/// A member's knowledge of the others.
#[derive(Clone, Debug, Default)]
pub struct Board(BTreeMap<u64, (Standing, Time)>);

impl Board {
    /// Another member told how it stands. One too many is not heard.
    pub fn hear(&mut self, member: u64, standing: Standing, now: Time) {
        self.forget(now);
        if self.0.len() < MOST_MEMBERS - 1 || self.0.contains_key(&member) {
            self.0.insert(member, (standing, now));
        }
    }

    /// Another member is gone.
    pub fn leave(&mut self, member: u64) {
        self.0.remove(&member);
    }

    /// How many others are there.
    pub fn others(&self) -> usize {
        self.0.len()
    }

    /// The part of a member that stands so itself.
    pub fn part(&mut self, own: Standing, now: Time) -> Rate {
        self.forget(now);
        if self.0.is_empty() {
            return own.allowed;
        }
        let members: Vec<Standing> =
            std::iter::once(own).chain(self.0.values().map(|(standing, _)| *standing)).collect();
        parts(&members).first().copied().unwrap_or(own.allowed)
    }

    fn forget(&mut self, now: Time) {
        self.0.retain(|_, (_, heard)| now.since(*heard) < FORGOTTEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vps::Weight;

    fn greedy(weight: f64) -> Standing {
        let weight = Weight::new(weight).unwrap();
        Standing { weight, allowed: Rate::from_kbps(600), wanted: Rate::from_mbps(9) }
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn who_leaves_or_says_nothing_has_no_part_any_more() {
        let mut board = Board::default();
        assert_eq!(board.part(greedy(1.0), at(0)), Rate::from_kbps(600));
        board.hear(1, greedy(3.0), at(0));
        board.hear(2, greedy(2.0), at(500));
        assert_eq!(board.part(greedy(1.0), at(900)), Rate::from_kbps(300));
        // The first one crashed, the second one says that it goes.
        assert_eq!(board.part(greedy(1.0), at(1000)), Rate::from_kbps(400));
        board.leave(2);
        assert_eq!(board.part(greedy(1.0), at(1000)), Rate::from_kbps(600));
        assert_eq!(board.others(), 0);
    }

    #[test]
    fn it_does_not_grow_without_bound() {
        let mut board = Board::default();
        (0..1000).for_each(|member| board.hear(member, greedy(1.0), at(member)));
        assert_eq!(board.others(), MOST_MEMBERS - 1);
        // Those that were heard go on being heard.
        board.hear(0, greedy(1.0), at(999));
        board.hear(5000, greedy(1.0), at(999));
        assert!(board.0.contains_key(&0) && !board.0.contains_key(&5000));
    }
}
