//! Turns: which of the answers that run on one connection is sent next (RFC 9218), and what the connection
//! counts for meanwhile.
//!
//! Answers of a lower urgency number go first. Of those with the same one, answers that are of use in part
//! (*incremental*) share what there is by their weights, together with one of the others: the heaviest, or of
//! equals the oldest (section 10 leaves a server's own knowledge to it). A connection counts for what it
//! sends, so that a heavy answer that has to wait raises no light one: its weight is the largest among those
//! that share.
//!
//! An answer whose client takes nothing of it for now is *stuck*, one that has nothing to send for now
//! *pauses*: both let the others go on.

use std::collections::BTreeMap;

use anabranch_units::Bytes;

use crate::vps::{Served, Weight};

/// What a client says of an answer (RFC 9218, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    urgency: u8,
    is_incremental: bool,
}

impl Priority {
    /// The urgency of an answer of which nothing is said.
    pub const USUAL_URGENCY: u8 = 3;

    /// `None` for an urgency beyond 7.
    pub fn new(urgency: u8, is_incremental: bool) -> Option<Self> {
        (urgency <= 7).then_some(Self { urgency, is_incremental })
    }
}

impl Default for Priority {
    /// What holds where a client says nothing.
    fn default() -> Self {
        Self { urgency: Self::USUAL_URGENCY, is_incremental: false }
    }
}

/// An answer, by the order in which answers began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AnswerId(u64);

#[derive(Debug)]
struct Answer {
    priority: Priority,
    weight: Weight,
    served: Served,
    is_stuck: bool,
    pauses: bool,
}

/// The answers that run on a connection.
#[derive(Debug, Default)]
pub struct Turns {
    answers: BTreeMap<AnswerId, Answer>,
    next: u64,
    /// What the one that was sent last had been served: who comes in or back has had as much.
    clock: Served,
}

impl Turns {
    /// An answer begins.
    pub fn begin(&mut self, priority: Priority, weight: Weight) -> AnswerId {
        let id = AnswerId(self.next);
        self.next += 1;
        let answer = Answer { priority, weight, served: self.clock, is_stuck: false, pauses: false };
        self.answers.insert(id, answer);
        id
    }

    /// An answer has ended.
    pub fn end(&mut self, id: AnswerId) {
        self.answers.remove(&id);
    }

    /// It counts for this much from now on.
    pub fn set_weight(&mut self, id: AnswerId, weight: Weight) {
        if let Some(answer) = self.answers.get_mut(&id) {
            answer.weight = weight;
        }
    }

    /// So much of it is sent, in its turn.
    pub fn send(&mut self, id: AnswerId, bytes: Bytes) {
        if let Some(answer) = self.answers.get_mut(&id) {
            self.clock = answer.served.max(self.clock);
            answer.served = self.clock.more(bytes.get(), answer.weight);
        }
    }

    /// Whether its client takes nothing of it for now.
    pub fn set_stuck(&mut self, id: AnswerId, is_stuck: bool) {
        if let Some(answer) = self.answers.get_mut(&id) {
            answer.is_stuck = is_stuck;
        }
    }

    /// Whether it has nothing to send for now.
    pub fn set_pauses(&mut self, id: AnswerId, pauses: bool) {
        if let Some(answer) = self.answers.get_mut(&id) {
            answer.pauses = pauses;
        }
    }

    /// Whose turn it is.
    pub fn turn(&self) -> Option<AnswerId> {
        let sharing = self.sharing(|answer| !answer.is_stuck && !answer.pauses);
        sharing.min_by_key(|(id, answer)| (answer.served.max(self.clock), *id)).map(|(id, _)| id)
    }

    /// What the connection counts for; `None` when nothing is to be sent.
    pub fn weight(&self) -> Option<Weight> {
        self.sharing(|answer| !answer.is_stuck).map(|(_, answer)| answer.weight).max()
    }

    /// Those of the answers that `are_candidates` which share what is sent.
    fn sharing(&self, are_candidates: impl Fn(&Answer) -> bool) -> impl Iterator<Item = (AnswerId, &Answer)> {
        let candidates = || {
            self.answers.iter().filter(|(_, answer)| are_candidates(answer)).map(|(id, answer)| (*id, answer))
        };
        let urgency = candidates().map(|(_, answer)| answer.priority.urgency).min();
        let urgent = || candidates().filter(|(_, answer)| Some(answer.priority.urgency) == urgency);
        let alone = urgent()
            .filter(|(_, answer)| !answer.priority.is_incremental)
            .min_by_key(|(id, answer)| (std::cmp::Reverse(answer.weight), *id))
            .map(|(id, _)| id);
        let shares =
            |(id, answer): &(AnswerId, &Answer)| answer.priority.is_incremental || Some(*id) == alone;
        urgent().filter(shares).collect::<Vec<_>>().into_iter()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PIECE: Bytes = Bytes::kib(16);

    fn weight(weight: f64) -> Weight {
        Weight::new(weight).unwrap()
    }

    fn priority(urgency: u8, is_incremental: bool) -> Priority {
        Priority::new(urgency, is_incremental).unwrap()
    }

    /// How many of so many pieces each answer gets.
    fn pieces<const N: usize>(turns: &mut Turns, answers: [AnswerId; N], count: usize) -> [usize; N] {
        let mut had = [0; N];
        for _ in 0..count {
            let turn = turns.turn().unwrap();
            turns.send(turn, PIECE);
            had[answers.iter().position(|answer| *answer == turn).unwrap()] += 1;
        }
        had
    }

    #[test]
    fn what_is_urgent_goes_first_and_of_equals_the_first() {
        let mut turns = Turns::default();
        let answers = [
            turns.begin(priority(3, false), Weight::ONE),
            turns.begin(Priority::default(), Weight::ONE),
            turns.begin(priority(5, true), Weight::ONE),
        ];
        assert_eq!(pieces(&mut turns, answers, 9), [9, 0, 0]);
        let urgent = turns.begin(priority(0, false), Weight::ONE);
        assert_eq!(turns.turn(), Some(urgent));
        turns.end(urgent);
        turns.end(answers[0]);
        assert_eq!(pieces(&mut turns, answers, 9), [0, 9, 0]);
        turns.end(answers[1]);
        assert_eq!(pieces(&mut turns, answers, 9), [0, 0, 9]);
    }

    #[test]
    fn incremental_answers_share_by_weight_with_one_of_the_others() {
        let mut turns = Turns::default();
        let answers = [
            turns.begin(priority(3, true), weight(1.0)),
            turns.begin(priority(3, true), weight(3.0)),
            turns.begin(priority(3, false), weight(2.0)),
            turns.begin(priority(3, false), weight(2.0)),
        ];
        assert_eq!(pieces(&mut turns, answers, 60), [10, 30, 20, 0]);
        assert_eq!(turns.weight(), Some(weight(3.0)));
    }

    #[test]
    fn a_light_answer_is_not_raised_by_a_heavy_one_that_waits_behind_it() {
        let mut turns = Turns::default();
        let light = turns.begin(priority(1, false), weight(1.0));
        let heavy = turns.begin(priority(3, false), weight(8.0));
        assert_eq!((turns.turn(), turns.weight()), (Some(light), Some(weight(1.0))));
        turns.end(light);
        assert_eq!((turns.turn(), turns.weight()), (Some(heavy), Some(weight(8.0))));
        // Of the same urgency the heavy one does not wait.
        turns.begin(priority(3, false), weight(1.0));
        assert_eq!((turns.turn(), turns.weight()), (Some(heavy), Some(weight(8.0))));
    }

    #[test]
    fn who_takes_nothing_holds_nobody_up() {
        let mut turns = Turns::default();
        let answers =
            [turns.begin(priority(0, false), weight(8.0)), turns.begin(priority(7, false), weight(1.0))];
        turns.set_stuck(answers[0], true);
        assert_eq!((turns.turn(), turns.weight()), (Some(answers[1]), Some(weight(1.0))));
        turns.set_stuck(answers[0], false);
        assert_eq!((turns.turn(), turns.weight()), (Some(answers[0]), Some(weight(8.0))));
        // Who waits for a disk is what the connection sends all the same.
        turns.set_pauses(answers[0], true);
        assert_eq!((turns.turn(), turns.weight()), (Some(answers[1]), Some(weight(8.0))));
        turns.set_stuck(answers[0], true);
        turns.set_stuck(answers[1], true);
        assert_eq!((turns.turn(), turns.weight()), (None, None));
    }

    proptest! {
        /// Whatever happens: somebody has the turn where anybody can go on, it is one of the most urgent, and
        /// the weight is one that such an answer has.
        #[test]
        fn the_turn_is_one_of_the_most_urgent(
            steps in prop::collection::vec((0_u8..6, 0_u64..8, 0_u8..8, any::<bool>(), 0.001..1000.0_f64), 1..200),
        ) {
            let mut turns = Turns::default();
            for (step, id, urgency, flag, number) in steps {
                let id = AnswerId(id);
                match step {
                    0 => drop(turns.begin(priority(urgency, flag), weight(number))),
                    1 => turns.end(id),
                    2 => turns.set_stuck(id, flag),
                    3 => turns.set_pauses(id, flag),
                    4 => turns.set_weight(id, weight(number)),
                    _ => turns.turn().into_iter().for_each(|turn| turns.send(turn, PIECE)),
                }
                let able = || turns.answers.values().filter(|answer| !answer.is_stuck && !answer.pauses);
                let most_urgent = able().map(|answer| answer.priority.urgency).min();
                let turn = turns.turn().map(|turn| turns.answers[&turn].priority.urgency);
                prop_assert_eq!(turn, most_urgent);
                let weights = turns.answers.values().filter(|answer| !answer.is_stuck).map(|answer| answer.weight);
                prop_assert_eq!(turns.weight().is_some(), weights.clone().count() > 0);
                prop_assert!(turns.weight() <= weights.max());
            }
        }
    }
}
