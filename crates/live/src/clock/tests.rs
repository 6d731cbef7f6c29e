//! A way that takes as long as a test says, and a sender that tells its mean round trip as RFC 5348 reckons
//! it.

use anabranch_protocol::live::wire::{Content, Width, encode_data};
use proptest::prelude::*;

use super::super::Receiver;
use super::super::control::parameters;
use super::*;

const LATENCY: Duration = Duration::from_millis(500);
const ID: ConnectionId = ConnectionId(0);
/// Media, and each tenth of them is reported.
const INTERVAL: u64 = 10;
const REPORTED: u64 = 10;
/// The sender's clock is so far ahead, microseconds.
const AHEAD: u64 = 1_000_000_000;

/// Milliseconds that it takes there and back, besides the queue there.
#[derive(Clone, Copy)]
struct Path {
    there: u64,
    back: u64,
    queue: u64,
}

const PATH: Path = Path { there: 40, back: 60, queue: 0 };

struct World {
    clock: SenderClock,
    millis: u64,
    /// The sender's mean round trip, and the one that is under way in a report, microseconds.
    rtt: f64,
    /// Of the sender's clock, millionths.
    drift: i64,
}

impl World {
    fn new() -> Self {
        Self { clock: SenderClock::default(), millis: 1000, rtt: 0.0, drift: 0 }
    }

    /// What the sender's clock tells.
    fn told(&self) -> u64 {
        let passed = self.millis * 1000;
        AHEAD + passed.saturating_add_signed(passed as i64 / 1_000_000 * self.drift)
    }

    /// So many seconds, in which the queue is what `queue` says of the time in milliseconds.
    fn run(&mut self, path: Path, seconds: u64, queue: impl Fn(u64) -> u64) {
        for step in 0..seconds * 1000 / INTERVAL {
            self.millis += INTERVAL;
            let took = path.there + path.queue + queue(self.millis);
            let now = Time::ZERO + Duration::from_millis(self.millis + took);
            let timestamp = low_bits(self.told());
            let header =
                Header { width: Width::Wide, sequence: 0, timestamp, rtt: self.rtt as u32, several: None };
            self.clock.arrived(ID, &header, true, LATENCY, now);
            if step % REPORTED == 0 {
                let report = RateReport {
                    timestamp,
                    delay: Duration::ZERO,
                    receive_rate: anabranch_units::Rate::ZERO,
                    loss_event_rate: 0.0,
                };
                self.clock.reported(ID, &report, now);
                let sample = ((took + path.back) * 1000) as f64;
                self.rtt = if self.rtt == 0.0 { sample } else { 0.9 * self.rtt + 0.1 * sample };
            }
        }
    }

    /// By how many milliseconds what comes into the sender now is handed on later than a latency budget and
    /// this way; negative: earlier.
    fn late(&self, there: u64) -> f64 {
        let left = low_bits(self.told());
        let due = self.clock.here(self.clock.came(left, Some(left), LATENCY));
        due.as_secs_f64() * 1e3 - (self.millis + there) as f64
    }

    fn assert_late(&self, there: u64, expected: f64, within: f64, what: &str) {
        let late = self.late(there);
        assert!((late - expected).abs() <= within, "{what}: {late} ms late, not {expected}");
    }
}

fn no_queue(_: u64) -> u64 {
    0
}

/// Between 150 and 400 ms within eight seconds, as a CUBIC flow leaves it.
fn standing(millis: u64) -> u64 {
    150 + millis % 8000 / 32
}

/// The same in two seconds and a half, so that it is as short as it gets again and again.
fn regular(millis: u64) -> u64 {
    150 + millis % 2500 / 10
}

#[test]
fn the_sender_means_as_is_reckoned_here() {
    let gain = parameters(false).rtt_weight.complement().as_f64();
    assert!((gain * MEAN as f64 - 1.0).abs() < 1e-9);
}

#[test]
fn a_queue_that_stands_does_not_make_the_latency_longer() {
    for queue in [standing, regular] {
        let mut world = World::new();
        world.run(PATH, 10, no_queue);
        world.assert_late(40, 0.0, 1.0, "before");
        for minute in 0..10 {
            world.run(PATH, 60, queue);
            world.assert_late(40, 0.0, 10.0, &format!("minute {minute}"));
        }
        world.run(PATH, 60, no_queue);
        world.assert_late(40, 0.0, 5.0, "after");
    }
}

#[test]
fn a_clock_that_drifts_is_followed_with_a_queue_and_without() {
    for drift in [-100, 100] {
        for queue in [no_queue, standing] {
            let mut world = World::new();
            world.drift = drift;
            world.run(PATH, 10, no_queue);
            // 120 ms in 20 minutes.
            for minute in 0..20 {
                world.run(PATH, 60, queue);
                world.assert_late(40, 0.0, 20.0, &format!("{drift} millionths, minute {minute}"));
            }
        }
    }
}

#[test]
fn a_fast_clock_is_followed_where_no_queue_stands() {
    for drift in [-1000, 1000] {
        let mut world = World::new();
        world.drift = drift;
        for second in 0..100 {
            world.run(PATH, 1, no_queue);
            world.assert_late(40, 0.0, 31.0, &format!("{drift} millionths, second {second}"));
        }
        assert_eq!(world.clock.jumps(), 0);
    }
}

#[test]
fn a_longer_route_adds_its_difference_and_a_shorter_one_takes_it_off() {
    for jitter in [0, 6] {
        let jitter = |millis: u64| millis.wrapping_mul(7919) / 10 % (jitter + 1);
        let mut world = World::new();
        world.run(PATH, 30, jitter);
        let longer = Path { there: 90, back: 110, ..PATH };
        world.run(longer, 90, jitter);
        world.assert_late(90, 0.0, 5.0, "longer");
        world.run(longer, 600, jitter);
        world.assert_late(90, 0.0, 5.0, "longer for long");
        world.run(longer, 60, standing);
        world.assert_late(90, 0.0, 10.0, "longer, with a queue");
        world.run(PATH, 60, jitter);
        world.assert_late(40, 0.0, 5.0, "shorter again");
    }
}

#[test]
fn where_all_would_come_too_late_the_route_is_taken_at_once() {
    let mut world = World::new();
    world.run(PATH, 30, no_queue);
    world.run(Path { there: 700, ..PATH }, 11, no_queue);
    world.assert_late(700, 0.0, 1.0, "longer than the latency");
    world.run(PATH, 1, no_queue);
    world.assert_late(40, 0.0, 1.0, "as before");
}

#[test]
fn a_clock_that_stood_still_for_seconds_is_found_out_soon() {
    let mut world = World::new();
    world.run(PATH, 30, no_queue);
    // Less than a jump, more than the latency.
    world.clock.correction -= 2_000_000;
    world.run(PATH, 20, no_queue);
    world.assert_late(40, 0.0, 30.0, "after 2 s");
}

#[test]
fn a_queue_on_the_way_back_changes_little() {
    let mut world = World::new();
    world.run(PATH, 30, no_queue);
    world.run(Path { back: 360, ..PATH }, 600, no_queue);
    world.assert_late(40, 0.0, 5.0, "beside it");
    world.run(PATH, 60, no_queue);
    world.assert_late(40, 0.0, 5.0, "after it");
}

#[test]
fn the_shortest_way_in_use_counts() {
    let mut clock = SenderClock::default();
    let mut arrive = |id, left: u64, took: u64| {
        let (timestamp, now) = (low_bits(left * 1000), Time::ZERO + Duration::from_millis(left + took));
        let header = Header { width: Width::Wide, sequence: 0, timestamp, rtt: 0, several: None };
        clock.arrived(ConnectionId(id), &header, true, LATENCY, now);
        clock
            .here(clock.came(timestamp, Some(timestamp), LATENCY))
            .since(Time::ZERO + Duration::from_millis(left))
    };
    assert_eq!(arrive(1, 0, 60), Duration::from_millis(60));
    assert_eq!(arrive(2, 10, 20), Duration::from_millis(20));
    assert_eq!(arrive(1, 14_000, 60), Duration::from_millis(20));
    assert_eq!(arrive(1, 20_000, 60), Duration::from_millis(60));
}

proptest! {
    /// Also clocks that jump with each datagram, impossible round trips, and connections that come and go.
    #[test]
    fn whatever_a_sender_tells_of_its_clock_the_receiver_comes_to_rest(
        datagrams in prop::collection::vec(
            (any::<[u32; 2]>(), prop_oneof![0..2_000_000u32, any::<u32>()], 0..3u32, 0..2000u64), 1..200),
    ) {
        let mut receiver = Receiver::new(LATENCY, 0);
        let (mut now, mut delivered) = (Time::ZERO, 0);
        for (number, ([timestamp, time], rtt, id, millis)) in (0..).zip(datagrams) {
            now += Duration::from_millis(millis);
            if id == 2 {
                receiver.connection_down(ConnectionId(number % 2));
                continue;
            }
            receiver.connection_up(ConnectionId(id));
            let header = Header { width: Width::Wide, sequence: number, timestamp, rtt, several: None };
            let media =
                Content::Media { sequence: number, time, is_again: false, is_packed: false, payload: &[1] };
            receiver.receive(ConnectionId(id), &encode_data(header, media), now).unwrap();
            while receiver.transmit(now).is_some() {}
            while receiver.deliver(now).is_some() {
                delivered += 1;
            }
            prop_assert!(receiver.deadline() > now, "the receiver wants to be woken at once");
        }
        // However its clock goes, what came is handed on before long.
        let waiting = receiver.status().waiting;
        while receiver.deliver(now + LATENCY * 2 + JUMP * 2).is_some() {
            delivered += 1;
        }
        let counts = receiver.status().counts;
        prop_assert!(counts.delivered == delivered && receiver.status().waiting == 0, "{waiting} waited");
    }
}
