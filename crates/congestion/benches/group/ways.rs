//! In a group, and without one.

use std::collections::VecDeque;

use anabranch_congestion::algorithm::Algorithm;
use anabranch_congestion::control::{Ack, Controller, Loss, Start};
use anabranch_congestion::vps::settings::Settings;
use anabranch_congestion::vps::{Group, Heard, MemberId, Weight};
use anabranch_units::{Bytes, Time};
use rustc_hash::FxHashMap;

use crate::course::{Course, SEGMENT};

const START: Start = Start {
    segment: Bytes::new(SEGMENT),
    initial_window: Bytes::new(10 * SEGMENT),
    initial_ssthresh: None,
    seed: 0,
};

/// Who decides when a member sends; members are numbered from zero.
pub trait Way {
    /// A member could send so much.
    fn want(&mut self, member: usize, bytes: u64);
    /// Who sends a segment after something has happened to a member, once for each segment.
    fn send(&mut self, member: usize, now: Time, sending: &mut Vec<usize>);
    /// A segment that begins there was sent,
    fn sent(&mut self, member: usize, first: u64, now: Time);
    /// acknowledged,
    fn acknowledged(&mut self, member: usize, first: u64, heard: &Heard);
    /// or lost.
    fn lost(&mut self, member: usize, first: u64, now: Time);
    /// Who shares a bottleneck is judged, where it is.
    fn judge(&mut self, now: Time);
}

/// Members of a group.
pub struct Grouped {
    group: Group,
    ids: Vec<MemberId>,
    numbers: FxHashMap<MemberId, usize>,
}

impl Grouped {
    pub fn new(course: &Course, members: u64) -> Self {
        let settings = Settings { begins: course.begins, ..Settings::default() };
        let mut group = Group::new(Algorithm::Reno, START).watching(settings);
        let ids: Vec<MemberId> = (0..members).map(|_| group.join(Weight::ONE)).collect();
        let numbers = ids.iter().enumerate().map(|(number, id)| (*id, number)).collect();
        Self { group, ids, numbers }
    }
}

impl Way for Grouped {
    fn want(&mut self, member: usize, bytes: u64) {
        self.group.want(self.ids[member], Bytes::new(bytes));
    }

    fn send(&mut self, _member: usize, now: Time, sending: &mut Vec<usize>) {
        for grant in self.group.allocate(now) {
            let number = self.numbers[&grant.member];
            sending.extend((0..grant.bytes.get() / SEGMENT).map(|_| number));
        }
    }

    fn sent(&mut self, member: usize, first: u64, now: Time) {
        self.group.on_sent(self.ids[member], first..first + SEGMENT, now);
    }

    fn acknowledged(&mut self, member: usize, first: u64, heard: &Heard) {
        let range = first..first + SEGMENT;
        self.group.on_ack(self.ids[member], std::slice::from_ref(&range), heard);
    }

    fn lost(&mut self, member: usize, first: u64, now: Time) {
        self.group.on_loss(self.ids[member], first..first + SEGMENT, now);
    }

    fn judge(&mut self, now: Time) {
        self.group.regroup(now);
    }
}

/// A flow with a window of its own, and what its sender has to know of it.
struct Flow {
    controller: Box<dyn Controller>,
    wanted: u64,
    flight: u64,
    /// Where what is in flight begins.
    segments: VecDeque<u64>,
    next: u64,
    /// What was sent before is of the last recovery.
    recovery: u64,
}

/// Flows without a group.
pub struct Ungrouped(Vec<Flow>);

impl Ungrouped {
    pub fn new(_course: &Course, members: u64) -> Self {
        let flow = |_| Flow {
            controller: Algorithm::Reno.controller(&START),
            wanted: 0,
            flight: 0,
            segments: VecDeque::new(),
            next: 0,
            recovery: 0,
        };
        Self((0..members).map(flow).collect())
    }

    /// Takes a segment out of what a flow has in flight; answers what that was before.
    fn take(flow: &mut Flow, first: u64) -> u64 {
        let before = flow.flight;
        let place = flow.segments.partition_point(|start| *start < first);
        if flow.segments.remove(place).is_some() {
            flow.flight -= SEGMENT;
        }
        before
    }
}

impl Way for Ungrouped {
    fn want(&mut self, member: usize, bytes: u64) {
        self.0[member].wanted = bytes;
    }

    fn send(&mut self, member: usize, _now: Time, sending: &mut Vec<usize>) {
        let flow = &self.0[member];
        let room = flow.controller.cwnd().get().saturating_sub(flow.flight).min(flow.wanted);
        sending.extend((0..room / SEGMENT).map(|_| member));
    }

    fn sent(&mut self, member: usize, first: u64, _now: Time) {
        let flow = &mut self.0[member];
        flow.flight += SEGMENT;
        flow.wanted -= SEGMENT;
        flow.next = first + SEGMENT;
        flow.segments.push_back(first);
    }

    fn acknowledged(&mut self, member: usize, first: u64, heard: &Heard) {
        let flow = &mut self.0[member];
        let flight = Self::take(flow, first);
        if first < flow.recovery {
            return;
        }
        flow.controller.on_ack(&Ack {
            now: heard.now,
            acked: Bytes::new(SEGMENT),
            flight: Bytes::new(flight),
            rtt: heard.rtt,
            srtt: heard.srtt,
            is_cwnd_limited: flight + SEGMENT > flow.controller.cwnd().get(),
        });
    }

    fn lost(&mut self, member: usize, first: u64, now: Time) {
        let flow = &mut self.0[member];
        let flight = Self::take(flow, first);
        if first >= flow.recovery {
            flow.recovery = flow.next;
            flow.controller.on_loss(&Loss { now, flight: Bytes::new(flight) });
        }
    }

    fn judge(&mut self, _now: Time) {}
}
