//! Datagrams in the network: who sends them and when.

use super::{Network, Upcall};
use crate::model::{FlowId, Pattern};
use crate::packet::{Packet, What};
use crate::random::Random;

/// A flow of datagrams.
#[derive(Debug)]
pub(crate) struct Datagrams {
    pub flow: FlowId,
    pub size: u32,
    pub sent: u64,
    pub arrived: u64,
    pub dropped: u64,
    pub lost: u64,
    pattern: Pattern,
    path: u32,
    is_stopped: bool,
    /// From one datagram to the next while on.
    interval: f64,
    /// The next moment in an exact sum, so that rounding to nanoseconds does not add up.
    next: f64,
    /// End of the time that is on now.
    on_until: f64,
    /// Datagrams left in an exponential burst.
    burst: u64,
}

impl Datagrams {
    pub(crate) fn new(flow: FlowId, size: u32, pattern: Pattern, path: u32) -> Self {
        let (Pattern::Constant { rate, .. }
        | Pattern::OnOff { rate, .. }
        | Pattern::Exponential { rate, .. }) = pattern;
        let interval = f64::from(size) * 8e9 / rate.as_f64();
        Self {
            flow,
            size,
            sent: 0,
            arrived: 0,
            dropped: 0,
            lost: 0,
            pattern,
            path,
            is_stopped: false,
            interval,
            next: 0.0,
            on_until: 0.0,
            burst: 0,
        }
    }

    /// Where it goes.
    pub(super) fn path(&self) -> u32 {
        self.path
    }

    /// The flow begins: when its first datagram leaves.
    fn begin(&mut self, now: u64, random: &mut Random) -> u64 {
        self.next = now as f64;
        match self.pattern {
            Pattern::Constant { .. } => {}
            Pattern::OnOff { on, off, off_first, .. } => {
                if off_first {
                    self.next += off.as_nanos() as f64;
                }
                self.on_until = self.next + on.as_nanos() as f64;
            }
            Pattern::Exponential { on, .. } => self.new_burst(on.as_nanos() as f64, random),
        }
        self.next as u64
    }

    /// At least one datagram goes in each time that is on.
    fn new_burst(&mut self, mean: f64, random: &mut Random) {
        let count = random.exponential(mean / self.interval) + 0.5;
        self.burst = (count as u64).max(1);
    }

    /// A datagram has left: when the next one does.
    fn advance(&mut self, random: &mut Random) -> u64 {
        self.next += self.interval;
        match self.pattern {
            Pattern::Constant { jitter, .. } => {
                if jitter {
                    self.next += self.interval * (random.unit() - 0.5);
                }
            }
            Pattern::OnOff { on, off, .. } => {
                if self.next >= self.on_until {
                    self.next = self.on_until + off.as_nanos() as f64;
                    self.on_until = self.next + on.as_nanos() as f64;
                }
            }
            Pattern::Exponential { on, off, .. } => {
                self.burst -= 1;
                if self.burst == 0 {
                    self.next += random.exponential(off.as_nanos() as f64);
                    self.new_burst(on.as_nanos() as f64, random);
                }
            }
        }
        self.next as u64
    }
}

impl Network {
    /// The timer of a flow: of datagrams the next one, otherwise its user's business.
    #[inline]
    pub(super) fn flow_timer(&mut self, flow: FlowId) {
        match self.datagrams_of.get(flow).copied().flatten() {
            Some(index) => self.next_datagram(index),
            None => self.upcalls.push(Upcall::Flow(flow)),
        }
    }

    /// Makes a flow one of datagrams.
    pub(crate) fn add_datagrams(&mut self, datagrams: Datagrams) {
        let flow = datagrams.flow;
        if self.datagrams_of.len() <= flow {
            self.datagrams_of.resize(flow + 1, None);
        }
        self.datagrams_of[flow] = Some(self.datagrams.len() as u32);
        self.datagrams.push(datagrams);
    }

    fn next_datagram(&mut self, index: u32) {
        let now = self.now;
        let datagrams = &mut self.datagrams[index as usize];
        if datagrams.is_stopped {
            return;
        }
        let random = &mut self.random[datagrams.flow];
        if datagrams.sent == 0 && datagrams.next == 0.0 {
            let first = datagrams.begin(now, random);
            if first > now {
                let flow = datagrams.flow;
                self.call_flow(flow, first);
                return;
            }
        }
        let packet =
            Packet::new(What::Datagram, index, datagrams.path, datagrams.sent, datagrams.size as u16);
        datagrams.sent += 1;
        let flow = datagrams.flow;
        let next = datagrams.advance(random);
        self.send(packet);
        self.call_flow(flow, next);
    }

    /// A flow sends no more datagrams.
    pub(crate) fn stop_datagrams(&mut self, flow: FlowId) {
        if let Some(index) = self.datagrams_of.get(flow).copied().flatten() {
            self.datagrams[index as usize].is_stopped = true;
        }
    }
}
