//! A flow that runs a standard controller and sends nothing itself (section 3.2).

use anabranch_units::{Bytes, Time};

use super::heard::Heard;
use super::names::PoolId;
use crate::control::{Ack, Controller, Loss, Timeout};

/// What is usual is a mean over so many acknowledgements.
const USUAL_OVER: f64 = 10.0;

/// Its state. Sequences count packets.
#[derive(Debug)]
pub(super) struct VirtualFlow {
    pub pool: PoolId,
    controller: Box<dyn Controller>,
    /// The controller's window.
    cwnd: u64,
    segment: u64,
    flight: u64,
    next: u64,
    /// Packets before this one were sent before the last reduction: their losses belong to it, however late
    /// they are seen, and their acknowledgements do not make the window grow. Members hear at different
    /// times, so that news of old packets come after news of newer ones.
    recovery: u64,
    /// A time-out has passed and nothing was acknowledged since.
    has_timed_out: bool,
    /// Acknowledged, and not told yet.
    untold: u64,
    /// How many bytes the acknowledgements have that it hears of, in the mean.
    usual: f64,
    /// What its window left when that was reckoned last.
    free: u64,
    /// All its window was in use.
    pub is_limited: bool,
    /// Its pool has it in the list of those.
    pub is_listed: bool,
    /// The part of its window that counts by what its member has used of it, from 0 to 1, and what that needs
    /// now.
    counts: f64,
    needs: u64,
}

impl VirtualFlow {
    pub(super) fn new(pool: PoolId, controller: Box<dyn Controller>, segment: u64) -> Self {
        let mut flow = Self {
            pool,
            cwnd: controller.cwnd().get(),
            controller,
            segment,
            flight: 0,
            next: 0,
            recovery: 0,
            has_timed_out: false,
            untold: 0,
            usual: 0.0,
            free: 0,
            is_limited: false,
            is_listed: false,
            counts: 1.0,
            needs: 0,
        };
        flow.reckon();
        flow
    }

    pub(super) fn cwnd(&self) -> Bytes {
        Bytes::new(self.cwnd)
    }

    /// Whether it has heard that its member needs so much, and would do nothing about it.
    pub(super) fn knows_needs(&self, bytes: u64) -> bool {
        self.needs == bytes && (self.counts_in_full() || !self.is_limited)
    }

    /// What of its window may be in use: what counts of it, and whatever its own member needs.
    pub(super) fn usable(&self) -> u64 {
        // A window without bound would overflow the sum of several.
        let cwnd = self.cwnd.min(1 << 50);
        if self.counts_in_full() {
            return cwnd;
        }
        ((cwnd as f64 * self.counts) as u64).max(self.needs).min(cwnd)
    }

    /// What its window leaves, in whole segments; as a TCP, it sends no part of one.
    pub(super) fn free(&self) -> u64 {
        self.free
    }

    /// Reckons [what is free](Self::free), after anything else was called that changes it. It is asked for
    /// more often, and a division takes long.
    pub(super) fn reckon(&mut self) {
        self.free = self.usable().saturating_sub(self.flight) / self.segment * self.segment;
    }

    /// Whether others may have all of its window.
    pub(super) fn counts_in_full(&self) -> bool {
        self.counts >= 1.0
    }

    /// Its member needs so much of it now.
    pub(super) fn set_needs(&mut self, bytes: u64) {
        self.needs = bytes;
        // A window that is not used does not grow (RFC 7661, section 4.3).
        self.is_limited &= self.usable() + self.segment > self.cwnd().get();
    }

    /// So much of its window counts. One of which next to nothing does begins again with the initial window
    /// (RFC 5681, section 4.1).
    pub(super) fn set_counts(&mut self, counts: f64, initial_window: u64, now: Time) {
        self.counts = counts;
        if self.usable() < initial_window.min(self.cwnd().get()) {
            self.controller.on_idle(now);
            self.cwnd = self.controller.cwnd().get();
        }
        self.set_needs(self.needs);
    }

    /// A packet counts as its own. Answers its place.
    pub(super) fn send(&mut self, bytes: u64) -> u64 {
        self.flight += bytes;
        self.is_limited |= self.flight + self.segment > self.cwnd().get();
        self.next += 1;
        self.next - 1
    }

    /// A packet is none of its own any more, neither acknowledged nor lost.
    pub(super) fn release(&mut self, bytes: u64) {
        self.flight = self.flight.saturating_sub(bytes);
    }

    /// A packet was acknowledged, by an acknowledgement of `whole` bytes in all.
    pub(super) fn acknowledge(&mut self, place: u64, bytes: u64, whole: u64, heard: &Heard) {
        let flight = self.flight;
        self.release(bytes);
        self.has_timed_out = false;
        if place < self.recovery {
            return;
        }
        self.untold += bytes;
        // One acknowledgement of several segments, which stood for several flows, is one in all and not one
        // for each. Nor is one a whole one that has much less than those have that it hears of: who sends
        // little is acknowledged packet by packet where others are ten at a time.
        self.usual += (whole as f64 - self.usual) / USUAL_OVER;
        let usual = (self.usual / 2.0).min(self.cwnd as f64 / 4.0) as u64;
        if self.untold < whole.max(usual) {
            return;
        }
        self.controller.on_ack(&Ack {
            now: heard.now,
            acked: Bytes::new(std::mem::take(&mut self.untold)),
            flight: Bytes::new(flight),
            rtt: heard.rtt,
            srtt: heard.srtt,
            is_cwnd_limited: self.is_limited,
        });
        self.cwnd = self.controller.cwnd().get();
    }

    pub(super) fn lose(&mut self, place: u64, bytes: u64, now: Time) {
        let flight = self.flight_at_loss();
        self.release(bytes);
        if place >= self.recovery {
            self.recovery = self.next;
            self.untold = 0;
            self.controller.on_loss(&Loss { now, flight });
            self.cwnd = self.controller.cwnd().get();
        }
    }

    /// The timer of a member ran out that had `bytes` of this flow's, the last of them at `place`.
    pub(super) fn time_out(&mut self, place: u64, bytes: u64, now: Time) {
        if self.flight > bytes {
            // Others of its packets are on their way; it would have heard of the loss by them.
            self.lose(place, bytes, now);
            return;
        }
        let flight = self.flight_at_loss();
        self.release(bytes);
        let was_reduced = place < self.recovery;
        self.recovery = self.next;
        self.untold = 0;
        let is_repeated = std::mem::replace(&mut self.has_timed_out, true) || was_reduced;
        self.controller.on_timeout(&Timeout { now, flight, is_repeated });
        self.cwnd = self.controller.cwnd().get();
    }

    /// What was in flight. Credit that was freed and not sent again yet counts as well, where the window was
    /// in use.
    fn flight_at_loss(&self) -> Bytes {
        if self.is_limited { self.cwnd() } else { Bytes::new(self.flight) }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_units::Duration;

    use super::*;
    use crate::algorithm::Algorithm;
    use crate::control::Start;

    const SEGMENT: u64 = 1000;

    /// By how many segments a window of forty grows by so many acknowledgements, each of the segments that are next
    /// in `sizes`, in turn.
    fn growth(acknowledgements: usize, sizes: &[u64]) -> f64 {
        let start = Start {
            segment: Bytes::new(SEGMENT),
            initial_window: Bytes::new(40 * SEGMENT),
            initial_ssthresh: Some(Bytes::new(SEGMENT)),
            seed: 0,
        };
        let mut flow = VirtualFlow::new(PoolId(0), Algorithm::Reno.controller(&start), SEGMENT);
        let rtt = Duration::from_millis(50);
        let heard = Heard { now: Time::ZERO + rtt, rtt: Some(rtt), srtt: rtt };
        flow.is_limited = true;
        for segments in sizes.iter().cycle().take(acknowledgements) {
            for _ in 0..*segments {
                let place = flow.send(SEGMENT);
                flow.acknowledge(place, SEGMENT, segments * SEGMENT, &heard);
            }
        }
        (flow.cwnd as f64 - 40.0 * SEGMENT as f64) / SEGMENT as f64
    }

    #[test]
    fn it_grows_by_an_acknowledgement_whatever_that_is_of() {
        let one = growth(40, &[1]);
        assert!((0.9..1.1).contains(&one), "{one}");
        assert!((growth(40, &[2]) - one).abs() < 0.05 && (growth(40, &[8]) - one).abs() < 0.05);
    }

    #[test]
    fn many_small_ones_beside_large_ones_count_for_few() {
        // As many of one segment as have ten, and few of one among many of two.
        let (of_ten, mixed) = (growth(40, &[10]), growth(80, &[10, 1]));
        assert!(mixed < 1.4 * of_ten, "{mixed} {of_ten}");
        let (of_two, mixed) = (growth(40, &[2]), growth(40, &[2, 2, 2, 1]));
        assert!((mixed - of_two).abs() < 0.05, "{mixed} {of_two}");
    }
}
