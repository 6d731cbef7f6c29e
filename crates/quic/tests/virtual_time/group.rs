//! A weighted group over quinn beside plain connections: what its application leaves of a member is another
//! one's, as long as it is not silent.

use anabranch_congestion::algorithm::Algorithm;
use anabranch_units::{Bytes, Rate};

use crate::world::{Asks, Control, Path, World};

const PLAIN: Control = Control::Ours(Algorithm::Reno);
const PIECE: Bytes = Bytes::new(25_000);
const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;

/// Mean rates of four connections in Mbps, the last two of which are plain, while the client of the first asks
/// for all it can get, and while it asks as `held` says, by turns.
fn dilution(first: Control, held: Asks, seed: u64) -> [[f64; 4]; 2] {
    let mut world = World::new(Path::new(8, 70, 1.0), &[first, first, PLAIN, PLAIN], seed);
    let greedy = Asks { piece: PIECE, at_once: 6, rate: Rate::from_bps(1_000_000_000) };
    world.asks(0, greedy);
    world.run(10);
    let mut sums = [[0.0; 4]; 2];
    for span in 0..8 {
        let (is_held, now) = (span % 2, 10 + 20 * span as u64);
        world.asks(0, [greedy, held][is_held]);
        // What was under way is past after a few seconds.
        world.run(now + 4);
        let rates = world.run(now + 20);
        for (sum, rate) in sums[is_held].iter_mut().zip(&rates) {
            *sum += rate / 4.0;
        }
    }
    sums
}

/// Over the seeds: the part of what the first one leaves that the second one gains, and what both have as a
/// multiple of what the plain ones have, while the first one is held.
fn part_and_share(first: Control, held: Asks) -> (f64, f64) {
    let (mut left, mut gained, mut ours, mut plain) = (0.0, 0.0, 0.0, 0.0);
    for seed in SEEDS {
        let [free, held] = dilution(first, held, seed);
        println!("{first:?} {seed}: {free:.2?} {held:.2?} Mbps");
        left += free[0] - held[0];
        gained += held[1] - free[1];
        ours += held[0] + held[1];
        plain += held[2] + held[3];
    }
    println!("of {left:.2} the other gains {:.2}; both have {:.2}", gained / left, ours / plain);
    (gained / left, ours / plain)
}

/// A range of a file after the other, up to 1 Mbps.
fn held(at_once: u64) -> Asks {
    Asks { piece: PIECE, at_once, rate: Rate::from_bps(1_000_000) }
}

#[test]
fn what_a_held_member_leaves_is_the_others_and_costs_nobody_else() {
    for at_once in [1, 6] {
        let (part, share) = part_and_share(Control::Grouped, held(at_once));
        assert!(part > 0.9, "{at_once}: {part}");
        assert!((0.75..1.1).contains(&share), "{at_once}: {share}");
    }
    let (part, _) = part_and_share(PLAIN, held(1));
    assert!(part < 0.7, "{part}");
}

#[test]
fn what_a_silent_member_leaves_is_everybodys() {
    let (part, share) = part_and_share(Control::Grouped, held(0));
    // One flow of three.
    assert!(part < 0.6 && share < 0.65, "{part} {share}");
}
