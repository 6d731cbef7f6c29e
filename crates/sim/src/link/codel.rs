//! Controlled delay (RFC 8289, section 5).

use std::collections::VecDeque;

use anabranch_queues::Codepoint;

use crate::model::CoDel;

/// A packet in a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) packet: u32,
    pub(super) size: u32,
    /// When it came.
    pub(super) came: u64,
    pub(super) ecn: Codepoint,
    /// Whether this queue has marked it.
    pub(super) is_marked: bool,
}

/// A queue that drops or marks the packet at its head when all of the last interval's packets waited too
/// long.
#[derive(Clone, Debug)]
pub(super) struct CoDelQueue {
    target: u64,
    interval: u64,
    /// Whether it marks the packets of those who know marks.
    marks: bool,
    waiting: VecDeque<Head>,
    bytes: u64,
    /// When the sojourn time will have been above the target for an interval; zero: it is not.
    first_above: u64,
    is_dropping: bool,
    drop_next: u64,
    drops: u64,
    last_drops: u64,
}

/// With no more than one full packet waiting nothing is dropped.
const LARGEST_PACKET: u64 = 1500;

impl CoDelQueue {
    pub(super) fn new(parameters: CoDel) -> Self {
        Self {
            target: parameters.target.as_nanos(),
            interval: parameters.interval.as_nanos(),
            marks: parameters.ecn,
            waiting: VecDeque::new(),
            bytes: 0,
            first_above: 0,
            is_dropping: false,
            drop_next: 0,
            drops: 0,
            last_drops: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes the packet at the head, to make room.
    pub(super) fn drop_head(&mut self) -> Option<(u32, u32)> {
        let head = self.waiting.pop_front()?;
        self.bytes -= u64::from(head.size);
        Some((head.packet, head.size))
    }

    pub(super) fn push(&mut self, packet: Head) {
        self.bytes += u64::from(packet.size);
        self.waiting.push_back(packet);
    }

    /// Takes the head, and says whether it may be dropped.
    fn take(&mut self, now: u64) -> Option<(Head, bool)> {
        let Some(head) = self.waiting.pop_front() else {
            self.first_above = 0;
            return None;
        };
        self.bytes -= u64::from(head.size);
        if now - head.came < self.target || self.bytes <= LARGEST_PACKET {
            self.first_above = 0;
            return Some((head, false));
        }
        if self.first_above == 0 {
            self.first_above = now + self.interval;
            return Some((head, false));
        }
        Some((head, now >= self.first_above))
    }

    /// The time of the next drop after one at `from`.
    fn control_law(&self, from: u64) -> u64 {
        from + (self.interval as f64 / (self.drops.max(1) as f64).sqrt()) as u64
    }

    /// Marks a packet that is to tell of congestion, where that can be (RFC 8290, section 4.2); it stays
    /// then.
    fn marks(&self, head: &mut Head) -> bool {
        head.is_marked = self.marks && head.ecn.is_capable();
        head.is_marked
    }

    /// The next packet to transmit. `dropped` is told of those that go.
    pub(super) fn pop(&mut self, now: u64, mut dropped: impl FnMut(u32, u32)) -> Option<Head> {
        let Some((mut head, mut may_drop)) = self.take(now) else {
            self.is_dropping = false;
            return None;
        };
        if self.is_dropping {
            self.is_dropping = may_drop;
            while self.is_dropping && now >= self.drop_next {
                self.drops += 1;
                if self.marks(&mut head) {
                    self.drop_next = self.control_law(self.drop_next);
                    break;
                }
                dropped(head.packet, head.size);
                let Some(next) = self.take(now) else {
                    self.is_dropping = false;
                    return None;
                };
                (head, may_drop) = next;
                if may_drop {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.is_dropping = false;
                }
            }
        } else if may_drop {
            let next = if self.marks(&mut head) {
                Some((head, may_drop))
            } else {
                dropped(head.packet, head.size);
                self.take(now)
            };
            self.is_dropping = true;
            // Soon after the last time of dropping it goes on about as often as then.
            let since = self.drops - self.last_drops;
            let is_recent = now.saturating_sub(self.drop_next) < 16 * self.interval;
            self.drops = if since > 1 && is_recent { since } else { 1 };
            self.drop_next = self.control_law(now);
            self.last_drops = self.drops;
            (head, _) = next?;
        }
        Some(head)
    }
}
