//! How much parity a block gets: `--fec auto`.
//!
//! Losses come in bursts (MULTFRC, table III: 2.4 to 3.3 packets on average, up to 11), and the burst is what
//! a block has to outlast: the paper chooses its codes, (56,50) and (61,50), by the longest burst of a trace.
//! Here losses are a two-state Markov chain (Gilbert, "Capacity of a burst-noise channel", 1960) with the
//! measured loss rate and mean length of bursts, and the code is the one with the least parity that leaves no
//! more than a target of losses. Parity is for what sending again does not bring in time: what that repairs
//! is taken off before, and where it leaves next to nothing there is no parity.

use anabranch_protocol::live::wire::MAX_BLOCK;
use anabranch_units::{Duration, Ratio};

use super::Code;

/// So many media packets may be missing in the end: one in a hundred thousand, at 1 Mbit/s one in twenty
/// minutes. Less would cost more parity than it is worth.
pub const TARGET: f64 = 1e-5;
/// Where sending again leaves no more than so many of the media packets missing, there is no parity: it would
/// take from the rate all the time what is needed once in a minute or two.
pub const ENOUGH: f64 = 1e-4;
/// The media of a block leave within this part of the time that there is: the longer a block, the less parity
/// does the same. The rest is for its parity, and for changes of the way.
pub const BLOCK: Ratio = Ratio::new(3, 4);
/// So many more packets may be lost from a block than ever were of late: a record is broken one day, and
/// hardly ever by more.
const BEYOND_RECORD: usize = 1;
/// Most of the blocks that are looked through; a block is seldom worth more parity than media.
const MOST_PARITY: usize = MAX_BLOCK as usize;
/// Longest mean burst that is reckoned with. Parity does not help against an outage.
const MOST_BURST: f64 = 64.0;

/// How packets are lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Losses {
    /// Part of the packets that are lost, from 0 to 1.
    pub rate: f64,
    /// Mean number of packets that are lost one after the other, 1 at the least.
    pub burst: f64,
}

impl Default for Losses {
    /// None.
    fn default() -> Self {
        Self { rate: 0.0, burst: 1.0 }
    }
}

/// What a block may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Media packets that come within the time that a block may take.
    pub media: usize,
    /// Most parity packets for each media packet that the rate has room for.
    pub share: Ratio,
    /// How often a lost packet can be sent again in time.
    pub attempts: u32,
    /// The part of the lost packets, from 0 to 1, whose loss is known too late for any attempt.
    pub late: f64,
}

impl Limits {
    /// For media packets every `interval` of which each has to leave within `time` to be of use; the first of
    /// a block waits no longer than [`BLOCK`] of it until the last has left. A packet can be sent again when
    /// the next one has shown its loss, `rtt` after that left; never if that is `None`.
    pub fn new(time: Duration, interval: Duration, rtt: Option<Duration>, share: Ratio) -> Self {
        let media = (time * BLOCK).as_micros() / interval.as_micros().max(1);
        let attempts = rtt.map_or(0, |rtt| time.as_micros() / (rtt + interval).as_micros().max(1));
        Self {
            media: usize::try_from(media).unwrap_or(usize::MAX).clamp(1, MAX_BLOCK.into()),
            share,
            attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
            late: if attempts == 0 { 1.0 } else { 0.0 },
        }
    }
}

/// The part of the lost packets that is lost each time it is sent again. They are far enough from each other
/// for that to be by chance; where no queue stands the k-th attempt has k copies, the last one two at least
/// (`history.rs`).
fn lost_again(rate: f64, attempts: u32) -> f64 {
    let copies = |attempt: u32| attempt.max(if attempt == attempts { 2 } else { 1 }).min(3);
    // Further ones change nothing.
    let copies: u32 = (1..=attempts.min(8)).map(copies).sum();
    rate.powi(i32::try_from(copies).unwrap_or(i32::MAX))
}

/// The code with the least parity that leaves [`TARGET`] of losses and repairs what was lost of late, or the
/// one with the most parity that the limits have room for when that is not enough. `None`: no parity is
/// needed, or there is no room for any.
///
/// `most_lost` tells how many of so many packets that left after each other were lost of late, at the most.
/// The chain knows nothing of losses that come close together but not in a row, as those of a queue that is
/// full for a while.
pub fn choose(losses: Losses, most_lost: impl Fn(usize) -> usize, limits: Limits) -> Option<Code> {
    let rate = losses.rate.clamp(0.0, 0.5);
    let media = limits.media.clamp(1, MAX_BLOCK.into());
    let late = if limits.attempts == 0 { 1.0 } else { limits.late.clamp(0.0, 1.0) };
    let again = late + (1.0 - late) * lost_again(rate, limits.attempts);
    if late < 1.0 && rate * again <= ENOUGH {
        return None;
    }
    let residual = residuals(Losses { rate, ..losses }, media);
    let by_chance = residual.iter().position(|residual| residual * again <= TARGET).unwrap_or(MOST_PARITY);
    let record = |parity: &usize| match most_lost(media + parity) {
        0 => 0,
        most => most + BEYOND_RECORD,
    };
    let of_late = (0..MOST_PARITY).find(|parity| record(parity) <= *parity).unwrap_or(MOST_PARITY);
    let needed = if late > 0.0 { by_chance.max(of_late) } else { by_chance };
    let room = (0..=MOST_PARITY).rev().find(|parity| is_within(*parity, media, limits.share)).unwrap_or(0);
    let parity = u32::try_from(needed.min(room)).ok()?;
    Code::new(u32::try_from(media).ok()?, parity).ok()
}

fn is_within(parity: usize, media: usize, share: Ratio) -> bool {
    let count = |count: usize| anabranch_units::Bytes::of(count).as_f64();
    count(parity) <= count(media) * share.as_f64()
}

/// For blocks of `media` packets with 0, 1, ... parity packets: the part of the media that is lost and that
/// their parity does not give back.
///
/// A packet is lost for good when more packets of its block are lost than there is parity. With N(n) the
/// losses among n packets in a row, that part is the mean of N(n) over the cases in which N(n) > parity,
/// divided by n.
fn residuals(losses: Losses, media: usize) -> Vec<f64> {
    let burst = losses.burst.clamp(1.0, MOST_BURST);
    // The chain leaves a burst with `ends`, and begins one so often that `rate` of the packets are in bursts.
    let ends = 1.0 / burst;
    let begins = (ends * losses.rate / (1.0 - losses.rate)).min(1.0);
    // probability[j]: of j losses so far, the last packet having arrived (0) or not (1).
    let mut probability = vec![[0.0_f64; 2]; MOST_PARITY + 1];
    probability[0] = [1.0 - losses.rate, losses.rate];
    let (mut residuals, mut expected, mut packets) = (Vec::new(), 0.0, 0.0);
    // Before the first packet the chain is somewhere; a step moves it and counts the packet.
    for packet in 1..=media + MOST_PARITY {
        let mut next = vec![[0.0_f64; 2]; MOST_PARITY + 1];
        for (lost, [arrived, missing]) in probability.iter().copied().enumerate() {
            next[lost][0] += arrived * (1.0 - begins) + missing * ends;
            if let Some(more) = next.get_mut(lost + 1) {
                more[1] += arrived * begins + missing * (1.0 - ends);
            }
        }
        probability = next;
        expected += losses.rate;
        packets += 1.0;
        if packet >= media {
            let within = (0..).zip(&probability).take(packet - media + 1);
            let repaired: f64 = within.map(|(lost, states)| f64::from(lost) * (states[0] + states[1])).sum();
            residuals.push(((expected - repaired) / packets).max(0.0));
        }
    }
    residuals
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limits(media: usize) -> Limits {
        Limits { media, share: Ratio::new(4, 1), attempts: 0, late: 1.0 }
    }

    fn parity(code: Option<Code>) -> u8 {
        code.map_or(0, Code::parity)
    }

    /// Losses of the same chain, drawn with a seed.
    fn measured(losses: Losses, code: Code, blocks: u32, seed: u64) -> f64 {
        let mut state = seed;
        let mut dice = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from((state >> 33) as u32) / f64::from(1u32 << 31)
        };
        let (ends, mut is_lost) = (1.0 / losses.burst, false);
        let begins = ends * losses.rate / (1.0 - losses.rate);
        let mut missing = 0u32;
        for _ in 0..blocks {
            let (mut of_media, mut of_all) = (0, 0);
            for packet in 0..code.media() + code.parity() {
                is_lost = if is_lost { dice() >= ends } else { dice() < begins };
                of_all += u32::from(is_lost);
                of_media += u32::from(is_lost && packet < code.media());
            }
            if of_all > code.parity().into() {
                missing += of_media;
            }
        }
        f64::from(missing) / f64::from(blocks * u32::from(code.media()))
    }

    #[test]
    fn the_residual_losses_are_those_of_the_chain() {
        for (rate, burst, parity) in [(0.05, 1.0526, 4), (0.04, 5.0, 8), (0.08, 2.4, 6)] {
            let losses = Losses { rate, burst };
            let code = Code::new(40, parity).unwrap();
            let calculated = residuals(losses, 40)[parity as usize];
            let drawn = measured(losses, code, 40_000, 11);
            assert!((drawn / calculated - 1.0).abs() < 0.15, "{losses:?}: {drawn} instead of {calculated}");
        }
    }

    #[test]
    fn without_losses_there_is_no_parity() {
        assert_eq!(choose(Losses { rate: 0.0, burst: 1.0 }, |_| 0, limits(50)), None);
    }

    /// The paper's channel with two connections (table III): a code in the neighbourhood of its (61,50)
    /// leaves less than a tenth of the losses, and that is far more than one packet in a hundred thousand.
    #[test]
    fn the_paper_s_bursts_need_more_than_the_paper_s_code() {
        let losses = Losses { rate: 0.047, burst: 2.41 };
        let residual = residuals(losses, 50);
        assert!(residual[11] < losses.rate / 10.0, "{}", residual[11]);
        assert!(parity(choose(losses, |_| 0, limits(50))) > 11);
    }

    #[test]
    fn attempts_to_send_again_save_parity() {
        let losses = Losses { rate: 0.04, burst: 1.2 };
        let with =
            |losses, attempts| parity(choose(losses, |_| 0, Limits { attempts, late: 0.0, ..limits(50) }));
        let all: Vec<u8> = (0..6).map(|attempts| with(losses, attempts)).collect();
        assert!(all[0] > 8 && all[1..] == [0; 5], "{all:?}");
        // One attempt with its two copies is not enough for every loss rate.
        let many: Vec<u8> = (0..4).map(|attempts| with(Losses { rate: 0.15, ..losses }, attempts)).collect();
        assert!(many[0] > many[1] && many[1] > many[2] && many[2] > 0 && many[3] == 0, "{many:?}");
    }

    #[test]
    fn each_attempt_has_the_copies_that_it_is_sent_with() {
        let copies: Vec<f64> = (0..5).map(|attempts| lost_again(0.1, attempts).log10().round()).collect();
        assert_eq!(copies, [0.0, -2.0, -3.0, -6.0, -9.0]);
    }

    /// Losses that are close together, but not in a row.
    #[test]
    fn what_was_lost_of_late_is_repaired_where_there_is_no_time_to_send_again() {
        let losses = Losses { rate: 0.01, burst: 1.0 };
        let most_lost = |packets: usize| packets.min(9);
        // One more than the nine.
        assert_eq!(choose(losses, most_lost, limits(5)), Code::new(5, 10).ok());
        let attempt = Limits { attempts: 1, late: 0.0, ..limits(5) };
        assert_eq!(choose(losses, most_lost, attempt), None);
        // There is an attempt, but a third of the losses is known too late for it.
        assert_eq!(choose(losses, most_lost, Limits { late: 0.3, ..attempt }), Code::new(5, 10).ok());
    }

    #[test]
    fn a_low_rate_has_short_blocks() {
        let limits = |millis| {
            let (time, rtt) = (Duration::from_millis(600), Duration::from_millis(190));
            Limits::new(time, Duration::from_millis(millis), Some(rtt), Ratio::ONE)
        };
        assert_eq!([1, 10, 100, 1000].map(|millis| limits(millis).media), [128, 45, 4, 1]);
        // A loss shows when the next packet comes.
        assert_eq!([1, 10, 100, 1000].map(|millis| limits(millis).attempts), [3, 3, 2, 0]);
        assert_eq!(
            Limits::new(Duration::from_secs(1), Duration::from_millis(1), None, Ratio::ONE).attempts,
            0
        );
    }

    proptest! {
        #[test]
        fn the_target_is_met_or_all_room_is_used(
            rate in 0.0..1.0f64, burst in 0.0..1000.0f64, media in 0usize..300, share in 0u32..300,
            attempts in 0u32..8, late in 0.0..1.0f64,
        ) {
            let share = Ratio::new(share, 100);
            let late = if attempts == 0 { 1.0 } else { late };
            let limits = Limits { media, share, attempts, late };
            let code = choose(Losses { rate, burst }, |_| 0, limits);
            let media = media.clamp(1, MAX_BLOCK.into());
            let parity = usize::from(parity(code));
            prop_assert!(code.is_none_or(|code| usize::from(code.media()) == media));
            prop_assert!(is_within(parity, media, share));
            let rate = rate.min(0.5);
            let residuals = residuals(Losses { rate, burst }, media);
            let again = late + (1.0 - late) * lost_again(rate, attempts);
            let leaves = |parity: usize| residuals[parity] * again;
            let is_enough = leaves(parity) <= if late < 1.0 && parity == 0 { ENOUGH } else { TARGET };
            prop_assert!(is_enough || parity == MOST_PARITY || !is_within(parity + 1, media, share));
            // No less would do.
            prop_assert!(parity == 0 || leaves(parity - 1) > TARGET);
            prop_assert!(residuals.iter().all(|residual| (0.0..=rate + 1e-9).contains(residual)));
        }

        #[test]
        fn more_losses_never_mean_less_parity(
            rate in 0.0..0.3f64, more in 0.0..0.1f64, media in 1usize..=100, burst in 1.0..8.0f64,
        ) {
            let of = |rate| parity(choose(Losses { rate, burst }, |_| 0, limits(media)));
            prop_assert!(of(rate) <= of(rate + more));
        }
    }
}
