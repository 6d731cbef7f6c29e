//! How much of a film each second of its play needs, where that is not the same everywhere.

use anabranch_units::{Bytes, Duration, Rate};

/// A part of a film with one rate, to the next part or the end.
#[derive(Clone, Copy, Debug)]
struct Scene {
    at: Duration,
    first_byte: u64,
    rate: Rate,
}

/// The parts of a film, in its order.
#[derive(Debug)]
pub(super) struct Scenes {
    first: Scene,
    later: Vec<Scene>,
}

impl Scenes {
    /// A film of this rate, and of others from these play times on, which rise.
    pub(super) fn new(rate: Rate, changes: &[(Duration, Rate)]) -> Self {
        let first = Scene { at: Duration::ZERO, first_byte: 0, rate };
        let mut last = first;
        let later = changes.iter().map(|(at, rate)| {
            let first_byte = last.first_byte.saturating_add(last.rate.amount_in(*at - last.at).get());
            last = Scene { at: *at, first_byte, rate: *rate };
            last
        });
        Self { first, later: later.collect() }
    }

    fn last_where(&self, is_reached: impl Fn(&Scene) -> bool) -> Scene {
        self.later.iter().rfind(|scene| is_reached(scene)).copied().unwrap_or(self.first)
    }

    /// What a second of play needs at a byte.
    pub(super) fn rate_at(&self, byte: u64) -> Rate {
        self.last_where(|scene| scene.first_byte <= byte).rate
    }

    /// The first byte of what is played at a play time.
    pub(super) fn byte_at(&self, play_time: Duration) -> u64 {
        let scene = self.last_where(|scene| scene.at <= play_time);
        scene.first_byte.saturating_add(scene.rate.amount_in(play_time - scene.at).get())
    }

    /// When a byte is played, from the film's beginning.
    pub(super) fn play_time(&self, byte: u64) -> Duration {
        let scene = self.last_where(|scene| scene.first_byte <= byte);
        scene.at + scene.rate.time_for(Bytes::new(byte - scene.first_byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_play_times_of_a_film_of_several_rates_belong_together() {
        let seconds = Duration::from_secs;
        // 1 MB a second, then 2 MB, then half of one.
        let changes = [(seconds(10), Rate::from_mbps(16)), (seconds(20), Rate::from_mbps(4))];
        let film = Scenes::new(Rate::from_mbps(8), &changes);
        for (play_time, megabytes, mbps) in
            [(0, 0, 8), (4, 4, 8), (10, 10, 16), (15, 20, 16), (20, 30, 4), (30, 35, 4)]
        {
            let byte = megabytes * 1_000_000;
            assert_eq!(film.byte_at(seconds(play_time)), byte);
            assert_eq!(film.play_time(byte), seconds(play_time));
            assert_eq!(film.rate_at(byte), Rate::from_mbps(mbps));
        }
    }
}
