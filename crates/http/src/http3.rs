//! A client's connection of HTTP/3 (RFC 9114), with several requests in flight. Answers are told in the order
//! of their requests, as they come over HTTP/1.1.
//!
//! A server may send a later answer first, as round robin does, or after the earlier request was lost. Left
//! unread it would fill the connection's window, and the earlier one could never come. So what comes of later
//! answers is read at once and kept (`exchange.rs`), and no more than [`MOST_EARLY`] is asked for beyond the
//! first answer.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use anabranch_quic::{Arrivals, CLIENT_WINDOW};
use bytes::{Bytes, BytesMut};
use h3::client::SendRequest;
use h3::error::StreamError;
use quinn::{ConnectionError, Endpoint, VarInt};
use tokio::task::JoinSet;

use super::decoder::{MOST_IN_FLIGHT, Received};
use super::error::{ConnectError, Error};
use super::exchange::{Came, Exchange};
use super::head::LONGEST_HEAD;
use super::request::RequestHead;
use super::target::Origin;
use crate::tcp::{QuicWindow, SocketControl};

/// HTTP/3's "nothing is wrong" (RFC 9114, section 8.1).
const NO_ERROR: VarInt = VarInt::from_u32(0x100);

/// Most bytes that are asked for beyond the answer that is told: so much is kept at the worst.
const MOST_EARLY: u64 = 16 << 20;

pub(super) struct Http3 {
    sender: SendRequest<h3_quinn::OpenStreams, Bytes>,
    window: Arc<QuicWindow>,
    exchanges: VecDeque<Exchange>,
    /// Reads what concerns the connection as a whole.
    _driver: JoinSet<()>,
    /// The socket.
    _endpoint: Endpoint,
}

impl fmt::Debug for Http3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http3").field("in_flight", &self.exchanges.len()).finish_non_exhaustive()
    }
}

impl Drop for Http3 {
    fn drop(&mut self) {
        self.close();
    }
}

impl Http3 {
    /// Begins to speak HTTP/3 on a connection.
    pub(super) async fn start(
        origin: &Origin,
        endpoint: Endpoint,
        connection: quinn::Connection,
        arrivals: Arc<Arrivals>,
    ) -> Result<Self, ConnectError> {
        let window = QuicWindow::new(connection.clone(), arrivals, VarInt::from_u32(CLIENT_WINDOW));
        let mut builder = h3::client::builder();
        let building = builder
            .max_field_section_size(LONGEST_HEAD.get())
            .send_grease(false)
            .build(h3_quinn::Connection::new(connection));
        let (mut driver, sender) = building.await.map_err(|error| ConnectError::Tls {
            host: origin.host().to_string(),
            reason: error.to_string(),
        })?;
        let mut driving = JoinSet::new();
        driving.spawn(async move {
            // Its end is seen by whoever reads.
            let _ = poll_fn(|cx| driver.poll_close(cx)).await;
        });
        Ok(Self { sender, window, exchanges: VecDeque::new(), _driver: driving, _endpoint: endpoint })
    }

    pub(super) fn control(&self) -> SocketControl {
        self.window.control()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.exchanges.len()
    }

    pub(super) fn is_open(&self) -> bool {
        self.window.connection().close_reason().is_none()
    }

    pub(super) fn close(&mut self) {
        self.exchanges.clear();
        self.window.connection().close(NO_ERROR, b"");
    }

    /// Sends a request; it goes out by itself.
    pub(super) fn send(&mut self, origin: &Origin, request: &RequestHead) -> Result<(), Error> {
        if !self.is_open() {
            return Err(Error::Closed);
        }
        if self.exchanges.len() >= MOST_IN_FLIGHT {
            return Err(Error::TooManyInFlight);
        }
        let head = request.to_http3(origin).map_err(|error| Error::Io(std::io::Error::other(error)))?;
        self.exchanges.push_back(Exchange::new(request.method, request.length, head));
        self.ask();
        Ok(())
    }

    /// Sends the requests whose answers there is room for.
    fn ask(&mut self) {
        let mut early = Some(0_u64);
        for (place, exchange) in self.exchanges.iter_mut().enumerate() {
            if place > 0 {
                early = early.zip(exchange.most()).map(|(early, most)| early.saturating_add(most));
            }
            if early.is_none_or(|early| early > MOST_EARLY) {
                return;
            }
            exchange.ask(&self.sender);
        }
    }

    /// As [`super::Connection::receive`].
    pub(super) async fn receive(&mut self, buffer: &mut BytesMut) -> Result<Received, Error> {
        loop {
            let Some(exchange) = self.exchanges.front_mut() else {
                self.window.connection().closed().await;
                return Ok(Received::Closed);
            };
            match exchange.take(buffer.capacity() - buffer.len())? {
                None => poll_fn(|cx| self.poll(cx)).await,
                Some(Came::Head(head)) => return Ok(Received::Head(head)),
                Some(Came::Data(data)) => {
                    buffer.extend_from_slice(&data);
                    return Ok(Received::Data(data.len()));
                }
                Some(Came::End) => {
                    self.exchanges.pop_front();
                    self.ask();
                    let keep_alive = self.window.connection().close_reason().is_none();
                    return Ok(Received::End { keep_alive });
                }
                Some(Came::NoAnswer(error)) => return unanswered(self.window.connection(), error),
                Some(Came::Broken(error)) => return Err(failed(self.window.connection(), error)),
            }
        }
    }

    /// Ready when something of the first answer has come; what comes of others is kept.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for exchange in self.exchanges.iter_mut().skip(1) {
            exchange.poll_early(cx);
        }
        self.exchanges.front_mut().map_or(Poll::Ready(()), |first| first.poll(cx))
    }
}

/// A request gets no answer: the server closed the connection in order, or something is wrong.
fn unanswered(connection: &quinn::Connection, error: StreamError) -> Result<Received, Error> {
    match connection.close_reason() {
        Some(ConnectionError::ApplicationClosed(close)) if close.error_code == NO_ERROR => {
            Ok(Received::Closed)
        }
        _ => Err(failed(connection, error)),
    }
}

fn failed(connection: &quinn::Connection, error: StreamError) -> Error {
    match connection.close_reason() {
        Some(ConnectionError::Reset) => Error::Reset,
        Some(reason) => Error::Io(std::io::Error::other(reason)),
        None => Error::Io(std::io::Error::other(error)),
    }
}
