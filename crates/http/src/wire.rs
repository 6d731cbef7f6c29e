//! What a connection speaks, and over what: HTTP/1.1 over a byte stream, or HTTP/3 over QUIC.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use anabranch_units::Duration;
use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWrite};

use super::decoder::{Decoder, Received, Step};
use super::error::Error;
use super::http3::Http3;
use super::proxy::Proxy;
use super::request::RequestHead;
use super::stream::Stream;
use super::target::Origin;
use crate::tcp::SocketControl;

/// How much is read at once where a head or the framing of chunks is expected.
const FILL: usize = 16 * 1024;

/// An open connection.
#[derive(Debug)]
pub(super) struct Wire {
    version: Version,
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

impl Wire {
    /// HTTP/1.1 over a stream to the origin, or to the proxy that `forwards` to it.
    pub(super) fn http1(stream: Stream, forwards: Option<Proxy>, handshake_rtt: Duration) -> Self {
        let (decoder, output) = (Decoder::new(), BytesMut::new());
        let version = Version::One(Box::new(Http1 { stream, forwards, decoder, output }));
        Self { version, handshake_rtt }
    }

    pub(super) fn http3(http3: Http3, handshake_rtt: Duration) -> Self {
        Self { version: Version::Three(Box::new(http3)), handshake_rtt }
    }

    pub(super) fn handshake_rtt(&self) -> Duration {
        self.handshake_rtt
    }

    pub(super) fn control(&self) -> SocketControl {
        match &self.version {
            Version::One(http1) => http1.stream.control(),
            Version::Three(http3) => http3.control(),
        }
    }

    pub(super) fn rest(&mut self) {
        // QUIC's socket is one for all of its connection, which has to be acknowledged in time.
        if let Version::One(http1) = &mut self.version {
            http1.stream.rest();
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        match &self.version {
            Version::One(http1) => http1.decoder.in_flight(),
            Version::Three(http3) => http3.in_flight(),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        match &self.version {
            Version::One(http1) => http1.decoder.is_open(),
            Version::Three(http3) => http3.is_open(),
        }
    }

    pub(super) fn may_send(&self) -> bool {
        match &self.version {
            Version::One(http1) => http1.decoder.may_send(),
            Version::Three(http3) => http3.is_open(),
        }
    }

    /// Whether all that was asked over it was answered, and it can be asked for more.
    pub(super) fn is_clean(&mut self) -> bool {
        if self.in_flight() == 1 {
            // All bytes of an answer may have been taken, and its end not yet.
            let _ = self.poll_receive();
        }
        let has_output = matches!(&self.version, Version::One(http1) if !http1.output.is_empty());
        self.in_flight() == 0 && self.is_open() && !has_output
    }

    /// Whether nothing has come that nobody asked for, such as the server's end of the connection.
    pub(super) fn is_quiet(&mut self) -> bool {
        self.poll_receive().is_pending()
    }

    /// What is there without waiting.
    fn poll_receive(&mut self) -> Poll<Result<Received, Error>> {
        let mut nothing = BytesMut::new();
        // Unconstrained: a task that used up its budget for this turn would take any for a quiet one.
        let receiving = tokio::task::unconstrained(self.receive(&mut nothing));
        pin!(receiving).poll(&mut Context::from_waker(Waker::noop()))
    }

    pub(super) fn send(&mut self, origin: &Origin, request: &RequestHead) -> Result<(), Error> {
        let http1 = match &mut self.version {
            Version::One(http1) => http1,
            Version::Three(http3) => return http3.send(origin, request),
        };
        http1.decoder.expect(request.method, request.upgrade)?;
        request.write(&mut http1.output, http1.forwards.as_ref().map(|proxy| (origin, proxy)));
        // Unconstrained: a task that used up its budget for this turn would leave the request lying here.
        let writing = poll_fn(|context| {
            write(&mut http1.stream, &mut http1.output, context);
            Poll::Ready(())
        });
        let _ = pin!(tokio::task::unconstrained(writing)).poll(&mut Context::from_waker(Waker::noop()));
        Ok(())
    }

    pub(super) async fn receive(&mut self, buffer: &mut BytesMut) -> Result<Received, Error> {
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

    pub(super) fn into_upgraded(self) -> Option<(Stream, BytesMut)> {
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
