//! A client's connection of HTTP/3 (RFC 9114), with several requests in flight. Answers are read in the order
//! of their requests, as they come over HTTP/1.1; what comes early waits in QUIC's windows.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;

use anabranch_quic::{Arrivals, CLIENT_WINDOW};
use anabranch_units::Bytes as Size;
use bytes::{Buf, Bytes, BytesMut};
use h3::client::{RequestStream, SendRequest};
use h3::error::StreamError;
use quinn::{ConnectionError, Endpoint, VarInt};
use tokio::task::JoinSet;

use super::decoder::{MOST_IN_FLIGHT, Received};
use super::error::{ConnectError, Error, Malformed};
use super::head::{LONGEST_HEAD, ResponseHead};
use super::request::{Method, RequestHead};
use super::target::Origin;
use crate::tcp::{QuicWindow, SocketControl};

/// HTTP/3's "nothing is wrong" (RFC 9114, section 8.1).
const NO_ERROR: VarInt = VarInt::from_u32(0x100);

type Stream = RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

pub(super) struct Http3 {
    sender: SendRequest<h3_quinn::OpenStreams, Bytes>,
    window: Arc<QuicWindow>,
    exchanges: VecDeque<Exchange>,
    /// Reads what concerns the connection as a whole.
    _driver: JoinSet<()>,
    /// The socket.
    _endpoint: Endpoint,
}

/// A request and what has come of its answer.
struct Exchange {
    method: Method,
    progress: Progress,
}

enum Progress {
    /// The request goes out. The one task in it ends with this.
    Asking(JoinSet<Result<Stream, StreamError>>),
    Asked(Stream),
    /// What the head says is still to come, if it says so, and what came and was not taken.
    Answered {
        stream: Stream,
        left: Option<u64>,
        rest: Bytes,
    },
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
        let mut sender = self.sender.clone();
        let mut asking = JoinSet::new();
        asking.spawn(async move {
            let mut stream = sender.send_request(head).await?;
            stream.finish().await?;
            Ok(stream)
        });
        self.exchanges.push_back(Exchange { method: request.method, progress: Progress::Asking(asking) });
        Ok(())
    }

    /// As [`super::Connection::receive`].
    pub(super) async fn receive(&mut self, buffer: &mut BytesMut) -> Result<Received, Error> {
        let connection = self.window.connection();
        loop {
            let Some(Exchange { method, progress }) = self.exchanges.front_mut() else {
                connection.closed().await;
                return Ok(Received::Closed);
            };
            match progress {
                Progress::Asking(asking) => match asking.join_next().await {
                    Some(Ok(Ok(stream))) => *progress = Progress::Asked(stream),
                    Some(Ok(Err(error))) => return unanswered(connection, error),
                    // Nobody ends the task but a panic.
                    _ => return Err(Error::Closed),
                },
                Progress::Asked(stream) => {
                    let response = match stream.recv_response().await {
                        Ok(response) => response,
                        Err(error) => return unanswered(connection, error),
                    };
                    if response.status().is_informational() {
                        continue;
                    }
                    let head = ResponseHead::from_http3(response)?;
                    let is_empty = *method == Method::Head || matches!(head.status, 204 | 304);
                    let left = if is_empty { Some(0) } else { head.content_length };
                    let Some(Exchange { method, progress: Progress::Asked(stream) }) =
                        self.exchanges.pop_front()
                    else {
                        return Err(Error::Closed);
                    };
                    let progress = Progress::Answered { stream, left, rest: Bytes::new() };
                    self.exchanges.push_front(Exchange { method, progress });
                    return Ok(Received::Head(Box::new(head)));
                }
                Progress::Answered { stream, left, rest } => {
                    if !rest.is_empty() {
                        let room = buffer.capacity() - buffer.len();
                        let piece = rest.split_to(rest.len().min(room));
                        if let Some(left) = left {
                            *left = left
                                .checked_sub(Size::of(piece.len()).get())
                                .ok_or(Malformed("it is longer than its Content-Length"))?;
                        }
                        buffer.extend_from_slice(&piece);
                        return Ok(Received::Data(piece.len()));
                    }
                    let data = stream.recv_data().await.map_err(|error| failed(connection, error))?;
                    match data {
                        Some(mut data) => *rest = data.copy_to_bytes(data.remaining()),
                        None if left.is_some_and(|left| left > 0) => {
                            return Err(Error::Truncated { missing: left.map(Size::new) });
                        }
                        None => {
                            self.exchanges.pop_front();
                            let keep_alive = connection.close_reason().is_none();
                            return Ok(Received::End { keep_alive });
                        }
                    }
                }
            }
        }
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
