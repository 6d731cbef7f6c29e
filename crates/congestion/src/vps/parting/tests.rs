use anabranch_units::Duration;

use super::super::{Heard, Weight, settings::Settings};
use super::*;
use crate::algorithm::Algorithm;
use crate::control::Start;

const SEGMENT: u64 = 1000;
/// Sixty packets a second.
const STEP: Duration = Duration::from_micros(16_667);

/// Members whose packets meet queues that the test draws, and nothing else.
struct World {
    group: Group,
    members: Vec<MemberId>,
    now: Time,
    place: u64,
    chance: u64,
    /// Where each queue is going, and its length, in milliseconds.
    queues: Vec<(f64, f64)>,
    /// What each receiver waits before it acknowledges, and the most that one does, in milliseconds.
    waits: Vec<f64>,
    longest_wait: f64,
}

impl World {
    fn new(settings: Settings, members: usize, queues: usize) -> Self {
        let start = Start {
            segment: Bytes::new(SEGMENT),
            initial_window: Bytes::new(10 * SEGMENT),
            initial_ssthresh: None,
            seed: 0,
        };
        let mut group = Group::new(Algorithm::Reno, start).watching(settings);
        let waits = vec![0.0; members];
        let members = (0..members).map(|_| group.join(Weight::ONE)).collect();
        Self {
            group,
            members,
            now: Time::ZERO + Duration::from_secs(100),
            place: 0,
            chance: 7,
            queues: vec![(2.0, 10.0); queues],
            waits,
            longest_wait: 0.0,
        }
    }

    /// From 0 to 1.
    fn random(&mut self) -> f64 {
        self.chance =
            self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.chance >> 40) as f64 / (1u64 << 24) as f64
    }

    /// For so long the queues rise, and fall now and then, each when chance has it; `behind` says in which
    /// one each member is, `None` for none. Longest queue in milliseconds: `depth`.
    fn run(&mut self, seconds: u64, depth: f64, behind: impl Fn(usize) -> Option<usize>) {
        let until = self.now + Duration::from_secs(seconds);
        while self.now < until {
            self.now += STEP;
            for queue in 0..self.queues.len() {
                if self.queues[queue].1 > depth * (0.6 + 0.4 * self.random()) {
                    self.queues[queue] =
                        ((0.004 + 0.016 * self.random()) * depth, depth * 0.4 * self.random());
                }
                self.queues[queue].1 += self.queues[queue].0;
            }
            for number in 0..self.members.len() {
                let queue = behind(number).map_or(0.0, |queue| self.queues[queue].1);
                // It changes once a second, such as with how its packets come.
                if self.random() < STEP.as_secs_f64() {
                    self.waits[number] = self.longest_wait * self.random();
                }
                let millis = 20.0 + 15.0 * number as f64 + queue + self.waits[number] + 0.3 * self.random();
                let rtt = Duration::from_secs_f64(millis / 1000.0);
                // It was sent so long ago that the queue is as it was then.
                let heard = Heard { now: self.now + rtt, rtt: Some(rtt), srtt: rtt };
                let range = self.place..self.place + SEGMENT;
                self.group.on_sent(self.members[number], range.clone(), self.now);
                self.group.on_ack(self.members[number], &[range], &heard);
            }
            self.place += SEGMENT;
            self.group.regroup(self.now);
        }
    }

    /// Which members share with which: their pools, numbered as they come.
    fn pools(&self) -> Vec<usize> {
        let of = |id: &MemberId| self.group.members.get(*id).unwrap().pool;
        let mut seen = Vec::new();
        for id in &self.members {
            if !seen.contains(&of(id)) {
                seen.push(of(id));
            }
        }
        self.members.iter().map(|id| seen.iter().position(|pool| *pool == of(id)).unwrap()).collect()
    }
}

#[test]
fn members_begin_alone_and_those_behind_one_queue_are_together_within_20_seconds() {
    let mut world = World::new(Settings::default(), 6, 2);
    assert_eq!(world.pools(), [0, 1, 2, 3, 4, 5]);
    world.run(20, 30.0, |number| Some(number % 2));
    assert_eq!(world.pools(), [0, 1, 0, 1, 0, 1]);
    world.run(120, 30.0, |number| Some(number % 2));
    assert_eq!(world.pools(), [0, 1, 0, 1, 0, 1]);
}

#[test]
fn members_behind_queues_of_their_own_stay_alone() {
    let mut world = World::new(Settings::default(), 12, 12);
    for _ in 0..20 {
        world.run(10, 30.0, Some);
        assert_eq!(world.pools(), (0..12).collect::<Vec<_>>());
    }
}

#[test]
fn who_could_have_agreed_for_long_and_did_not_has_to_for_longer() {
    // How long it takes after they have come to share a queue.
    let joined_after = |apart: u64| {
        let mut world = World::new(Settings::default(), 2, 2);
        world.run(apart, 30.0, Some);
        (1..60).find(|_| {
            world.run(1, 30.0, |_| Some(0));
            world.pools() == [0, 0]
        })
    };
    let (soon, late) = (joined_after(1).expect("joined"), joined_after(40).expect("joined"));
    assert!(soon < 15 && late > 24 && late >= soon + 12, "{soon} {late}: 15 s in place of 3 s");
}

#[test]
fn where_no_queue_moves_everybody_stays_where_it_is() {
    for (settings, pools) in [(Settings::default(), [0, 1, 2, 3]), (Settings::default().declared(), [0; 4])] {
        let mut world = World::new(settings, 4, 1);
        world.run(60, 1.0, |number| (number < 3).then_some(0));
        assert_eq!(world.pools(), pools);
    }
}

#[test]
fn what_receivers_wait_parts_nobody_whom_somebody_has_declared_to_be_together() {
    let mut world = World::new(Settings::default().declared(), 8, 1);
    world.longest_wait = 10.0;
    for _ in 0..24 {
        world.run(5, 20.0, |_| Some(0));
        assert_eq!(world.pools(), [0; 8]);
    }
}

#[test]
fn declared_members_begin_together_and_are_parted_when_they_are_behind_two_bottlenecks() {
    let mut world = World::new(Settings::default().declared(), 7, 2);
    world.run(2, 30.0, |_| Some(0));
    assert_eq!(world.pools(), [0; 7]);
    world.run(30, 30.0, |number| Some(usize::from(number >= 4)));
    assert_eq!(world.pools(), [0, 0, 0, 0, 1, 1, 1]);
}

#[test]
fn a_member_whose_bottleneck_changes_is_parted_and_the_others_stay() {
    // To none, which is plain within five seconds: that the others' delays move and its do not is evidence as
    // well. To another queue that moves as much takes longer where the two happen to go together.
    for (elsewhere, seconds) in [(None, 5), (Some(1), 15)] {
        for members in [2, 5] {
            let mut world = World::new(Settings::default(), members, 2);
            world.run(30, 30.0, |_| Some(0));
            assert_eq!(world.pools(), vec![0; members]);
            world.run(seconds, 30.0, |number| if number == 1 { elsewhere } else { Some(0) });
            let mut expected = vec![0; members];
            expected[1] = 1;
            assert_eq!(world.pools(), expected, "{elsewhere:?} of {members}");
        }
    }
}

#[test]
fn who_comes_back_begins_where_it_was_as_long_as_others_are_there() {
    let mut world = World::new(Settings::default(), 3, 2);
    world.run(20, 30.0, |number| Some(number / 2));
    assert_eq!(world.pools(), [0, 0, 1]);
    let places: Vec<_> = world.members.iter().map(|id| world.group.place(*id).unwrap()).collect();
    for number in [0, 2] {
        world.group.leave(world.members[number]);
        world.members[number] = world.group.join_beside(Weight::ONE, places[number]);
    }
    assert_eq!(world.pools(), [0, 0, 1]);
    assert_eq!(world.group.companions(world.members[2]), 0);
}
