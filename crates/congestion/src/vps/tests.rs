use std::collections::BTreeMap;
use std::ops::Range;

use anabranch_units::{Bytes, Duration, Time};
use proptest::prelude::*;

use super::virtual_flow::VirtualFlow;
use super::*;
use crate::algorithm::Algorithm;
use crate::control::Start;

const SEGMENT: u64 = 1000;

fn start(initial_window: u64) -> Start {
    Start {
        segment: Bytes::new(SEGMENT),
        initial_window: Bytes::new(initial_window * SEGMENT),
        initial_ssthresh: Some(Bytes::new(initial_window * SEGMENT)),
        seed: 0,
    }
}

fn weight(weight: f64) -> Weight {
    Weight::new(weight).unwrap()
}

/// A group in a round-based world: what members send in one round is heard of in the next.
struct World {
    group: Group,
    now: Time,
    /// What each has sent in all, and what it has in flight, oldest first.
    sent: BTreeMap<MemberId, u64>,
    flight: BTreeMap<MemberId, Vec<Range<u64>>>,
}

impl World {
    fn new(algorithm: Algorithm, window: u64) -> Self {
        let group = Group::new(algorithm, start(window));
        Self { group, now: Time::ZERO, sent: BTreeMap::new(), flight: BTreeMap::new() }
    }

    fn join(&mut self, share: f64) -> MemberId {
        let id = self.group.join(weight(share));
        self.group.want(id, Bytes::MAX);
        self.sent.insert(id, 0);
        self.flight.insert(id, Vec::new());
        id
    }

    fn leave(&mut self, id: MemberId) {
        self.group.leave(id);
        self.flight.remove(&id);
    }

    fn heard(&self) -> Heard {
        let rtt = Duration::from_millis(100);
        Heard { now: self.now, rtt: Some(rtt), srtt: rtt }
    }

    /// Everybody sends what it may, in segments.
    fn send(&mut self) {
        loop {
            let grants = self.group.allocate(self.now);
            if grants.is_empty() {
                break;
            }
            for grant in grants {
                let mut left = grant.bytes.get();
                while left > 0 {
                    let bytes = left.min(SEGMENT);
                    left -= bytes;
                    let Some(next) = self.sent.get_mut(&grant.member) else { break };
                    let range = *next..*next + bytes;
                    *next += bytes;
                    self.group.on_sent(grant.member, range.clone(), self.now);
                    self.flight.entry(grant.member).or_default().push(range);
                }
            }
        }
    }

    /// A round trip; `is_lost` of each packet in flight.
    fn round(&mut self, mut is_lost: impl FnMut() -> bool) {
        self.send();
        self.now += Duration::from_millis(100);
        let heard = self.heard();
        for (id, packets) in std::mem::take(&mut self.flight) {
            for packet in packets {
                if is_lost() {
                    self.group.on_loss(id, packet, self.now);
                } else {
                    self.group.on_ack(id, &[packet], &heard);
                }
                self.send();
            }
        }
        self.check();
    }

    fn sent(&self, id: MemberId) -> f64 {
        self.sent[&id] as f64
    }

    /// Everything adds up.
    fn check(&self) {
        let group = &self.group;
        for (id, pool) in group.pools.iter() {
            let flows = group.virtuals.iter().map(|(_, flow)| flow);
            let free: u64 = flows.filter(|flow| flow.pool == id).map(VirtualFlow::free).sum();
            let members =
                || group.members.iter().map(|(_, member)| member).filter(|member| member.pool == id);
            let reserved: u64 = members().map(|member| member.allowance).sum();
            assert_eq!((pool.free, pool.reserved), (free, reserved));
            assert!(pool.reserved <= pool.free, "{} {}", pool.reserved, pool.free);
            assert_eq!(pool.waiting(), members().filter(|member| member.room() > 0).count());
        }
        for (_, member) in group.members.iter() {
            let records = member.records.clone().take_all();
            assert_eq!(member.in_flight, records.iter().map(records::Record::bytes).sum::<u64>());
        }
    }
}

/// Repeatable losses: one packet in `spacing`.
fn losses(mut state: u64, spacing: u64) -> impl FnMut() -> bool {
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        spacing > 0 && (state >> 33).is_multiple_of(spacing)
    }
}

#[test]
fn credit_goes_by_weight() {
    for algorithm in [Algorithm::Reno, Algorithm::Cubic] {
        let mut world = World::new(algorithm, 10);
        let members = [1.0, 4.0, 8.0].map(|share| world.join(share));
        let mut is_lost = losses(1, 400);
        for _ in 0..300 {
            world.round(&mut is_lost);
        }
        let total: f64 = members.iter().map(|id| world.sent(*id)).sum();
        for (id, share) in members.into_iter().zip([1.0, 4.0, 8.0]) {
            let accuracy = world.sent(id) / total / (share / 13.0);
            assert!((accuracy - 1.0).abs() < 0.005, "{share}: {accuracy}");
        }
    }
}

#[test]
fn the_group_gets_what_its_virtual_flows_would() {
    // As many segments each round as three Reno flows with the same losses, whatever the weights.
    let total = |shares: &[f64], seed| {
        let mut world = World::new(Algorithm::Reno, 10);
        let members: Vec<_> = shares.iter().map(|share| world.join(*share)).collect();
        let mut is_lost = losses(seed, 300);
        for _ in 0..2000 {
            world.round(&mut is_lost);
        }
        members.iter().map(|id| world.sent(*id)).sum::<f64>()
    };
    let plain: f64 = (0..3).map(|seed| total(&[1.0], seed + 10)).sum();
    for shares in [[1.0, 1.0, 1.0], [1.0, 4.0, 8.0], [1.0, 50.0, 1.0]] {
        let weighted = total(&shares, 7);
        assert!((weighted / plain - 1.0).abs() < 0.05, "{shares:?}: {weighted} {plain}");
    }
}

#[test]
fn who_has_nothing_to_send_gives_its_credit_and_owes_nothing() {
    let mut world = World::new(Algorithm::Reno, 10);
    let (one, other) = (world.join(1.0), world.join(1.0));
    let run = |world: &mut World, rounds| {
        let before = (world.sent(one), world.sent(other));
        let mut is_lost = losses(3, 200);
        (0..rounds).for_each(|_| world.round(&mut is_lost));
        (world.sent(one) - before.0, world.sent(other) - before.1)
    };
    let both = run(&mut world, 200);
    let whole = world.group.total_window();
    world.group.want(other, Bytes::ZERO);
    // For a second the one has all that both had, and afterwards what its own flow brings.
    (0..10).for_each(|_| world.round(|| false));
    assert!(world.group.total_window() >= whole, "{whole} {}", world.group.total_window());
    let alone = run(&mut world, 200);
    let part = alone.0 / (both.0 + both.1);
    assert!(alone.1 == 0.0 && (0.4..0.65).contains(&part), "{both:?} {alone:?}");
    // It comes back: from the first round on they share evenly, for it is owed nothing.
    world.group.want(other, Bytes::MAX);
    let back = run(&mut world, 5);
    assert!((back.0 / back.1 - 1.0).abs() < 0.35, "{back:?}");
    let both = run(&mut world, 200);
    assert!((both.0 / both.1 - 1.0).abs() < 0.02, "{both:?}");
}

#[test]
fn who_sends_a_packet_a_second_neither_brings_a_share_nor_takes_one_where_it_is_not_known_how_much_it_wants()
{
    // As over QUIC: that a connection wants to send is known, and not how much.
    let sent_beside = |others: usize| {
        let mut world = World::new(Algorithm::Reno, 10);
        let busy = world.join(1.0);
        let seldom: Vec<_> = (0..others).map(|_| world.group.join(Weight::ONE)).collect();
        for round in 0..300u64 {
            for (number, id) in seldom.iter().enumerate() {
                let packet = round * SEGMENT..(round + 1) * SEGMENT;
                match (round + number as u64) % 10 {
                    0 => {
                        world.group.want_more(*id);
                        world.send();
                        world.group.on_sent(*id, packet, world.now);
                    }
                    1 => {
                        let heard = world.heard();
                        world.group.on_ack(*id, std::slice::from_ref(&(0..u64::MAX)), &heard);
                        world.group.want(*id, Bytes::ZERO);
                    }
                    _ => {}
                }
            }
            world.round(|| false);
        }
        world.sent(busy)
    };
    let (alone, beside) = (sent_beside(0), sent_beside(10));
    assert!((0.85..1.3).contains(&(beside / alone)), "{beside} {alone}");
}

#[test]
fn what_a_small_receive_window_cannot_use_goes_to_the_others() {
    let mut world = World::new(Algorithm::Reno, 40);
    let (small, large) = (world.join(1.0), world.join(1.0));
    let round = |world: &mut World| {
        // A receive window of four segments.
        world.group.want(small, Bytes::new(4 * SEGMENT).saturating_less(world.group.in_flight(small)));
        world.round(|| false);
    };
    for _ in 0..50 {
        round(&mut world);
    }
    let rest = world.group.total_window().get() - 4 * SEGMENT;
    world.send();
    assert!(world.group.in_flight(small) <= Bytes::new(4 * SEGMENT));
    assert!(
        world.group.in_flight(large).get() + 3 * SEGMENT > rest,
        "{rest} {:?}",
        world.group.in_flight(large)
    );
}

trait Less {
    fn saturating_less(self, other: Self) -> Self;
}

impl Less for Bytes {
    fn saturating_less(self, other: Self) -> Self {
        Bytes::new(self.get().saturating_sub(other.get()))
    }
}

#[test]
fn weights_change_at_once() {
    let mut world = World::new(Algorithm::Reno, 30);
    let (one, other) = (world.join(1.0), world.join(1.0));
    (0..50).for_each(|_| world.round(|| false));
    world.group.set_weight(one, weight(9.0));
    let before = (world.sent(one), world.sent(other));
    (0..10).for_each(|_| world.round(|| false));
    let ratio = (world.sent(one) - before.0) / (world.sent(other) - before.1);
    assert!((ratio / 9.0 - 1.0).abs() < 0.05, "{ratio}");
}

#[test]
fn a_flow_that_leaves_takes_one_virtual_flow_with_it() {
    let mut world = World::new(Algorithm::Reno, 10);
    let members = [1.0, 1.0, 1.0, 1.0].map(|share| world.join(share));
    let mut is_lost = losses(5, 300);
    let mut per_round = |world: &mut World| {
        let before: f64 = world.sent.values().map(|sent| *sent as f64).sum();
        (0..1000).for_each(|_| world.round(&mut is_lost));
        (world.sent.values().map(|sent| *sent as f64).sum::<f64>() - before) / 1000.0
    };
    let four = per_round(&mut world);
    world.leave(members[0]);
    assert_eq!(world.group.members().count(), 3);
    let three = per_round(&mut world);
    assert!((three / four / 0.75 - 1.0).abs() < 0.06, "{four} {three}");
}

#[test]
fn a_dead_receiver_probes_with_a_segment() {
    let mut world = World::new(Algorithm::Reno, 20);
    let (dead, alive) = (world.join(1.0), world.join(1.0));
    world.send();
    let before = world.group.in_flight(dead);
    assert!(before > Bytes::new(10 * SEGMENT));
    world.group.on_timeout(dead, world.now);
    world.flight.insert(dead, Vec::new());
    // The windows were halved; the other one's acknowledgements make room.
    let packets = std::mem::take(world.flight.get_mut(&alive).unwrap());
    let heard = world.heard();
    for packet in packets {
        world.group.on_ack(alive, &[packet], &heard);
    }
    world.send();
    assert_eq!(world.group.in_flight(dead), Bytes::new(SEGMENT));
    assert!(world.group.in_flight(alive) > Bytes::new(10 * SEGMENT));
    // It is heard of, and has its share again.
    let packets = std::mem::take(world.flight.get_mut(&dead).unwrap());
    let heard = world.heard();
    for packet in packets {
        world.group.on_ack(dead, &[packet], &heard);
    }
    for _ in 0..3 {
        world.round(|| false);
    }
    world.send();
    let (one, other) = (world.group.in_flight(dead), world.group.in_flight(alive));
    assert!(one.get().abs_diff(other.get()) <= 4 * SEGMENT, "{one} {other}");
}

#[test]
fn who_could_not_use_its_credit_is_owed_nothing() {
    let mut world = World::new(Algorithm::Reno, 10);
    let (one, other) = (world.join(0.01), world.join(50.0));
    world.send();
    // The large one's receiver is silent for long, and then heard of again.
    for _ in 0..20 {
        world.group.on_timeout(other, world.now);
        world.flight.insert(other, Vec::new());
        let packets = std::mem::take(world.flight.get_mut(&one).unwrap());
        let heard = world.heard();
        for packet in packets {
            world.group.on_ack(one, &[packet], &heard);
        }
        world.send();
    }
    for _ in 0..200 {
        world.round(|| false);
    }
    let before = (world.sent(one), world.sent(other));
    while world.sent(other) - before.1 < 20_000_000.0 {
        world.round(|| false);
    }
    let small = world.sent(one) - before.0;
    assert!((3000.0..=5000.0).contains(&small), "{small}");
}

#[test]
fn losses_of_one_window_are_one_loss_event_for_each_virtual_flow() {
    let mut world = World::new(Algorithm::Reno, 20);
    let id = world.join(1.0);
    world.send();
    let packets = std::mem::take(world.flight.get_mut(&id).unwrap());
    for packet in packets.iter().take(5) {
        world.group.on_loss(id, packet.clone(), world.now);
    }
    assert_eq!(world.group.total_window(), Bytes::new(10 * SEGMENT));
    // A packet sent after it belongs to another one.
    for packet in packets.iter().skip(5) {
        world.group.on_ack(id, std::slice::from_ref(packet), &world.heard());
    }
    world.send();
    let packets = std::mem::take(world.flight.get_mut(&id).unwrap());
    world.group.on_loss(id, packets[0].clone(), world.now);
    assert_eq!(world.group.total_window(), Bytes::new(5 * SEGMENT));
}

#[test]
fn an_older_loss_that_is_seen_later_does_not_halve_again() {
    let mut world = World::new(Algorithm::Reno, 20);
    let id = world.join(1.0);
    world.send();
    let old = std::mem::take(world.flight.get_mut(&id).unwrap());
    let heard = world.heard();
    world.group.on_loss(id, old[0].clone(), world.now);
    assert_eq!(world.group.total_window(), Bytes::new(10 * SEGMENT));
    for packet in &old[2..] {
        world.group.on_ack(id, std::slice::from_ref(packet), &heard);
    }
    world.send();
    // What was sent after the reduction is heard of, and then that another packet of the same old window was
    // lost.
    let new = std::mem::take(world.flight.get_mut(&id).unwrap());
    world.group.on_ack(id, std::slice::from_ref(&new[0]), &heard);
    world.group.on_loss(id, old[1].clone(), world.now);
    assert!(world.group.total_window() >= Bytes::new(10 * SEGMENT), "{}", world.group.total_window());
    // One that was sent after it counts.
    world.group.on_loss(id, new[1].clone(), world.now);
    assert!(world.group.total_window() < Bytes::new(6 * SEGMENT), "{}", world.group.total_window());
}

#[test]
fn a_time_out_of_a_window_that_was_reduced_already_does_not_reduce_its_threshold_again() {
    let mut world = World::new(Algorithm::Reno, 40);
    let id = world.join(1.0);
    world.send();
    let old = std::mem::take(world.flight.get_mut(&id).unwrap());
    world.group.on_loss(id, old[0].clone(), world.now);
    world.group.on_timeout(id, world.now);
    assert_eq!(world.group.total_window(), Bytes::new(SEGMENT));
    // Slow start up to what the one reduction left: 20 segments.
    (0..5).for_each(|_| world.round(|| false));
    assert!(world.group.total_window() >= Bytes::new(20 * SEGMENT), "{}", world.group.total_window());
}

#[test]
fn a_member_that_dies_takes_its_own_flight_and_not_half_of_everybodys() {
    let mut world = World::new(Algorithm::Reno, 10);
    let members = [1.0; 4].map(|share| world.join(share));
    // One packet each in turn, so that every virtual flow stands for some of each member.
    world.group.allocate(world.now);
    for packet in 0..10 {
        for id in members {
            world.group.on_sent(id, packet * SEGMENT..(packet + 1) * SEGMENT, world.now);
        }
    }
    assert_eq!(world.group.total_window(), Bytes::new(40 * SEGMENT));
    world.group.on_timeout(members[0], world.now);
    // Ten packets are the window of one flow of four.
    assert_eq!(world.group.total_window(), Bytes::new(35 * SEGMENT));
    world.check();
}

#[test]
fn a_burst_stands_for_one_virtual_flow() {
    let mut world = World::new(Algorithm::Reno, 10);
    let members = [1.0, 1.0].map(|share| world.join(share));
    let now = world.now;
    world.group.allocate(now);
    for packet in 0..4 {
        world.group.on_sent(members[0], packet * SEGMENT..(packet + 1) * SEGMENT, now);
    }
    for packet in 0..2 {
        world.group.on_loss(members[0], packet * SEGMENT..(packet + 1) * SEGMENT, now);
    }
    // The other one has lost nothing.
    assert!(world.group.total_window() > Bytes::new(10 * SEGMENT));
    world.check();
}

#[test]
fn what_is_not_used_is_taken_back() {
    let mut world = World::new(Algorithm::Reno, 10);
    let (silent, busy) = (world.join(1.0), world.join(1.0));
    world.group.allocate(world.now);
    assert_eq!(world.group.allowance(silent), Bytes::new(10 * SEGMENT));
    world.group.reclaim(world.now + Duration::from_millis(99), Duration::from_millis(100));
    assert_eq!(world.group.allowance(silent), Bytes::new(10 * SEGMENT));
    world.group.reclaim(world.now + Duration::from_millis(100), Duration::from_millis(100));
    assert_eq!(world.group.allowance(silent) + world.group.allowance(busy), Bytes::ZERO);
    world.group.want(busy, Bytes::MAX);
    let grants = world.group.allocate(world.now);
    assert_eq!(grants, [Grant { member: busy, bytes: Bytes::new(20 * SEGMENT) }]);
}

#[test]
fn times_find_what_was_sent() {
    let at = |millis| Time::ZERO + Duration::from_millis(millis);
    let mut times = SentTimes::default();
    assert_eq!(times.sent(at(1), Bytes::new(1200)), 0..1200);
    assert_eq!(times.sent(at(1), Bytes::new(1200)), 1200..2400);
    assert_eq!(times.sent(at(5), Bytes::new(500)), 2400..2900);
    assert_eq!(times.sent(at(7), Bytes::new(100)), 2900..3000);
    assert_eq!(times.acknowledged(at(5), Bytes::new(500)), 2400..2900);
    assert_eq!(times.acknowledged(at(1), Bytes::new(1200)), 0..1200);
    assert_eq!(times.acknowledged(at(5), Bytes::new(500)), 0..0);
    assert_eq!(times.lost(at(6), Bytes::new(5000)), vec![1200..2400]);
    assert_eq!(times.lost(at(7), Bytes::new(40)), vec![2900..2940]);
    assert_eq!(times.acknowledged(at(7), Bytes::MAX), 2940..3000);
    assert_eq!(times.lost(at(9), Bytes::MAX), Vec::<Range<u64>>::new());
}

/// What can happen to a group.
#[derive(Clone, Debug)]
enum Step {
    Join(f64),
    Leave(usize),
    Weight(usize, f64),
    Want(usize, u64),
    Ack(usize, usize),
    Lose(usize, usize),
    TimeOut(usize),
    Reclaim,
    Release(usize, usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let share = 0.01f64..100.0;
    prop_oneof![
        2 => share.clone().prop_map(Step::Join),
        1 => any::<usize>().prop_map(Step::Leave),
        1 => (any::<usize>(), share).prop_map(|(who, weight)| Step::Weight(who, weight)),
        3 => (any::<usize>(), prop_oneof![Just(0), 1u64..5000, Just(u64::MAX)])
            .prop_map(|(who, wanted)| Step::Want(who, wanted)),
        12 => (any::<usize>(), 0usize..8).prop_map(|(who, which)| Step::Ack(who, which)),
        2 => (any::<usize>(), 0usize..8).prop_map(|(who, which)| Step::Lose(who, which)),
        1 => any::<usize>().prop_map(Step::TimeOut),
        1 => Just(Step::Reclaim),
        1 => (any::<usize>(), 0usize..8).prop_map(|(who, which)| Step::Release(who, which)),
        1 => (1u64..500).prop_map(Step::Wait),
    ]
}

proptest! {
    /// No order of joining, leaving, wanting, hearing and losing loses or invents credit, and nobody starves.
    #[test]
    fn credit_is_conserved(steps in prop::collection::vec(step(), 0..150)) {
        let mut world = World::new(Algorithm::Reno, 10);
        for step in steps {
            let ids: Vec<MemberId> = world.group.members().collect();
            let pick = |who: usize| ids.get(who % ids.len().max(1)).copied();
            match step {
                Step::Join(share) => { world.join(share); }
                Step::Leave(who) => { if let Some(id) = pick(who) { world.leave(id); } }
                Step::Weight(who, share) => {
                    if let Some(id) = pick(who) { world.group.set_weight(id, weight(share)); }
                }
                Step::Want(who, wanted) => {
                    if let Some(id) = pick(who) { world.group.want(id, Bytes::new(wanted)); }
                }
                Step::Ack(who, which) | Step::Lose(who, which) | Step::Release(who, which) => {
                    let Some(id) = pick(who) else { continue };
                    let flight = world.flight.entry(id).or_default();
                    if flight.is_empty() { continue }
                    let packet = flight.remove(which % flight.len());
                    if matches!(step, Step::Release(..)) {
                        world.group.release(id, packet);
                    } else if matches!(step, Step::Lose(..)) {
                        world.group.on_loss(id, packet, world.now);
                    } else {
                        let heard = world.heard();
                        world.group.on_ack(id, &[packet], &heard);
                    }
                }
                Step::TimeOut(who) => {
                    let Some(id) = pick(who) else { continue };
                    world.flight.insert(id, Vec::new());
                    world.group.on_timeout(id, world.now);
                }
                Step::Reclaim => world.group.reclaim(world.now, Duration::from_millis(100)),
                Step::Wait(millis) => world.now += Duration::from_millis(millis),
            }
            world.check();
            world.send();
            world.check();
            // All credit is out: whoever could use more waits for a segment's worth.
            for (_, pool) in world.group.pools.iter() {
                prop_assert!(pool.waiting() == 0 || pool.free < pool.reserved + SEGMENT);
            }
        }
        // Everybody who has something to send gets to send, in proportion, once the path is quiet.
        let ids: Vec<MemberId> = world.group.members().collect();
        ids.iter().for_each(|id| world.group.want(*id, Bytes::MAX));
        (0..12).for_each(|_| world.round(|| false));
        let before: Vec<f64> = ids.iter().map(|id| world.sent(*id)).collect();
        let weight = |id: &MemberId| world.group.members.get(*id).unwrap().weight.get();
        let weights: Vec<f64> = ids.iter().map(weight).collect();
        let smallest = weights.iter().copied().fold(f64::INFINITY, f64::min);
        let all: f64 = weights.iter().sum();
        // Long enough for the smallest weight to be granted twenty segments.
        let mut rounds = 0;
        let enough = before.iter().sum::<f64>() + 20_000.0 * all / smallest;
        while rounds < 200 && ids.iter().map(|id| world.sent(*id)).sum::<f64>() < enough {
            world.round(|| false);
            rounds += 1;
        }
        let news: Vec<f64> = ids.iter().zip(before).map(|(id, before)| world.sent(*id) - before).collect();
        let total: f64 = news.iter().sum();
        for (news, weight) in news.into_iter().zip(weights) {
            let share = weight / all * total;
            prop_assert!((news - share).abs() <= 0.1 * share + 4000.0, "{} instead of {}", news, share);
        }
    }

    #[test]
    fn more_is_more(bytes in 1u64..1_000_000, times in 1u64..1000, share in 0.001f64..1000.0) {
        let mut served = Served::default();
        for _ in 0..times {
            let next = served.more(bytes, weight(share));
            prop_assert!(next > served && next.less(bytes, weight(share)) == served);
            served = next;
        }
    }

    #[test]
    fn weights_are_read_as_they_are_written(thousandths in 1u32..=1_000_000) {
        let text = format!("{}", f64::from(thousandths) / 1000.0);
        prop_assert_eq!(text.parse::<Weight>().unwrap().to_string(), text);
    }
}

#[test]
fn numbers_that_are_no_weights_are_refused() {
    for text in ["0", "-1", "1001", "nan", "inf", "", "four"] {
        assert!(text.parse::<Weight>().unwrap_err().contains("from 0.001 to 1000"), "{text}");
    }
}

#[test]
fn what_is_written_down_does_not_grow_with_what_is_sent() {
    let mut world = World::new(Algorithm::Reno, 10);
    let members: Vec<_> = (0..3).map(|_| world.group.join(Weight::ONE)).collect();
    let mut lying = Vec::new();
    for turn in 0..4000u64 {
        let (id, start) = (members[turn as usize % 2], turn * SEGMENT);
        world.group.want(id, Bytes::new(SEGMENT));
        world.group.allocate(world.now);
        world.group.on_sent(id, start..start + SEGMENT, world.now);
        world.now += Duration::from_millis(10);
        let heard = Heard { now: world.now, rtt: None, srtt: Duration::from_millis(10) };
        let acknowledged = start..start + SEGMENT;
        world.group.on_ack(id, std::slice::from_ref(&acknowledged), &heard);
        lying.extend(world.group.pools.iter().map(|(_, pool)| pool.lying()));
    }
    assert!(lying.iter().all(|lying| *lying <= 3 * (2 * members.len() + 64)), "{:?}", lying.iter().max());
}
