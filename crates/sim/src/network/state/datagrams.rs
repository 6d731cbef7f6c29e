//! Datagrams: when each of a flow leaves.

use crate::counted::FlowCounted;
use crate::model::{FlowId, Pattern};
use anabranch_scenario::random::Random;

/// A flow of datagrams.
#[derive(Debug)]
pub(crate) struct Datagrams {
    pub flow: FlowId,
    pub size: u32,
    pub sent: u64,
    pub arrived: u64,
    pub dropped: u64,
    pub lost: u64,
    pub(in crate::network) pattern: Pattern,
    pub(in crate::network) path: u32,
    pub(in crate::network) is_stopped: bool,
    /// From one datagram to the next while on.
    pub(in crate::network) interval: f64,
    /// The next moment in an exact sum, so that rounding to nanoseconds does not add up.
    pub(in crate::network) next: f64,
    /// End of the time that is on now.
    pub(in crate::network) on_until: f64,
    /// Datagrams left in an exponential burst.
    pub(in crate::network) burst: u64,
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

    /// What is counted of it.
    pub(crate) fn counted(&self) -> FlowCounted {
        let bytes = self.arrived * u64::from(self.size);
        FlowCounted {
            delivered: bytes,
            arrived_wire: bytes,
            sent: self.sent,
            dropped: self.dropped,
            lost: self.lost,
            ..FlowCounted::default()
        }
    }

    /// Where it goes.
    pub(in crate::network) fn path(&self) -> u32 {
        self.path
    }

    /// The flow begins: when its first datagram leaves.
    pub(in crate::network) fn begin(&mut self, now: u64, random: &mut Random) -> u64 {
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
    pub(in crate::network) fn advance(&mut self, random: &mut Random) -> u64 {
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
