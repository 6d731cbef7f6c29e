//! What happens to packets on the wire beside losses: each takes a time of its own, and some come twice.

use std::collections::BTreeMap;

use anabranch_queues::delay_beyond;
use anabranch_scenario::model::Jitter;
use anabranch_scenario::random::Random;
use rattan_core::cells::{Packet, StdPacket};
use tokio::time::{Duration, Instant};

use super::cell::Work;

/// The wire at work.
pub struct Wire {
    jitter: Option<Jitter>,
    duplicate: f64,
    random: Random,
    /// On their way, by when they arrive and in the order in which they came.
    under_way: BTreeMap<(Instant, u64), StdPacket>,
    number: u64,
    last: Option<Instant>,
}

impl Wire {
    /// One with nothing on it.
    pub fn new(jitter: Option<Jitter>, duplicate: f64, seed: u64) -> Self {
        let random = Random::new(seed, 1);
        Self { jitter, duplicate, random, under_way: BTreeMap::new(), number: 0, last: None }
    }

    fn send(&mut self, packet: StdPacket, at: Instant) {
        self.under_way.insert((at, self.number), packet);
        self.number += 1;
    }
}

impl Work for Wire {
    fn take(&mut self, packet: StdPacket) {
        let mut at = packet.get_timestamp();
        if let Some(Jitter { spread, reorders }) = self.jitter {
            at += Duration::from_nanos(delay_beyond(&spread, &mut self.random));
            if !reorders {
                // One that would overtake another arrives with it.
                at = self.last.map_or(at, |last| last.max(at));
            }
        }
        self.last = Some(at);
        if self.duplicate > 0.0 && self.random.unit() < self.duplicate {
            self.send(packet.clone(), at);
        }
        self.send(packet, at);
    }

    fn next(&self) -> Option<Instant> {
        self.under_way.first_key_value().map(|((at, _), _)| *at)
    }

    fn give(&mut self) -> Option<StdPacket> {
        let ((at, _), mut packet) = self.under_way.pop_first()?;
        packet.delay_until(at);
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use anabranch_scenario::model::Spread;
    use anabranch_units::Duration as Span;

    use super::*;

    /// A thousand packets, a millisecond apart: how much later than sent each arrives, with its number.
    fn delays(jitter: Option<Jitter>, duplicate: f64) -> Vec<(usize, f64)> {
        let mut wire = Wire::new(jitter, duplicate, 7);
        let start = Instant::now();
        let sent = |number: usize| start + Duration::from_millis(u64::try_from(number).unwrap());
        for number in 0..1000usize {
            let mut frame = vec![0; 60];
            frame[14..22].copy_from_slice(&number.to_be_bytes());
            let mut packet = StdPacket::from_raw_buffer(&frame);
            packet.delay_until(sent(number));
            wire.take(packet);
        }
        let arrivals = std::iter::from_fn(|| wire.give());
        arrivals
            .map(|packet| {
                let number = usize::from_be_bytes(packet.as_slice()[14..22].try_into().unwrap());
                (number, (packet.get_timestamp() - sent(number)).as_secs_f64() * 1e3)
            })
            .collect()
    }

    fn mean(delays: &[(usize, f64)]) -> f64 {
        delays.iter().map(|(_, delay)| delay).sum::<f64>() / delays.len() as f64
    }

    fn overtaken(delays: &[(usize, f64)]) -> usize {
        delays.windows(2).filter(|pair| pair[1].0 < pair[0].0).count()
    }

    #[test]
    fn distributions_have_their_means() {
        let ms = Span::from_millis;
        for (spread, expected) in [
            (Spread::Uniform { most: ms(20) }, 10.0),
            (Spread::Exponential { mean: ms(8) }, 8.0),
            (Spread::Normal { mean: ms(20), deviation: ms(4) }, 20.0),
        ] {
            let delays = delays(Some(Jitter { spread, reorders: true }), 0.0);
            let mean = mean(&delays);
            assert!((mean / expected - 1.0).abs() < 0.06, "{spread:?}: {mean}");
            assert!(overtaken(&delays) > 300, "{}", overtaken(&delays));
        }
    }

    #[test]
    fn nothing_overtakes_unless_it_may() {
        let spread = Spread::Uniform { most: Span::from_millis(20) };
        let delays = delays(Some(Jitter { spread, reorders: false }), 0.0);
        assert_eq!((overtaken(&delays), delays.len()), (0, 1000));
        // Who waits for a slow one takes longer than the mean.
        assert!(mean(&delays) > 12.0 && delays.iter().all(|(_, delay)| *delay <= 20.0));
    }

    #[test]
    fn some_come_twice() {
        let delays = delays(None, 0.1);
        assert!((1070..1130).contains(&delays.len()), "{}", delays.len());
        assert!(delays.iter().all(|(_, delay)| *delay == 0.0));
    }
}
