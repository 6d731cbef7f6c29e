//! A weight by what a player needs, from what it tells of itself.
//!
//! Equal shares of a link that is too small let those stall whose buffers are empty, while others have half
//! a minute to play. Minerva (Nathan et al., *End-to-End Transport for Video QoE Fairness*, SIGCOMM 2019)
//! gives each flow a weight by its player's buffer and rate instead; there each client changes its own
//! congestion control. Here the sender decides, inside a group whose sum stays as it is ([`crate::vps`]; Lau
//! and Lee, MMCN 2006), so that strangers lose nothing by it. It goes by what players say with their
//! requests: Common Media Client Data (CTA-5004), `bl`, and `bs` and `su`.
//!
//! The rule looks at the buffer alone. It makes buffers alike, so that what each player gets becomes as the
//! rate of what it plays, which then need not be told. The weights are no farther apart than that needs: a
//! rule of adaptation that goes by throughput takes a much larger share for a faster path, and asks for a
//! higher rung while it is in need (docs/sender-control.md, "By need", has what was tried).

use anabranch_units::Duration;

use crate::vps::Weight;

/// What a player tells of itself with a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// How much it has to play (`bl`); `None`: it does not say.
    pub buffer: Option<Duration>,
    /// Whether it waits to begin, or to go on (`su`, `bs`).
    pub waits: bool,
}

/// How much a request counts by the buffer of its player: between two levels its logarithm falls in a
/// straight line, so that a second more of buffer always takes the same part of the weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NeedRule {
    /// At this buffer and below it counts for `most`.
    pub low: Duration,
    /// At this buffer and above it counts for `least`.
    pub high: Duration,
    /// The weight of a player in need.
    pub most: Weight,
    /// The weight of a player that has enough.
    pub least: Weight,
}

impl Default for NeedRule {
    /// Chosen by simulation (docs/sender-control.md, "By need"): the levels are one segment of 4 s, and three.
    fn default() -> Self {
        let (most, least) = (Weight::ONE.times(1.3), Weight::ONE.times(0.5));
        Self { low: Duration::from_secs(4), high: Duration::from_secs(12), most, least }
    }
}

impl NeedRule {
    /// What a request counts; one that tells nothing counts for one.
    pub fn weight(&self, told: &Told) -> Weight {
        if told.waits {
            return self.most;
        }
        let Some(buffer) = told.buffer else { return Weight::ONE };
        if buffer <= self.low {
            return self.most;
        }
        if buffer >= self.high {
            return self.least;
        }
        let place = (buffer - self.low).ratio_to(self.high - self.low);
        self.most.times(libm::pow(self.least.get() / self.most.get(), place))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(millis: u64) -> Told {
        Told { buffer: Some(Duration::from_millis(millis)), waits: false }
    }

    #[test]
    fn the_weight_falls_from_low_to_high_by_the_same_part_each_second() {
        let rule = NeedRule::default();
        for (millis, expected) in [
            (0, 1.3),
            (4000, 1.3),
            (6000, 1.024),
            (8000, 0.806),
            (10_000, 0.635),
            (12_000, 0.5),
            (90_000, 0.5),
        ] {
            let weight = rule.weight(&told(millis)).get();
            assert!((weight - expected).abs() < 0.001, "{millis}: {weight}");
        }
    }

    #[test]
    fn who_waits_needs_most_and_who_says_nothing_counts_for_one() {
        let rule = NeedRule::default();
        assert_eq!(rule.weight(&Told { waits: true, ..told(30_000) }), rule.most);
        assert_eq!(rule.weight(&Told { waits: true, buffer: None }), rule.most);
        assert_eq!(rule.weight(&Told::default()), Weight::ONE);
    }

    proptest! {
        /// Whatever the levels, also where they are one: more buffer never counts for more.
        #[test]
        fn it_stays_between_its_ends(
            low in 0u64..20_000,
            span in 0u64..20_000,
            buffers in (0u64..60_000, 0u64..60_000),
        ) {
            let rule = NeedRule {
                low: Duration::from_millis(low),
                high: Duration::from_millis(low + span),
                ..NeedRule::default()
            };
            let (less, more) = (buffers.0.min(buffers.1), buffers.0.max(buffers.1));
            let (needs, has) = (rule.weight(&told(less)), rule.weight(&told(more)));
            prop_assert!(rule.least <= has && has <= needs && needs <= rule.most);
        }
    }
}
