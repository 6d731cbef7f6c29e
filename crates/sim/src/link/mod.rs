//! A link at work. When a packet comes, all that will happen to it here is computed at once: whether the
//! queue drops it, when its transmission ends, whether the wire loses it, when it arrives. Only a queue that
//! decides when a packet leaves it (CoDel, FQ-CoDel, DualPI2) has to be asked again.

mod codel;
mod early;
mod fq_codel;
mod loss;
mod red;
mod schedule;
mod served;

use std::collections::VecDeque;
use std::hint::black_box;

use crate::model::{self, Discipline, Limit, LossModel};
use anabranch_queues::{Bucket, Codepoint, DualPi2State, Verdict, delay_beyond};
use anabranch_scenario::random::Random;
use codel::{CoDelQueue, Head};
use early::Early;
use fq_codel::FlowQueues;
use loss::Losses;
use schedule::{Steps, Transmitter};
use served::Served;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It arrives at the other end at this time.
    Arrives(u64),
    /// The queue had no place for it.
    Dropped,
    /// The wire lost it.
    Lost,
    /// It waits; see [`LinkDirection::serve`].
    Waits,
}

/// Counted since the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub offered: u64,
    pub dropped: u64,
    pub marked: u64,
    pub lost: u64,
    pub packets: u64,
    pub bytes: u64,
    pub waited: u128,
    pub queue_max: u32,
}

/// A packet that has not left yet.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    at: u64,
    size: u32,
}

/// The state of one direction of a link. What every packet needs comes first and takes four lines of the
/// processor's memory, as there can be tens of thousands of links.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct LinkDirection {
    leaving: VecDeque<Leaving>,
    queued_bytes: u64,
    limit: Limit,
    /// A queue that drops what finds it full, one rate, one delay and nothing else, as most links are: those
    /// pay nothing for what others can do.
    is_plain: bool,
    counters: Counters,
    delay: Steps<u64>,
    transmitter: Transmitter,
    policer: Option<Box<Bucket>>,
    losses: Steps<Losses>,
    jitter: Option<model::Jitter>,
    duplicate: f64,
    early: Early,
    served: Option<Served>,
    /// Dropped to make room for another.
    evicted: Option<u32>,
    /// Whether the packet is marked whose transmission was decided last.
    marks: bool,
    last_arrival: u64,
    random: Random,
}

impl LinkDirection {
    pub(crate) fn new(link: &model::Link, random: Random) -> Self {
        let rate = link.rate.as_bps();
        let changes = &link.changes;
        let rates =
            changes.iter().filter_map(|c| c.rate.map(|rate| (c.at.as_nanos(), rate.as_bps()))).collect();
        let delays = changes.iter().filter_map(|c| c.delay.map(|delay| (c.at.as_nanos(), delay.as_nanos())));
        let losses =
            changes.iter().filter_map(|c| c.loss.as_ref().map(|l| (c.at.as_nanos(), Losses::new(l))));
        let (early, served) = match link.queue.discipline {
            Discipline::DropTail => (Early::Never, None),
            Discipline::Red(red) => (Early::red(red, link.rate), None),
            Discipline::Pie(pie) => (Early::pie(pie), None),
            Discipline::CoDel(codel) => (Early::Never, Some(Served::CoDel(Box::new(CoDelQueue::new(codel))))),
            Discipline::DualPi2(parameters) => {
                (Early::Never, Some(Served::DualPi2(Box::new(DualPi2State::new(parameters)))))
            }
            Discipline::FqCoDel(flows) => {
                (Early::Never, Some(Served::FqCoDel(Box::new(FlowQueues::new(flows)))))
            }
        };
        let is_plain = matches!(early, Early::Never)
            && served.is_none()
            && rate > 0
            && link.changes.is_empty()
            && link.opportunities.is_none()
            && link.shaper.is_none()
            && link.policer.is_none()
            && matches!(link.loss, LossModel::None)
            && link.jitter.is_none()
            && link.duplicate <= 0.0;
        Self {
            leaving: VecDeque::new(),
            queued_bytes: 0,
            limit: link.queue.limit,
            is_plain,
            counters: Counters::default(),
            delay: Steps::new(link.delay.as_nanos(), delays.collect()),
            transmitter: Transmitter::new(rate, rates, link.opportunities.as_ref(), link.shaper.as_ref()),
            policer: link.policer.as_ref().map(|policer| Box::new(Bucket::new(policer))),
            losses: Steps::new(Losses::new(&link.loss), losses.collect()),
            jitter: link.jitter,
            duplicate: link.duplicate,
            early,
            served,
            evicted: None,
            marks: false,
            last_arrival: 0,
            random,
        }
    }

    /// Reads of what every packet needs, a line of the processor's memory each.
    #[inline]
    pub(crate) fn touch(&self) {
        black_box((
            self.queued_bytes,
            self.counters.offered,
            self.delay.now(),
            self.transmitter.last_start(),
        ));
        black_box(self.leaving.front());
    }

    /// A packet of `size` bytes comes to a plain link: when it arrives, unless it is dropped. Calls come in
    /// the order of time.
    #[inline]
    pub(crate) fn pass(&mut self, size: u32, now: u64) -> Option<u64> {
        self.counters.offered += 1;
        self.forget_left(now);
        if self.is_full_with(self.leaving.len(), size) {
            self.counters.dropped += 1;
            return None;
        }
        let (start, end) = self.transmitter.transmit_at_once(size, now);
        self.leave(size, start - now, end);
        Some(end.saturating_add(*self.delay.at(end)))
    }

    /// A packet of `size` bytes of this flow comes to any link. Calls come in the order of time.
    pub(crate) fn offer(&mut self, packet: u32, size: u32, flow: u64, ecn: Codepoint, now: u64) -> Fate {
        self.counters.offered += 1;
        if self.policer.as_mut().is_some_and(|policer| !policer.passes(size, now)) {
            self.counters.dropped += 1;
            return Fate::Dropped;
        }
        self.forget_left(now);
        if self.served.is_some() {
            return self.wait(packet, size, flow, ecn, now);
        }
        let verdict = if self.is_full(size) { Verdict::Dropped } else { self.judge(ecn, now) };
        if verdict == Verdict::Dropped {
            self.counters.dropped += 1;
            return Fate::Dropped;
        }
        self.mark(verdict == Verdict::Marked);
        self.transmit(size, now, now)
    }

    #[inline]
    fn forget_left(&mut self, now: u64) {
        while let Some(first) = self.leaving.front() {
            if first.at > now {
                break;
            }
            self.queued_bytes -= u64::from(first.size);
            self.leaving.pop_front();
        }
    }

    /// How many packets are here, the one in transmission included.
    fn occupancy(&self) -> usize {
        self.leaving.len() + self.served.as_ref().map_or(0, Served::len)
    }

    fn is_full(&self, size: u32) -> bool {
        self.is_full_with(self.occupancy(), size)
    }

    /// Whether it has no place for `size` bytes when so many packets are here.
    #[inline]
    fn is_full_with(&self, packets: usize, size: u32) -> bool {
        match self.limit {
            Limit::Packets(most) => packets >= most as usize,
            Limit::Bytes(most) => self.queued_bytes + u64::from(size) > most.get(),
        }
    }

    fn judge(&mut self, ecn: Codepoint, now: u64) -> Verdict {
        let waiting = self.leaving.len().saturating_sub(1);
        self.early.judge(ecn, waiting, self.transmitter.busy_until(), now, &mut self.random)
    }

    /// The packet that is transmitted next is marked, or not.
    fn mark(&mut self, marks: bool) {
        self.marks = marks;
        self.counters.marked += u64::from(marks);
    }

    /// A packet's transmission ends at `end`, after it waited so long.
    #[inline]
    fn leave(&mut self, size: u32, waited: u64, end: u64) {
        self.counters.packets += 1;
        self.counters.bytes += u64::from(size);
        self.counters.waited += u128::from(waited);
        self.queued_bytes += u64::from(size);
        self.leaving.push_back(Leaving { at: end, size });
        self.counters.queue_max = self.counters.queue_max.max(self.leaving.len() as u32);
    }

    /// A packet that came at `came` is transmitted as soon as it can be.
    fn transmit(&mut self, size: u32, came: u64, now: u64) -> Fate {
        let (start, end) = self.transmitter.transmit(size, now);
        self.leave(size, start - came, end);
        self.counters.queue_max = self.counters.queue_max.max(self.occupancy() as u32);
        if end == u64::MAX {
            // It never leaves: the link is down for good.
            return Fate::Lost;
        }
        if self.losses.at(end).loses(&mut self.random) {
            self.counters.lost += 1;
            return Fate::Lost;
        }
        let arrival = end.saturating_add(*self.delay.at(end));
        let Some(drawn) =
            self.jitter.as_ref().map(|drawn| (drawn, delay_beyond(&drawn.spread, &mut self.random)))
        else {
            return self.arrives_in_order(arrival);
        };
        let (model::Jitter { reorders, .. }, more) = drawn;
        let arrival = arrival.saturating_add(more);
        if *reorders { Fate::Arrives(arrival) } else { self.arrives_in_order(arrival) }
    }

    /// Packets do not overtake each other, though the delay may shrink.
    fn arrives_in_order(&mut self, arrival: u64) -> Fate {
        self.last_arrival = self.last_arrival.max(arrival);
        Fate::Arrives(self.last_arrival)
    }

    /// A packet comes to a queue that decides when it leaves.
    fn wait(&mut self, packet: u32, size: u32, flow: u64, ecn: Codepoint, now: u64) -> Fate {
        if self.is_full(size) {
            self.counters.dropped += 1;
            let Some((other, bytes)) = self.served.as_mut().and_then(Served::make_room) else {
                return Fate::Dropped;
            };
            self.evicted = Some(other);
            self.queued_bytes -= u64::from(bytes);
            // A small one made too little room.
            if self.is_full(size) {
                self.counters.dropped += 1;
                return Fate::Dropped;
            }
        }
        // Where others wait and nothing is in transmission, their turn comes at this very moment.
        let is_idle = self.occupancy() == 0;
        let Some(queue) = self.served.as_mut().filter(|queue| !is_idle || queue.judges_all()) else {
            self.mark(false);
            return self.transmit(size, now, now);
        };
        queue.push(Head { packet, size, came: now, ecn, is_marked: false }, flow);
        self.queued_bytes += u64::from(size);
        self.counters.queue_max = self.counters.queue_max.max(self.occupancy() as u32);
        if !is_idle {
            return Fate::Waits;
        }
        // It is the only one here.
        self.serve(now, |_| ()).map_or(Fate::Dropped, |(_, fate)| fate)
    }

    /// The packet that had to go for the one that was offered last.
    pub(crate) fn take_evicted(&mut self) -> Option<u32> {
        self.evicted.take()
    }

    /// Whether the queue marked the packet that it let go last.
    pub(crate) fn marks(&self) -> bool {
        self.marks
    }

    /// When the transmission under way ends and [`LinkDirection::serve`] has to be called, if this link's
    /// queue needs it.
    pub(crate) fn next_service(&self) -> Option<u64> {
        self.served.as_ref().and(self.leaving.front()).map(|leaving| leaving.at)
    }

    /// A transmission has ended: takes the next packet from a queue that decides when packets leave it.
    /// `gone` is told of packets that the queue drops now.
    pub(crate) fn serve(&mut self, now: u64, mut gone: impl FnMut(u32)) -> Option<(u32, Fate)> {
        self.forget_left(now);
        let queue = self.served.as_mut().filter(|_| self.leaving.is_empty())?;
        let mut dropped = 0;
        let mut dropped_bytes = 0;
        let next = queue.pop(now, |packet, size| {
            dropped += 1;
            dropped_bytes += u64::from(size);
            gone(packet);
        });
        self.counters.dropped += dropped;
        self.queued_bytes -= dropped_bytes;
        let Head { packet, size, came, is_marked, .. } = next?;
        self.queued_bytes -= u64::from(size);
        self.mark(is_marked);
        Some((packet, self.transmit(size, came, now)))
    }

    /// When the transmission of the last packet accepted began.
    pub(crate) fn last_start(&self) -> u64 {
        self.transmitter.last_start()
    }

    /// Whether a packet that comes from a link of `rate` never waits here and is never dropped.
    pub(crate) fn only_delays(&self, rate: u64) -> bool {
        matches!(self.early, Early::Never)
            && self.served.is_none()
            && self.policer.is_none()
            && self.transmitter.is_always_at_least(rate)
    }

    /// Whether packets arrive once, in the order and at the distances in which they were transmitted, but for
    /// what changes at given moments; and are told of in that order: of a queue that is asked again, some are
    /// told as they come and others as they leave.
    pub(crate) fn is_even(&self) -> bool {
        self.served.is_none() && self.jitter.is_none() && self.duplicate <= 0.0
    }

    /// Whether it is as most links are, and [`LinkDirection::pass`] does for its packets.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Whether a packet that arrives does so twice.
    #[inline]
    pub(crate) fn duplicates(&mut self) -> bool {
        self.duplicate > 0.0 && self.random.unit() < self.duplicate
    }

    /// The most that it ever transmits, in bits per second.
    pub(crate) fn highest_rate(&self) -> u64 {
        self.transmitter.highest_rate()
    }

    /// What was counted until now. What has not left yet does not count as transmitted.
    pub(crate) fn counters(&self, now: u64) -> Counters {
        let mut counters = self.counters;
        for leaving in self.leaving.iter().rev().take_while(|leaving| leaving.at > now) {
            counters.packets -= 1;
            counters.bytes -= u64::from(leaving.size);
        }
        counters
    }
}
