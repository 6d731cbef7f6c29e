//! The connections of a sender: how each is made, kept up, and listened to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint, SendStream};
use stream::live::hello::{Message, SESSION_BYTES};
use stream::live::{ConnectionId, LinkId};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::super::control::{read, write};
use super::super::{HANDSHAKE, Size, code};
use super::{SendError, SenderSettings};
use crate::http::{ConnectError, Interface};
use crate::quic::client_endpoint;

/// The wait between two attempts to connect: it doubles from the first to the last.
const LEAST_WAIT: Duration = Duration::from_millis(250);
const MOST_WAIT: Duration = Duration::from_secs(5);
/// How long a first connection is tried for.
const FIRST_CONNECT: Duration = Duration::from_secs(10);
/// How long a connection whose datagrams take whole packets is tried for before the next attempt takes shorter ones.
const WHOLE_HANDSHAKE: Duration = Duration::from_secs(3);

/// A socket that leaves by an interface.
pub(super) fn endpoint(to: SocketAddr, interface: Option<&Interface>) -> Result<Endpoint, SendError> {
    client_endpoint(to, interface).map_err(|error| match error {
        ConnectError::Interface(error) => SendError::Interface(error.to_string()),
        ConnectError::Socket(error) => SendError::Socket(error.to_string()),
        other => SendError::Socket(other.to_string()),
    })
}

/// What all connections need.
pub(super) struct Shared {
    pub(super) links: Vec<Endpoint>,
    /// Connections with datagrams for whole packets of the stream, and those for paths that do not carry them.
    pub(super) whole: ClientConfig,
    pub(super) least: ClientConfig,
    pub(super) settings: SenderSettings,
    pub(super) session: [u8; SESSION_BYTES],
    pub(super) next_connection: AtomicU32,
    pub(super) next_media: AtomicU64,
    pub(super) events: mpsc::Sender<Event>,
}

pub(super) enum Event {
    Up {
        id: ConnectionId,
        link: LinkId,
        connection: Connection,
        control: SendStream,
        latency: units::Duration,
    },
    Datagram(ConnectionId, Bytes),
    /// The receiver has everything.
    Done,
    Down(ConnectionId, String),
    Fatal(SendError),
}

/// Keeps one connection up.
pub(super) async fn connect_again(shared: Arc<Shared>, link: LinkId, slot: Arc<AtomicU32>) {
    let began = std::time::Instant::now();
    let (mut wait, mut was_up) = (LEAST_WAIT, false);
    let mut size = Size::Whole;
    loop {
        let id = ConnectionId(shared.next_connection.fetch_add(1, Ordering::Relaxed));
        slot.store(id.0, Ordering::Relaxed);
        let patience = if size == Size::Whole { WHOLE_HANDSHAKE } else { HANDSHAKE };
        let failure = match timeout(patience, connect(&shared, link, size)).await {
            Ok(Ok((connection, control, answers, latency))) => {
                (wait, was_up) = (LEAST_WAIT, true);
                let up = Event::Up { id, link, connection: connection.clone(), control, latency };
                if shared.events.send(up).await.is_err() {
                    return;
                }
                let failure = listen(&shared, id, &connection, answers).await;
                if shared.events.send(Event::Down(id, failure.to_string())).await.is_err() {
                    return;
                }
                failure
            }
            Ok(Err(failure)) => failure,
            Err(_) => {
                // Nobody is there, or the path does not carry this size: both have their turn.
                size = if size == Size::Whole { Size::Least } else { Size::Whole };
                ConnectionError::TimedOut
            }
        };
        let fatal = match failure {
            ConnectionError::ApplicationClosed(close) if close.error_code != code::BUSY || !was_up => {
                let reason = String::from_utf8_lossy(&close.reason).into_owned();
                Some(SendError::Refused(reason)).filter(|_| close.error_code != code::DONE)
            }
            ConnectionError::TransportError(error) if !was_up => Some(SendError::NotTrusted(error.reason)),
            _ if !was_up && began.elapsed() >= FIRST_CONNECT - LEAST_WAIT * 9 => {
                Some(SendError::NoReceiver(shared.settings.to))
            }
            _ => None,
        };
        if let Some(error) = fatal {
            // A driver that is gone needs no reason.
            let _ = shared.events.send(Event::Fatal(error)).await;
            return;
        }
        sleep(wait).await;
        wait = (wait * 2).min(MOST_WAIT);
    }
}

async fn connect(
    shared: &Shared,
    link: LinkId,
    size: Size,
) -> Result<(Connection, SendStream, quinn::RecvStream, units::Duration), ConnectionError> {
    let settings = &shared.settings;
    let endpoint = usize::try_from(link.0).ok().and_then(|link| shared.links.get(link));
    let endpoint = endpoint.ok_or(ConnectionError::LocallyClosed)?;
    let config = if size == Size::Whole { &shared.whole } else { &shared.least };
    let connecting = endpoint
        .connect_with(config.clone(), settings.to, &settings.name)
        // An address or a name that cannot be: there is no such receiver.
        .map_err(|_| ConnectionError::TimedOut)?;
    let connection = connecting.await?;
    let (mut control, mut answers) = connection.open_bi().await?;
    let hello = Message::Hello {
        session: shared.session,
        next: shared.next_media.load(Ordering::Relaxed),
        latency: settings.live.latency,
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
            Err(connection.closed().await)
        }
        // The receiver says why when it closes the connection.
        Err(_) => Err(connection.closed().await),
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
