//! What a player has taken of a film.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

/// Without a request for so long after the last byte, the player has what it wants. It is more than a player
/// needs to go back to the film's start once it has read an index at the end, and then another request is
/// open.
const QUIET: Duration = Duration::from_secs(2);

/// Tells when a film was read to its end, or cannot be.
#[derive(Debug)]
pub(crate) struct Delivery {
    /// The position behind the last byte of the media. An index that comes after it is read first, not last.
    end: Option<u64>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Responses that are being sent.
    open: usize,
    end_delivered: bool,
    failed: Option<String>,
}

/// One response that is being sent; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Delivering(Arc<Delivery>);

impl Delivery {
    /// Of a film whose media end at `end`; `None`: wherever a response from the start ends.
    pub(super) fn new(end: Option<u64>) -> Arc<Self> {
        Arc::new(Self { end, state: Mutex::default(), changed: Notify::new() })
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
    }

    /// A response begins.
    pub(super) fn begin(self: &Arc<Self>) -> Delivering {
        self.change(|state| state.open += 1);
        Delivering(self.clone())
    }

    /// Whether a response is being sent.
    pub(crate) fn is_open(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).open > 0
    }

    /// Why the film cannot be had any more, if that is so.
    pub(crate) fn failure(&self) -> Option<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).failed.clone()
    }

    /// Waits until the last byte of the media was handed over to some player and then no request is open for
    /// [`QUIET`]. For one caller.
    ///
    /// # Errors
    /// Why the film cannot be had any more.
    pub(crate) async fn finished(&self) -> Result<(), String> {
        loop {
            let quiet = {
                let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(error) = &state.failed {
                    return Err(error.clone());
                }
                state.end_delivered && state.open == 0
            };
            if !quiet {
                self.changed.notified().await;
            } else if timeout(QUIET, self.changed.notified()).await.is_err() {
                return Ok(());
            }
        }
    }
}

impl Delivering {
    /// Bytes up to `position` were handed over; `last`: there are no more.
    pub(super) fn reached(&self, position: u64, length: u64, last: bool) {
        let reached = match self.0.end {
            Some(end) => (position - length..position).contains(&end.saturating_sub(1)),
            None => last,
        };
        if reached {
            self.0.change(|state| state.end_delivered = true);
        }
    }

    /// The film cannot be had any more.
    pub(super) fn failed(&self, error: &dyn std::fmt::Display) {
        self.0.change(|state| state.failed = Some(error.to_string()));
    }
}

impl Drop for Delivering {
    fn drop(&mut self) {
        self.0.change(|state| state.open -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_index_at_the_end_is_not_the_end() {
        let delivery = Delivery::new(Some(90));
        let index = delivery.begin();
        index.reached(100, 10, true);
        drop(index);
        assert!(timeout(QUIET * 10, delivery.finished()).await.is_err(), "only the index was read");
        let media = delivery.begin();
        media.reached(90, 50, false);
        assert!(timeout(QUIET * 10, delivery.finished()).await.is_err(), "the response is not over");
        drop(media);
        let again = delivery.begin();
        assert!(timeout(QUIET * 10, delivery.finished()).await.is_err(), "the player went back");
        drop(again);
        assert_eq!(timeout(QUIET * 2, delivery.finished()).await, Ok(Ok(())));
    }

    #[tokio::test(start_paused = true)]
    async fn a_film_of_unknown_size_ends_where_it_ends() {
        let delivery = Delivery::new(None);
        let response = delivery.begin();
        response.reached(100, 100, false);
        drop(response);
        assert!(timeout(QUIET * 10, delivery.finished()).await.is_err());
        delivery.begin().reached(200, 0, true);
        assert_eq!(timeout(QUIET * 2, delivery.finished()).await, Ok(Ok(())));
    }

    #[tokio::test]
    async fn a_failure_is_told_at_once() {
        let delivery = Delivery::new(Some(100));
        let response = delivery.begin();
        response.failed(&"all replicas are lost");
        assert_eq!(delivery.finished().await, Err("all replicas are lost".into()));
    }
}
