//! A TCP flow that always has data: its window is that of a control of `congestion`; three later
//! acknowledgements show a loss, and what is sent again is new data, as nobody reads it.

use std::collections::BTreeMap;

use anabranch_congestion::algorithm::Algorithm;
use anabranch_congestion::control::{Ack, Controller, Loss, Start, Timeout};
use anabranch_units::{Bytes, Duration, Time};

/// Bytes of a packet, and of its payload.
pub const PACKET: Bytes = Bytes::new(1500);
const SEGMENT: Bytes = Bytes::new(1448);
const LEAST_TIMEOUT: Duration = Duration::from_millis(400);

#[derive(Debug)]
pub struct Tcp {
    control: Box<dyn Controller>,
    next: u64,
    flying: BTreeMap<u64, Time>,
    /// Recovery lasts until this segment is acknowledged.
    recovers_until: u64,
    srtt: Duration,
    last_ack: Time,
    pub acked: u64,
}

impl Tcp {
    pub fn new(algorithm: Algorithm, now: Time) -> Self {
        let start = Start { segment: SEGMENT, initial_window: SEGMENT * 10, initial_ssthresh: None, seed: 0 };
        Self {
            control: algorithm.controller(&start),
            next: 0,
            flying: BTreeMap::new(),
            recovers_until: 0,
            srtt: Duration::ZERO,
            last_ack: now,
            acked: 0,
        }
    }

    /// The next segment, if one may leave.
    pub fn transmit(&mut self, now: Time) -> Option<u64> {
        let flight = SEGMENT * self.flying.len() as u64;
        if flight + SEGMENT > self.control.cwnd() {
            return None;
        }
        self.next += 1;
        self.flying.insert(self.next, now);
        Some(self.next)
    }

    pub fn ack(&mut self, segment: u64, now: Time) {
        let flight = SEGMENT * self.flying.len() as u64;
        let Some(sent) = self.flying.remove(&segment) else { return };
        self.acked += 1;
        self.last_ack = now;
        let rtt = now.since(sent);
        self.srtt = if self.srtt.is_zero() { rtt } else { (self.srtt * 7 + rtt) / 8 };
        let mut is_lost = false;
        while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key() + 3 <= segment) {
            is_lost |= *entry.key() > self.recovers_until;
            entry.remove();
        }
        if is_lost {
            self.recovers_until = self.next;
            self.control.on_loss(&Loss { now, flight });
        } else if segment > self.recovers_until {
            let (acked, srtt) = (SEGMENT, self.srtt);
            self.control.on_ack(&Ack { now, acked, flight, rtt: Some(rtt), srtt, is_cwnd_limited: true });
        }
    }

    pub fn deadline(&self) -> Time {
        self.last_ack + (self.srtt * 2).max(LEAST_TIMEOUT)
    }

    pub fn tick(&mut self, now: Time) {
        if now >= self.deadline() {
            let flight = SEGMENT * self.flying.len() as u64;
            self.flying.clear();
            self.recovers_until = self.next;
            self.last_ack = now;
            self.control.on_timeout(&Timeout { now, flight, is_repeated: false });
        }
    }
}
