//! Groups that share window by window: a member is told its window when it hears something, and no sooner.

use std::collections::BTreeSet;

use anabranch_congestion::joint::MemberReport;
use anabranch_units::{Duration, Time};

use super::state::{HalfId, Network};
use crate::tcp::Note;

/// What became of the segments on their way: how many were delivered, and how many lost.
#[derive(Debug, Default)]
struct News {
    delivered: u32,
    lost: u32,
    has_timed_out: bool,
}

impl Network {
    /// Something has happened to a half in such a group: the joint window hears of it, and the half sends
    /// what its part allows.
    pub(super) fn share_window(&mut self, id: HalfId, delay_is_over: bool) {
        let now = Time::from_nanos(self.now);
        let groups = &mut self.groups;
        let Some(place) = groups.places.get_mut(&id) else { return };
        let Some(joint) = groups.joint.get_mut(place.group) else { return };
        let sender = &mut self.halves[id as usize].sender;
        // A model with more flows than a group takes is refused.
        let Some(seat) = place.seat.or_else(|| joint.join(place.weight, now)) else { return };
        place.seat = Some(seat);
        let used = place.outstanding.len() as u32;
        let is_limited = place.is_limited;
        let news = settle(&mut place.outstanding, &sender.take_notes());
        if news.delivered + news.lost > 0 || news.has_timed_out {
            joint.heard(
                seat,
                &MemberReport {
                    now,
                    delivered: news.delivered,
                    lost: news.lost,
                    has_timed_out: news.has_timed_out,
                    srtt: Duration::from_nanos(sender.srtt()),
                    used,
                    is_limited,
                },
            );
        }
        if place.leaves_when_done && sender.is_done() {
            place.has_left = true;
            joint.leave(seat, now);
        }
        if delay_is_over || sender.is_urgent() || !self.delay_sending(id) {
            self.send_within_window(id, seat, now);
        }
        self.sync_timer(id);
    }

    /// Sends what a member's window leaves.
    fn send_within_window(&mut self, id: HalfId, seat: usize, now: Time) {
        loop {
            let groups = &mut self.groups;
            let Some(place) = groups.places.get_mut(&id) else { return };
            let Some(joint) = groups.joint.get(place.group) else { return };
            let room = (joint.window(seat, now) as usize).saturating_sub(place.outstanding.len());
            let sender = &mut self.halves[id as usize].sender;
            sender.set_allowance(sender.segment().saturating_mul(room as u64));
            let Some(segment) = sender.poll(self.now) else {
                // The window may be larger when the member hears something again, by what others have heard
                // until then: what held it back is what did so when it sent last.
                place.is_limited = room == 0 && sender.could_send() > 0;
                return;
            };
            place.outstanding.insert(segment.start);
            self.transmit(id, segment);
        }
    }
}

/// Takes from the segments on their way what a sender noted of them.
fn settle(outstanding: &mut BTreeSet<u64>, notes: &[Note]) -> News {
    let mut news = News::default();
    let mut take = |start: u64, end: u64| {
        let gone: Vec<_> = outstanding.range(start..end.max(start)).copied().collect();
        for segment in &gone {
            outstanding.remove(segment);
        }
        gone.len() as u32
    };
    for note in notes {
        match *note {
            Note::Acknowledged(start, end) | Note::Sacked(start, end) => news.delivered += take(start, end),
            Note::Lost(start, end) => news.lost += take(start, end),
            Note::TimedOut => {
                news.lost += take(0, u64::MAX);
                news.has_timed_out = true;
            }
        }
    }
    news
}
