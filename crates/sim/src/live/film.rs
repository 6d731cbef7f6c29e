//! What comes into the sender of a live stream, and what became of it.

use std::sync::Arc;

use anabranch_units::{Bytes, Duration, Rate, Time};

use crate::model::{KeyFrames, Live};

/// A packet holds so much of the stream: seven packets of a transport stream.
const PAYLOAD: u64 = 1316;
/// A packet begins with its number.
const NUMBER: u64 = 8;
/// Pictures come so often.
const PICTURE: Duration = Duration::from_millis(40);

/// A stream that is made as time goes by.
#[derive(Debug)]
pub(super) struct Film {
    rate: Rate,
    key_frames: Option<KeyFrames>,
    began: Time,
    /// Pictures, or packets at even intervals, that were made.
    made: u64,
    /// Of every packet: when it came into the sender, and when out of the receiver.
    packets: Vec<(Time, Option<Time>)>,
    is_over: bool,
}

impl Film {
    pub(super) fn new(live: &Live) -> Self {
        Self {
            rate: live.rate,
            key_frames: live.key_frames,
            began: Time::ZERO,
            made: 0,
            packets: Vec::new(),
            is_over: false,
        }
    }

    pub(super) fn begin(&mut self, now: Time) {
        self.began = now;
    }

    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    /// When the next part of it is made.
    pub(super) fn next(&self) -> Time {
        if self.is_over { Time::NEVER } else { self.began + self.interval() * self.made }
    }

    fn interval(&self) -> Duration {
        if self.key_frames.is_some() { PICTURE } else { self.rate.time_for(Bytes::new(PAYLOAD)) }
    }

    /// The packets that are made until `now`.
    pub(super) fn make(&mut self, now: Time) -> Vec<Arc<[u8]>> {
        let mut made = Vec::new();
        while self.next() <= now {
            let mut left = self.part();
            self.made += 1;
            while left > 0 {
                let mut payload = vec![0; Bytes::new(left.clamp(NUMBER, PAYLOAD)).as_usize()];
                payload[..NUMBER as usize].copy_from_slice(&(self.packets.len() as u64).to_be_bytes());
                self.packets.push((now, None));
                made.push(payload.into());
                left = left.saturating_sub(PAYLOAD);
            }
        }
        made
    }

    /// Bytes of the next part.
    fn part(&self) -> u64 {
        let Some(KeyFrames { every, times }) = self.key_frames else { return PAYLOAD };
        let pictures = (every.as_nanos() / PICTURE.as_nanos()).max(1);
        let weight = if self.made.is_multiple_of(pictures) { times } else { 1.0 };
        let all = self.rate.amount_in(PICTURE * pictures).as_f64();
        ((all * weight / (pictures as f64 - 1.0 + times)) as u64).max(NUMBER)
    }

    /// A packet came out of the receiver.
    pub(super) fn came(&mut self, payload: &[u8], now: Time) {
        let number =
            payload.iter().take(NUMBER as usize).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        if let Some((_, out)) = usize::try_from(number).ok().and_then(|number| self.packets.get_mut(number)) {
            out.get_or_insert(now);
        }
    }

    /// Of the packets that came into the sender between two moments: how many there were, and in rising order
    /// how long those took that came out.
    pub(super) fn between(&self, from: Time, to: Time) -> (u64, Vec<Duration>) {
        let packets = || self.packets.iter().filter(move |(came, _)| from <= *came && *came <= to);
        let mut took: Vec<Duration> =
            packets().filter_map(|(came, out)| Some((*out)?.since(*came))).collect();
        took.sort_unstable();
        (packets().count() as u64, took)
    }
}
