//! The cellular network of tables I to III and figure 17, emulated.

use anabranch_sim::model::{Change, Model};
use anabranch_units::{Bytes, Duration, Rate, Time};

use super::describe::Figure;
use super::packets::INTERVAL;
use super::sending::{ASSUMED, Sending};
use super::wireless::{BOTTLENECK, Wireless};
use crate::draw::numbers;
use crate::experiment::{Expected, Relation};
use crate::scheme::Scheme;

/// The most that was found to be there, half an hour, and the delay and loss of the row of one connection,
/// which leaves the link partly unused: without a queue 1357 ms. The queue is what makes them 2951 ms when
/// the link is full.
pub(super) const PATH: Wireless =
    Wireless { kbps: 97.0, size: Bytes::new(1460), delay_ms: 606.5, queue: 16, seconds: 1800, warm_up: 30 };
/// What the link loses in table II, whose experiments were others than table I's.
const LOSS_RATE: f64 = 0.031;

const CELLULAR: [&str; 2] = [
    "a link of 97 kbps, the most that the paper found, which loses packets independently of each other: 1.8 % in table I, 3.1 % in the others, as the tables' rows of one connection have it; \
     1357 ms without a queue, as one connection has it in table I",
    "a queue of 16 packets: full, it makes the round trip about as long as the paper's two connections have it",
];

pub(super) fn assumed() -> Vec<String> {
    ASSUMED
        .into_iter()
        .skip(1)
        .chain(CELLULAR)
        .chain(["TFRC as RFC 5348 has it, packets of 1460 bytes on the wire"])
        .map(Into::into)
        .collect()
}

/// A stream over the path, in intervals so short that its packets can be told one by one.
pub(super) fn packet_by_packet(path: Wireless, sending: Sending, seed: u64) -> Model {
    let mut model = path.model(sending, 1, LOSS_RATE, seed);
    model.run.sampling = INTERVAL;
    model
}

/// A further run: now and then the link hardly carries anything for a while.
pub(super) const FADING: &str = "fading";
/// How fast the link is between fades and in them, which is 97 kbps on the mean.
const CLEAR: Rate = Rate::from_bps(101_400);
const FADED: Rate = Rate::from_bps(9_600);
/// A fade begins in one of so many tenths of a second, and ends in one of so many.
const CLEAR_TENTHS: usize = 200;
const FADED_TENTHS: usize = 10;

/// The same model over a link that fades.
pub(super) fn fading(mut model: Model) -> Model {
    let mut below = numbers(model.run.seed);
    let mut is_faded = false;
    let mut changes = Vec::new();
    let change = |at, rate| Change { at, rate: Some(rate), delay: None, loss: None };
    let mut at = Time::ZERO;
    changes.push(change(at, CLEAR));
    while at < Time::ZERO + model.run.duration {
        at += Duration::from_millis(100);
        if below(if is_faded { FADED_TENTHS } else { CLEAR_TENTHS }) == 0 {
            is_faded = !is_faded;
            changes.push(change(at, if is_faded { FADED } else { CLEAR }));
        }
    }
    model.links[BOTTLENECK].changes = changes;
    model
}

/// Why streams lose more over the paper's link than over this one.
pub(super) const FADES: &str = "the link has one rate here. Where it has 9.6 kbps for a second on the mean, 20 s apart, and 101 kbps else, one, two and three connections lose 0.021, 0.032 and 0.044, and \
    MULTFRC 0.043: the queue overflows in a fade, the more so the fuller it was (tables I and II; seeds 1 to 5)";

/// A figure of a scheme that has to be about what the paper has.
pub(super) fn about(
    id: &str,
    claim: &str,
    published: f64,
    unit: &'static str,
    figure: (Scheme, &'static str),
    tolerance: f64,
) -> Relation {
    let claim = format!("{claim} (within {} %)", 100.0 * tolerance);
    Relation::new(
        (id, &claim, &published.to_string(), unit),
        Figure::new(figure.0, 0.0, figure.1).value(),
        Expected::about(published, tolerance),
    )
}

#[cfg(test)]
mod tests {
    use anabranch_congestion::aggregate::Scheme as Connections;

    use super::*;
    use crate::scheme::TFRC;

    #[test]
    fn a_fading_link_carries_as_much_as_the_steady_one() {
        let mean = |seed| {
            let sending = Sending::new(TFRC, Connections::TFRC);
            let model = fading(PATH.model(sending, 1, LOSS_RATE, seed));
            let end = Time::ZERO + model.run.duration;
            let changes = &model.links[BOTTLENECK].changes;
            let until = changes.iter().skip(1).map(|change| change.at).chain([end]);
            let bits = changes.iter().zip(until).map(|(change, until)| {
                change.rate.map_or(0.0, Rate::as_f64) * until.since(change.at).as_secs_f64()
            });
            bits.sum::<f64>() / end.as_secs_f64() / 1e3
        };
        let means: Vec<f64> = (1..=20).map(mean).collect();
        let all = means.iter().sum::<f64>() / 20.0;
        assert!((all - PATH.kbps).abs() < 0.5, "{all}: {means:?}");
        assert!(means[0] != means[1]);
    }
}
