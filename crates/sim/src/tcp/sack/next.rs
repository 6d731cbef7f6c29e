//! What is sent next.

use anabranch_units::Time;

use super::{Phase, Sack};
use crate::tcp::flow::Flow;
use crate::tcp::recovery::DUPLICATE_THRESHOLD;

impl Sack {
    /// While nothing is missing (RFC 5681).
    pub(super) fn next_open(&mut self, flow: &mut Flow, now: u64) -> Option<(u64, u64)> {
        let flight = flow.next - flow.oldest;
        if flight == 0 && self.idle_restart && now - flow.last_sent > flow.round_trip.timeout() {
            flow.window.on_idle(Time::from_nanos(now));
        }
        let mut window = flow.window.bytes();
        if self.duplicates > 0 && self.limited_transmit {
            window += u64::from(self.duplicates.min(DUPLICATE_THRESHOLD - 1)) * flow.segment;
        }
        if flight + flow.segment > window && flight > 0 {
            self.is_cwnd_limited = true;
            return None;
        }
        self.is_cwnd_limited = false;
        flow.new_segment()
    }

    /// RFC 6675, section 4, NextSeg, and section 5, steps 4.3 and C.
    pub(super) fn next_in_recovery(
        &mut self,
        flow: &Flow,
        point: u64,
        has_rescued: bool,
    ) -> Option<(u64, u64)> {
        let is_first = self.retransmitted_to == flow.oldest && flow.urgent > 0;
        if !is_first && !self.fits(flow) {
            return None;
        }
        if let Some(segment) = self.retransmission_again(flow) {
            return Some(segment);
        }
        let from = self.retransmitted_to.max(flow.oldest);
        if let Some(segment) = self.retransmission(flow, from, self.lost_below) {
            return Some(segment);
        }
        if let Some(segment) = flow.new_segment() {
            return Some(segment);
        }
        let highest = flow.board.highest();
        if let Some(segment) = highest.and_then(|highest| self.retransmission(flow, from, highest)) {
            return Some(segment);
        }
        let start = flow.next.saturating_sub(flow.segment).max(flow.oldest);
        if !has_rescued && highest.is_none_or(|highest| highest <= start) {
            self.phase = Phase::Recovery { point, has_rescued: true };
            return Some((start, flow.next));
        }
        None
    }

    /// RFC 6675, section 5.1.
    pub(super) fn next_after_time_out(&mut self, flow: &Flow, point: u64) -> Option<(u64, u64)> {
        if !self.fits(flow) {
            return None;
        }
        if let Some(segment) = self.retransmission_again(flow) {
            return Some(segment);
        }
        let from = self.retransmitted_to.max(flow.oldest);
        self.retransmission(flow, from, point).or_else(|| flow.new_segment())
    }

    /// The next one that is lost again and has not arrived meanwhile.
    fn retransmission_again(&mut self, flow: &Flow) -> Option<(u64, u64)> {
        while let Some((start, end)) = self.lost_again.pop_front() {
            let gap = flow.board.next_gap(start.max(flow.oldest), end);
            if let Some((start, end)) = gap {
                self.retransmitted += end - start;
                return Some((start, end));
            }
        }
        None
    }

    /// The first segment without a SACK from `from`, if it begins below `limit`.
    fn retransmission(&mut self, flow: &Flow, from: u64, limit: u64) -> Option<(u64, u64)> {
        let (start, gap_end) = flow.board.next_gap(from, flow.next).filter(|(start, _)| *start < limit)?;
        let end = gap_end.min(start + flow.segment);
        self.retransmitted_to = end;
        self.retransmitted += end - start;
        Some((start, end))
    }
}
