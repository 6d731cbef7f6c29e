//! `anabranch proxy`: any URL through the engine, for any player.
//!
//! It listens on loopback unless told otherwise: whoever can reach it can reach through it whatever this machine can, the
//! other machines of its network included, and everything that this machine's address opens. On loopback that is
//! nobody else, and the browser's pages are kept out: a request must name the proxy by its own address in `Host`
//! (a page whose name was rebound to loopback names itself), and scripts may read answers only when their page comes
//! from this machine.

mod address;
mod films;

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderValue};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use prometheus_client::registry::Registry;
use transport::engine::{EngineError, OpenError, Settings};
use transport::http::HeaderError;
use transport::media::playlist::{self, LARGEST_PLAYLIST, PlaylistKind};
use transport::server::{Representation, Validators, content_reply};
use url::Url;

use crate::arguments::ProxyArguments;
use crate::endpoint::{Answer, Body, Endpoint, FilmResource, message, respond_with, text_response};
use crate::failure::Failure;
use crate::metrics;
use crate::output::Output;
use crate::report::Reporter;
use crate::settings::{Purpose, settings};

use films::{FilmError, Films};

/// How often unused films are looked for.
const SWEEP: Duration = Duration::from_secs(1);

/// Answers `/URL` with what is at that URL.
struct Proxy {
    own: SocketAddr,
    films: Films,
    registry: Arc<Registry>,
    /// The name in our `Via` header (RFC 9110 section 7.6.3), by which a request that comes back is recognised.
    via: String,
}

impl Proxy {
    /// A proxy that listens at `own` and gets films with these settings.
    fn new(own: SocketAddr, mut settings: Settings, reporter: Arc<Reporter>) -> Result<Self, HeaderError> {
        let via = format!("anabranch-{:016x}", RandomState::new().hash_one(0));
        settings.headers.add(&format!("Via: 1.1 {via}"))?;
        let registry = reporter.registry();
        Ok(Self { own, films: Films::new(settings, reporter), registry, via })
    }

    /// Why a request is not for this proxy at all.
    fn refusal(&self, request: &Request<Incoming>) -> Option<Response<Body>> {
        let host = request.headers().get(header::HOST).map(HeaderValue::to_str);
        // Without a Host it is no browser.
        let is_own = host.is_none_or(|host| host.is_ok_and(|host| address::names(host, self.own)));
        if self.own.ip().is_loopback() && !is_own {
            let text = format_args!("this proxy answers to http://{}/ only", self.own);
            return Some(message(StatusCode::MISDIRECTED_REQUEST, text));
        }
        let mut via = request.headers().get_all(header::VIA).iter().filter_map(|value| value.to_str().ok());
        if via.any(|value| value.contains(&self.via)) {
            return Some(message(StatusCode::BAD_REQUEST, "the URL leads back to this proxy"));
        }
        None
    }

    async fn fetch(&self, request: &Request<Incoming>) -> Response<Body> {
        let target = request.uri().path_and_query().map(http::uri::PathAndQuery::as_str);
        let url = match address::requested(target.unwrap_or_default()) {
            Ok(url) if address::leads_to(&url, self.own) => {
                return message(StatusCode::BAD_REQUEST, "the URL leads back to this proxy");
            }
            Ok(url) => url,
            Err(error) => return message(StatusCode::BAD_REQUEST, error),
        };
        let film = match self.films.get(&url, begins_at_start(request)).await {
            Ok(film) => film,
            Err(error) => return refused(&error),
        };
        let info = film.resource.film().info();
        let found =
            info.replicas.first().and_then(|found| Url::parse(found).ok()).unwrap_or_else(|| url.clone());
        let Some(kind) = PlaylistKind::detect(info.content_type.as_deref(), &found) else {
            return film.resource.answer(request);
        };
        // A live playlist changes all the time, so that each request gets the one of now.
        self.films.forget(&url, &film);
        if let Some(location) = elsewhere(&url, &found) {
            return location;
        }
        self.playlist(request, kind, &found, &film.resource).await
    }

    /// A playlist whose references lead through here.
    async fn playlist(
        &self,
        request: &Request<Incoming>,
        kind: PlaylistKind,
        base: &Url,
        film: &FilmResource,
    ) -> Response<Body> {
        let original = match read_playlist(film).await {
            Ok(Some(original)) => original,
            // Nothing that could be rewritten.
            Ok(None) => return film.answer(request),
            Err(error) => return message(StatusCode::BAD_GATEWAY, error),
        };
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let prefix = host.map_or_else(|| format!("http://{}/", self.own), |host| format!("http://{host}/"));
        let content = match playlist::rewrite(kind, &original, base, &prefix) {
            Ok(rewritten) => rewritten.into(),
            Err(error) => {
                tracing::warn!(url = %base, %error, "passed on as it is");
                original
            }
        };
        let representation = Representation {
            size: units::Bytes::of(content.len()).get(),
            media_type: film
                .film()
                .info()
                .content_type
                .clone()
                .unwrap_or_else(|| media_type(kind).to_owned()),
            validators: Validators {
                etag: format!("\"{:016x}\"", RandomState::new().hash_one(0)),
                modified: None,
            },
        };
        let mut reply = content_reply(request.method(), request.headers(), &representation);
        reply.headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let pieces = std::mem::take(&mut reply.pieces);
        respond_with(reply, Body::parts_of(pieces, content))
    }
}

impl Answer for Proxy {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        match self.refusal(&request) {
            Some(refusal) => refusal,
            None if request.uri().path() == "/metrics" => {
                text_response(metrics::MEDIA_TYPE, metrics::encode(&self.registry))
            }
            None => self.fetch(&request).await,
        }
    }

    fn admits(&self, origin: &HeaderValue) -> bool {
        origin.to_str().is_ok_and(address::is_local_origin)
    }
}

/// Whether a reader wants the object from its first byte on.
fn begins_at_start(request: &Request<Incoming>) -> bool {
    request.headers().get(header::RANGE).is_none_or(|range| range.as_bytes().starts_with(b"bytes=0-"))
}

/// Sends a player to where the redirects ended: relative references of a playlist start there.
fn elsewhere(requested: &Url, found: &Url) -> Option<Response<Body>> {
    let mut plain = requested.clone();
    plain.set_fragment(None);
    let _ = (plain.set_username(""), plain.set_password(None));
    if plain == *found {
        return None;
    }
    let mut location = found.clone();
    if requested.origin() == found.origin() {
        let _ = (location.set_username(requested.username()), location.set_password(requested.password()));
    }
    let mut response = message(StatusCode::FOUND, &location);
    let location = HeaderValue::from_str(&format!("/{location}")).ok()?;
    response.headers_mut().insert(header::LOCATION, location);
    Some(response)
}

/// All of a playlist; `None` when it is too long to be one.
async fn read_playlist(film: &FilmResource) -> Result<Option<Bytes>, EngineError> {
    let mut reader = film.film().reader(0..u64::MAX);
    let mut content = BytesMut::new();
    while let Some(piece) = reader.next().await? {
        content.extend_from_slice(&piece);
        if content.len() > LARGEST_PLAYLIST {
            return Ok(None);
        }
    }
    Ok(Some(content.freeze()))
}

fn media_type(kind: PlaylistKind) -> &'static str {
    match kind {
        PlaylistKind::Hls => "application/vnd.apple.mpegurl",
        PlaylistKind::Dash => "application/dash+xml",
    }
}

/// What a player is told when there is no film: what the origin said, where it said something.
fn refused(error: &FilmError) -> Response<Body> {
    let (status, retry_after) = match error {
        FilmError::TooMany => (StatusCode::SERVICE_UNAVAILABLE, None),
        FilmError::Open(OpenError::Refused { status, retry_after, .. }) => {
            let status = StatusCode::from_u16(*status).ok().filter(|status| status.as_u16() >= 400);
            (status.unwrap_or(StatusCode::BAD_GATEWAY), *retry_after)
        }
        FilmError::Open(_) => (StatusCode::BAD_GATEWAY, None),
    };
    let mut response = message(status, error);
    if let Some(retry_after) = retry_after {
        let seconds = retry_after.as_millis().div_ceil(1000);
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// Answers players until a signal ends it.
///
/// # Errors
/// The address cannot be listened at, options are wrong, or a signal ends it.
pub async fn run(arguments: ProxyArguments, output: &Output) -> Result<(), Failure> {
    let settings = settings(&[], &arguments.source, Purpose::Play)?;
    let endpoint = Endpoint::bind(arguments.listen)
        .await
        .map_err(|error| Failure::failed(format_args!("cannot listen at {}: {error}", arguments.listen)))?;
    let reporter = Arc::new(Reporter::start("proxy", &[], &arguments.report, output).await?);
    let ended = serve(endpoint, settings, reporter.clone(), output).await;
    // Everything that held it is gone with the endpoint.
    match Arc::into_inner(reporter) {
        Some(reporter) => reporter.finish(ended).await,
        None => ended,
    }
}

async fn serve(
    endpoint: Endpoint,
    settings: Settings,
    reporter: Arc<Reporter>,
    output: &Output,
) -> Result<(), Failure> {
    let own = endpoint.address();
    let proxy = Arc::new(Proxy::new(own, settings, reporter).map_err(Failure::usage)?);
    output.say(format_args!(
        "ask for http://{}/URL, with URL as it is: http://host/path",
        endpoint.reachable()
    ));
    if !own.ip().is_loopback() {
        output.warn("everybody who can reach this address can reach through it what this machine can");
    }
    let mut ended = Ok(());
    let stop = async {
        let mut sweep = tokio::time::interval(SWEEP);
        loop {
            tokio::select! {
                _ = sweep.tick() => proxy.films.sweep(),
                signal = output.stop().signal() => {
                    ended = Err(Failure::stopped(signal, "interrupted"));
                    break;
                }
            }
        }
    };
    endpoint.serve(proxy.clone(), stop, Duration::ZERO).await;
    ended
}
