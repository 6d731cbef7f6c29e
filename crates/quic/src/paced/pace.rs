//! When the packets of a connection leave.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anabranch_congestion::control::Pacing;
use anabranch_units::{Bytes, Duration, Time};
use quinn::Connection;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::{Epoch, InFlight};

/// What a late wake-up lost is made up for, as long as it is no more than this: the timers of the runtime are
/// a millisecond coarse, and quinn's own pacer has the same.
const LATE: Duration = Duration::from_millis(2);

/// Departure times of a connection (draft-ietf-ccwg-bbr-06, section 5.6.2), shared by its controller and by
/// whoever wakes it when its next packet may leave.
#[derive(Clone, Debug)]
pub struct Pace {
    epoch: Epoch,
    state: Arc<Mutex<State>>,
    /// The connection waits for its next departure.
    waits: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    /// Somebody wakes the connection. Nothing is held back before, as nobody would let it go on.
    is_woken: bool,
    /// `C.next_send_time`
    next_departure: Time,
    /// The latest time that somebody told. quinn asks for a window without saying when.
    now: Time,
    is_waiting: bool,
}

impl Pace {
    /// For a connection that begins now.
    pub fn new(now: Instant) -> Self {
        let state = State { is_woken: false, next_departure: Time::ZERO, now: Time::ZERO, is_waiting: false };
        Self { epoch: Epoch(now), state: Arc::new(Mutex::new(state)), waits: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn time(&self, at: Instant) -> Time {
        self.epoch.time(at)
    }

    /// It is this late at least.
    pub(super) fn told(&self, now: Time) {
        let mut state = self.state();
        state.now = state.now.max(now);
    }

    /// A packet leaves.
    pub(super) fn sent(&self, now: Time, size: Bytes, pacing: &Pacing) {
        let late = LATE.max(pacing.rate.time_for(pacing.quantum));
        let mut state = self.state();
        state.next_departure = state.next_departure.max(now - late) + pacing.rate.time_for(size);
    }

    /// Whether a packet may leave now. If not, the connection waits.
    pub(super) fn may_depart(&self) -> bool {
        let mut state = self.state();
        let was_waiting = state.is_waiting;
        state.is_waiting = state.is_woken && state.now < state.next_departure;
        if state.is_waiting && !was_waiting {
            self.waits.notify_one();
        }
        !state.is_waiting
    }

    /// From now on the connection is woken: after its handshake, by who holds to [`Self::departure`].
    pub fn begin(&self) {
        self.state().is_woken = true;
    }

    /// When the connection is to be woken, where it waits for that.
    pub fn departure(&self) -> Option<Instant> {
        let state = self.state();
        state.is_waiting.then(|| self.epoch.instant(state.next_departure))
    }

    /// The connection is about to be woken.
    pub fn depart(&self, now: Instant) {
        let now = self.time(now);
        let mut state = self.state();
        state.now = state.now.max(now);
        state.is_waiting = false;
    }

    /// Wakes a connection whose handshake is done whenever its next packet may leave, for as long as what is
    /// answered lives.
    pub fn wake(self, connection: Connection, in_flight: InFlight) -> Waking {
        self.begin();
        let task = tokio::spawn(async move {
            loop {
                let Some(departure) = self.departure() else {
                    self.waits.notified().await;
                    continue;
                };
                tokio::time::sleep_until(departure.into()).await;
                self.depart(Instant::now());
                // The same value again: what it does is to wake the connection's driver, which quinn offers
                // no other way for.
                connection.set_send_window(in_flight.send_window());
            }
        });
        Waking(task.abort_handle())
    }
}

/// A connection is woken while this lives.
#[derive(Debug)]
pub struct Waking(AbortHandle);

impl Drop for Waking {
    fn drop(&mut self) {
        self.0.abort();
    }
}
