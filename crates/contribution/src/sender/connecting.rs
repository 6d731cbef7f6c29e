//! The connections of a sender: how each is made, kept up, and listened to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use anabranch_live::{ConnectionId, UplinkId};
use anabranch_protocol::live::hello::{Message, SESSION_BYTES};
use bytes::Bytes;
use quinn::{ClientConfig, Connection, ConnectionError, SendStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::super::code;
use super::super::control::{read, write};
use super::events::SendError;
use super::settings::SenderSettings;
use super::uplink::Uplink;

/// The wait between two attempts to connect: it doubles from the first to the last.
const LEAST_WAIT: Duration = Duration::from_millis(250);
const MOST_WAIT: Duration = Duration::from_secs(5);
/// An interface that is not there is looked for so often.
const LOCAL_WAIT: Duration = Duration::from_secs(1);
/// How long an attempt takes at the most.
const ATTEMPT: Duration = Duration::from_secs(5);
/// TLS says why it does not go on in codes of QUIC from here to 255 more (RFC 9001, section 4.8).
const CRYPTO_ERROR: u64 = 0x100;

/// What all connections need.
pub(super) struct Shared {
    pub(super) links: Arc<[Uplink]>,
    pub(super) config: ClientConfig,
    pub(super) settings: SenderSettings,
    pub(super) session: [u8; SESSION_BYTES],
    pub(super) next_connection: AtomicU32,
    pub(super) next_media: AtomicU64,
    pub(super) events: mpsc::Sender<Event>,
}

pub(super) enum Event {
    Up {
        id: ConnectionId,
        link: UplinkId,
        connection: Connection,
        control: SendStream,
        latency: anabranch_units::Duration,
    },
    Datagram(ConnectionId, Bytes),
    /// The receiver has everything.
    Done,
    Down(ConnectionId, String),
    /// No connection could be made.
    Failed(UplinkId, SendError),
}

/// Keeps one connection up, until the driver is gone.
pub(super) async fn connect_again(shared: Arc<Shared>, link: UplinkId, slot: Arc<AtomicU32>) {
    let mut wait = LEAST_WAIT;
    loop {
        let id = ConnectionId(shared.next_connection.fetch_add(1, Ordering::Relaxed));
        slot.store(id.0, Ordering::Relaxed);
        let attempt = timeout(ATTEMPT, connect(&shared, link));
        let event = match attempt.await.unwrap_or_else(|_| Err(SendError::NoReceiver(shared.settings.to))) {
            Ok((connection, control, answers, latency)) => {
                wait = LEAST_WAIT;
                let up = Event::Up { id, link, connection: connection.clone(), control, latency };
                if shared.events.send(up).await.is_err() {
                    return;
                }
                Event::Down(id, reason(&listen(&shared, id, &connection, answers).await))
            }
            Err(error) => Event::Failed(link, error),
        };
        let is_local = matches!(&event, Event::Failed(_, SendError::Interface(_) | SendError::Socket(_)));
        if shared.events.send(event).await.is_err() {
            return;
        }
        if is_local {
            sleep(LOCAL_WAIT).await;
        } else {
            sleep(wait).await;
            wait = (wait * 2).min(MOST_WAIT);
        }
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

async fn connect(
    shared: &Shared,
    link: UplinkId,
) -> Result<(Connection, SendStream, quinn::RecvStream, anabranch_units::Duration), SendError> {
    let settings = &shared.settings;
    let nobody = || SendError::NoReceiver(settings.to);
    let link = usize::try_from(link.0).ok().and_then(|link| shared.links.get(link));
    let endpoint = link.ok_or_else(nobody)?.endpoint()?;
    let connecting = endpoint
        .connect_with(shared.config.clone(), settings.to, &settings.name)
        // An address or a name that cannot be: there is no such receiver.
        .map_err(|_| nobody())?;
    let failure = |error| failure(error, shared);
    let connection = connecting.await.map_err(failure)?;
    let (mut control, mut answers) = connection.open_bi().await.map_err(failure)?;
    let hello = Message::Hello {
        session: shared.session,
        next: shared.next_media.load(Ordering::Relaxed),
        latency: settings.live.latency,
        is_published: shared.settings.live.is_published,
        token: settings.token.clone(),
    };
    let answer = match write(&mut control, &hello).await {
        Ok(()) => read(&mut answers).await,
        Err(error) => Err(error),
    };
    match answer {
        Ok(Message::Welcome { latency }) => Ok((connection, control, answers, latency)),
        Ok(_) => {
            connection.close(code::PROTOCOL, b"not the answer to a hello");
            Err(failure(connection.closed().await))
        }
        // The receiver says why when it closes the connection.
        Err(_) => Err(failure(connection.closed().await)),
    }
}

/// Passes on what comes until the connection is closed.
async fn listen(
    shared: &Shared,
    id: ConnectionId,
    connection: &Connection,
    mut answers: quinn::RecvStream,
) -> ConnectionError {
    let datagrams = async {
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
    };
    let done = async {
        if let Ok(Message::Done) = read(&mut answers).await {
            let _ = shared.events.send(Event::Done).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        error = datagrams => error,
        () = done => ConnectionError::LocallyClosed,
    }
}
