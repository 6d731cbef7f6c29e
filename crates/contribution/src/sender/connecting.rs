//! The connections of a sender: how each is made, kept up, and listened to.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anabranch_live::{ConnectionId, UplinkId};
use anabranch_protocol::live::hello::Message;
use quinn::{Connection, ConnectionError, SendStream};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::super::code;
use super::super::control::{ControlError, read, write};
use super::ahead::Ahead;
use super::events::SendError;
use super::handshake::{ATTEMPT, Event, Shared, failure, path};

/// The wait between two attempts to connect: it doubles from the first to the last.
const LEAST_WAIT: Duration = Duration::from_millis(250);
const MOST_WAIT: Duration = Duration::from_secs(5);
/// A receiver that has started anew is connected to at once where the connection before it had lasted so long: one that
/// forgets every connection is not asked without a pause.
const STEADY: Duration = Duration::from_secs(5);
/// An interface that is not there is looked for so often.
const LOCAL_WAIT: Duration = Duration::from_secs(1);

/// A connection that was lost.
struct Lost {
    error: ConnectionError,
    /// When the receiver had let it in.
    since: Instant,
}

impl Lost {
    /// The receiver tells that it knows nothing of the connection, so that it was started anew.
    fn is_reset(&self) -> bool {
        self.error == ConnectionError::Reset
    }

    /// What the receiver had is gone.
    fn is_forgotten(&self) -> bool {
        let has_ended = matches!(&self.error, ConnectionError::ApplicationClosed(close) if close.error_code == code::DONE);
        self.is_reset() || has_ended
    }
}

/// Keeps one connection up, until the driver is gone.
/// `silent`: the time from one packet to the next, since nothing is heard on it.
pub(super) async fn connect_again(
    shared: Arc<Shared>,
    link: UplinkId,
    slot: Arc<AtomicU32>,
    mut silent: watch::Receiver<Option<Duration>>,
) {
    let mut wait = LEAST_WAIT;
    // What the way to a receiver that has just answered carries: what was cut for it can be sent again.
    let mut carries = None;
    let mut ahead = Ahead::default();
    loop {
        let id = ConnectionId(shared.next_connection.fetch_add(1, Ordering::Relaxed));
        slot.store(id.0, Ordering::Relaxed);
        let outcome = match timeout(ATTEMPT, connect(&shared, link, carries.take(), &mut ahead)).await {
            Ok(Ok((connection, control, answers))) => {
                let up = Event::Up { id, link, connection: connection.clone(), control };
                if shared.events.send(up).await.is_err() {
                    return;
                }
                let outcome = {
                    let mut heard = pin!(listen(&shared, id, &connection, answers));
                    loop {
                        tokio::select! {
                            outcome = &mut heard => break outcome,
                            Ok(()) = silent.changed() => ahead.set_silent(*silent.borrow_and_update()),
                            () = sleep_until(ahead.next()) => ahead.ask(&shared, link, &connection),
                        }
                    }
                };
                let lost = outcome.as_ref().ok();
                carries = lost.filter(|lost| lost.is_forgotten()).map(|_| path(&connection));
                let why = lost.map(|lost| reason(&lost.error));
                let is_forgotten = lost.is_some_and(Lost::is_forgotten);
                let (is_known, known) = oneshot::channel();
                let down = Event::Down { id, why, is_forgotten, is_known };
                // The next connection begins with what is to be sent from then on.
                if shared.events.send(down).await.is_err() || known.await.is_err() {
                    return;
                }
                outcome
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(SendError::NoReceiver(shared.settings.to)),
        };
        match outcome {
            Ok(lost) => {
                wait = LEAST_WAIT;
                if lost.is_reset() && lost.since.elapsed() >= STEADY {
                    continue;
                }
            }
            Err(error) => {
                let is_local = matches!(&error, SendError::Interface(_) | SendError::Socket(_));
                if shared.events.send(Event::Failed(link, error)).await.is_err() {
                    return;
                }
                if is_local {
                    sleep(LOCAL_WAIT).await;
                    continue;
                }
            }
        }
        sleep(wait).await;
        wait = (wait * 2).min(MOST_WAIT);
    }
}

/// Why a connection was lost.
fn reason(error: &ConnectionError) -> String {
    match error {
        ConnectionError::ApplicationClosed(close) => String::from_utf8_lossy(&close.reason).into_owned(),
        ConnectionError::TimedOut => "nothing has come from there for long".into(),
        other => other.to_string(),
    }
}

/// Makes a connection, unless it is there `ahead`, and says who we are. The way is known to carry so long datagrams.
async fn connect(
    shared: &Arc<Shared>,
    link: UplinkId,
    carries: Option<u16>,
    ahead: &mut Ahead,
) -> Result<(Connection, SendStream, quinn::RecvStream), SendError> {
    let settings = &shared.settings;
    let failure = |error| failure(error, shared);
    let connection = ahead.connection(shared, link, carries).await?;
    let (mut control, answers) = connection.open_bi().await.map_err(failure)?;
    let hello = Message::Hello {
        session: shared.session,
        next: shared.first_media.load(Ordering::Relaxed),
        latency: settings.live.latency,
        is_published: shared.settings.live.is_published,
        token: settings.token.clone(),
    };
    match write(&mut control, &hello).await {
        Ok(()) => Ok((connection, control, answers)),
        Err(_) => Err(failure(connection.closed().await)),
    }
}

/// Passes on what comes until the connection is closed. Fails when the receiver does not let it in.
async fn listen(
    shared: &Shared,
    id: ConnectionId,
    connection: &Connection,
    mut answers: quinn::RecvStream,
) -> Result<Lost, SendError> {
    let mut datagrams = pin!(async {
        loop {
            match connection.read_datagram().await {
                Ok(datagram) => {
                    if shared.events.send(Event::Datagram(id, datagram)).await.is_err() {
                        return ConnectionError::LocallyClosed;
                    }
                }
                Err(error) => return error,
            }
        }
    });
    let answer = tokio::select! {
        answer = timeout(ATTEMPT, read(&mut answers)) => answer.ok(),
        error = &mut datagrams => return Err(failure(error, shared)),
    };
    match answer {
        Some(Ok(Message::Welcome { latency })) => {
            let _ = shared.events.send(Event::Welcome(id, latency)).await;
        }
        None => return Err(SendError::NoReceiver(shared.settings.to)),
        // The receiver says why when it closes the connection.
        Some(Err(ControlError::Closed)) => return Err(failure(connection.closed().await, shared)),
        Some(Ok(_) | Err(ControlError::Protocol)) => {
            connection.close(code::PROTOCOL, b"not the answer to a hello");
            return Err(failure(connection.closed().await, shared));
        }
    }
    let since = Instant::now();
    let done = async {
        if let Ok(Message::Done) = read(&mut answers).await {
            let _ = shared.events.send(Event::Done).await;
        }
        std::future::pending::<()>().await;
    };
    let error = tokio::select! {
        error = datagrams => error,
        () = done => ConnectionError::LocallyClosed,
    };
    Ok(Lost { error, since })
}
