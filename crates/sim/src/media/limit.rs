//! Reading no faster than a limit, over all connections of a stream together.

use std::collections::VecDeque;

use anabranch_film::control::ConnectionId;
use anabranch_units::{Bytes, Duration, Rate};

/// How often what may be read is read.
const PERIOD: u64 = 10_000_000;

/// What waits in the sockets' buffers for its turn.
#[derive(Debug, Default)]
pub(super) struct ReadLimit {
    rate: Option<Rate>,
    waiting: VecDeque<(ConnectionId, u64)>,
    since: u64,
    credit: u64,
    call_at: Option<u64>,
    is_called: bool,
}

impl ReadLimit {
    pub(super) fn set(&mut self, rate: Option<Rate>, now: u64) {
        self.rate = rate;
        self.since = now;
        self.ask(now);
    }

    pub(super) fn is_set(&self) -> bool {
        self.rate.is_some() || !self.waiting.is_empty()
    }

    /// Bytes have arrived.
    pub(super) fn hold(&mut self, connection: ConnectionId, bytes: u64, now: u64) {
        if self.waiting.is_empty() {
            // What was not used while nothing came is not made up for, beyond one period.
            let idle = now.saturating_sub(self.since).min(PERIOD);
            self.since = now - idle;
        }
        self.waiting.push_back((connection, bytes));
        self.ask(now);
    }

    fn ask(&mut self, now: u64) {
        if !self.waiting.is_empty() && self.call_at.is_none() {
            self.call_at = Some(now + PERIOD);
            self.is_called = false;
        }
    }

    /// When the flow's timer has to come for this, told once.
    pub(super) fn next_call(&mut self) -> Option<u64> {
        let is_new = self.call_at.is_some() && !std::mem::replace(&mut self.is_called, true);
        self.call_at.filter(|_| is_new)
    }

    /// What may be read now, from which connections.
    pub(super) fn ready(&mut self, now: u64) -> Vec<(ConnectionId, u64)> {
        if self.call_at.is_none_or(|at| at > now) {
            return Vec::new();
        }
        self.call_at = None;
        let earned = self.rate.map(|rate| rate.amount_in(Duration::from_nanos(now - self.since)).get());
        self.credit = earned.map_or(u64::MAX, |earned| self.credit + earned);
        self.since = now;
        let mut ready = Vec::new();
        while let Some((connection, bytes)) = self.waiting.front_mut().filter(|_| self.credit > 0) {
            let now_read = self.credit.min(*bytes);
            self.credit -= now_read;
            *bytes -= now_read;
            ready.push((*connection, now_read));
            if *bytes == 0 {
                self.waiting.pop_front();
            }
        }
        if self.waiting.is_empty() {
            self.credit = self.credit.min(Bytes::kib(16).get());
        }
        self.ask(now);
        ready
    }

    pub(super) fn forget(&mut self, connection: ConnectionId) {
        self.waiting.retain(|(other, _)| *other != connection);
    }
}
