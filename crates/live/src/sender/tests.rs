//! A sender and a receiver with a network between them, in virtual time.

mod anew;
mod overdue;
mod sharing;
mod whole;

use anabranch_protocol::live::wire::{RateReport, Report, encode_report, low_bits, micros};
use anabranch_testkit::Events;
use anabranch_units::{Rate, Ratio};
use proptest::prelude::*;

use super::super::Receiver;
use super::super::fec::Code;
use super::*;

const LATENCY: Duration = Duration::from_millis(500);

/// A network that delays and loses as a function says.
struct World<F> {
    sender: Sender,
    receiver: Receiver,
    now: Time,
    /// What is under way: whether to the receiver.
    flying: Events<(bool, ConnectionId, Vec<u8>)>,
    count: u64,
    /// Connection, whether to the receiver, and a number: the delay, or `None` if it is lost.
    path: F,
    delivered: Vec<Arc<[u8]>>,
}

impl<F: FnMut(ConnectionId, bool, u64, Time) -> Option<Duration>> World<F> {
    fn new(settings: Settings, links: u32, path: F) -> Self {
        let mut sender = Sender::new(settings);
        let mut receiver = Receiver::new(settings.latency, 0);
        for link in 0..links {
            assert!(sender.connection_up(ConnectionId(link), UplinkId(link), Duration::from_millis(50)));
            assert!(receiver.connection_up(ConnectionId(link)));
        }
        // Not at the epoch, and where the low 32 bits of microseconds are about to start anew.
        let now = Time::ZERO + Duration::from_micros((1 << 32) - 2_000_000);
        Self { sender, receiver, now, flying: Events::default(), count: 0, path, delivered: Vec::new() }
    }

    fn fly(&mut self, to_receiver: bool, (id, datagram): (ConnectionId, Vec<u8>)) {
        self.count += 1;
        if let Some(delay) = (self.path)(id, to_receiver, self.count, self.now) {
            self.flying.put(self.now + delay, (to_receiver, id, datagram));
        }
    }

    /// Lets time pass until `until`.
    fn run(&mut self, until: Time) {
        loop {
            while let Some(datagram) = self.sender.transmit(self.now) {
                self.fly(true, datagram);
            }
            while let Some(datagram) = self.receiver.transmit(self.now) {
                self.fly(false, datagram);
            }
            while let Some(payload) = self.receiver.deliver(self.now) {
                self.delivered.push(payload);
            }
            let arrival = self.flying.next();
            let next = arrival.min(self.sender.deadline(self.now)).min(self.receiver.deadline());
            if next > until {
                break;
            }
            assert!(next > self.now || arrival == next, "time stands still at {}", self.now);
            self.now = next;
            if let Some((to_receiver, id, datagram)) = self.flying.due(next) {
                if to_receiver {
                    self.receiver.receive(id, &datagram, next).unwrap();
                } else {
                    self.sender.receive(id, &datagram, next).unwrap();
                }
            }
        }
        self.now = until;
    }

    /// Packets at an even rate, from packet `first` on.
    fn stream(&mut self, first: u64, count: u64, interval: Duration) {
        for number in first..first + count {
            self.sender.push(&payload(number), self.now);
            self.run(self.now + interval);
        }
    }

    fn finish(&mut self) {
        self.sender.finish();
        for _ in 0..100 {
            self.run(self.now + self.sender.latency() / 20);
        }
        assert!(self.sender.is_drained());
    }
}

fn payload(number: u64) -> Arc<[u8]> {
    let mut bytes = vec![number as u8; 1316];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes.into()
}

fn numbers(delivered: &[Arc<[u8]>]) -> Vec<u64> {
    delivered.iter().map(|payload| u64::from_be_bytes(payload[..8].try_into().unwrap())).collect()
}

fn settings(retransmit: bool, fec: Fec) -> Settings {
    Settings {
        latency: LATENCY,
        retransmit,
        fec,
        leave_out_stuffing: true,
        scheme: Scheme::TFRC,
        is_published: false,
    }
}

/// Loses `percent` of the datagrams, always the same ones.
fn is_lost(number: u64, percent: u64) -> bool {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^= mixed >> 29;
    (mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) % 100 < percent
}

const WAY: Duration = Duration::from_millis(25);
const EVERY_10_MS: Duration = Duration::from_millis(10);

#[test]
fn a_clean_path_gives_the_stream_a_latency_budget_later() {
    let mut world = World::new(settings(true, Fec::Off), 1, |_, _, _, _| Some(WAY));
    world.stream(0, 500, EVERY_10_MS);
    world.finish();
    assert!(numbers(&world.delivered).into_iter().eq(0..500), "{:?}", world.receiver.status());
    let status = world.sender.status();
    assert_eq!((status.media, status.again, status.parity, status.dropped.0), (500, 0, 0, 0));
    assert_eq!(world.receiver.status().counts.late, 0);
}

#[test]
fn retransmission_alone_repairs_what_is_lost_both_ways() {
    // What TCP would have is 0.99 Mbit/s. The streams have half of it, and 1.05 Mbit/s where the link is not
    // TCP's limit.
    for (scheme, interval) in [(Scheme::TFRC, EVERY_10_MS * 2), (Scheme::AUTO, EVERY_10_MS)] {
        let settings = Settings { scheme, ..settings(true, Fec::Off) };
        let mut world = World::new(settings, 1, |_, _, number, _| (!is_lost(number, 4)).then_some(WAY));
        world.run(world.now + Duration::from_millis(1500));
        world.stream(0, 2000, interval);
        world.finish();
        assert!(numbers(&world.delivered).into_iter().eq(0..2000), "{:?}", world.receiver.status());
        let counts = world.receiver.status().counts;
        assert!(counts.recovered_by_retransmission > 50 && counts.recovered_by_fec == 0, "{counts:?}");
    }
}

/// 150 kbit/s over a long way that loses 8 %: a packet can be lost several times and still come.
#[test]
fn at_a_low_rate_what_is_lost_is_sent_again_soon_enough() {
    let latency = Duration::from_millis(672);
    let way = Duration::from_millis(84);
    let mut missing = 0;
    for salt in [0, 1_000_003, 2_000_006] {
        let settings = Settings { latency, scheme: Scheme::AUTO, ..settings(true, Fec::Off) };
        let path = move |_, _, number, _| (!is_lost(number + salt, 8)).then_some(way);
        let mut world = World::new(settings, 1, path);
        world.run(world.now + Duration::from_millis(1500));
        world.stream(0, 2000, EVERY_10_MS * 7);
        world.finish();
        missing += world.receiver.status().counts.lost;
    }
    // All of four attempts are lost of a quarter of a packet, in the mean of 6000.
    assert!(missing <= 1, "{missing}");
}

#[test]
fn parity_alone_repairs_what_is_lost() {
    let fec = Fec::Fixed(Code::new(10, 5).unwrap());
    let settings = Settings { scheme: Scheme::AUTO, ..settings(false, fec) };
    let mut world = World::new(settings, 1, |_, _, number, _| (!is_lost(number, 4)).then_some(WAY));
    world.run(world.now + Duration::from_millis(1500));
    // What TCP would have is about as much as the stream with its parity, 0.8 Mbit/s.
    world.stream(0, 2000, EVERY_10_MS * 2);
    world.finish();
    assert!(numbers(&world.delivered).into_iter().eq(0..2000), "{:?}", world.receiver.status());
    let counts = world.receiver.status().counts;
    assert!(counts.recovered_by_fec > 40 && counts.recovered_by_retransmission == 0, "{counts:?}");
    assert_eq!(world.sender.status().again, 0);
}

#[test]
fn without_either_what_is_lost_is_lost() {
    let mut world =
        World::new(settings(false, Fec::Off), 1, |_, _, number, _| (!is_lost(number, 4)).then_some(WAY));
    world.run(world.now + Duration::from_millis(1500));
    world.stream(0, 1000, EVERY_10_MS);
    world.finish();
    let counts = world.receiver.status().counts;
    assert!(counts.lost > 10 && counts.delivered + counts.lost <= 1000, "{counts:?}");
}

#[test]
fn of_an_input_that_is_too_fast_the_newest_is_kept() {
    // One packet in 20 ms gets through a queue of four; there comes one in 5 ms.
    let mut free = Time::ZERO;
    let mut world = World::new(settings(true, Fec::Off), 1, move |_, to_receiver, _, now| {
        if !to_receiver {
            return Some(WAY);
        }
        if free.since(now) > Duration::from_millis(80) {
            return None;
        }
        free = free.max(now) + Duration::from_millis(20);
        Some(free.since(now) + WAY)
    });
    world.run(world.now + Duration::from_millis(200));
    world.stream(0, 4000, Duration::from_millis(5));
    world.finish();
    let (dropped, bytes) = world.sender.status().dropped;
    assert!(dropped > 2500 && bytes == Bytes::new(dropped * 1316), "{dropped}");
    let delivered = numbers(&world.delivered);
    assert!(delivered.is_sorted());
    // About a quarter can come; the last of them is among the newest.
    assert!((400..1100).contains(&delivered.len()), "{}", delivered.len());
    assert!(*delivered.last().unwrap() > 3900);
    // 1316 bytes in 20 ms are 526 kbit/s.
    let available = world.sender.status().available_rate;
    assert!(available < Rate::from_mbps(2), "{available}");
}

#[test]
fn a_stream_begins_at_once_though_the_first_reports_are_lost() {
    let mut reports = 0;
    let mut world = World::new(settings(true, Fec::Off), 1, move |_, to_receiver, _, _| {
        reports += u64::from(!to_receiver);
        (to_receiver || reports > 5).then_some(WAY)
    });
    world.stream(0, 200, EVERY_10_MS);
    assert!(world.delivered.len() > 140, "{} so far", world.delivered.len());
    world.finish();
    assert!(numbers(&world.delivered).into_iter().eq(0..200), "{:?}", world.sender.status());
}

#[test]
fn a_dead_link_is_out_within_a_second_and_costs_nothing() {
    let dies = Time::ZERO + Duration::from_micros((1 << 32) - 2_000_000) + Duration::from_secs(10);
    let mut world = World::new(settings(true, Fec::Off), 2, move |id, _, _, now| {
        (id == ConnectionId(1) || now < dies).then_some(WAY)
    });
    world.run(world.now + Duration::from_millis(200));
    world.stream(0, 970, EVERY_10_MS);
    let before = world.sender.status().connections[0].sent;
    assert!(before > 400, "{before}");
    world.stream(970, 130, EVERY_10_MS);
    assert!(world.sender.status().connections[0].is_silent);
    world.stream(1100, 900, EVERY_10_MS);
    world.finish();
    assert!(numbers(&world.delivered).into_iter().eq(0..2000), "{:?}", world.receiver.status());
}

#[test]
fn a_slow_link_does_not_drag_the_fast_one_down() {
    let mut world = World::new(settings(true, Fec::Off), 2, |id, _, _, _| {
        Some(if id == ConnectionId(0) { WAY } else { Duration::from_millis(900) })
    });
    // As the handshakes have shown.
    world.sender = Sender::new(settings(true, Fec::Off));
    for (link, rtt) in [(0, WAY * 2), (1, Duration::from_millis(1800))] {
        assert!(world.sender.connection_up(ConnectionId(link), UplinkId(link), rtt));
    }
    world.stream(0, 1000, EVERY_10_MS);
    world.finish();
    assert!(numbers(&world.delivered).into_iter().eq(0..1000), "{:?}", world.receiver.status());
    assert_eq!(world.receiver.status().counts.late, 0);
}

#[test]
fn garbage_is_refused_and_changes_nothing() {
    let mut world = World::new(settings(true, Fec::Off), 1, |_, _, _, _| Some(WAY));
    world.run(world.now + Duration::from_millis(200));
    for garbage in [&[][..], &[0; 10], &[4; 40], &[1; 2000]] {
        assert!(world.sender.receive(ConnectionId(0), garbage, world.now).is_err());
        assert!(world.receiver.receive(ConnectionId(0), garbage, world.now).is_err());
    }
    world.stream(0, 10, EVERY_10_MS);
    world.finish();
    assert_eq!(world.delivered.len(), 10);
}

/// Loses the datagrams to the receiver in bursts of three, a part of them from `begins` on.
fn bursts(begins: Time, percent: u64) -> impl FnMut(ConnectionId, bool, u64, Time) -> Option<Duration> {
    let (mut left, mut count) = (0, 0);
    move |_, to_receiver, _, now| {
        count += u64::from(to_receiver);
        if left == 0 && to_receiver && now >= begins && is_lost(count, percent) {
            left = 3;
        }
        let is_lost = to_receiver && left > 0;
        left -= u64::from(is_lost);
        (!is_lost).then_some(WAY)
    }
}

#[test]
fn parity_comes_with_the_losses_and_repairs_bursts() {
    let begins = Time::ZERO + Duration::from_micros((1 << 32) - 2_000_000) + Duration::from_secs(20);
    let settings = Settings { scheme: Scheme::AUTO, ..settings(false, Fec::Auto) };
    let mut world = World::new(settings, 1, bursts(begins, 1));
    world.run(world.now + Duration::from_millis(1500));
    world.stream(0, 900, EVERY_10_MS * 2);
    let status = world.sender.status();
    assert_eq!((status.parity, status.code), (0, None));
    // Until the first bursts are known nothing is protected.
    world.stream(900, 1000, EVERY_10_MS * 2);
    let (lost, parity) = (world.receiver.status().counts.lost, world.sender.status().parity);
    assert!(parity > 100 && lost < 40, "{parity} {lost}");
    let losses = world.sender.status().losses;
    assert!((2.5..3.5).contains(&losses.burst) && (0.01..0.06).contains(&losses.rate), "{losses:?}");
    world.stream(1900, 2000, EVERY_10_MS * 2);
    world.finish();
    let counts = world.receiver.status().counts;
    assert!(counts.lost - lost <= 2 && counts.recovered_by_fec > 60, "{lost} {counts:?}");
    let status = world.sender.status();
    assert!(status.parity < status.media, "{status:?}");
}

#[test]
fn where_lost_packets_can_be_sent_again_often_there_is_little_parity() {
    let of = |retransmit| {
        let mut world = World::new(settings(retransmit, Fec::Auto), 1, bursts(Time::ZERO, 1));
        world.run(world.now + Duration::from_millis(1500));
        world.stream(0, 1000, EVERY_10_MS * 4);
        world.finish();
        (world.receiver.status().counts.lost, world.sender.status().parity)
    };
    let ((lost, little), (_, much)) = (of(true), of(false));
    assert!(lost == 0 && little * 4 < much, "{lost}, {little} of {much}");
}

/// 4 packets a second: a block that waited until it is full would be seconds too late.
#[test]
fn at_a_low_rate_parity_comes_in_time() {
    for fec in [Fec::Fixed(Code::new(50, 25).unwrap()), Fec::Auto] {
        let settings = Settings { latency: Duration::from_secs(3), ..settings(false, fec) };
        let mut number = 0u64;
        let path = move |_, to_receiver: bool, _, _| {
            number += u64::from(to_receiver);
            (!to_receiver || number < 40 || !is_lost(number, 4)).then_some(WAY * 10)
        };
        let mut world = World::new(settings, 1, path);
        world.run(world.now + Duration::from_millis(2500));
        world.stream(0, 200, EVERY_10_MS * 25);
        let before = world.receiver.status().counts.lost;
        world.stream(200, 800, EVERY_10_MS * 25);
        world.finish();
        let counts = world.receiver.status().counts;
        assert!(counts.lost <= before + 1 && counts.recovered_by_fec > 10, "{fec:?} {before} {counts:?}");
    }
}

/// What the rate has no room for would only take it from the media.
#[test]
fn parity_does_not_displace_media() {
    // 50 packets a second get through and one of 25 is lost; the media are 45 a second.
    let (mut free, mut number) = (Time::ZERO, 0u64);
    let mut world = World::new(settings(false, Fec::Auto), 1, move |_, to_receiver, _, now| {
        if !to_receiver {
            return Some(WAY);
        }
        number += 1;
        if free.since(now) > Duration::from_millis(100) || number.is_multiple_of(25) {
            return None;
        }
        free = free.max(now) + Duration::from_millis(20);
        Some(free.since(now) + WAY)
    });
    world.run(world.now + Duration::from_millis(500));
    world.stream(0, 4500, Duration::from_micros(22_222));
    world.finish();
    let status = world.sender.status();
    assert!(status.parity * 4 < status.media, "{status:?}");
    assert!(status.dropped.0 < 450, "{status:?}");
}

/// What a receiver may report that means no good: of what left a while ago, at any rate, with any losses.
fn hostile_report() -> impl Strategy<Value = (u32, Report)> {
    let micros = || prop_oneof![Just(0u32), 0..1_000_000u32, any::<u32>()];
    let bits = prop_oneof![Just(0), 0..10_000_000u64, any::<u64>()];
    let near = || prop_oneof![0..400u32, any::<u32>()];
    let rate = (micros(), bits, 0.0..=1.0f64).prop_map(|(delay, bits, loss_event_rate)| RateReport {
        timestamp: 0,
        delay: Duration::from_micros(delay.into()),
        receive_rate: Rate::from_bps(bits),
        loss_event_rate,
    });
    let ranges = prop::collection::vec((near(), 1..=u16::MAX), 0..5);
    let had = prop::collection::vec(any::<u8>(), 0..8);
    (micros(), prop::option::weighted(0.8, rate), ranges, near(), had)
        .prop_map(|(age, rate, arrived, settled, had)| (age, Report { rate, arrived, settled, had }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_a_receiver_reports_the_sender_comes_to_rest_and_keeps_its_bounds(
        steps in prop::collection::vec((hostile_report(), 0..300u64, 0..20usize, 0..2u32), 1..150),
        scheme in prop_oneof![Just(Scheme::AUTO), Just(Scheme::MULTFRC), Just(Scheme::AIO_TFRC)],
        fec in prop_oneof![Just(Fec::Auto), Just(Fec::Off), Just(Fec::Fixed(Code::new(4, 2).unwrap()))],
    ) {
        let mut sender = Sender::new(Settings { scheme, ..settings(true, fec) });
        let mut now = Time::ZERO + Duration::from_secs(100);
        for link in 0..2 {
            sender.connection_up(ConnectionId(link), UplinkId(link), Duration::from_millis(50));
        }
        let mut pushed = 0;
        for ((age, mut report), millis, packets, id) in steps {
            for _ in 0..packets {
                sender.push(&payload(pushed), now);
                pushed += 1;
            }
            if let Some(rate) = &mut report.rate {
                rate.timestamp = low_bits(micros(now)).wrapping_sub(age);
            }
            sender.receive(ConnectionId(id), &encode_report(&report), now).unwrap();
            let until = now + Duration::from_millis(millis);
            let mut wakes = 0;
            while now <= until {
                let sent = std::iter::from_fn(|| sender.transmit(now)).take(100_000).count();
                prop_assert!(sent < 100_000, "datagrams without an end");
                let next = sender.deadline(now);
                prop_assert!(next > now, "the sender wants to be woken at once");
                wakes += 1;
                prop_assert!(wakes < 100_000, "the sender is woken without an end");
                now = next.min(until + Duration::from_nanos(1));
            }
            let status = sender.status();
            prop_assert!(status.media + status.dropped.0 <= pushed);
            prop_assert!(status.connections.iter().all(|connection| connection.flows <= 100.0));
            prop_assert!(sender.wanted_connections(UplinkId(0)) <= MAX_CONNECTIONS / 2);
        }
        // What is old is forgotten.
        now += LATENCY * 3;
        while sender.transmit(now).is_some() {}
        prop_assert!(sender.history.is_empty() && sender.waiting() == sender.protection.waiting());
    }
}

#[test]
fn a_path_that_carries_less_gets_what_waits_in_parts() {
    let mut world = World::new(settings(true, Fec::Off), 1, |_, _, _, _| Some(WAY));
    world.stream(0, 50, EVERY_10_MS);
    let before = world.delivered.len();
    let long: Vec<Arc<[u8]>> = (50..60).map(payload).collect();
    long.iter().for_each(|payload| world.sender.push(payload, world.now));
    world.sender.set_datagram_size(ConnectionId(0), 1166);
    assert_eq!(world.sender.payload(), 1125);
    let shortest = world.sender.payload();
    world.finish();
    let all = world.delivered.concat();
    assert_eq!(all, (0..60).map(payload).collect::<Vec<_>>().concat());
    assert!(world.delivered[before..].iter().skip(50 - before).all(|part| part.len() <= shortest));
}

#[test]
fn what_was_cut_for_a_longer_path_and_lost_holds_up_nobody() {
    // Some packets before the path is known to carry less.
    let lost_from = Time::ZERO + Duration::from_micros((1 << 32) - 2_000_000) + Duration::from_millis(500);
    let lost_until = lost_from + Duration::from_millis(60);
    for fec in [Fec::Off, Fec::Fixed(Code::new(8, 4).unwrap())] {
        let path = |_, to_receiver: bool, _, now: Time| {
            let is_lost = to_receiver && (lost_from..lost_until).contains(&now);
            (!is_lost).then_some(WAY)
        };
        let mut world = World::new(settings(true, fec), 1, path);
        world.stream(0, 28, EVERY_10_MS * 2);
        world.sender.set_datagram_size(ConnectionId(0), 1166);
        world.stream(28, 100, EVERY_10_MS * 2);
        world.finish();
        let all = world.delivered.concat();
        let end: Vec<u8> = (30..128).map(payload).collect::<Vec<_>>().concat();
        assert!(all.ends_with(&end), "{} of {} bytes", all.len(), end.len());
    }
}

#[test]
fn losses_of_connections_that_are_gone_stay_in_the_sums() {
    let path = |_, to_receiver: bool, number, _| (!to_receiver || !is_lost(number, 10)).then_some(WAY);
    let mut world = World::new(settings(true, Fec::Off), 1, path);
    world.stream(0, 100, EVERY_10_MS);
    let before = world.sender.status();
    assert!(before.lost > 0 && before.loss_rate() > 0.02);
    world.sender.connection_down(ConnectionId(0), world.now);
    let after = world.sender.status();
    assert_eq!((after.sent, after.lost, after.connections.len()), (before.sent, before.lost, 0));
}
