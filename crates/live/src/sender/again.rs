//! What a sender sends again.

use anabranch_units::{Duration, Ratio, Time};

use super::super::control::packet_size;
use super::super::history::Chance;
use super::Sender;

/// Copies of a packet are so many mean bursts of losses apart, but no less than a part of the round trip and
/// no more than half of it.
const BURST_MARGIN: f64 = 1.5;
/// The least time from one copy of a packet to the next.
const LEAST_SPACING: Duration = Duration::from_millis(1);
/// What is sent again has no further copies while the queue on the way takes more than this part of the round trip, as
/// much as the control of the rate bears,
const BORNE: Ratio = Ratio::new(1, 5);
/// and the stream wants more than this part of what it is allowed. Who takes less has not filled that queue, or it is a
/// longer route.
const LITTLE: Ratio = Ratio::new(7, 10);
/// What nobody heard of is tried again where no more datagrams than these are under way.
const FEW: usize = 3;
/// The part of the losses that is known too late is the mean over about so many of them.
const LOSSES: f64 = 32.0;

impl Sender {
    /// These media packets were lost.
    pub(super) fn lost(&mut self, media: impl IntoIterator<Item = u64>, now: Time) {
        let mut media = media.into_iter().peekable();
        if !self.settings.retransmit || media.peek().is_none() {
            return;
        }
        let rtt = self.rtt().unwrap_or(Duration::ZERO);
        // One burst should not take two copies.
        let (allowed, wanted) = (self.allowed_rate(), self.demand.rate(self.queue.size(), now));
        let packet = allowed.min(wanted).time_for(packet_size());
        let burst = packet * Ratio::from_f64(self.bursts.losses().burst * BURST_MARGIN);
        let queueing = self.queueing();
        let chance = Chance {
            budget: self.settings.latency - queueing,
            attempt: rtt + rtt / 4,
            spacing: burst.min(rtt / 2).max(rtt / 8).max(LEAST_SPACING),
            has_room: self.queue.len() <= 1
                && (queueing <= self.least_rtt().unwrap_or(rtt) * BORNE || wanted <= allowed * LITTLE),
        };
        for sequence in media {
            if let Some(is_late) = self.history.lost(sequence, &chance, now) {
                self.late += (f64::from(u8::from(is_late)) - self.late) / LOSSES;
            }
        }
    }

    /// These media packets should have been heard of. Where few are under way they are tried again: behind the last
    /// ones before a pause none follows that would show their loss (RFC 8985, section 7). More are not doubled, since
    /// a link that stands still for a moment loses nothing unless its queue overflows.
    pub(super) fn overdue(&mut self, media: Vec<u64>, now: Time) {
        if self.settings.retransmit && self.under_way() <= FEW && !self.has_standing_queue() {
            let budget = self.settings.latency - self.queueing();
            media.into_iter().for_each(|sequence| self.history.overdue(sequence, budget, now));
        }
    }
}
