//! The local HTTP endpoint that a player talks to: connections and their bounds. What is answered is the matter of an
//! [`Answer`]: a film ([`FilmResource`]), or whatever the proxy is asked for.

mod body;
mod delivery;
mod film;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::{self, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

pub(crate) use body::{Body, respond_with};
pub(crate) use film::{FilmResource, file_name};

/// Most connections at a time; further ones wait in the system's queue. A player has a handful.
const MOST_CONNECTIONS: usize = 256;
/// Longest head of a request.
const LONGEST_HEAD: usize = 32 * 1024;
/// What hyper may hold of a body that the player does not take yet.
const LARGEST_BUFFER: usize = 128 * 1024;
/// Longest time for a head to arrive, and between two requests of a connection. A response has no limit: a player that
/// pauses takes nothing for as long as its viewer likes.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// A peer that vanished without a word is noticed after about so long.
const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// Rest after the system could not give us another connection (no file descriptors left, for example).
const ACCEPT_REST: Duration = Duration::from_millis(50);

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");

/// One who answers requests. The future is dropped as soon as the client closes the connection.
pub(crate) trait Answer: Send + Sync + 'static {
    /// Answers a GET or a HEAD.
    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Response<Body>> + Send;

    /// Whether a script of the web page with this origin may read the answers (the CORS protocol of the Fetch standard).
    fn admits(&self, origin: &HeaderValue) -> bool;
}

/// A place to listen at.
#[derive(Debug)]
pub(crate) struct Endpoint {
    listener: TcpListener,
    address: SocketAddr,
}

impl Endpoint {
    /// Listens at `address`; port 0 is any free port.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) async fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Where it listens, with the real port.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address to be shown to a player on this machine: one that listens everywhere is reached by loopback.
    pub(crate) fn reachable(&self) -> SocketAddr {
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        SocketAddr::new(ip, self.address.port())
    }

    /// Answers until `stop` is ready, then lets running responses go on for `grace`. When it is over, nothing of it is
    /// left. Dropping the future cuts everything off.
    pub(crate) async fn serve<A: Answer>(
        self,
        answers: Arc<A>,
        stop: impl Future<Output = ()>,
        grace: Duration,
    ) {
        let (stopping, stopped) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept(), if connections.len() < MOST_CONNECTIONS => match accepted {
                    Ok((socket, peer)) => {
                        let connection = serve_connection(socket, answers.clone(), stopped.clone());
                        connections.spawn(async move {
                            if let Err(error) = connection.await {
                                tracing::debug!(%peer, error = &*error, "player's connection ended");
                            }
                        });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        sleep(ACCEPT_REST).await;
                    }
                },
            }
        }
        drop(self.listener);
        stopping.send_replace(true);
        let _ = timeout(grace, async { while connections.join_next().await.is_some() {} }).await;
        connections.shutdown().await;
    }
}

async fn serve_connection<A: Answer>(
    socket: TcpStream,
    answers: Arc<A>,
    mut stopped: watch::Receiver<bool>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    socket.set_nodelay(true)?;
    socket2::SockRef::from(&socket).set_tcp_keepalive(&socket2::TcpKeepalive::new().with_time(KEEP_ALIVE))?;
    let service = service_fn(|request| respond(&*answers, request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .max_header_size(LONGEST_HEAD)
        .max_buf_size(LARGEST_BUFFER)
        .serve_connection(TokioIo::new(socket), service);
    let mut connection = pin!(connection);
    tokio::select! {
        result = connection.as_mut() => return Ok(result?),
        _ = stopped.wait_for(|stopped| *stopped) => connection.as_mut().graceful_shutdown(),
    }
    Ok(connection.await?)
}

/// What is the same for every request, whoever answers it.
async fn respond<A: Answer>(answers: &A, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let origin = request.headers().get(header::ORIGIN).filter(|origin| answers.admits(origin)).cloned();
    let mut response = match *request.method() {
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
            if origin.is_some() {
                headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
                let allowed = HeaderValue::from_static("Range, If-Range, If-Match, If-None-Match");
                headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
            }
            response
        }
        _ => {
            let mut response = message(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here");
            response.headers_mut().insert(header::ALLOW, METHODS);
            response
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::SERVER, HeaderValue::from_static("anabranch"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("Accept-Ranges, Content-Length, Content-Range, ETag, Last-Modified"),
        );
    }
    Ok(response)
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
