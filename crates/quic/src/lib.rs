//! QUIC with the window controllers of [`anabranch_congestion`]: what `anabranch serve --h3` sends with, and
//! what a client asks with.
//!
//! What came to a client, and what was lost on the way, [`Arrivals`] counts.
//!
//! quinn asks a controller for its window and tells it what was sent, acknowledged and lost.
//! [`SingleFactory`] makes one of our controllers for one connection, [`PacedFactory`] one that follows a
//! model of the path and says when packets leave; [`WeightedFactory`] makes a connection
//! part of a group that shares its credit by weights (`docs/sender-control.md`), and [`Pools`] are the groups
//! that an operator has declared.
//!
//! [`Handshakes`] with clients whose address is not proven are few, and [`Thrifty`] bounds what goes there.
//!
//! What is said over a connection is not here: `anabranch-http` and `anabranch-server` speak HTTP/3,
//! `anabranch-contribution` sends datagrams.

mod arrivals;
mod frames;
mod group;
mod handshakes;
mod in_flight;
mod keys;
mod paced;
mod places;
mod pools;
mod single;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Instant;

use anabranch_congestion::control::Start;
use anabranch_units::{Bytes, Time};
use quinn::{Endpoint, EndpointConfig, IdleTimeout, TransportConfig, VarInt, default_runtime};
use socket2::{Domain, SockRef, Socket, Type};
use tokio::time::Duration;

use anabranch_sockets::{Interface, SocketError};

pub use arrivals::{Arrivals, shown_to};
pub use group::{Clock, Membership, ROUND, Sharing, Wakeable, WeightedFactory};
pub use handshakes::{Handshakes, Thrifty, Unproven};
pub use in_flight::InFlight;
pub use paced::{Pace, PacedFactory, Waking};
pub use pools::Pools;
pub use single::SingleFactory;

/// What a full packet carries: quinn's packets become as large where the path has Ethernet's MTU. The
/// controllers count in it, so that a window grows as that of a TCP on the same path.
const SEGMENT: Bytes = Bytes::new(1452);
/// RFC 9002, section 7.2: ten packets.
const INITIAL_WINDOW: Bytes = Bytes::new(10 * SEGMENT.get());
/// RFC 9002, section 7.2: two packets are the least that a window may be.
const LEAST_WINDOW: Bytes = Bytes::new(2 * SEGMENT.get());
/// A server whose window is full waits until it has room for so many packets, as a TCP sends whose receiver
/// acknowledges every second segment (RFC 5681, section 4.2). At a full DropTail queue the second of two
/// packets that come together is the one that is dropped: a server that answers a client's acknowledgement of
/// every packet with one packet is spared what TCP bears beside it, and had 1.5 to 2.0 times its rate
/// (docs/benchmarks.md, "Weights over HTTP/3").
const AT_ONCE: u64 = 2;
/// The most that a connection keeps of what is sent until it is acknowledged: enough for 160 Mbps at 100 ms.
const SEND_WINDOW: u64 = 2 << 20;
/// The least.
const LEAST_SEND_WINDOW: u64 = 256 << 10;
/// A client's requests at a time on one connection (RFC 9114, section 6.1, asks for 100).
const MOST_REQUESTS: u32 = 100;
/// What a client may send ahead of what is read: requests, and HTTP/3's own streams.
const REQUEST_WINDOW: u32 = 64 * 1024;

/// What a server may send ahead of what is read, where no smaller window is set.
pub const CLIENT_WINDOW: u32 = 16 << 20;

/// Whether quinn may fill a window: not while there is no room for [`AT_ONCE`] packets, unless no
/// acknowledgement is on its way that would bring more.
fn is_open(window: u64, in_flight: u64, packet: u64) -> bool {
    in_flight == 0 || window >= in_flight.saturating_add(AT_ONCE.saturating_mul(packet))
}

/// The window of a connection that waits for acknowledgements. quinn sends a packet if that and what is in
/// flight are less: so one leaves where nothing is in flight, whatever a controller has counted. quinn tells
/// it neither of a probe of the path's MTU nor that one is lost.
fn closed(packet: u64) -> u64 {
    packet.saturating_add(1)
}

/// How every flow begins.
fn start() -> Start {
    Start { segment: SEGMENT, initial_window: INITIAL_WINDOW, initial_ssthresh: None, seed: 0 }
}

/// Turns quinn's times into the core's.
#[derive(Clone, Copy, Debug)]
struct Epoch(Instant);

impl Epoch {
    /// Not zero: cores keep times before now.
    fn time(self, at: Instant) -> Time {
        Time::ZERO
            + anabranch_units::Duration::from_millis(1)
            + anabranch_units::Duration::from(at.saturating_duration_since(self.0))
    }

    /// The other way round.
    fn instant(self, at: Time) -> Instant {
        let since = at.since(Time::ZERO + anabranch_units::Duration::from_millis(1));
        self.0 + Duration::from_nanos(since.as_nanos())
    }
}

/// What a client's connections have in common. Nothing is sent to keep one open: who wants it asks on it.
pub fn client_transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(8))
        .stream_receive_window(VarInt::from_u32(CLIENT_WINDOW))
        .receive_window(VarInt::from_u32(CLIENT_WINDOW))
        .datagram_receive_buffer_size(None);
    transport
}

/// An endpoint for connections to `to` that leave by an interface.
pub fn client_endpoint(to: SocketAddr, interface: Option<&Interface>) -> Result<Endpoint, SocketError> {
    let socket = client_socket(to, interface)?;
    let runtime =
        default_runtime().ok_or_else(|| SocketError::Socket(io::Error::other("there is no runtime")))?;
    Endpoint::new(EndpointConfig::default(), None, socket.into(), runtime).map_err(SocketError::Socket)
}

/// A socket to `to` that leaves by an interface.
pub fn client_socket(to: SocketAddr, interface: Option<&Interface>) -> Result<Socket, SocketError> {
    let any: SocketAddr =
        if to.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let socket = Socket::new(Domain::for_address(to), Type::DGRAM, None).map_err(SocketError::Socket)?;
    if let Some(interface) = interface {
        interface.bind(&SockRef::from(&socket), to)?;
    }
    let is_bound =
        socket.local_addr().ok().and_then(|address| address.as_socket()).is_some_and(|a| a.port() > 0);
    if !is_bound {
        socket.bind(&any.into()).map_err(SocketError::Socket)?;
    }
    Ok(socket)
}

/// What a server's connections have in common. `silence`: how long nothing may come from a client.
pub fn server_transport(silence: Duration) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(MOST_REQUESTS))
        // HTTP/3's control stream and QPACK's two (RFC 9114, section 6.2), and some that mean nothing.
        .max_concurrent_uni_streams(VarInt::from_u32(8))
        .stream_receive_window(VarInt::from_u32(REQUEST_WINDOW))
        .receive_window(VarInt::from_u32(4 * REQUEST_WINDOW))
        .send_window(SEND_WINDOW)
        // Answers in the order of their requests, as HTTP/3 has it where a client says nothing else (RFC
        // 9218, section 10).
        .send_fairness(false)
        .datagram_receive_buffer_size(None)
        .max_idle_timeout(IdleTimeout::try_from(silence).ok());
    transport
}
