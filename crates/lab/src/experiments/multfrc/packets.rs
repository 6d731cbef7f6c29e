//! The packets of a stream one by one, from the intervals of a run that are so short that few packets share
//! one.

use std::collections::VecDeque;

use anabranch_units::{Bytes, Duration};

use crate::simulate::Recording;

/// Intervals for that, as long as the way to the queue: what is dropped there, or is going to be lost on the
/// wire behind it, was sent in the interval before the one that counts it.
pub(super) const INTERVAL: Duration = Duration::from_millis(10);

/// A packet, in the order of sending.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Packet {
    /// How many connections were open when it was sent.
    pub connections: u32,
    /// When it left, in seconds.
    pub sent: f64,
    /// When it came to the receiver, in seconds; `None`: it was lost.
    pub arrived: Option<f64>,
}

/// The packets of `size` of the only stream; they arrive in the order in which they left.
pub(super) fn packets(run: &Recording, size: Bytes) -> Vec<Packet> {
    let mut packets: Vec<Packet> = Vec::new();
    // Those whose fate is not known yet.
    let mut under_way = VecDeque::new();
    for sample in run.flow(0) {
        let at = sample.at.as_secs_f64();
        for _ in 0..sample.lost {
            under_way.pop_back();
        }
        for _ in 0..sample.sent {
            under_way.push_back(packets.len());
            packets.push(Packet { connections: sample.connections, sent: at, arrived: None });
        }
        for _ in 0..sample.arrived_wire.get() / size.get().max(1) {
            let arrived = under_way.pop_front().and_then(|place: usize| packets.get_mut(place));
            arrived.into_iter().for_each(|packet| packet.arrived = Some(at));
        }
    }
    packets.truncate(under_way.front().copied().unwrap_or(packets.len()));
    packets
}

/// The lengths of the bursts of losses, with the number of connections at the beginning of each.
pub(super) fn bursts(packets: &[Packet]) -> Vec<(u32, u32)> {
    packets
        .chunk_by(|one, next| one.arrived.is_none() == next.arrived.is_none())
        .filter(|run| run.iter().all(|packet| packet.arrived.is_none()))
        .map(|run| (run[0].connections, (0..).zip(run).count().try_into().unwrap_or(u32::MAX)))
        .collect()
}

/// A film with Reed-Solomon parity, carried by the packets of a trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clip {
    /// The film's rate and length.
    pub kbps: f64,
    pub seconds: f64,
    /// Media packets of a block, and all of its packets.
    pub media: usize,
    pub block: usize,
    /// Size of one of them, and of one of the trace.
    pub size: Bytes,
    pub carrier: Bytes,
}

/// How a clip was shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    /// Seconds for which the picture was frozen, until the trace's end.
    pub frozen: f64,
    /// Media packets that were not repaired.
    pub lost: f64,
    /// What the player had, in seconds of film, each second.
    pub buffer: Vec<(f64, f64)>,
}

/// The film is shown as soon as so many seconds of it are there.
const PREBUFFER: f64 = 10.0;
/// Frames each second.
const FRAMES: f64 = 10.0;

impl Clip {
    /// Shows the clip over the `trace` (from second `from` to `until`). A packet of the film that has a byte
    /// in a lost packet of the trace is lost; a block that is not repaired is shown with what arrived of it.
    pub(super) fn show(&self, trace: &[Packet], from: f64, until: f64) -> Shown {
        let media_bits = 8.0 * self.size.as_f64();
        let mut shown = Shown::default();
        // When the blocks of the film are there, each with so many seconds of it.
        let mut blocks: Vec<(f64, f64)> = Vec::new();
        let mut media_left = (self.seconds * self.kbps * 1e3 / media_bits).ceil();
        for first in (0..).step_by(self.block) {
            let fates: Vec<_> =
                (first..first + self.block).map_while(|number| self.fate(trace, number)).collect();
            if media_left <= 0.0 || fates.len() < self.block {
                break;
            }
            let mut arrivals: Vec<f64> = fates.iter().flatten().copied().collect();
            arrivals.sort_by(f64::total_cmp);
            let repaired = arrivals.get(self.media - 1);
            if repaired.is_none() {
                shown.lost += fates[..self.media].iter().filter(|fate| fate.is_none()).count() as f64;
            }
            let ready = repaired.or(arrivals.last()).map_or(until, |at| *at) - from;
            let media = media_left.min(self.media as f64);
            media_left -= media;
            let before = blocks.last().map_or(0.0, |(at, _)| *at);
            blocks.push((ready.max(before), media * media_bits / (self.kbps * 1e3)));
        }
        self.play(&blocks, until - from, &mut shown);
        shown
    }

    /// When the film's packet of this number has arrived, or `None` in it: it was lost. `None`: it is beyond
    /// the trace.
    fn fate(&self, trace: &[Packet], number: usize) -> Option<Option<f64>> {
        let (size, carrier) = (self.size.as_usize(), self.carrier.as_usize());
        let carriers = trace.get(number * size / carrier..=((number + 1) * size - 1) / carrier)?;
        Some(
            carriers
                .iter()
                .map(|packet| packet.arrived)
                .try_fold(0.0, |latest: f64, at| Some(latest.max(at?))),
        )
    }

    fn play(&self, blocks: &[(f64, f64)], end: f64, shown: &mut Shown) {
        let buffered = |at: f64| {
            blocks.iter().filter(|(ready, _)| *ready <= at).map(|(_, seconds)| seconds).sum::<f64>()
        };
        let (mut played, mut is_on, mut at) = (0.0, false, 0.0);
        let mut frames = 0u32;
        while at < end {
            let have = buffered(at);
            is_on |= have >= PREBUFFER.min(self.seconds);
            if is_on && played < self.seconds - 1e-9 {
                if have >= played + 1.0 / FRAMES - 1e-9 || have >= self.seconds - 1e-9 {
                    played += 1.0 / FRAMES;
                } else {
                    shown.frozen += 1.0 / FRAMES;
                }
            }
            if frames.is_multiple_of(10) {
                shown.buffer.push((at, (have - played).max(0.0)));
            }
            frames += 1;
            at = f64::from(frames) / FRAMES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(count: usize, every: f64, is_lost: impl Fn(usize) -> bool) -> Vec<Packet> {
        let arrived = |number: usize| (!is_lost(number)).then(|| (number + 1) as f64 * every);
        (0..count).map(|number| Packet { connections: 1, sent: 0.0, arrived: arrived(number) }).collect()
    }

    const CLIP: Clip = Clip {
        kbps: 8.0,
        seconds: 20.0,
        media: 4,
        block: 5,
        size: Bytes::new(100),
        carrier: Bytes::new(100),
    };

    #[test]
    fn bursts_are_losses_in_a_row() {
        let mut packets = trace(10, 1.0, |number| [1, 2, 5].contains(&number));
        packets[5].connections = 2;
        assert_eq!(bursts(&packets), [(1, 2), (2, 1)]);
    }

    #[test]
    fn a_clip_below_the_rate_of_the_trace_is_shown_whole() {
        // Twelve packets a second, ten of which the film takes with its parity; one of five is repaired.
        let shown = CLIP.show(&trace(600, 1.0 / 12.5, |number| number % 5 == 3), 0.0, 40.0);
        assert!(shown.frozen == 0.0 && shown.lost == 0.0);
        // After ten seconds of film there is nearly half of the rest of the buffer left at the end of the
        // film.
        assert!(shown.buffer.iter().all(|(_, seconds)| *seconds <= 11.0));
    }

    #[test]
    fn a_clip_above_it_freezes_and_what_is_not_repaired_is_counted() {
        let long = Clip { seconds: 40.0, ..CLIP };
        let shown = long.show(&trace(600, 1.0 / 6.25, |_| false), 0.0, 100.0);
        // 40 s of film take 80 s, and 10 s of them are there after 20 s: 20 s are missing.
        assert!((19.0..=21.0).contains(&shown.frozen), "{}", shown.frozen);
        let shown = CLIP.show(&trace(600, 1.0 / 12.5, |number| number % 5 >= 3), 0.0, 40.0);
        assert!((shown.lost - 50.0).abs() < 0.5, "{}", shown.lost);
        // A trace that ends leaves the picture frozen to the end.
        let shown = CLIP.show(&trace(150, 1.0 / 12.5, |_| false), 0.0, 40.0);
        assert!(shown.frozen > 10.0, "{}", shown.frozen);
    }
}
