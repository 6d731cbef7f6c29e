//! One client's connection, from the handshake to its end.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::upgrade::Parts;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use super::answer::answer;
use super::context::{Context, Http1, Upgrade};
use super::io_guard::{Guarded, Patience, Stream};
use super::limits::Permit;
use super::metrics::increment;
use super::passage::Passage;
use super::shared::Shared;
use super::simple;
use super::stripe::Member;
use super::visit::Visit;

/// hyper's smallest buffer.
const SMALLEST_BUFFER: usize = 8192;
/// Why a connection ends that kept us waiting longest.
const GIVEN_AWAY: &str = "its place was given to another connection";

/// What may be held of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffers {
    /// Longest head of a request.
    pub(super) head: usize,
    /// Most of a body that waits for its client.
    pub(super) body: usize,
}

/// Speaks HTTP/1.1 until either side ends it, the server stops, or the connection's place is given away.
///
/// # Errors
/// The client breaks off, is out of patience, or sends what is no HTTP; or the place was given away.
pub(super) async fn converse<S, B>(
    io: Guarded,
    permit: &Permit,
    buffers: Buffers,
    service: S,
    stop: &mut watch::Receiver<bool>,
) -> io::Result<()>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    B: Body<Error = io::Error> + 'static,
{
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_header_size(buffers.head)
        .max_buf_size(buffers.body)
        .serve_connection(TokioIo::new(io), service)
        .with_upgrades();
    attend(permit, stop, pin!(connection), |connection| connection.graceful_shutdown())
        .await?
        .map_err(io::Error::other)
}

/// Goes on with a connection until it ends, or its place is given away. When the server stops, it is told so.
async fn attend<C: Future>(
    permit: &Permit,
    stop: &mut watch::Receiver<bool>,
    mut connection: Pin<&mut C>,
    tell: impl Fn(Pin<&mut C>),
) -> io::Result<C::Output> {
    let mut stopping = false;
    loop {
        tokio::select! {
            // First, so that of a flood only those cost an answer that are to get one.
            biased;
            () = permit.given_away() => return Err(io::Error::other(GIVEN_AWAY)),
            result = connection.as_mut() => return Ok(result),
            () = async { let _ = stop.wait_for(|stop| *stop).await; }, if !stopping => {
                stopping = true;
                tell(connection.as_mut());
            }
        }
    }
}

/// Serves a connection until either side ends it. The errors of one connection are only counted and traced.
pub(super) async fn serve(shared: Arc<Shared>, socket: TcpStream, visit: Visit) {
    let (metrics, client) = (shared.metrics.clone(), visit.client);
    if let Err(error) = try_serve(shared, socket, visit).await {
        increment(&metrics.errors);
        tracing::debug!(%client, %error, "connection ended");
    }
}

async fn try_serve(shared: Arc<Shared>, socket: TcpStream, visit: Visit) -> io::Result<()> {
    let Visit { client, admission, mut stop } = visit;
    let Some(permit) = admission.proven(client, &shared.limits) else { return Ok(()) };
    socket.set_nodelay(true)?;
    let config = &shared.config;
    let patience = Patience::of(config, permit.is_served());
    let sharing = config.tcp_sharing.as_ref().filter(|_| permit.is_served());
    let sharer = sharing.and_then(|sharing| sharing.enter(client, &socket));
    let stream = match &config.tls {
        None => Stream::Plain(socket),
        Some(tls) => {
            let handshake = tokio_rustls::TlsAcceptor::from(tls.clone()).accept(socket);
            let shaken = tokio::select! {
                shaken = timeout(patience.header, handshake) => shaken??,
                () = permit.given_away() => return Err(io::Error::other(GIVEN_AWAY)),
            };
            Stream::Tls(Box::new(shaken))
        }
    };
    let activity = permit.activity().clone();
    let passage = matches!(stream, Stream::Plain(_)).then(Passage::default);
    let context = Arc::new(Context {
        shared: shared.clone(),
        client,
        served: permit.is_served(),
        http1: Some(Http1 {
            activity: activity.clone(),
            passage: passage.clone(),
            sharer,
            upgrade: Mutex::default(),
        }),
    });
    let mut io = Guarded::new(stream, patience, shared.metrics.clone(), activity).with_passage(passage);
    if permit.is_served() {
        let stops = AtomicBool::new(false);
        let talk = pin!(simple::converse(io, &context, &stops));
        match attend(&permit, &mut stop, talk, |_| stops.store(true, Ordering::Relaxed)).await?? {
            Some(left) => io = left,
            None => return Ok(()),
        }
    }
    // The buffer's limit also bounds what waits of a body: one chunk, as the next is taken below the limit
    // only.
    let buffers =
        Buffers { head: config.max_header_bytes, body: config.max_header_bytes.max(SMALLEST_BUFFER) };
    let service = service_fn(|request| answer(context.clone(), request));
    converse(io, &permit, buffers, service, &mut stop).await?;
    let upgrade = context
        .http1
        .as_ref()
        .and_then(|http1| http1.upgrade.lock().unwrap_or_else(PoisonError::into_inner).take());
    let Some(Upgrade { on_upgrade, seat, entry, counting }) = upgrade else { return Ok(()) };
    let upgraded = on_upgrade.await.map_err(io::Error::other)?;
    let Ok(Parts { io, read_buf, .. }) = upgraded.downcast::<TokioIo<Guarded>>() else {
        return Err(io::Error::other("the connection is not ours"));
    };
    if !permit.keep() {
        return Err(io::Error::other(GIVEN_AWAY));
    }
    let member = Member::new(io.into_inner().into_stream(), read_buf.to_vec(), permit, entry, counting)?;
    seat.sit(member, &shared, stop).await
}
