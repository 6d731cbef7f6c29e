//! Live senders that share what their own controls allow them together, by weights.
//!
//! Each member's control goes on as if it were alone, and says what it allows: the rate of a TFRC flow (RFC
//! 5348) over the member's own path, or of as many as its scheme stands for. The sum of these is what as many
//! plain flows would send, and no more; [`parts`] splits it.
//!
//! - Who wants less than its part leaves the rest to the others (max-min fairness with weights).
//! - An allowance that is not used collects no share of strangers' for the others: it counts for `LENDS`
//!   times what its member wants, as in the other groups (`flow_use`). What it does not lend the member has
//!   for itself, at once, when it wants it.
//! - A member that is held back sees fewer packets, so that it is late to see that a path has got worse. Its
//!   allowance counts for `LENDS` times its part at most.
//!
//! [`Board`] keeps what the others said last, for members that tell each other by messages.

mod board;

use anabranch_units::Rate;

use crate::flow_use::LENDS;
use crate::vps::Weight;

pub use board::{Board, MOST_MEMBERS, TELL_INTERVAL};

/// How a member stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What it counts for in the group.
    pub weight: Weight,
    /// What its own control allows it.
    pub allowed: Rate,
    /// What it would send if it were not held back.
    pub wanted: Rate,
}

/// The part of each member, in their order. Together they are no more than what is allowed, and none is more
/// than the member wants or than its own control allows it, whichever is more. A member that is alone has
/// what it is allowed.
#[must_use]
pub fn parts(members: &[Standing]) -> Vec<Rate> {
    let wants: Vec<f64> = members.iter().map(|member| member.wanted.as_f64()).collect();
    let lends: Vec<f64> =
        members.iter().map(|member| (LENDS * member.wanted.as_f64()).min(member.allowed.as_f64())).collect();
    let mut counts = lends.clone();
    for _ in 0..ROUNDS {
        let filled = fill(members, &wants, counts.iter().sum());
        for ((count, lent), part) in counts.iter_mut().zip(&lends).zip(filled) {
            *count = lent.min(LENDS * part);
        }
    }
    let pool: f64 = counts.iter().sum();
    let mut filled = fill(members, &wants, pool);
    // What nobody wants goes back to those whose it is.
    let rest = pool - filled.iter().sum::<f64>();
    let room: Vec<f64> = counts.iter().zip(&filled).map(|(count, part)| (count - part).max(0.0)).collect();
    for (part, back) in filled.iter_mut().zip(fill(members, &room, rest)) {
        *part += back;
    }
    let own = members.iter().zip(&lends).map(|(member, lent)| member.allowed.as_f64() - lent);
    filled.iter().zip(own).map(|(part, own)| Rate::from_bps_f64(part + own)).collect()
}

/// What counts follows from the parts, and these from what counts: after so many rounds hardly anything
/// changes.
const ROUNDS: usize = 8;

/// `total` by weights, to nobody more than its `most`.
fn fill(members: &[Standing], most: &[f64], total: f64) -> Vec<f64> {
    let weight = |index: usize| members[index].weight.get();
    let mut order: Vec<usize> = (0..members.len()).collect();
    // Those first whose most is reached first.
    order.sort_by(|a, b| (most[*a] / weight(*a)).total_cmp(&(most[*b] / weight(*b))));
    let mut weights: f64 = order.iter().map(|index| weight(*index)).sum();
    let (mut left, mut filled) = (total.max(0.0), vec![0.0; members.len()]);
    for index in order {
        let part = (left * (weight(index) / weights).min(1.0)).min(most[index]);
        filled[index] = part;
        left -= part;
        weights -= weight(index);
    }
    filled
}

#[cfg(test)]
mod tests {
    use anabranch_units::Ratio;
    use proptest::prelude::*;

    use super::*;

    fn member(weight: f64, allowed_kbps: u64, wanted_kbps: u64) -> Standing {
        Standing {
            weight: Weight::new(weight).unwrap(),
            allowed: Rate::from_kbps(allowed_kbps),
            wanted: Rate::from_kbps(wanted_kbps),
        }
    }

    fn kbps(members: &[Standing]) -> Vec<u64> {
        parts(members).iter().map(|part| part.as_bps().div_ceil(1000)).collect()
    }

    #[test]
    fn who_want_more_have_parts_by_their_weights() {
        let greedy = [4.0, 2.0, 1.0].map(|weight| member(weight, 700, 9000));
        assert_eq!(kbps(&greedy), [1200, 600, 300]);
        // Whatever each one is allowed by itself.
        let far = [member(4.0, 300, 9000), member(2.0, 1500, 9000), member(1.0, 300, 9000)];
        assert_eq!(kbps(&far), [1200, 600, 300]);
    }

    #[test]
    fn who_wants_less_leaves_the_rest_to_the_others() {
        let members = [member(4.0, 700, 300), member(2.0, 700, 9000), member(1.0, 700, 9000)];
        assert_eq!(kbps(&members), [300, 1200, 600]);
        // What nobody wants stays with those who are allowed it.
        let idle = [member(4.0, 700, 300), member(1.0, 700, 400)];
        assert_eq!(kbps(&idle), [700, 700]);
    }

    #[test]
    fn an_allowance_that_is_not_used_is_not_lent() {
        // 50 kbps are wanted: 200 count, of which it takes 50. The other 500 it has for itself.
        let members = [member(1.0, 700, 50), member(1.0, 700, 9000)];
        assert_eq!(kbps(&members), [50 + 500, 700 + 150]);
        assert_eq!(kbps(&[member(1.0, 700, 0), member(1.0, 700, 9000)]), [700, 700]);
    }

    #[test]
    fn a_member_that_hardly_sends_does_not_lend_much() {
        // By its weight it would have 1/101 of 2000 kbps, and the other one the rest.
        let parts = kbps(&[member(0.01, 1000, 9000), member(1.0, 1000, 9000)]);
        assert!(parts[0] <= 11 && (1000..1050).contains(&parts[1]), "{parts:?}");
    }

    fn members() -> impl Strategy<Value = Vec<Standing>> {
        let rate = || prop_oneof![Just(0u64), 1u64..10_000_000_000];
        let weight = (0.001f64..=1000.0).prop_map(|weight| Weight::new(weight).unwrap());
        let member = (weight, rate(), rate()).prop_map(|(weight, allowed, wanted)| Standing {
            weight,
            allowed: Rate::from_bps(allowed),
            wanted: Rate::from_bps(wanted),
        });
        prop::collection::vec(member, 1..20)
    }

    proptest! {
        #[test]
        fn together_they_have_no_more_than_each_is_allowed(members in members()) {
            let (sum, allowed): (Rate, Rate) =
                (parts(&members).into_iter().sum(), members.iter().map(|member| member.allowed).sum());
            let least = allowed.as_f64() * (1.0 + 1e-9) + members.len() as f64;
            prop_assert!(sum.as_f64() <= least, "{sum} of {allowed}");
        }

        #[test]
        fn nobody_has_more_than_it_wants_or_is_allowed(members in members()) {
            for (part, member) in parts(&members).iter().zip(&members) {
                let most = member.wanted.max(member.allowed).as_f64();
                prop_assert!(part.as_f64() <= most * (1.0 + 1e-9) + 1.0, "{part}: {member:?}");
            }
        }

        #[test]
        fn weights_hold_among_those_who_want_more(members in members()) {
            let much = Rate::from_mbps(1_000_000);
            let greedy: Vec<Standing> =
                members.iter().map(|member| Standing { wanted: much, ..*member }).collect();
            let parts = parts(&greedy);
            let whole: Rate = parts.iter().copied().sum();
            let weights: f64 = greedy.iter().map(|member| member.weight.get()).sum();
            for (part, member) in parts.iter().zip(&greedy) {
                let expected = whole.as_f64() * member.weight.get() / weights;
                let off = (part.as_f64() - expected).abs();
                prop_assert!(off <= expected * 1e-6 + 20.0, "{part}, {expected}");
            }
        }

        #[test]
        fn one_that_is_held_back_has_no_smaller_part_for_its_weight_than_another(members in members()) {
            let parts = parts(&members);
            for (part, member) in parts.iter().zip(&members) {
                // One that wants no more than this counts in full, and lends all.
                if *part >= member.wanted || member.wanted * Ratio::from_f64(LENDS) < member.allowed {
                    continue;
                }
                for (other, of) in parts.iter().zip(&members) {
                    let lent = (of.wanted.as_f64() * LENDS).min(of.allowed.as_f64());
                    let of_pool = other.as_f64() - (of.allowed.as_f64() - lent);
                    let fair = of_pool / of.weight.get() * member.weight.get();
                    let least = fair * (1.0 - 1e-6) - 20.0;
                    prop_assert!(part.as_f64() >= least, "{member:?} {part}, {of:?} {other}");
                }
            }
        }

        #[test]
        fn one_that_is_alone_has_what_it_is_allowed(members in members()) {
            let alone = members[0];
            let part = parts(&members[..1])[0];
            let allowed = alone.allowed.as_f64();
            prop_assert!((part.as_f64() - allowed).abs() <= 1.0 + allowed * 1e-9);
        }
    }
}
