//! A member of a group under a joint window: what it hears, and what it can use.

use anabranch_units::{Duration, Time};

use crate::flow_use::FlowUse;
use crate::vps::Weight;

/// A member that was not heard of for so many of its round-trip times, and for so long, uses nothing.
const SILENT_ROUND_TRIPS: u64 = 4;
const SILENT_AT_LEAST: Duration = Duration::from_millis(250);
/// Before the first measurement.
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(100);

/// What a member hears. Packets are full segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemberReport {
    /// When.
    pub now: Time,
    /// Packets newly acknowledged, out of order or not.
    pub delivered: u32,
    /// Packets newly found lost.
    pub lost: u32,
    /// The retransmission timer ran out: nothing of its is in flight any more.
    pub has_timed_out: bool,
    /// Smoothed round-trip time; zero before the first measurement.
    pub srtt: Duration,
    /// Packets that it had in flight lately, at the most.
    pub used: u32,
    /// Whether its window was what held it back.
    pub is_limited: bool,
}

/// A connection, and the virtual flow that it brought. Windows are in packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub weight: Weight,
    pub seen: Time,
    pub srtt: Duration,
    pub used: f64,
    pub is_limited: bool,
    /// What it may have at the most on its way to its part, up to twice that.
    pub cap: f64,
    pub cwnd: f64,
    pub ssthresh: f64,
    /// The flow's recovery ends when the group has delivered this much.
    pub recovered_at: f64,
    /// When it was halved last.
    pub reduced: Time,
    pub usage: FlowUse,
    /// How much a lost packet is its own: who has most loses it.
    pub turn: f64,
}

impl Member {
    pub(super) fn is_silent(&self, now: Time) -> bool {
        let round_trips = Duration::from_nanos(self.srtt.as_nanos().saturating_mul(SILENT_ROUND_TRIPS));
        now.since(self.seen) > round_trips.max(SILENT_AT_LEAST)
    }

    /// What of the flow's window counts: what is used of it lately, and whatever the member needs itself.
    pub(super) fn usable(&self, now: Time) -> f64 {
        let needs = if self.is_silent(now) { 0.0 } else { self.claim() };
        (self.cwnd * self.usage.counts(now)).max(needs).min(self.cwnd)
    }

    pub(super) fn counts_in_full(&self, now: Time) -> bool {
        self.usage.counts(now) >= 1.0
    }

    /// What its part is as: a packet for each of these.
    pub(super) fn measure(&self) -> f64 {
        let srtt = if self.srtt.is_zero() { FIRST_ROUND_TRIP } else { self.srtt };
        self.weight.get() * srtt.as_secs_f64()
    }

    /// What it can use at the most.
    pub(super) fn claim(&self) -> f64 {
        if self.is_limited { self.cap } else { self.cap.min(self.used) }
    }
}
