//! One connection under a paced controller, which follows a model of the path (`docs/sender-control.md`,
//! BBR).
//!
//! quinn names no packets to a controller, and hands no pacing rate on. So the [`records`] find again what
//! was sent by when it was sent, and [`Pace`] keeps the times at which packets leave: the window is open
//! while one may leave and closed otherwise. That takes a packet at a time, without segmentation offload.
//!
//! quinn tells of losses after the acknowledgement that showed them. The model hears of them before the next
//! one.

mod pace;
mod records;

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anabranch_congestion::algorithm::Algorithm;
use anabranch_congestion::control::{Begin, Controller, Delivery, Loss, Pacing, Start, Timeout};
use anabranch_units::{Bytes, Duration, Time};
use quinn::congestion::{Controller as QuinnController, ControllerFactory, ControllerMetrics};
use quinn_proto::RttEstimator;

use super::{INITIAL_WINDOW, InFlight, closed, start};
pub use pace::{Pace, Waking};
use records::Records;

/// An open window: above 32 bits quinn's own pacer, which knows windows and no rates, holds nothing back.
const OPEN: u64 = 1 << 32;

/// Runs a paced controller of [`anabranch_congestion`] for a connection of quinn.
#[derive(Debug)]
struct Paced {
    factory: PacedFactory,
    /// Never locked: quinn shares its controllers between threads, but tells them something through `&mut`
    /// only.
    controller: Mutex<Box<dyn Controller>>,
    cwnd: Bytes,
    /// `None` only where the controller is not paced.
    pacing: Option<Pacing>,
    records: Records,
    /// What a full packet has on this path.
    packet: Bytes,
    /// Zero before the first measurement.
    srtt: Duration,
    /// Whether the controller knows that sending has begun.
    has_begun: bool,
    /// When the newest packet was sent that has arrived.
    newest: Time,
    /// When the last loss event was noticed that is not recovered from: nothing sent later has arrived (RFC
    /// 9002, section 7.3.2).
    recovery: Option<Time>,
    /// What had been delivered when the window was full last.
    full_at: Option<Bytes>,
}

impl Paced {
    fn new(factory: PacedFactory, packet: u16) -> Self {
        let controller = factory.algorithm.controller(&Start { seed: factory.seed, ..start() });
        let (cwnd, pacing) = (controller.cwnd(), controller.pacing());
        Self {
            factory,
            controller: Mutex::new(controller),
            cwnd,
            pacing,
            records: Records::default(),
            packet: Bytes::new(packet.into()),
            srtt: Duration::ZERO,
            has_begun: false,
            newest: Time::ZERO,
            recovery: None,
            full_at: None,
        }
    }

    fn time(&self, at: Instant) -> Time {
        let time = self.factory.pace.time(at);
        self.factory.pace.told(time);
        time
    }

    /// Tells the controller something, and takes in what it answers.
    fn tell(&mut self, what: impl FnOnce(&mut dyn Controller)) {
        let controller = self.controller.get_mut().unwrap_or_else(PoisonError::into_inner);
        what(controller.as_mut());
        (self.cwnd, self.pacing) = (controller.cwnd(), controller.pacing());
        if self.pacing.is_some_and(|pacing| pacing.is_held_back) {
            self.records.on_app_limited();
        }
    }

    /// Whether the window has room for a packet; for one it always has.
    fn has_room(&self) -> bool {
        let in_flight = self.records.in_flight();
        in_flight.is_zero() || in_flight + self.packet <= self.cwnd
    }

    /// So much of what was sent then has arrived.
    fn acknowledged(&mut self, now: Instant, sent: Instant, bytes: Bytes, srtt: Duration) {
        // quinn takes the first measurement in after it has told of the acknowledgement.
        self.srtt = if self.srtt.is_zero() { now.saturating_duration_since(sent).into() } else { srtt };
        let (now, sent) = (self.time(now), self.time(sent));
        self.records.arrived(now, sent, bytes);
        self.newest = self.newest.max(sent);
    }

    /// A loss event, if what was sent then belongs to no other one.
    fn reduce(&mut self, now: Time, sent: Time) -> bool {
        let is_new = self.recovery.is_none_or(|recovery| sent > recovery);
        if is_new {
            self.recovery = Some(now);
            let flight = self.records.in_flight();
            self.tell(|controller| controller.on_loss(&Loss { now, flight }));
        }
        is_new
    }
}

impl QuinnController for Paced {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        let at = self.time(now);
        let bytes = self.factory.in_flight.acknowledged_of(bytes);
        if bytes == 0 {
            return;
        }
        let begins = if self.has_begun {
            self.records.in_flight().is_zero() && self.records.is_app_limited()
        } else {
            // The handshake is of no flow: it begins where a round trip is known.
            !self.srtt.is_zero()
        };
        if begins {
            self.has_begun = true;
            let begin = Begin { now: at, srtt: self.srtt };
            self.tell(|controller| controller.on_begin(&begin));
        }
        let size = Bytes::new(bytes);
        self.records.sent(at, size);
        if let Some(pacing) = &self.pacing {
            self.factory.pace.sent(at, size, pacing);
        }
        if !self.has_room() {
            self.full_at = Some(self.records.delivered());
        }
        self.factory.in_flight.set(self.records.in_flight().get());
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _: bool, rtt: &RttEstimator) {
        self.acknowledged(now, sent, Bytes::new(bytes), rtt.get().into());
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, is_app_limited: bool, _: Option<u64>) {
        let now = self.time(now);
        self.records.forget_beyond(Bytes::new(in_flight));
        self.factory.in_flight.set(in_flight);
        // The acknowledgement that ends a recovery is of it still: it is what makes it last for a round trip.
        let is_in_recovery = self.recovery.is_some();
        self.recovery = self.recovery.filter(|recovery| self.newest <= *recovery);
        if let Some(sample) = self.records.sample(now).filter(|_| self.has_begun) {
            let is_cwnd_limited = self.full_at.is_some_and(|full_at| full_at >= sample.prior_delivered);
            let delivery = Delivery { now, sample, is_in_recovery, is_cwnd_limited };
            self.tell(|controller| controller.on_delivery(&delivery));
        }
        if is_app_limited && self.has_room() {
            self.records.on_app_limited();
        }
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        let (now, sent) = (self.time(now), self.time(sent));
        let is_new = self.reduce(now, sent);
        let lost = match lost_bytes {
            // A mark is congestion (the draft, section "ECN"): to the model the newest packet that has arrived is
            // as one that is lost.
            0 => self.records.marked(now).into_iter().collect(),
            bytes => self.records.lost(now, sent, Bytes::new(bytes)),
        };
        for packet in lost {
            self.tell(|controller| controller.on_packet_lost(&packet));
        }
        if is_persistent {
            let timeout = Timeout { now, flight: self.records.in_flight(), is_repeated: !is_new };
            self.tell(|controller| controller.on_timeout(&timeout));
        }
        self.factory.in_flight.set(self.records.in_flight().get());
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.packet = Bytes::new(mtu.into());
    }

    /// quinn asks before each packet.
    fn window(&self) -> u64 {
        if !self.has_room() {
            return closed(self.packet.get());
        }
        if self.factory.pace.may_depart() { OPEN } else { 0 }
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.cwnd.get();
        metrics.pacing_rate = self.pacing.map(|pacing| pacing.rate.as_bps());
        metrics
    }

    /// For another path, which is begun anew (RFC 9000, section 9.4).
    fn clone_box(&self) -> Box<dyn QuinnController> {
        Box::new(Self::new(self.factory.clone(), u16::try_from(self.packet.get()).unwrap_or(u16::MAX)))
    }

    fn initial_window(&self) -> u64 {
        INITIAL_WINDOW.get()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Makes the controller of a connection that is paced, which [`Pace::wake`] is to wake. Its transport sends
/// packet by packet (`enable_segmentation_offload(false)`).
#[derive(Clone, Debug)]
pub struct PacedFactory {
    /// Which of our [paced](Algorithm::is_paced) controllers.
    pub algorithm: Algorithm,
    /// What the controller's random numbers follow from: another one for each connection, so that they do
    /// not probe at the same time.
    pub seed: u64,
    /// Where it tells what is in flight.
    pub in_flight: InFlight,
    /// When packets leave.
    pub pace: Pace,
}

impl ControllerFactory for PacedFactory {
    fn build(self: Arc<Self>, _: Instant, mtu: u16) -> Box<dyn QuinnController> {
        Box::new(Paced::new((*self).clone(), mtu))
    }
}

#[cfg(test)]
mod tests;
