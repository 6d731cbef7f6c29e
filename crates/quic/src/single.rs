//! One connection, one controller.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anabranch_congestion::algorithm::Algorithm;
use anabranch_congestion::control::{Ack, Controller, Loss, Timeout};
use anabranch_units::{Bytes, Duration};
use quinn::congestion::{Controller as QuinnController, ControllerFactory};
use quinn_proto::RttEstimator;

use super::{Epoch, INITIAL_WINDOW, InFlight, LEAST_WINDOW, SEGMENT, closed, is_open, start};

/// Nothing was sent for so many smoothed round-trip times: the flow was idle. A retransmission time-out is
/// about as much.
const IDLE_ROUND_TRIPS: u64 = 4;
/// The least time for that (RFC 6298, rule 2.4).
const LEAST_IDLE: Duration = Duration::from_secs(1);

/// What is looked back for the most that was in flight.
const LATELY_ROUND_TRIPS: u64 = 3;
const LEAST_LATELY: Duration = Duration::from_secs(1);
const AN_INSTANT: Duration = Duration::from_nanos(2);

/// Runs one of [`anabranch_congestion`]'s window controllers for a connection of quinn.
#[derive(Debug)]
pub struct Single {
    algorithm: Algorithm,
    /// Never locked: quinn shares its controllers between threads, but tells them something through `&mut`
    /// only.
    controller: Mutex<Box<dyn Controller>>,
    window: u64,
    epoch: Epoch,
    in_flight: u64,
    lately: Lately,
    told: InFlight,
    /// When the last loss event was noticed: losses of what was sent before belong to it (RFC 9002, section
    /// 7.3.2). It stays: what is sent from now on is later, also after a rest.
    recovery: Option<Instant>,
    has_timed_out: bool,
    last_sent: Option<Instant>,
    srtt: Duration,
}

impl Single {
    fn new(algorithm: Algorithm, told: InFlight, now: Instant) -> Self {
        let mut single = Self {
            algorithm,
            controller: Mutex::new(algorithm.controller(&start())),
            window: 0,
            epoch: Epoch(now),
            in_flight: 0,
            lately: Lately::default(),
            told,
            recovery: None,
            has_timed_out: false,
            last_sent: None,
            srtt: Duration::ZERO,
        };
        single.tell(|_| {});
        single
    }

    /// Tells the controller something, and notes its window.
    fn tell(&mut self, what: impl FnOnce(&mut dyn Controller)) {
        let controller = self.controller.get_mut().unwrap_or_else(PoisonError::into_inner);
        what(controller.as_mut());
        // quinn sends as long as the window is larger than what is in flight then.
        self.window = controller.cwnd().max(LEAST_WINDOW).get().saturating_add(1);
    }

    fn set_in_flight(&mut self, bytes: u64) {
        self.in_flight = bytes;
        self.told.set(bytes);
    }

    fn note_flight(&mut self, now: Instant) {
        let span = match self.algorithm {
            // It counts the flight as acknowledged soon, so it is told no more: what was in flight before the
            // acknowledgement that tells of a loss (RFC 5681, section 2, FlightSize).
            Algorithm::Tfwc(_) => AN_INSTANT,
            _ => (self.srtt * LATELY_ROUND_TRIPS).max(LEAST_LATELY),
        };
        self.lately.note(now, self.in_flight, span);
    }
}

impl QuinnController for Single {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        let bytes = self.told.acknowledged_of(bytes);
        if bytes == 0 {
            return;
        }
        let idle_after = (self.srtt * IDLE_ROUND_TRIPS).max(LEAST_IDLE);
        let rested = self.last_sent.map(|last| Duration::from(now.saturating_duration_since(last)));
        if self.in_flight == 0 && rested.is_some_and(|rested| rested >= idle_after) {
            let at = self.epoch.time(now);
            self.tell(|controller| controller.on_idle(at));
        }
        self.last_sent = Some(now);
        self.set_in_flight(self.in_flight.saturating_add(bytes));
        self.note_flight(now);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        let flight = Bytes::new(self.in_flight);
        self.note_flight(now);
        self.set_in_flight(self.in_flight.saturating_sub(bytes));
        self.srtt = rtt.get().into();
        self.has_timed_out = false;
        if self.recovery.is_some_and(|recovery| sent <= recovery) {
            return;
        }
        let ack = Ack {
            now: self.epoch.time(now),
            acked: Bytes::new(bytes),
            flight,
            rtt: Some(now.saturating_duration_since(sent).into()),
            srtt: self.srtt,
            is_cwnd_limited: !app_limited,
        };
        self.tell(|controller| controller.on_ack(&ack));
    }

    fn on_end_acks(&mut self, _: Instant, in_flight: u64, _: bool, _: Option<u64>) {
        // Probes of the path's MTU were not told as sent, nor what of the handshake is given up.
        self.set_in_flight(in_flight);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.note_flight(now);
        // What was in flight before a reduction counts once.
        let flight = self.lately.most().min(self.window).max(self.in_flight);
        let (at, flight) = (self.epoch.time(now), Bytes::new(flight));
        self.set_in_flight(self.in_flight.saturating_sub(lost_bytes));
        let was_reduced = self.recovery.is_some_and(|recovery| sent <= recovery);
        if is_persistent_congestion {
            // The window falls to the least all the same (RFC 9002, section 7.6.2); the threshold falls once
            // for what was sent before.
            let is_repeated = std::mem::replace(&mut self.has_timed_out, true) || was_reduced;
            self.recovery = Some(now);
            self.tell(|controller| controller.on_timeout(&Timeout { now: at, flight, is_repeated }));
        } else if !was_reduced {
            self.recovery = Some(now);
            self.tell(|controller| controller.on_loss(&Loss { now: at, flight }));
        }
    }

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        let packet = SEGMENT.get();
        if is_open(self.window, self.in_flight, packet) { self.window } else { closed(packet) }
    }

    /// For another path, which is begun anew (RFC 9000, section 9.4).
    fn clone_box(&self) -> Box<dyn QuinnController> {
        Box::new(Self::new(self.algorithm, self.told.clone(), Instant::now()))
    }

    fn initial_window(&self) -> u64 {
        INITIAL_WINDOW.get()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// The most that was in flight of late.
///
/// A loss is noticed late where little is sent after it, as at the end of an answer: by then hardly anything is
/// in flight, which says nothing of what the path bore. So the most of the last three round trips, or of a second,
/// counts (RFC 7661, section 4.2: pipeACK and its sampling period), as far as the window allows it now.
#[derive(Debug, Default)]
struct Lately {
    /// When the younger half of that time began.
    since: Option<Instant>,
    before: u64,
    now: u64,
}

impl Lately {
    fn note(&mut self, now: Instant, in_flight: u64, span: Duration) {
        let half = span / 2;
        let passed = self.since.map(|since| Duration::from(now.saturating_duration_since(since)));
        if passed.is_none_or(|passed| passed >= half) {
            self.before = if passed.is_some_and(|passed| passed < half * 2) { self.now } else { 0 };
            (self.since, self.now) = (Some(now), 0);
        }
        self.now = self.now.max(in_flight);
    }

    fn most(&self) -> u64 {
        self.now.max(self.before)
    }
}

/// Makes the controller of a connection for itself, and tells what that has in flight.
#[derive(Clone, Debug)]
pub struct SingleFactory {
    /// Which of our controllers.
    pub algorithm: Algorithm,
    /// Where it tells what is in flight.
    pub in_flight: InFlight,
}

impl ControllerFactory for SingleFactory {
    fn build(self: Arc<Self>, now: Instant, _: u16) -> Box<dyn QuinnController> {
        Box::new(Single::new(self.algorithm, self.in_flight.clone(), now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_opens_for_two_packets() {
        let now = Instant::now();
        let mut single = Single::new(Algorithm::Reno, InFlight::default(), now);
        let segment = SEGMENT.get();
        single.on_sent(now, 8 * segment, 7);
        assert_eq!(single.window(), INITIAL_WINDOW.get() + 1);
        single.on_sent(now, segment, 8);
        assert_eq!(single.window(), segment + 1, "one packet more waits for the next acknowledgement");
        single.on_end_acks(now, 8 * segment, false, None);
        assert_eq!(single.window(), INITIAL_WINDOW.get() + 1);
    }

    #[test]
    fn a_probe_that_is_lost_untold_does_not_close_a_window_for_ever() {
        let now = Instant::now();
        let mut single = Single::new(Algorithm::Reno, InFlight::default(), now);
        let segment = SEGMENT.get();
        single.on_sent(now, segment, 0);
        single.on_congestion_event(now, now, true, segment);
        // The probe was never told as sent, and that it is lost is told by nothing at all.
        single.on_end_acks(now, segment, false, None);
        assert!(single.window() > segment, "quinn sends a packet where it has none in flight");
    }

    fn reno(single: &Single) -> (Bytes, Bytes) {
        let controller = single.controller.lock().unwrap();
        (controller.cwnd(), controller.ssthresh())
    }

    #[test]
    fn what_was_sent_before_a_loss_event_reduces_once_also_by_persistent_congestion() {
        let sent = Instant::now();
        let after = |millis| sent + std::time::Duration::from_millis(millis);
        let mut single = Single::new(Algorithm::Reno, InFlight::default(), sent);
        let segment = SEGMENT.get();
        (0..10).for_each(|number| single.on_sent(sent, segment, number));
        single.on_congestion_event(after(100), sent, false, segment);
        let (_, reduced) = reno(&single);
        single.on_congestion_event(after(150), sent, false, segment);
        assert_eq!(reno(&single).1, reduced);
        single.on_congestion_event(after(900), sent, true, 8 * segment);
        assert_eq!(reno(&single), (SEGMENT, reduced));
        // A rest later the flow answers to losses as ever.
        let later = after(60_000);
        single.on_sent(later, segment, 10);
        single.on_congestion_event(later + std::time::Duration::from_millis(100), later, false, segment);
        assert!(reno(&single).1 < reduced, "{:?} {reduced}", reno(&single));
    }

    #[test]
    fn a_loss_at_the_end_of_an_answer_halves_what_was_in_flight() {
        let sent = Instant::now();
        let after = |millis| sent + std::time::Duration::from_millis(millis);
        let segment = SEGMENT.get();
        let mut single = Single::new(Algorithm::Reno, InFlight::default(), sent);
        (0..10).for_each(|number| single.on_sent(sent, segment, number));
        single.on_end_acks(after(100), segment, true, None);
        single.on_congestion_event(after(300), sent, false, segment);
        assert_eq!(reno(&single), (SEGMENT * 5, SEGMENT * 5));
        // It halves what is left once, however much was in flight before.
        single.on_sent(after(310), segment, 10);
        single.on_congestion_event(after(500), after(310), false, segment);
        assert_eq!(reno(&single).1.get(), segment * 5 / 2);
        // What was long ago says nothing any more.
        single.on_sent(after(5_000), segment, 11);
        single.on_congestion_event(after(5_300), after(5_000), false, segment);
        assert_eq!(reno(&single).1, SEGMENT * 2);
    }

    #[test]
    fn the_least_window_is_open_with_nothing_in_flight() {
        let now = Instant::now();
        let mut single = Single::new(Algorithm::Reno, InFlight::default(), now);
        single.on_sent(now, SEGMENT.get(), 0);
        single.on_congestion_event(now, now, true, SEGMENT.get());
        assert!(single.window() > LEAST_WINDOW.get());
    }
}
