//! Media packets that were sent and may have to be sent again: as long as they can still come in time.
//!
//! The fewer attempts are left, the more copies an attempt has: the k-th has k of them, and the last that can
//! come in time at least two. So a packet is hardly ever lost for good, and the copies cost little, as few
//! packets need a second attempt. Copies leave some time apart, since losses come in bursts. While a queue stands
//! there is one: further ones make it longer, so that ever more attempts are the last. What is found
//! lost too late to come in time is tried once: the queue may be shorter. What nothing is known of for long may be
//! tried again as well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anabranch_protocol::live::wire::{Report, expand};
use anabranch_units::{Bytes, Duration, Time};

use super::kept_size;
use super::queue::Packet;

/// Most copies of one attempt.
const MOST_COPIES: u8 = 3;

/// How often a packet is tried again of which nothing is known.
const MOST_TRIES: u8 = 2;

/// What was sent, by its number in the stream.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    sent: BTreeMap<u64, Sent>,
    /// What they take in memory.
    size: Bytes,
    /// How many of them the receiver may not have.
    missing: usize,
    /// What was lost and waits to be sent again.
    again: BTreeSet<u64>,
    /// Further copies, and when they are to be sent.
    copies: BTreeSet<(Time, u64)>,
    /// Everything below was received or given up, as the receiver says.
    settled: u64,
}

#[derive(Clone, Debug)]
struct Sent {
    packet: Packet,
    /// The receiver has it, and has not handed it on.
    is_had: bool,
    /// Datagrams with it whose fate is not known, or which wait to be sent.
    hopes: u8,
    /// How often all of them were lost.
    losses: u8,
    /// How often it was tried again when it was overdue.
    tries: u8,
}

/// What there is time for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chance {
    /// The latency budget, without what queues on the way take of it.
    pub(super) budget: Duration,
    /// From sending a packet until it is known to be lost.
    pub(super) attempt: Duration,
    /// From one copy to the next.
    pub(super) spacing: Duration,
    /// Whether there is room for copies: no queue stands.
    pub(super) has_room: bool,
}

impl History {
    /// The next packet leaves. Of those before it no more are kept than fit into `most`.
    pub(super) fn sent(&mut self, sequence: u64, packet: Packet, most: Bytes) {
        self.size += kept_size(&packet.payload);
        self.missing += 1;
        self.sent.insert(sequence, Sent { packet, is_had: false, hopes: 1, losses: 0, tries: 0 });
        while self.size > most
            && let Some((&oldest, _)) = self.sent.first_key_value()
        {
            self.forget(oldest);
        }
    }

    fn forget(&mut self, sequence: u64) {
        if let Some(sent) = self.sent.remove(&sequence) {
            self.size -= kept_size(&sent.packet.payload);
            self.missing -= usize::from(!sent.is_had);
        }
        self.again.remove(&sequence);
    }

    /// The receiver has started anew, and knows of no packet before `next`: gives all that was sent, the oldest first.
    pub(super) fn take_all(&mut self, next: u64) -> impl DoubleEndedIterator<Item = Packet> + use<> {
        let Self { sent, .. } = std::mem::replace(self, Self { settled: next, ..Self::default() });
        sent.into_values().map(|sent| sent.packet)
    }

    /// The oldest packet that may be sent again.
    pub(super) fn first(&self) -> Option<u64> {
        self.sent.first_key_value().map(|(sequence, _)| *sequence)
    }

    /// How many packets below `next` the receiver may not have settled.
    pub(super) fn unsettled(&self, next: u64) -> u64 {
        next.saturating_sub(self.settled)
    }

    /// The receiver has these.
    pub(super) fn report(&mut self, report: &Report, next: u64) {
        let settled = expand(report.settled, self.settled);
        // A report that was overtaken, and one that speaks of what was not sent.
        if settled > next || settled + 8 * report.had.len() as u64 <= self.settled {
            return;
        }
        self.settled = self.settled.max(settled);
        while let Some((&oldest, _)) = self.sent.first_key_value()
            && oldest < self.settled
        {
            self.forget(oldest);
        }
        // What it has may be lost as long as it has not been handed on.
        let told = settled..settled + 8 * report.had.len() as u64;
        for (sequence, sent) in self.sent.range_mut(told).filter(|(_, sent)| !sent.is_had) {
            let distance = sequence - settled;
            let byte = usize::try_from(distance / 8).ok().and_then(|index| report.had.get(index));
            if byte.is_some_and(|byte| byte >> (distance % 8) & 1 == 1) {
                sent.is_had = true;
                self.missing -= 1;
                self.again.remove(sequence);
            }
        }
    }

    /// A datagram with this packet was lost. When there is no other it waits to be sent again, unless the
    /// receiver has it or it is too old. Answers for the first loss of a packet whether it is known too late
    /// to send it again in time.
    pub(super) fn lost(&mut self, sequence: u64, chance: &Chance, now: Time) -> Option<bool> {
        let sent = self.sent.get_mut(&sequence).filter(|sent| !sent.is_had)?;
        sent.hopes = sent.hopes.saturating_sub(1);
        if sent.hopes > 0 {
            return None;
        }
        sent.losses = sent.losses.saturating_add(1);
        let latest = sent.packet.time + chance.budget;
        let (is_last, is_late) = (now + chance.attempt > latest, now > latest);
        let copies = sent.losses.max(if is_last && !is_late { 2 } else { 1 });
        let copies = copies.min(if chance.has_room { MOST_COPIES } else { 1 });
        sent.hopes = copies;
        self.again.insert(sequence);
        self.copies.extend((1..copies).map(|copy| (now + chance.spacing * u64::from(copy), sequence)));
        (sent.losses == 1).then_some(is_late)
    }

    /// A datagram with this packet is overdue: another one waits to be sent, if it can come within `budget`.
    pub(super) fn overdue(&mut self, sequence: u64, budget: Duration, now: Time) {
        let in_time =
            |sent: &&mut Sent| !sent.is_had && sent.tries < MOST_TRIES && now <= sent.packet.time + budget;
        if let Some(sent) = self.sent.get_mut(&sequence).filter(in_time)
            && self.again.insert(sequence)
        {
            sent.tries += 1;
            sent.hopes = sent.hopes.saturating_add(1);
        }
    }

    /// Copies whose time has come wait to be sent.
    pub(super) fn tick(&mut self, now: Time) {
        while let Some(&(at, sequence)) = self.copies.first()
            && at <= now
        {
            self.copies.pop_first();
            if let Some(sent) = self.sent.get_mut(&sequence).filter(|sent| !sent.is_had)
                && !self.again.insert(sequence)
            {
                // The copy before it has not left yet: they are one.
                sent.hopes = sent.hopes.saturating_sub(1);
            }
        }
    }

    /// When [`Self::tick`] is to be called.
    pub(super) fn deadline(&self) -> Time {
        self.copies.first().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// Forgets packets that came into the sender before `oldest`.
    pub(super) fn expire(&mut self, oldest: Time) {
        while let Some((&sequence, sent)) = self.sent.first_key_value()
            && sent.packet.time < oldest
        {
            self.forget(sequence);
        }
    }

    /// The packet that is to be sent again next, of those that came into the sender at `since` or later, and
    /// when it came.
    pub(super) fn next_again(&self, since: Time) -> Option<(u64, Time)> {
        let time = |sequence: &u64| Some((*sequence, self.sent.get(sequence)?.packet.time));
        self.again.iter().filter_map(time).find(|(_, time)| *time >= since)
    }

    /// Takes a packet that is sent again off the list.
    pub(super) fn take_again(&mut self, sequence: u64) -> Option<(Time, Arc<[u8]>)> {
        self.again.remove(&sequence);
        self.sent.get(&sequence).map(|sent| (sent.packet.time, sent.packet.payload.clone()))
    }

    /// A packet as it travels.
    pub(super) fn payload(&self, sequence: u64) -> Option<&[u8]> {
        self.sent.get(&sequence).map(|sent| &*sent.packet.payload)
    }

    /// A packet is not sent again.
    pub(super) fn give_up(&mut self, sequence: u64) {
        self.forget(sequence);
    }

    /// Packets that wait to be sent again.
    pub(super) fn waiting(&self) -> usize {
        self.again.len()
    }

    /// Whether nothing is left that the receiver may miss.
    pub(super) fn is_empty(&self) -> bool {
        self.missing == 0
    }
}

#[cfg(test)]
mod tests {
    use anabranch_units::Rate;

    use super::super::most_kept;
    use super::*;

    const EARLY: Time = Time::ZERO;
    const CHANCE: Chance = Chance {
        budget: Duration::from_millis(500),
        attempt: Duration::from_millis(100),
        spacing: Duration::from_millis(10),
        has_room: true,
    };

    fn history(count: u64) -> History {
        let mut history = History::default();
        for sequence in 0..count {
            let time = Time::ZERO + Duration::from_millis(sequence);
            history.sent(sequence, Packet { time, payload: vec![0].into() }, Bytes::mib(16));
        }
        history
    }

    fn report(settled: u32, had: &[u8]) -> Report {
        Report { settled, had: had.to_vec(), ..Report::default() }
    }

    #[test]
    fn what_the_receiver_has_is_not_sent_again() {
        let mut history = history(10);
        (0..10).for_each(|sequence| assert_eq!(history.lost(sequence, &CHANCE, EARLY), Some(false)));
        history.report(&report(2, &[0b101]), 10);
        let missing = history.sent.iter().filter(|(_, sent)| !sent.is_had);
        assert_eq!(missing.map(|(sequence, _)| *sequence).collect::<Vec<_>>(), [3, 5, 6, 7, 8, 9]);
        assert_eq!(history.waiting(), 6);
        // What is known is not forgotten for an old report, and nobody has what was not sent.
        history.report(&report(0, &[]), 10);
        history.report(&report(11, &[]), 10);
        assert_eq!(history.missing, 6);
        history.lost(4, &CHANCE, EARLY);
        assert_eq!(history.next_again(EARLY).map(|(sequence, _)| sequence), Some(3));
        assert!(history.take_again(3).is_some());
        assert_eq!(history.next_again(EARLY).map(|(sequence, _)| sequence), Some(5));
        history.expire(Time::ZERO + Duration::from_millis(7));
        assert_eq!(history.next_again(EARLY).map(|(sequence, _)| sequence), Some(7));
        history.report(&report(10, &[]), 10);
        assert!(history.is_empty() && history.waiting() == 0);
    }

    #[test]
    fn all_that_was_not_handed_on_is_there_for_a_receiver_that_is_new() {
        let mut history = history(10);
        history.report(&report(2, &[0b1101_1011]), 10);
        history.lost(4, &CHANCE, EARLY);
        let times: Vec<_> = history.take_all(10).map(|packet| packet.time.since(Time::ZERO)).collect();
        assert!(times.into_iter().eq((2..10).map(Duration::from_millis)));
        assert!(history.is_empty() && history.waiting() == 0 && history.size == Bytes::ZERO);
        assert_eq!((history.unsettled(12), history.deadline()), (2, Time::NEVER));
    }

    /// Sends all that is due at `now`; how many.
    fn send(history: &mut History, now: Time) -> usize {
        history.tick(now);
        std::iter::from_fn(|| {
            history.next_again(EARLY).and_then(|(sequence, _)| history.take_again(sequence))
        })
        .count()
    }

    #[test]
    fn what_is_overdue_is_tried_twice_and_lost_when_all_are() {
        let mut history = history(2);
        assert_eq!(send(&mut history, EARLY), 0);
        for _ in 0..3 {
            history.overdue(0, CHANCE.budget, EARLY);
            // It is one until it leaves.
            history.overdue(0, CHANCE.budget, EARLY);
            history.tick(EARLY);
        }
        assert_eq!(send(&mut history, EARLY), 1);
        history.overdue(0, CHANCE.budget, EARLY);
        assert_eq!(send(&mut history, EARLY), 1);
        history.overdue(0, CHANCE.budget, EARLY);
        assert_eq!(send(&mut history, EARLY), 0);
        // Three are under way.
        assert_eq!([(); 2].map(|()| history.lost(0, &CHANCE, EARLY)), [None; 2]);
        assert_eq!((history.lost(0, &CHANCE, EARLY), history.waiting()), (Some(false), 1));
        // Too late, and unknown.
        history.overdue(1, CHANCE.budget, EARLY + Duration::from_millis(502));
        history.overdue(7, CHANCE.budget, EARLY);
        assert_eq!(history.waiting(), 1);
    }

    #[test]
    fn later_attempts_have_more_copies_apart_in_time() {
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        let mut history = history(1);
        history.lost(0, &CHANCE, at(100));
        assert_eq!((send(&mut history, at(100)), history.deadline()), (1, Time::NEVER));
        history.lost(0, &CHANCE, at(200));
        assert_eq!((send(&mut history, at(200)), history.deadline()), (1, at(210)));
        assert_eq!((send(&mut history, at(209)), send(&mut history, at(210))), (0, 1));
        // One of the two is lost: the other may come.
        history.lost(0, &CHANCE, at(300));
        assert_eq!(send(&mut history, at(300)), 0);
        history.lost(0, &CHANCE, at(310));
        let sent: Vec<usize> = [310, 320, 330, 340].map(|millis| send(&mut history, at(millis))).into();
        assert_eq!(sent, [1, 1, 1, 0]);
        // What the receiver has needs no further copies.
        for _ in 0..3 {
            history.lost(0, &CHANCE, at(400));
        }
        assert_eq!(send(&mut history, at(400)), 1);
        history.report(&report(1, &[]), 1);
        assert_eq!((send(&mut history, at(430)), history.deadline()), (0, Time::NEVER));
    }

    #[test]
    fn the_last_attempt_that_comes_in_time_has_two() {
        let mut history = history(1);
        history.lost(0, &CHANCE, Time::ZERO + Duration::from_millis(450));
        assert_eq!(history.copies.len(), 1);
    }

    #[test]
    fn there_is_one_copy_while_a_queue_stands() {
        let (mut history, full) = (history(1), Chance { has_room: false, ..CHANCE });
        for millis in [100, 200, 450] {
            let now = Time::ZERO + Duration::from_millis(millis);
            history.lost(0, &full, now);
            assert_eq!((send(&mut history, now), history.copies.len()), (1, 0), "after {millis} ms");
        }
    }

    #[test]
    fn what_is_known_too_late_is_tried_once() {
        let mut history = history(1);
        let late = history.lost(0, &CHANCE, Time::ZERO + Duration::from_millis(501));
        assert_eq!((late, history.waiting(), history.copies.len()), (Some(true), 1, 0));
    }

    #[test]
    fn a_minute_of_20_mbps_can_be_sent_again_and_memory_is_bounded() {
        let minute = Duration::from_secs(60);
        let mut history = History::default();
        let whole = Packet { time: Time::ZERO, payload: vec![0; 1316].into() };
        let packets = Rate::from_mbps(20).amount_in(minute).get() / 1316;
        (0..packets).for_each(|sequence| history.sent(sequence, whole.clone(), most_kept(minute)));
        assert_eq!(history.sent.len() as u64, packets);
        history.lost(0, &CHANCE, EARLY);
        (packets..packets * 2).for_each(|sequence| history.sent(sequence, whole.clone(), most_kept(minute)));
        assert!(history.size <= most_kept(minute) && history.waiting() == 0);
        history.report(&report(u32::try_from(packets * 2).unwrap(), &[]), packets * 2);
        assert_eq!((history.size, history.is_empty()), (Bytes::ZERO, true));
    }
}
