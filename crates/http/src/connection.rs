//! An HTTP connection that can have several requests in flight.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use anabranch_units::Duration;
use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWrite};

use super::connect::{self, ConnectOptions};
use super::decoder::{Decoder, Received, Step};
use super::error::{ConnectError, Error};
use super::http3::Http3;
use super::proxy::Proxy;
use super::request::RequestHead;
use super::stream::Stream;
use super::target::Origin;
use crate::tcp::SocketControl;

/// How much is read at once where a head or the framing of chunks is expected.
const FILL: usize = 16 * 1024;

/// How much room is made for payload when the caller left none.
const DEFAULT_ROOM: usize = 64 * 1024;

/// A connection to an origin. One task owns it: requests are queued without waiting, and go out while
/// [`Connection::receive`] waits for the responses.
#[derive(Debug)]
pub struct Connection {
    version: Version,
    origin: Origin,
    handshake_rtt: Duration,
}

#[derive(Debug)]
enum Version {
    One(Box<Http1>),
    Three(Box<Http3>),
}

#[derive(Debug)]
struct Http1 {
    stream: Stream,
    /// The proxy that reads the requests and passes them on.
    forwards: Option<Proxy>,
    decoder: Decoder,
    /// Requests, or what is left of them, that the socket did not take yet.
    output: BytesMut,
}

impl Connection {
    /// Connects to an origin.
    ///
    /// # Errors
    /// Every [`ConnectError`]; those of the preferred address when there are several and none works.
    pub async fn connect(origin: &Origin, options: &ConnectOptions) -> Result<Self, ConnectError> {
        let proxy = options.proxies.to(origin)?;
        let (version, handshake_rtt) = if options.http3 {
            if let Some(proxy) = proxy {
                return Err(proxy.failed("it does not carry HTTP/3 (no_proxy=HOST leaves a host out)"));
            }
            let (endpoint, connection, arrivals) = connect::connect_quic(origin, options).await?;
            let rtt = connection.rtt().into();
            let http3 = Http3::start(origin, endpoint, connection, arrivals).await?;
            (Version::Three(Box::new(http3)), rtt)
        } else {
            let (stream, rtt) = connect::connect(origin, proxy.as_ref(), options).await?;
            let (decoder, output) = (Decoder::new(), BytesMut::new());
            // Through one to a server with TLS there is a tunnel, which hides it.
            let forwards = proxy.filter(|_| !origin.is_secure());
            (Version::One(Box::new(Http1 { stream, forwards, decoder, output })), rtt)
        };
        Ok(Self { version, origin: origin.clone(), handshake_rtt })
    }

    /// Whom it leads to.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// A handle on the window and the path figures of the socket.
    pub fn control(&self) -> SocketControl {
        match &self.version {
            Version::One(http1) => http1.stream.control(),
            Version::Three(http3) => http3.control(),
        }
    }

    /// How long TCP's handshake took, or what QUIC's told: a first round-trip time, without queueing of our
    /// own.
    pub fn handshake_rtt(&self) -> Duration {
        self.handshake_rtt
    }

    /// Requests whose response has not ended.
    pub fn in_flight(&self) -> usize {
        match &self.version {
            Version::One(http1) => http1.decoder.in_flight(),
            Version::Three(http3) => http3.in_flight(),
        }
    }

    /// Whether requests can still be sent, as far as is known.
    pub fn is_open(&self) -> bool {
        match &self.version {
            Version::One(http1) => http1.decoder.is_open(),
            Version::Three(http3) => http3.is_open(),
        }
    }

    /// Whether a request is better sent now than later: not behind another one while it is not known that the
    /// server keeps the connection.
    pub fn may_send(&self) -> bool {
        match &self.version {
            Version::One(http1) => http1.decoder.may_send(),
            Version::Three(http3) => http3.is_open(),
        }
    }

    /// Sends a request, also before earlier ones were answered; responses come in the same order. It never
    /// waits: what the socket does not take at once goes out during [`Connection::receive`].
    ///
    /// # Errors
    /// The connection is closed or closes after the response under way, or too many requests wait already.
    pub fn send(&mut self, request: &RequestHead) -> Result<(), Error> {
        let http1 = match &mut self.version {
            Version::One(http1) => http1,
            Version::Three(http3) => return http3.send(&self.origin, request),
        };
        http1.decoder.expect(request.method, request.upgrade)?;
        request.write(&mut http1.output, http1.forwards.as_ref().map(|proxy| (&self.origin, proxy)));
        // Unconstrained: a task that used up its budget for this turn would leave the request lying here.
        let writing = poll_fn(|context| {
            write(&mut http1.stream, &mut http1.output, context);
            Poll::Ready(())
        });
        let _ = pin!(tokio::task::unconstrained(writing)).poll(&mut Context::from_waker(Waker::noop()));
        Ok(())
    }

    /// Waits for what comes next. Payload goes to the end of `buffer`, as much as it has room for without
    /// growing (64 KiB are added to a full one). Nothing is lost when the future is dropped. After an error
    /// or [`Received::Closed`] the connection is of no use, and answers [`Received::Closed`].
    ///
    /// # Errors
    /// The connection broke, or the server does not keep to HTTP.
    pub async fn receive(&mut self, buffer: &mut BytesMut) -> Result<Received, Error> {
        if buffer.len() == buffer.capacity() {
            buffer.reserve(DEFAULT_ROOM);
        }
        match &mut self.version {
            Version::One(http1) => {
                let result = http1.receive_into(buffer).await;
                if result.is_err() {
                    http1.decoder.close();
                }
                result
            }
            Version::Three(http3) => {
                let result = http3.receive(buffer).await;
                if result.is_err() {
                    http3.close();
                }
                result
            }
        }
    }

    /// The byte stream, and what came behind the head, once the server agreed to another protocol (status
    /// 101).
    pub fn into_upgraded(self) -> Option<(Stream, BytesMut)> {
        match self.version {
            Version::One(http1) if http1.decoder.is_upgraded() => Some((http1.stream, http1.decoder.input)),
            _ => None,
        }
    }
}

impl Http1 {
    async fn receive_into(&mut self, buffer: &mut BytesMut) -> Result<Received, Error> {
        let Self { stream, decoder, output, .. } = self;
        loop {
            let (read, delivered) = match decoder.step(buffer)? {
                Step::Got(received) => return Ok(received),
                Step::Deliver(limit) => (read(stream, output, buffer, limit).await, true),
                Step::Fill => {
                    decoder.input.reserve(FILL);
                    (read(stream, output, &mut decoder.input, FILL).await, false)
                }
            };
            match read {
                Ok(0) => return decoder.end_of_stream(true),
                Ok(count) if delivered => {
                    decoder.delivered(count);
                    return Ok(Received::Data(count));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return decoder.end_of_stream(false);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Reads up to `limit` bytes to the end of `buffer`, and writes what waits to be written meanwhile.
async fn read(
    stream: &mut Stream,
    output: &mut BytesMut,
    buffer: &mut BytesMut,
    limit: usize,
) -> io::Result<usize> {
    poll_fn(|context| {
        write(stream, output, context);
        // The future keeps nothing between two polls.
        pin!(stream.read_buf(&mut (&mut *buffer).limit(limit))).poll(context)
    })
    .await
}

/// Writes what the socket takes. A failure only drops the rest: what came before it can still be read, and
/// reading tells why.
fn write(stream: &mut Stream, output: &mut BytesMut, context: &mut Context<'_>) {
    while !output.is_empty() {
        match Pin::new(&mut *stream).poll_write(context, output) {
            Poll::Ready(Ok(count)) if count > 0 => output.advance(count),
            Poll::Ready(_) => output.clear(),
            Poll::Pending => return,
        }
    }
    let _ = Pin::new(stream).poll_flush(context);
}
