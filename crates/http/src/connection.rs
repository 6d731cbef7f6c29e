//! An HTTP connection that can have several requests in flight.

use anabranch_units::Duration;
use bytes::BytesMut;

use super::connect::{self, ConnectOptions};
use super::decoder::Received;
use super::error::{ConnectError, Error};
use super::http3::Http3;
use super::pool::Place;
use super::request::RequestHead;
use super::stream::Stream;
use super::target::Origin;
use super::wire::Wire;
use crate::tcp::SocketControl;

/// How much room is made for payload when the caller left none.
const DEFAULT_ROOM: usize = 64 * 1024;

/// A connection to an origin. One task owns it: requests are queued without waiting, and go out while
/// [`Connection::receive`] waits for the responses. One that is dropped when everything was answered goes to
/// the [`Pool`](crate::Pool) of its options, where there is one.
#[derive(Debug)]
pub struct Connection {
    /// `None` once it is given away.
    wire: Option<Wire>,
    origin: Origin,
    place: Option<Place>,
    is_reused: bool,
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let (Some(wire), Some(place)) = (self.wire.take(), self.place.take()) {
            place.keep(wire);
        }
    }
}

impl Connection {
    /// A connection to an origin: one of the pool's, or a new one.
    ///
    /// # Errors
    /// Every [`ConnectError`]; those of the preferred address when there are several and none works.
    pub async fn connect(origin: &Origin, options: &ConnectOptions) -> Result<Self, ConnectError> {
        Self::connect_at(place(origin, options), origin, options).await
    }

    /// The same as soon as the pool's bound allows it.
    ///
    /// # Errors
    /// As [`Connection::connect`].
    pub async fn connect_within(origin: &Origin, options: &ConnectOptions) -> Result<Self, ConnectError> {
        let place = match &options.pool {
            Some(pool) => Some(pool.place_within(origin, options.interface.as_ref(), options.http3).await),
            None => None,
        };
        Self::connect_at(place, origin, options).await
    }

    async fn connect_at(
        place: Option<Place>,
        origin: &Origin,
        options: &ConnectOptions,
    ) -> Result<Self, ConnectError> {
        match place.as_ref().and_then(Place::take) {
            Some(wire) => Ok(Self { wire: Some(wire), origin: origin.clone(), place, is_reused: true }),
            None => Self::new_at(place, origin, options).await,
        }
    }

    /// A new connection to an origin, whatever the pool has.
    ///
    /// # Errors
    /// As [`Connection::connect`].
    pub async fn connect_anew(origin: &Origin, options: &ConnectOptions) -> Result<Self, ConnectError> {
        Self::new_at(place(origin, options), origin, options).await
    }

    async fn new_at(
        place: Option<Place>,
        origin: &Origin,
        options: &ConnectOptions,
    ) -> Result<Self, ConnectError> {
        let proxy = options.proxies.to(origin)?;
        let wire = if options.http3 {
            if let Some(proxy) = proxy {
                return Err(proxy.failed("it does not carry HTTP/3 (no_proxy=HOST leaves a host out)"));
            }
            let (endpoint, connection, arrivals) = connect::connect_quic(origin, options).await?;
            let rtt = connection.rtt().into();
            Wire::http3(Http3::start(origin, endpoint, connection, arrivals).await?, rtt)
        } else {
            let (stream, rtt) = connect::connect(origin, proxy.as_ref(), options).await?;
            // Through one to a server with TLS there is a tunnel, which hides it.
            Wire::http1(stream, proxy.filter(|_| !origin.is_secure()), rtt)
        };
        Ok(Self { wire: Some(wire), origin: origin.clone(), place, is_reused: false })
    }

    /// Whether it comes from the pool. Its server may have closed it at any time: what fails on it before
    /// anything was answered says nothing about the server.
    pub fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// Whom it leads to.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// A handle on the window and the path figures of the socket.
    pub fn control(&self) -> SocketControl {
        self.wire.as_ref().map_or_else(SocketControl::of_none, Wire::control)
    }

    /// How long TCP's handshake took, or what QUIC's told: a first round-trip time, without queueing of our
    /// own.
    pub fn handshake_rtt(&self) -> Duration {
        self.wire.as_ref().map_or(Duration::ZERO, Wire::handshake_rtt)
    }

    /// What arrives wakes nobody until [`Connection::receive`] is called again: for who waits before that.
    /// Nothing is lost. Over HTTP/3 nothing changes.
    pub fn rest(&mut self) {
        if let Some(wire) = &mut self.wire {
            wire.rest();
        }
    }

    /// Requests whose response has not ended.
    pub fn in_flight(&self) -> usize {
        self.wire.as_ref().map_or(0, Wire::in_flight)
    }

    /// Whether requests can still be sent, as far as is known.
    pub fn is_open(&self) -> bool {
        self.wire.as_ref().is_some_and(Wire::is_open)
    }

    /// Whether a request is better sent now than later: not behind another one while it is not known that the
    /// server keeps the connection.
    pub fn may_send(&self) -> bool {
        self.wire.as_ref().is_some_and(Wire::may_send)
    }

    /// Sends a request, also before earlier ones were answered; responses come in the same order. It never
    /// waits: what the socket does not take at once goes out during [`Connection::receive`].
    ///
    /// # Errors
    /// The connection is closed or closes after the response under way, or too many requests wait already.
    pub fn send(&mut self, request: &RequestHead) -> Result<(), Error> {
        self.wire.as_mut().ok_or(Error::Closed)?.send(&self.origin, request)
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
        match &mut self.wire {
            Some(wire) => wire.receive(buffer).await,
            None => Ok(Received::Closed),
        }
    }

    /// The byte stream, and what came behind the head, once the server agreed to another protocol (status
    /// 101).
    pub fn into_upgraded(mut self) -> Option<(Stream, BytesMut)> {
        self.wire.take()?.into_upgraded()
    }
}

/// Where the pool keeps it, where there is one.
fn place(origin: &Origin, options: &ConnectOptions) -> Option<Place> {
    let pool = options.pool.as_ref()?;
    Some(pool.place(origin, options.interface.as_ref(), options.http3))
}
