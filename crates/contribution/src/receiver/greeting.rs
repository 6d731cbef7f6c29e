//! Lets senders in that show the token, and passes on what comes from them.

use std::sync::Arc;

use anabranch_live::ConnectionId;
use anabranch_protocol::live::hello::{Message, SESSION_BYTES};
use anabranch_quic::{Handshakes, Unproven};
use bytes::Bytes;
use quinn::{Connection, ConnectionError, Endpoint, Incoming, SendStream, TransportErrorCode};
use subtle::ConstantTimeEq;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::settings::{ReceiverEvent, ReceiverSettings};
use crate::control::read;
use crate::{HANDSHAKE, code};

/// Handshakes at a time.
const MOST_HANDSHAKES: usize = 64;

/// A sender that showed the token.
pub(super) struct Hello {
    pub(super) connection: Connection,
    pub(super) control: SendStream,
    pub(super) session: [u8; SESSION_BYTES],
    pub(super) next: u64,
    pub(super) latency: anabranch_units::Duration,
    pub(super) is_published: bool,
    /// What comes later from this connection.
    pub(super) incoming: mpsc::Sender<Event>,
    pub(super) messages: quinn::RecvStream,
}

/// What happens to a connection.
pub(super) enum Event {
    Hello(Box<Hello>),
    Datagram(ConnectionId, Bytes),
    End(ConnectionId, u64),
    Down { id: ConnectionId, reason: String, has_left: bool },
}

/// Lets connections in. A few may come from addresses that are not known to be those of the ones who ask, and cost a
/// round trip less; others get a short Retry and nothing else (RFC 9000, section 8.1.2), for which nothing is kept.
pub(super) async fn accept(
    endpoint: Endpoint,
    settings: ReceiverSettings,
    unproven: Arc<Handshakes>,
    events: mpsc::Sender<Event>,
    notices: mpsc::Sender<ReceiverEvent>,
) {
    let places = Arc::new(Semaphore::new(MOST_HANDSHAKES));
    let settings = Arc::new(settings);
    let mut handshakes = JoinSet::new();
    while let Some(incoming) = endpoint.accept().await {
        while handshakes.try_join_next().is_some() {}
        let mut first = None;
        if incoming.remote_address_validated() {
            unproven.prove(incoming.remote_address());
        } else {
            first = unproven.begin(incoming.remote_address());
            if first.is_none() {
                // It fails only when the address was validated.
                let _ = incoming.retry();
                continue;
            }
        }
        let Ok(place) = places.clone().try_acquire_owned() else {
            incoming.refuse();
            continue;
        };
        let (settings, events, notices) = (settings.clone(), events.clone(), notices.clone());
        handshakes.spawn(async move {
            let from = incoming.remote_address();
            match timeout(HANDSHAKE * 2, greet(incoming, first, &settings, events.clone())).await {
                Ok(Ok(hello)) => {
                    // Fails when the receiver ends.
                    let _ = events.send(Event::Hello(Box::new(hello))).await;
                }
                Ok(Err(None)) => {}
                Ok(Err(Some(why))) => {
                    let _ = notices.try_send(ReceiverEvent::Refused(from, why));
                }
                Err(_) => {
                    let _ = notices.try_send(ReceiverEvent::Refused(from, "its handshake took too long"));
                }
            }
            drop(place);
        });
    }
}

/// Whether who asked for a handshake does not want it any more, or is not there (RFC 9000, section 10.2.3): that tells the
/// receiver's user nothing, and anybody can name any address as the one who asks.
fn is_given_up(error: &ConnectionError) -> bool {
    match error {
        ConnectionError::TimedOut | ConnectionError::ApplicationClosed(_) => true,
        ConnectionError::ConnectionClosed(close) => close.error_code == TransportErrorCode::APPLICATION_ERROR,
        _ => false,
    }
}

/// `Err(None)`: there is nothing to say.
async fn greet(
    incoming: Incoming,
    unproven: Option<Unproven>,
    settings: &ReceiverSettings,
    events: mpsc::Sender<Event>,
) -> Result<Hello, Option<&'static str>> {
    let connection = match incoming.accept() {
        Ok(connecting) => match timeout(HANDSHAKE, connecting).await {
            Ok(made) => made.map_err(|error| (!is_given_up(&error)).then_some("the handshake failed"))?,
            Err(_) => return Err(None),
        },
        Err(_) => return Err(Some("the handshake failed")),
    };
    // Its sender has answered what was sent there.
    if let Some(unproven) = unproven {
        unproven.prove();
    }
    let refuse = |code, why: &'static str| {
        connection.close(code, why.as_bytes());
        Some(why)
    };
    // One that was made ahead of its time may not be needed.
    let unneeded = |error: &ConnectionError| matches!(error, ConnectionError::ApplicationClosed(close) if close.error_code == code::DONE);
    let gone = |error| (!unneeded(&error)).then_some("it was gone before it said anything");
    let (control, mut messages) = connection.accept_bi().await.map_err(gone)?;
    let hello = read(&mut messages).await;
    let Ok(Message::Hello { session, next, latency, is_published, token }) = hello else {
        return Err(refuse(code::PROTOCOL, "it does not speak this version of the protocol"));
    };
    let is_right: bool = token.ct_eq(&settings.token).into();
    if !is_right {
        let why = match (token.is_empty(), settings.token.is_empty()) {
            (true, _) => "a token is needed, and none was given (--token-file of the sender)",
            (_, true) => "a token was given, and none is known (--token-file of the receiver)",
            _ => "the token is wrong",
        };
        return Err(refuse(code::TOKEN, why));
    }
    Ok(Hello {
        connection: connection.clone(),
        control,
        session,
        next,
        latency,
        is_published,
        incoming: events,
        messages,
    })
}

/// Passes on what comes until the connection is closed.
pub(super) async fn listen(
    id: ConnectionId,
    connection: Connection,
    mut messages: quinn::RecvStream,
    events: mpsc::Sender<Event>,
) {
    let end = async {
        if let Ok(Message::End { next }) = read(&mut messages).await {
            let _ = events.send(Event::End(id, next)).await;
        }
        std::future::pending::<()>().await;
    };
    let datagrams = async {
        loop {
            match connection.read_datagram().await {
                Ok(datagram) => {
                    if events.send(Event::Datagram(id, datagram)).await.is_err() {
                        break;
                    }
                }
                Err(error) => {
                    let has_left = matches!(&error, ConnectionError::ApplicationClosed(close)
                        if close.error_code == code::LEFT);
                    let reason = match error {
                        ConnectionError::ApplicationClosed(close) if close.error_code == code::DONE => {
                            "its sender has ended".to_owned()
                        }
                        error => error.to_string(),
                    };
                    let _ = events.send(Event::Down { id, reason, has_left }).await;
                    break;
                }
            }
        }
    };
    tokio::select! {
        () = datagrams => {}
        () = end => {}
    }
}
