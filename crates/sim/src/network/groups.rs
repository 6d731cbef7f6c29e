//! Weighted groups in the network: TCP senders that share their windows, packet by packet (VPS) or window by
//! window.

use std::collections::BTreeSet;
use std::ops::Range;

use anabranch_congestion::joint::JointWindow;
use anabranch_congestion::vps::settings::{Begins, Settings};
use anabranch_congestion::vps::{Group, Heard, MemberId, Place, Regrouped, Weight};
use anabranch_units::{Bytes, Duration, Time};
use rustc_hash::FxHashMap;

use super::state::{Groups, HalfId, Membership, Network, Shared};
use crate::model::{Form, Share, Tcp};
use crate::report::Decision;
use crate::tcp::{Note, start};

impl Network {
    /// A half is to join a group as soon as it is set up.
    pub(super) fn add_to_group(&mut self, id: HalfId, share: &Share, tcp: &Tcp) {
        let Groups { groups, joint, by_name, places } = &mut self.groups;
        let group = *by_name.entry(share.group.clone()).or_insert_with(|| {
            if share.form == Form::Window {
                joint.push(JointWindow::new(tcp.initial_window.get() as u32));
                return joint.len() - 1;
            }
            let group = Group::new(tcp.congestion, start(tcp, 0));
            let group = match share.watches {
                Some(Begins::Alone) => group.watching(Settings::default()),
                Some(Begins::Together) => group.watching(Settings::default().declared()),
                None => group,
            };
            groups.push(Shared { group, halves: FxHashMap::default(), watches: share.watches.is_some() });
            groups.len() - 1
        });
        let place = Membership {
            group,
            weight: share.weight,
            form: share.form,
            member: None,
            seat: None,
            outstanding: BTreeSet::new(),
            is_limited: true,
            leaves_when_done: false,
            has_left: false,
        };
        places.insert(id, place);
    }

    /// A half counts for so much in its group from now on.
    pub(crate) fn set_weight(&mut self, id: HalfId, weight: Weight) {
        // Members of a joint window have the weights that they begin with.
        let Some(place) = self.groups.places.get_mut(&id).filter(|place| place.form == Form::Vps) else {
            return;
        };
        place.weight = weight;
        if let Some(member) = place.member {
            self.groups.groups[place.group].group.set_weight(member, weight);
        }
    }

    /// The VPS group that a half is in, and where in it.
    pub(crate) fn place(&self, id: HalfId) -> Option<(usize, Place)> {
        let place = self.groups.places.get(&id).filter(|place| place.form == Form::Vps)?;
        Some((place.group, self.groups.groups[place.group].group.place(place.member?)?))
    }

    /// A half will send nothing more: it leaves its group at once.
    pub(super) fn leave_group(&mut self, id: HalfId) {
        let Some(place) = self.groups.places.get_mut(&id).filter(|place| place.form == Form::Vps) else {
            return;
        };
        let (number, member) = (place.group, place.member.take());
        place.has_left = true;
        if let Some(member) = member {
            let shared = &mut self.groups.groups[number];
            shared.group.leave(member);
            shared.halves.remove(&member);
            self.send_all_granted(number);
        }
    }

    /// Nothing more will be written: a half leaves its group when everything has arrived.
    pub(crate) fn leave_when_done(&mut self, id: HalfId) {
        if let Some(place) = self.groups.places.get_mut(&id) {
            place.leaves_when_done = true;
            self.pump(id, false);
        }
    }

    /// Something has happened to a half in a group: the group hears of it, and whoever may send then sends.
    pub(super) fn share(&mut self, id: HalfId, delay_is_over: bool) {
        let now = self.now;
        let Some(place) = self.groups.places.get_mut(&id).filter(|place| !place.has_left) else { return };
        let sender = &mut self.halves[id as usize].sender;
        if !sender.is_established() {
            self.sync_timer(id);
            return;
        }
        if place.form == Form::Window {
            self.share_window(id, delay_is_over);
            return;
        }
        let number = place.group;
        let shared = &mut self.groups.groups[number];
        let member = *place.member.get_or_insert_with(|| {
            let member = shared.group.join(place.weight);
            shared.halves.insert(member, id);
            member
        });
        let rtt = sender.take_rtt().map(Duration::from_nanos);
        let srtt = Duration::from_nanos(sender.srtt());
        let heard = Heard { now: Time::from_nanos(now), rtt, srtt };
        tell(&mut shared.group, member, &sender.take_notes(), &heard);
        if place.leaves_when_done && sender.is_done() {
            place.has_left = true;
            shared.group.leave(member);
            shared.halves.remove(&member);
        } else {
            shared.group.want(member, Bytes::new(sender.could_send()));
        }
        if shared.watches {
            let regrouped = shared.group.regroup(Time::from_nanos(now));
            self.tell_regrouped(number, &regrouped);
        }
        let is_urgent = self.halves[id as usize].sender.is_urgent();
        if delay_is_over || is_urgent {
            self.send_granted(number, member, id);
        }
        self.send_all_granted(number);
        self.sync_timer(id);
    }

    /// Hands out the group's credit until nobody can use more.
    fn send_all_granted(&mut self, number: usize) {
        loop {
            let shared = &mut self.groups.groups[number];
            let grants = shared.group.allocate(Time::from_nanos(self.now));
            if grants.is_empty() {
                return;
            }
            for grant in grants {
                let Some(id) = self.groups.groups[number].halves.get(&grant.member).copied() else {
                    continue;
                };
                if !self.delay_sending(id) {
                    self.send_granted(number, grant.member, id);
                }
            }
        }
    }

    /// A member sends what it was granted, and gives back what it cannot send after all.
    fn send_granted(&mut self, number: usize, member: MemberId, id: HalfId) {
        let now = Time::from_nanos(self.now);
        loop {
            let group = &mut self.groups.groups[number].group;
            let sender = &mut self.halves[id as usize].sender;
            let allowance = group.allowance(member);
            sender.set_allowance(allowance.get());
            let Some(segment) = sender.poll(self.now) else {
                if !allowance.is_zero() {
                    group.want(member, Bytes::ZERO);
                }
                break;
            };
            group.on_sent(member, segment.start..segment.end, now);
            self.transmit(id, segment);
        }
        self.sync_timer(id);
    }

    fn tell_regrouped(&mut self, number: usize, regrouped: &[Regrouped]) {
        for moved in regrouped {
            let Some(id) = self.groups.groups[number].halves.get(&moved.member) else { continue };
            let half = &self.halves[*id as usize];
            self.decisions.push(Decision {
                at: Time::from_nanos(self.now),
                flow: half.flow,
                connection: Some(half.connection),
                what: "regrouped",
                value: Some(moved.companions as u64),
                why: format!("its delays go with theirs by {:.2}", moved.concordance),
            });
        }
    }
}

/// Tells a group what a member's sender noted. What one acknowledgement acknowledged is told at once.
fn tell(group: &mut Group, member: MemberId, notes: &[Note], heard: &Heard) {
    let range = |start: u64, end: u64| Range { start, end };
    let acknowledged: Vec<_> = notes
        .iter()
        .filter_map(|note| match *note {
            Note::Acknowledged(start, end) => Some(range(start, end)),
            _ => None,
        })
        .collect();
    if !acknowledged.is_empty() {
        group.on_ack(member, &acknowledged, heard);
    }
    for note in notes {
        match *note {
            Note::Acknowledged(..) => {}
            Note::Sacked(start, end) => group.release(member, range(start, end)),
            Note::Lost(start, end) => group.on_loss(member, range(start, end), heard.now),
            Note::TimedOut => group.on_timeout(member, heard.now),
        }
    }
}
