//! A handshake ahead of its time. A connection that is silent may have a receiver that was killed and started again. That
//! shows as soon as it answers anything, and the next connection would take a round trip more; handshakes that are asked
//! for meanwhile are done sooner. Where the connection is heard again none is needed.

use std::sync::Arc;
use std::time::Duration;

use anabranch_live::UplinkId;
use quinn::Connection;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::events::SendError;
use super::handshake::{ATTEMPT, Made, Shared, path, shake_hands};

/// One is asked for so often as long as the silence is young, but no more than behind each second packet at the rate that
/// was known, and then more seldom.
const OFTEN: Duration = Duration::from_millis(100);
const YOUNG: u32 = 20;
const SELDOM: Duration = Duration::from_secs(1);
/// What has no answer after a round trip and a half, and so much, is not waited for.
const SLACK: Duration = Duration::from_millis(50);
/// Nobody waits for something that soon.
const NEVER: Duration = Duration::from_secs(3600);

/// Handshakes with whoever answers in place of a receiver that is silent.
#[derive(Default)]
pub(super) struct Ahead {
    asked: JoinSet<Result<Made, SendError>>,
    done: Option<Made>,
    /// How many were asked for since the connection is silent, and when the next one is due.
    due: Option<(u32, Instant)>,
    /// From one to the next as long as the silence is young.
    interval: Duration,
}

impl Ahead {
    /// Since nothing is heard on the connection: the time from one packet to the next. When something is heard an answer that
    /// is on its way comes, and the receiver is told that nobody needs it.
    pub(super) fn set_silent(&mut self, interval: Option<Duration>) {
        self.leave();
        self.interval = interval.unwrap_or_default().saturating_mul(2).max(OFTEN);
        self.due = interval.map(|_| (0, Instant::now() + self.interval));
    }

    /// When the next one is to be asked for.
    pub(super) fn next(&self) -> Instant {
        self.due.map_or_else(|| Instant::now() + NEVER, |(_, at)| at)
    }

    /// Asks for one more, by the path of the connection that is silent.
    pub(super) fn ask(&mut self, shared: &Arc<Shared>, link: UplinkId, silent: &Connection) {
        let count = self.due.map_or(0, |(count, _)| count + 1);
        self.due = Some((
            count,
            Instant::now() + if count < YOUNG { self.interval } else { self.interval.max(SELDOM) },
        ));
        while let Some(made) = self.asked.try_join_next() {
            self.done = made.ok().and_then(Result::ok).or(self.done.take());
        }
        if !self.done.as_ref().is_some_and(|done| done.is_open(shared, link)) {
            self.begin(shared, link, Some(path(silent)), silent.rtt() * 3 / 2 + SLACK);
        }
    }

    fn begin(&mut self, shared: &Arc<Shared>, link: UplinkId, carries: Option<u16>, patience: Duration) {
        let shared = shared.clone();
        self.asked.spawn(async move {
            let made = timeout(patience, shake_hands(&shared, link, carries)).await;
            made.unwrap_or(Err(SendError::NoReceiver(shared.settings.to)))
        });
    }

    /// A connection: one that is there, or the first that comes of those that were asked for and one more.
    ///
    /// # Errors
    /// None comes: why the last one did not.
    pub(super) async fn connection(
        &mut self,
        shared: &Arc<Shared>,
        link: UplinkId,
        carries: Option<u16>,
    ) -> Result<Connection, SendError> {
        if let Some(connection) = self.done.take().and_then(|done| done.open(shared, link)) {
            self.leave();
            return Ok(connection);
        }
        self.begin(shared, link, carries, ATTEMPT);
        let mut failure = SendError::NoReceiver(shared.settings.to);
        while let Some(made) = self.asked.join_next().await {
            match made {
                Ok(Ok(made)) => {
                    if let Some(connection) = made.open(shared, link) {
                        self.leave();
                        return Ok(connection);
                    }
                    // Its link has another socket since.
                    self.begin(shared, link, carries, ATTEMPT);
                }
                Ok(Err(error)) => failure = error,
                Err(_) => {}
            }
        }
        Err(failure)
    }

    /// None is needed.
    fn leave(&mut self) {
        self.asked.detach_all();
        (self.done, self.due) = (None, None);
    }
}
