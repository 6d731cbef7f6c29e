//! Clients of HTTP/1.1 that are let in within limits, whatever it is that answers them: the bounds of
//! [`super::Server`], for other servers of this program.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Duration;

use super::connection::{Buffers, converse};
use super::io_guard::{Activity, BusyGuard, Guarded, Patience, Stream};
use super::limits::{Limits, Permit};
use super::metrics::Metrics;

/// What clients may take of a server.
#[derive(Clone, Copy, Debug)]
pub struct DoorLimits {
    /// Most connections; a further one gets the place of one whose client keeps the server waiting, or is a
    /// [`Guest`] that is not served.
    pub connections: usize,
    /// The same for one IPv4 address or IPv6 /64.
    pub connections_per_client: usize,
    /// Longest head of a request.
    pub head_bytes: usize,
    /// Most of a body that waits for its client.
    pub body_bytes: usize,
    /// Longest time for a head to arrive.
    pub head_time: Duration,
    /// Longest time between two requests of a connection.
    pub idle_time: Duration,
    /// Longest time without a byte taken by a client that has something to take.
    pub write_time: Duration,
}

/// Lets clients in.
#[derive(Debug)]
pub struct Door {
    limits: DoorLimits,
    counts: Arc<Limits>,
    metrics: Arc<Metrics>,
}

/// A client's connection that was let in.
#[derive(Debug)]
pub struct Guest {
    limits: DoorLimits,
    metrics: Arc<Metrics>,
    socket: TcpStream,
    permit: Permit,
}

/// While it lives, a response is being made or sent, and the client need not say anything. It goes with the
/// response's body.
#[derive(Debug)]
pub struct Busy(#[expect(dead_code, reason = "what it does, it does when it is dropped")] BusyGuard);

impl Door {
    /// A door with these limits.
    pub fn new(limits: DoorLimits) -> Self {
        let metrics = Arc::<Metrics>::default();
        let counts = Limits::new(limits.connections, limits.connections_per_client, metrics.clone());
        Self { limits, counts, metrics }
    }

    /// Lets somebody in. `None`: there are so many that not even this can be told.
    pub fn admit(&self, socket: TcpStream, peer: SocketAddr) -> Option<Guest> {
        let permit = self.counts.admit(peer.ip(), Activity::waiting())?;
        Some(Guest { limits: self.limits, metrics: self.metrics.clone(), socket, permit })
    }
}

impl Guest {
    /// Whether its requests may be answered; else it is to be told that there are too many.
    pub fn is_served(&self) -> bool {
        self.permit.is_served()
    }

    /// Answers its requests until either side ends it, its place is needed, or `stop` is true and what is
    /// being answered has been.
    ///
    /// # Errors
    /// The client breaks off, takes too long, or sends what is no HTTP; or its place was needed.
    pub async fn serve<A, F, B>(self, answer: A, mut stop: watch::Receiver<bool>) -> io::Result<()>
    where
        A: Fn(Request<Incoming>, Busy) -> F,
        F: Future<Output = Response<B>>,
        B: Body<Error = io::Error> + 'static,
    {
        let Self { limits, metrics, socket, permit } = self;
        socket.set_nodelay(true)?;
        let DoorLimits { head_time, idle_time, write_time, head_bytes, body_bytes, .. } = limits;
        let patience = Patience { header: head_time, idle: idle_time, write: write_time };
        let activity = permit.activity().clone();
        let io =
            Guarded::new(Stream::Plain(socket), patience.with(permit.is_served()), metrics, activity.clone());
        let service = service_fn(|request| {
            let answered = answer(request, Busy(BusyGuard::new(&activity)));
            async { Ok::<_, Infallible>(answered.await) }
        });
        converse(io, &permit, Buffers { head: head_bytes, body: body_bytes }, service, &mut stop).await
    }
}
