//! The connections of a sender: how each is made, kept up, and listened to.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use anabranch_live::{ConnectionId, UplinkId};
use anabranch_protocol::live::hello::{Message, SESSION_BYTES};
use bytes::Bytes;
use quinn::{ClientConfig, Connection, ConnectionError, SendStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::super::control::{ControlError, read, write};
use super::super::{code, sending_transport};
use super::events::SendError;
use super::settings::SenderSettings;
use super::uplink::Uplink;

/// The wait between two attempts to connect: it doubles from the first to the last.
const LEAST_WAIT: Duration = Duration::from_millis(250);
const MOST_WAIT: Duration = Duration::from_secs(5);
/// A receiver that has started anew is connected to at once where the connection before it had lasted so long: one that
/// forgets every connection is not asked without a pause.
const STEADY: Duration = Duration::from_secs(5);
/// An interface that is not there is looked for so often.
const LOCAL_WAIT: Duration = Duration::from_secs(1);
/// How long an attempt takes at the most.
const ATTEMPT: Duration = Duration::from_secs(5);
/// TLS says why it does not go on in codes of QUIC from here to 255 more (RFC 9001, section 4.8).
const CRYPTO_ERROR: u64 = 0x100;

/// What all connections need.
pub(super) struct Shared {
    pub(super) links: Arc<[Uplink]>,
    /// For each link: what shows a receiver that an address is ours (RFC 9000, section 8.1.3) is not shown by another.
    pub(super) configs: Vec<ClientConfig>,
    pub(super) settings: SenderSettings,
    pub(super) session: [u8; SESSION_BYTES],
    pub(super) next_connection: AtomicU32,
    /// The oldest media packet that a receiver can still get.
    pub(super) first_media: AtomicU64,
    pub(super) events: mpsc::Sender<Event>,
}

pub(super) enum Event {
    /// It is the receiver that was asked for, and the hello has left: media may follow.
    Up {
        id: ConnectionId,
        link: UplinkId,
        connection: Connection,
        control: SendStream,
    },
    /// The receiver has let it in.
    Welcome(ConnectionId, anabranch_units::Duration),
    Datagram(ConnectionId, Bytes),
    /// The receiver has everything.
    Done,
    Down {
        id: ConnectionId,
        /// Why it was lost, where the receiver had let it in.
        why: Option<String>,
        /// What the receiver had is gone.
        is_forgotten: bool,
    },
    /// No connection could be made.
    Failed(UplinkId, SendError),
}

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
pub(super) async fn connect_again(shared: Arc<Shared>, link: UplinkId, slot: Arc<AtomicU32>) {
    let mut wait = LEAST_WAIT;
    // What the way to a receiver that has just answered carries: what was cut for it can be sent again.
    let mut carries = None;
    loop {
        let id = ConnectionId(shared.next_connection.fetch_add(1, Ordering::Relaxed));
        slot.store(id.0, Ordering::Relaxed);
        let outcome = match timeout(ATTEMPT, connect(&shared, link, carries.take())).await {
            Ok(Ok((connection, control, answers))) => {
                let up = Event::Up { id, link, connection: connection.clone(), control };
                if shared.events.send(up).await.is_err() {
                    return;
                }
                let outcome = listen(&shared, id, &connection, answers).await;
                let lost = outcome.as_ref().ok();
                carries =
                    lost.filter(|lost| lost.is_forgotten()).map(|_| connection.stats().path.current_mtu);
                let why = lost.map(|lost| reason(&lost.error));
                let down = Event::Down { id, why, is_forgotten: lost.is_some_and(Lost::is_forgotten) };
                if shared.events.send(down).await.is_err() {
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

/// Why no connection could be made.
fn failure(error: ConnectionError, shared: &Shared) -> SendError {
    match error {
        ConnectionError::ApplicationClosed(close) if close.error_code == code::BUSY => {
            SendError::Busy(String::from_utf8_lossy(&close.reason).into_owned())
        }
        ConnectionError::ApplicationClosed(close) if close.error_code != code::DONE => {
            SendError::Refused(String::from_utf8_lossy(&close.reason).into_owned())
        }
        ConnectionError::TransportError(error) if u64::from(error.code) & !0xff == CRYPTO_ERROR => {
            let reason = error.reason.strip_prefix("unexpected error: ").unwrap_or(&error.reason);
            SendError::NotTrusted(shared.settings.to, reason.into())
        }
        _ => SendError::NoReceiver(shared.settings.to),
    }
}

/// Makes a connection and says who we are. The way is known to carry so long datagrams.
async fn connect(
    shared: &Shared,
    link: UplinkId,
    carries: Option<u16>,
) -> Result<(Connection, SendStream, quinn::RecvStream), SendError> {
    let settings = &shared.settings;
    let nobody = || SendError::NoReceiver(settings.to);
    let mut links = shared.links.iter().zip(&shared.configs);
    let link = usize::try_from(link.0).ok().and_then(|link| links.nth(link));
    let (link, config) = link.ok_or_else(nobody)?;
    let mut config = config.clone();
    if let Some(carries) = carries {
        config.transport_config(Arc::new(sending_transport(carries)));
    }
    let connecting = link
        .endpoint()?
        .connect_with(config, settings.to, &settings.name)
        // An address or a name that cannot be: there is no such receiver.
        .map_err(|_| nobody())?;
    let failure = |error| failure(error, shared);
    let connection = connecting.await.map_err(failure)?;
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
