//! A film with parity that the packets of a flow carry, and how it is shown.

use anabranch_sim::scenario::{Fault, Item};
use anabranch_units::{Bytes, Duration, Rate};

use super::packets::Packet;

/// No more frames are shown: each is looked at.
const MOST_FRAMES: f64 = 1e6;

/// A film in blocks of packets, each with Reed-Solomon parity: any so many of a block's packets give all of
/// its media.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Clip {
    rate: Rate,
    length: Duration,
    /// Media packets of a block, and all of its packets.
    media: usize,
    block: usize,
    /// Size of one of them.
    size: Bytes,
    /// It is shown as soon as so much of it is there.
    prebuffer: Duration,
    /// Frames a second.
    frames: f64,
}

/// How a clip was shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    /// Seconds for which the picture was frozen, until the trace's end.
    pub(super) frozen: f64,
    /// Media packets that were not repaired.
    pub(super) unrepaired: f64,
    /// What the player had, in seconds of film, at every frame.
    pub(super) buffer: Vec<(f64, f64)>,
}

impl Clip {
    /// `{ rate = "50kbps", length = "30s", media = 50, block = 56, packet_size = "760B", prebuffer = "10s",
    /// frames = 10 }`.
    pub(super) fn read(item: Item<'_>) -> Result<Self, Fault> {
        let mut table = item.table("a clip")?;
        let rate = table.need("rate", |item| match item.rate()? {
            Rate::ZERO => Err(item.fault("a film without a rate is never there")),
            rate => Ok(rate),
        });
        let length = table.need("length", Item::positive_duration);
        let media = table.need("media", |item| item.count(1..=255));
        let block = table.need("block", |item| item.count(1..=255));
        let size = table.need("packet_size", Item::positive_size);
        let prebuffer = table.need("prebuffer", Item::duration);
        let frames = table
            .need("frames", |item| item.number(|frames| (1.0..=100.0).contains(&frames), "from 1 to 100"));
        table.finish()?;
        let (media, block, length, frames) = (media? as usize, block? as usize, length?, frames?);
        if block < media {
            return Err(item.fault("a block has `media` packets of the film and further ones"));
        }
        Ok(Self { rate: rate?, length, media, block, size: size?, prebuffer: prebuffer?, frames })
    }

    /// Shows the clip over the `trace` (from second `from` to `until`), whose packets have the size
    /// `carrier`. A packet of the film that has a byte in a lost packet of the trace is lost; a block that is
    /// not repaired is shown with what arrived of it.
    pub(super) fn show(&self, trace: &[Packet], carrier: Bytes, from: f64, until: f64) -> Shown {
        let media_bits = 8.0 * self.size.as_f64();
        let mut shown = Shown::default();
        // When the blocks of the film are there, each with so many seconds of it.
        let mut blocks: Vec<(f64, f64)> = Vec::new();
        let mut media_left = (self.length.as_secs_f64() * self.rate.as_f64() / media_bits).ceil();
        for first in (0..).step_by(self.block) {
            let numbers = first..first + self.block;
            let fates: Vec<_> = numbers.map_while(|number| self.fate(trace, carrier, number)).collect();
            if media_left <= 0.0 || fates.len() < self.block {
                break;
            }
            let mut arrivals: Vec<f64> = fates.iter().flatten().copied().collect();
            arrivals.sort_by(f64::total_cmp);
            let repaired = arrivals.get(self.media - 1);
            if repaired.is_none() {
                let media = fates.iter().take(self.media);
                shown.unrepaired += media.filter(|fate| fate.is_none()).count() as f64;
            }
            let ready = repaired.or(arrivals.last()).map_or(until, |at| *at) - from;
            let media = media_left.min(self.media as f64);
            media_left -= media;
            let before = blocks.last().map_or(0.0, |(at, _)| *at);
            blocks.push((ready.max(before), media * media_bits / self.rate.as_f64()));
        }
        self.play(&blocks, until - from, &mut shown);
        shown
    }

    /// When the film's packet of this number has arrived, or `None` in it: it was lost. `None`: it is beyond
    /// the trace.
    fn fate(&self, trace: &[Packet], carrier: Bytes, number: usize) -> Option<Option<f64>> {
        let (size, carrier) = (self.size.as_usize(), carrier.as_usize());
        let carriers = trace.get(number * size / carrier..=((number + 1) * size - 1) / carrier)?;
        Some(
            carriers
                .iter()
                .map(|packet| packet.arrived)
                .try_fold(0.0, |latest: f64, at| Some(latest.max(at?))),
        )
    }

    fn play(&self, blocks: &[(f64, f64)], end: f64, shown: &mut Shown) {
        let end = end.min(MOST_FRAMES / self.frames);
        let mut blocks = blocks.iter().peekable();
        let mut have = 0.0;
        let (length, prebuffer) = (self.length.as_secs_f64(), self.prebuffer.as_secs_f64());
        let frame = 1.0 / self.frames;
        let (mut played, mut is_on, mut at) = (0.0, false, 0.0);
        while at < end {
            while let Some((_, seconds)) = blocks.next_if(|(ready, _)| *ready <= at) {
                have += seconds;
            }
            is_on |= have >= prebuffer.min(length);
            if is_on && played < length - 1e-9 {
                if have >= played + frame - 1e-9 || have >= length - 1e-9 {
                    played += frame;
                } else {
                    shown.frozen += frame;
                }
            }
            shown.buffer.push((at, (have - played).max(0.0)));
            at = shown.buffer.len() as f64 / self.frames;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::packets::tests::trace;
    use super::*;

    const CARRIER: Bytes = Bytes::new(100);
    const CLIP: Clip = Clip {
        rate: Rate::from_kbps(8),
        length: Duration::from_secs(20),
        media: 4,
        block: 5,
        size: Bytes::new(100),
        prebuffer: Duration::from_secs(10),
        frames: 10.0,
    };

    #[test]
    fn a_clip_below_the_rate_of_the_trace_is_shown_whole() {
        // Twelve packets a second, ten of which the film takes with its parity; one of five is repaired.
        let shown = CLIP.show(&trace(600, 1.0 / 12.5, |number| number % 5 == 3), CARRIER, 0.0, 40.0);
        assert!(shown.frozen == 0.0 && shown.unrepaired == 0.0);
        // After ten seconds of film there is nearly half of the rest of the buffer left at the end of the
        // film.
        assert!(shown.buffer.len() == 400 && shown.buffer.iter().all(|(_, seconds)| *seconds <= 11.0));
    }

    #[test]
    fn a_clip_above_it_freezes_and_what_is_not_repaired_is_counted() {
        let long = Clip { length: Duration::from_secs(40), ..CLIP };
        let shown = long.show(&trace(600, 1.0 / 6.25, |_| false), CARRIER, 0.0, 100.0);
        // 40 s of film take 80 s, and 10 s of them are there after 20 s: 20 s are missing.
        assert!((19.0..=21.0).contains(&shown.frozen), "{}", shown.frozen);
        let shown = CLIP.show(&trace(600, 1.0 / 12.5, |number| number % 5 >= 3), CARRIER, 0.0, 40.0);
        assert!((shown.unrepaired - 50.0).abs() < 0.5, "{}", shown.unrepaired);
        // A trace that ends leaves the picture frozen to the end.
        let shown = CLIP.show(&trace(150, 1.0 / 12.5, |_| false), CARRIER, 0.0, 40.0);
        assert!(shown.frozen > 10.0, "{}", shown.frozen);
    }
}
