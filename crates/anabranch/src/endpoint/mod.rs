//! The local HTTP endpoint that a player talks to: connections and their bounds. Whom it answers is decided
//! by a [`Guard`], what by an [`Answer`]: a film ([`FilmResource`]), or whatever the proxy is asked for. No
//! answer is anything that a browser would run (`inert`).

mod body;
mod delivery;
mod film;
mod guard;
mod inert;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anabranch_server::{AcceptRest, Door, DoorLimits, Guest, connections_within, listen};
use anabranch_sockets::ListenError;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::open_files;

pub(crate) use body::{Body, respond_with};
pub(crate) use film::{FilmResource, offered_name};
pub(crate) use guard::{Asker, Guard, is_localhost, is_own};
use inert::RESOURCE_POLICY;
pub(crate) use inert::media_type;

/// Most connections at a time. A player has a handful.
const MOST_CONNECTIONS: usize = 256;
/// Most of one address. On loopback all are.
const MOST_OF_A_CLIENT: usize = 128;
/// A player's connection, and what is asked for it elsewhere.
const LIMITS: DoorLimits = DoorLimits {
    connections: MOST_CONNECTIONS,
    connections_per_client: MOST_OF_A_CLIENT,
    head_bytes: 32 * 1024,
    body_bytes: 128 * 1024,
    head_time: Duration::from_secs(10),
    idle_time: Duration::from_secs(60),
    // A player that pauses takes nothing for as long as its viewer likes, unless others need its place.
    write_time: Duration::from_secs(30 * 24 * 60 * 60),
};
/// What the system may hold of a body: as little as lets a player far away take a film, so that it shows soon
/// when the player takes nothing.
const SEND_BUFFER: usize = 256 * 1024;
/// A peer that vanished without a word is noticed after about so long.
const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// When a player that was turned away may come again, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");
/// What a page's script may say beside what every page may.
const ALLOWED_HEADERS: HeaderValue =
    HeaderValue::from_static("Authorization, Range, If-Range, If-Match, If-None-Match");
/// A page of a public address asks before it asks a private one (W3C Private Network Access).
const ASKS_FOR_PRIVATE: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOWS_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// One who answers requests. The future is dropped as soon as the client closes the connection.
pub(crate) trait Answer: Send + Sync + 'static {
    /// Answers a GET or a HEAD. Who asks is an [`Asker`] in the request's extensions.
    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Response<Body>> + Send;
}

/// A place to listen at.
#[derive(Debug)]
pub(crate) struct Endpoint {
    listener: TcpListener,
    address: SocketAddr,
    limits: DoorLimits,
}

impl Endpoint {
    /// Listens at `address`; port 0 is any free port.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn bind(address: SocketAddr) -> Result<Self, ListenError> {
        let failure = |error: io::Error| ListenError::new(address, &error);
        let listener = listen(address).map_err(failure)?;
        let address = listener.local_addr().map_err(failure)?;
        let possible = connections_within(open_files::raise_limit(), 1, false);
        let connections = MOST_CONNECTIONS.min(possible);
        Ok(Self { listener, address, limits: DoorLimits { connections, ..LIMITS } })
    }

    /// Where it listens, with the real port.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address to be shown to a player on this machine: one that listens everywhere is reached by
    /// loopback.
    pub(crate) fn reachable(&self) -> SocketAddr {
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        SocketAddr::new(ip, self.address.port())
    }

    /// Answers until `stop` is ready, then lets running responses go on until `cut` is. When it is over,
    /// nothing of it is left. Dropping the future cuts everything off.
    pub(crate) async fn serve<A: Answer>(
        self,
        guard: Guard,
        answers: Arc<A>,
        stop: impl Future<Output = ()>,
        cut: impl Future<Output = ()>,
    ) {
        let (stopping, stopped) = watch::channel(false);
        let mut connections = JoinSet::new();
        let guard = Arc::new(guard);
        let door = Door::new(self.limits);
        let mut rest = AcceptRest::default();
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept() => match accepted {
                    Ok((socket, peer)) => {
                        set_options(&socket);
                        let Some(guest) = door.admit(socket, peer) else { continue };
                        let connection = serve_connection(guest, guard.clone(), answers.clone(), stopped.clone());
                        connections.spawn(async move {
                            if let Err(error) = connection.await {
                                tracing::debug!(%peer, %error, "player's connection ended");
                            }
                        });
                    }
                    Err(error) => rest.after(&error).await,
                },
            }
        }
        drop(self.listener);
        stopping.send_replace(true);
        tokio::select! {
            () = async { while connections.join_next().await.is_some() {} } => {}
            () = cut => {}
        }
        connections.shutdown().await;
    }
}

/// A connection without these is one all the same.
fn set_options(socket: &TcpStream) {
    let socket = socket2::SockRef::from(socket);
    let keep_alive = socket2::TcpKeepalive::new().with_time(KEEP_ALIVE);
    let set = socket.set_send_buffer_size(SEND_BUFFER).and_then(|()| socket.set_tcp_keepalive(&keep_alive));
    if let Err(error) = set {
        tracing::debug!(%error, "a player's connection is as the system makes it");
    }
}

async fn serve_connection<A: Answer>(
    guest: Guest,
    guard: Arc<Guard>,
    answers: Arc<A>,
    stopped: watch::Receiver<bool>,
) -> io::Result<()> {
    let is_served = guest.is_served();
    let (guard, answers) = (&*guard, &*answers);
    let answer = async |request, busy| {
        let response = if is_served { respond(guard, answers, request).await } else { refusal() };
        response.map(|body| body.until_sent(busy))
    };
    guest.serve(answer, stopped).await
}

/// There are too many connections.
fn refusal() -> Response<Body> {
    let mut response = message(StatusCode::SERVICE_UNAVAILABLE, "too many connections");
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, RETRY_AFTER);
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    inert::seal(headers);
    response
}

/// What is the same for every request, whoever answers it.
async fn respond<A: Answer>(guard: &Guard, answers: &A, mut request: Request<Incoming>) -> Response<Body> {
    let mut response = match guard.judge(request.headers(), request.uri().authority()) {
        Ok(asker) => {
            let origin = request.headers().get(header::ORIGIN).filter(|_| asker == Asker::Page).cloned();
            request.extensions_mut().insert(asker);
            let mut response = answer(answers, request).await;
            if asker == Asker::Page {
                let_read(response.headers_mut(), origin);
            }
            response
        }
        Err(refusal) => {
            tracing::debug!(refusal.text, "refused a request");
            message(refusal.status, refusal.text)
        }
    };
    inert::seal(response.headers_mut());
    response
}

async fn answer<A: Answer>(answers: &A, request: Request<Incoming>) -> Response<Body> {
    match *request.method() {
        Method::GET | Method::HEAD => {
            let head_only = request.method() == Method::HEAD;
            let response = answers.answer(request).await;
            if head_only { response.map(|_| Body::empty()) } else { response }
        }
        Method::OPTIONS => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            let headers = response.headers_mut();
            headers.insert(header::ALLOW, METHODS);
            if request.extensions().get() == Some(&Asker::Page) {
                headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
                headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS);
                if request.headers().contains_key(ASKS_FOR_PRIVATE) {
                    headers.insert(ALLOWS_PRIVATE, HeaderValue::from_static("true"));
                }
            }
            response
        }
        _ => {
            let mut response = message(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here");
            response.headers_mut().insert(header::ALLOW, METHODS);
            response
        }
    }
}

/// Lets a page that was let in have the answer: show it, and read it where its script asks (`origin`).
fn let_read(headers: &mut HeaderMap, origin: Option<HeaderValue>) {
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("cross-origin"));
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static(
                "Accept-Ranges, Content-Length, Content-Range, ETag, Last-Modified, Retry-After",
            ),
        );
    }
}

/// A response with a line of text.
pub(crate) fn message(status: StatusCode, text: impl std::fmt::Display) -> Response<Body> {
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    let mut response = text_response(plain, format!("{text}\n"));
    *response.status_mut() = status;
    response
}

/// A response with a text that was made here.
pub(crate) fn text_response(media_type: HeaderValue, text: String) -> Response<Body> {
    let mut response = Response::new(Body::text(text));
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    response
}
