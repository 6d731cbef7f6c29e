//! One client's connection, from the handshake to its end.

use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::{OnUpgrade, Parts};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::answer::answer;
use super::io_guard::{Activity, Guarded, Patience, Stream};
use super::log::Entry;
use super::metrics::increment;
use super::stripe::{Member, Seat};
use super::{Shared, Visit};

/// hyper's smallest buffer.
const SMALLEST_BUFFER: usize = 8192;

/// What the requests of one connection share.
pub(super) struct Context {
    pub(super) shared: Arc<Shared>,
    pub(super) client: IpAddr,
    /// Whether there is room for this connection.
    pub(super) served: bool,
    /// What there is of HTTP/1.1 only.
    pub(super) http1: Option<Http1>,
}

/// What the requests of a connection of HTTP/1.1 share besides.
pub(super) struct Http1 {
    pub(super) activity: Arc<Activity>,
    /// A stripe group that this connection goes over to.
    pub(super) upgrade: Mutex<Option<Upgrade>>,
}

/// A promised change from HTTP to striping.
pub(super) struct Upgrade {
    pub(super) on_upgrade: OnUpgrade,
    pub(super) seat: Seat,
    pub(super) entry: Entry,
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
    let Visit { client, permit, mut stop } = visit;
    socket.set_nodelay(true)?;
    let config = &shared.config;
    let patience = Patience::of(config, permit.is_served());
    let stream = match &config.tls {
        None => Stream::Plain(socket),
        Some(tls) => {
            let handshake = tokio_rustls::TlsAcceptor::from(tls.clone()).accept(socket);
            Stream::Tls(Box::new(timeout(patience.header, handshake).await??))
        }
    };
    let activity = Arc::new(Activity::default());
    let context = Arc::new(Context {
        shared: shared.clone(),
        client,
        served: permit.is_served(),
        http1: Some(Http1 { activity: activity.clone(), upgrade: Mutex::default() }),
    });
    let io = TokioIo::new(Guarded::new(stream, patience, shared.metrics.clone(), activity));
    let service = service_fn(|request| answer(context.clone(), request));
    // The buffer's limit also bounds what waits of a body: one chunk, as the next is taken below the limit only.
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_header_size(config.max_header_bytes)
        .max_buf_size(config.max_header_bytes.max(SMALLEST_BUFFER))
        .serve_connection(io, service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let mut stopping = false;
    loop {
        tokio::select! {
            result = connection.as_mut() => break result.map_err(io::Error::other)?,
            _ = stop.wait_for(|stop| *stop), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
    let upgrade = context
        .http1
        .as_ref()
        .and_then(|http1| http1.upgrade.lock().unwrap_or_else(PoisonError::into_inner).take());
    let Some(Upgrade { on_upgrade, seat, entry }) = upgrade else { return Ok(()) };
    let upgraded = on_upgrade.await.map_err(io::Error::other)?;
    let Ok(Parts { io, read_buf, .. }) = upgraded.downcast::<TokioIo<Guarded>>() else {
        return Err(io::Error::other("the connection is not ours"));
    };
    let member = Member::new(io.into_inner().into_stream(), read_buf.to_vec(), permit, entry)?;
    seat.sit(member, &shared, stop).await
}
