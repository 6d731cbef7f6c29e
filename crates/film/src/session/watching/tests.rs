//! A reader in virtual time before a film of which much has arrived: nothing is modelled but what it takes.

use anabranch_protocol::ranges::RangeSet;

use super::*;
use crate::auto::{Auto, Parameters};
use crate::session::Config;
use crate::session::testing::config;

const READER: ReaderId = ReaderId(0);
const STEP: Duration = Duration::from_millis(100);
const RATE: Rate = Rate::from_mbps(4);
const MUCH: u64 = 1 << 30;

struct World {
    session: Session,
    now: Time,
    position: u64,
    /// Whether what the reader has taken is forgotten at once.
    forgets: bool,
}

impl World {
    fn new(rate: Option<Rate>, there: u64) -> Self {
        let mut have = RangeSet::new();
        have.insert(0..there);
        let controller = Box::new(Auto::new(Parameters::default()));
        let config = Config {
            have,
            give_up_after: Duration::MAX,
            ..config(2 * MUCH, 1, controller, Pace::Media(rate))
        };
        let mut session = Session::new(config, Time::ZERO);
        session.add_reader(READER, 0..2 * MUCH, Time::ZERO);
        session.start(Time::ZERO);
        Self { session, now: Time::ZERO, position: 0, forgets: false }
    }

    fn takes(&mut self, seconds: u64, kbytes_per_second: u64) {
        for _ in 0..seconds * 10 {
            self.now += STEP;
            let wanted = self.position + kbytes_per_second * 100;
            self.position = wanted.min(self.session.available(READER));
            self.session.move_reader(READER, self.position, self.now);
            if self.forgets {
                self.session.forget(0..self.position);
            }
            self.session.tick(self.now);
            while self.session.poll_action().is_some() {}
        }
    }

    fn kbps(&self) -> u64 {
        self.session.media_rate.map_or(0, |rate| rate.as_bps() / 1000)
    }

    fn stalls(&self) -> (u32, Duration) {
        let report = self.session.status().playback;
        (report.stalls, report.stalled)
    }
}

#[test]
fn an_unknown_rate_goes_up_and_down_with_what_the_reader_takes() {
    let mut world = World::new(None, MUCH);
    for kbytes in [500, 250, 1000, 500] {
        world.takes(25, kbytes);
        assert!((kbytes * 8 * 99 / 100..=kbytes * 8 * 101 / 100).contains(&world.kbps()), "{}", world.kbps());
    }
    // An uneven hand makes it neither slower and slower nor faster and faster.
    for _ in 0..60 {
        world.takes(1, 800);
        world.takes(1, 200);
        world.takes(1, 500);
    }
    assert!((3400..4600).contains(&world.kbps()), "{}", world.kbps());
}

#[test]
fn a_pause_does_not_change_an_unknown_rate() {
    let mut world = World::new(None, MUCH);
    world.takes(25, 500);
    world.takes(600, 0);
    world.takes(15, 500);
    assert!((3900..4100).contains(&world.kbps()), "{}", world.kbps());
}

#[test]
fn what_is_forgotten_behind_the_reader_does_not_end_the_play() {
    let mut world = World::new(None, MUCH);
    world.forgets = true;
    world.takes(25, 500);
    assert!((3900..4100).contains(&world.kbps()), "{}", world.kbps());
    assert!(world.session.status().playback.playing);
}

#[test]
fn a_pause_is_no_stall_and_plays_nothing() {
    let mut world = World::new(Some(RATE), MUCH);
    world.takes(20, 500);
    let (played, buffer) = (world.session.playback.play_position(), world.session.status().buffer);
    world.takes(60, 0);
    assert_eq!((world.session.playback.play_position(), world.session.status().buffer), (played, buffer));
    assert_eq!(world.stalls(), (0, Duration::ZERO));
}

#[test]
fn the_pace_follows_a_player_at_double_speed_and_back() {
    let mut world = World::new(Some(RATE), MUCH);
    world.takes(30, 500);
    assert_eq!(world.kbps(), 4000);
    world.takes(30, 1000);
    assert_eq!(world.kbps(), 8000);
    assert_eq!(world.session.status().media_rate, Some(RATE));
    // Slower than the film is no reason to fall behind it.
    world.takes(30, 250);
    assert_eq!(world.kbps(), 4000);
    assert_eq!(world.stalls(), (0, Duration::ZERO));
}

#[test]
fn a_player_that_takes_whatever_comes_plays_by_the_clock_and_stalls_at_its_end() {
    // Ten seconds of film, taken at once.
    let mut world = World::new(Some(RATE), 5_000_000);
    world.takes(13, 100_000);
    assert_eq!((world.stalls().0, world.kbps()), (1, 4000));
    assert!((2.8..3.2).contains(&world.stalls().1.as_secs_f64()), "{:?}", world.stalls());
}

#[test]
fn a_player_that_has_gone_does_not_stall() {
    let mut world = World::new(Some(RATE), 5_000_000);
    world.takes(5, 100_000);
    world.session.remove_reader(READER, world.now);
    for _ in 0..300 {
        world.now += STEP;
        world.session.tick(world.now);
    }
    assert_eq!(world.stalls(), (0, Duration::ZERO));
}
