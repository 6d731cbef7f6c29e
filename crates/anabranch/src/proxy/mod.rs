//! `anabranch proxy`: any URL through the engine, for any player; and the playlists of `play`, within their
//! scope.
//!
//! It listens on loopback unless told otherwise: whoever can reach it can reach through it whatever this
//! machine can, the other machines of its network included, and everything that this machine's address opens.
//! On loopback that is nobody else, and the browser's pages are kept out by the endpoint's [`Guard`].

mod address;
mod films;
mod ladder;
mod places;
mod playlists;
mod presentation;
mod reading;
mod rungs;
mod said;
mod scope;
mod secrets;

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_client::{OpenError, PlaylistSegment, Settings};
use anabranch_http::HeaderError;
use anabranch_media::playlist::{self, Place, PlaylistKind};
use anabranch_protocol::cmcd::Cmcd;
use anabranch_server::{Representation, Validators, content_reply, unconditional_range};
use http::header::{self, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use prometheus_client::registry::Registry;
use url::Url;

use crate::arguments::{AccessArguments, ProxyArguments, RungChooser};
use crate::endpoint::{
    Answer, Asker, Body, Endpoint, FilmResource, Guard, message, respond_with, text_response,
};
use crate::failure::Failure;
use crate::metrics;
use crate::output::Output;
use crate::report::Reporter;
use crate::settings::{Purpose, settings};

use films::{FilmError, Films, Role, Wanted};
use playlists::{Part, Playlists, What};
use reading::{read_index, read_whole};
use rungs::Rungs;
use said::Said;
pub(crate) use scope::{Key, Scope};
use scope::{Miss, Requested};
use secrets::Secrets;

/// What plays longer is a film of its own, whatever its player says.
const LONGEST_SEGMENT: anabranch_units::Duration = anabranch_units::Duration::from_secs(60);
/// How often unused films are looked for.
const SWEEP: Duration = Duration::from_secs(1);

/// Answers with what is at the URL that a request's path has.
pub(crate) struct Proxy {
    own: SocketAddr,
    scope: Scope,
    /// Who chooses the rungs of ladders.
    chooser: RungChooser,
    films: Arc<Films>,
    playlists: Playlists,
    registry: Arc<Registry>,
    /// The name in our `Via` header (RFC 9110 section 7.6.3), by which a request that comes back is
    /// recognised.
    via: String,
}

impl Proxy {
    /// A proxy that listens at `own` and gets what is in its scope with these settings.
    pub(crate) fn new(
        own: SocketAddr,
        scope: Scope,
        chooser: RungChooser,
        mut settings: Settings,
        reporter: Arc<Reporter>,
    ) -> Result<Self, HeaderError> {
        let via = format!("anabranch-{:016x}", RandomState::new().hash_one(0));
        settings.headers.add(&format!("Via: 1.1 {via}"))?;
        let registry = reporter.registry();
        let films = Arc::new(Films::new(settings, reporter));
        Ok(Self { own, scope, chooser, films, playlists: Playlists::default(), registry, via })
    }

    /// Why a request is not for this proxy at all.
    fn refusal(&self, request: &Request<Incoming>) -> Option<Response<Body>> {
        let mut via = request.headers().get_all(header::VIA).iter().filter_map(|value| value.to_str().ok());
        if via.any(|value| value.contains(&self.via)) {
            return Some(message(StatusCode::BAD_REQUEST, "the URL leads back to this proxy"));
        }
        None
    }

    async fn fetch(&self, request: &Request<Incoming>) -> Response<Body> {
        let target = request.uri().path_and_query().map(http::uri::PathAndQuery::as_str);
        let requested = match self.scope.requested(target.unwrap_or_default()) {
            Ok(requested) if address::leads_to(&requested.url, self.own) => {
                return message(StatusCode::BAD_REQUEST, "the URL leads back to this proxy");
            }
            Ok(requested) => requested,
            Err(Miss::Unreadable(error)) => return message(StatusCode::BAD_REQUEST, error),
            Err(Miss::NotNamed) => return message(StatusCode::NOT_FOUND, "nothing here has that address"),
        };
        let asker = request.extensions().get().copied().unwrap_or(Asker::Browser);
        let secrets = match requested.with_secrets {
            true => Secrets::of(request.headers(), asker),
            false => Secrets::default(),
        };
        let began = Instant::now();
        let asked = unconditional_range(request.headers()).filter(|_| *request.method() == Method::GET);
        let cmcd = Cmcd::of(request.headers(), requested.url.query());
        let (said, url) = Said::of(&requested.url, request.headers());
        let (part, bytes) = self.playlists.part(&url, asked.clone()).unzip();
        let bytes = bytes.flatten();
        let from_start = match &bytes {
            Some(bytes) => asked.is_some_and(|asked| asked.start == bytes.start),
            None => begins_at_start(request),
        };
        let mut wanted = Wanted { place: Place { url, bytes }, secrets };
        let mut of_segment = part.as_ref().and_then(Part::segment);
        let chosen = match of_segment {
            Some((presentation, segment)) => presentation.chosen(segment, !from_start).await,
            None => None,
        };
        if let Some((chosen, (_, segment))) = chosen.zip(of_segment.as_mut()) {
            (*segment, wanted.place) = (chosen.segment, chosen.place);
            if let Some(told) = &chosen.told {
                self.films.reporter().rung(told);
            }
        }
        let mut is_ahead = false;
        let role = match (&part, of_segment) {
            (_, Some((presentation, segment))) => {
                let hints = self.playlists.hints(&cmcd, &wanted.place.url, presentation);
                let (told, ahead) = presentation.asked(segment, &wanted, hints).unzip();
                is_ahead = ahead.unwrap_or(false);
                Role::Part(told)
            }
            (Some(_), None) => Role::Part(None),
            (None, None) if PlaylistKind::detect(None, &requested.url).is_some() => Role::Part(None),
            (None, None) => segment_by_its_player(&cmcd).map_or(Role::Whole, |told| Role::Part(Some(told))),
        };
        let opened = match self.films.get(&wanted, from_start, role, &said).await {
            // All of it then, as a film of its own.
            Err(FilmError::Open(OpenError::NoParts(_))) => {
                wanted.place.bytes = None;
                if let Some((presentation, segment)) = of_segment.take() {
                    presentation.failed(segment);
                }
                self.films.get(&wanted, begins_at_start(request), Role::Whole, &said).await
            }
            opened => opened,
        };
        let film = match opened {
            Ok(film) => film,
            Err(error) => {
                if let Some((presentation, segment)) = of_segment {
                    presentation.failed(segment);
                }
                let mut response = refused(&error);
                // A browser would ask its user, and tell the answer to every host behind the proxy.
                if response.status() == StatusCode::UNAUTHORIZED
                    && requested.with_secrets
                    && asker == Asker::Program
                {
                    challenge(response.headers_mut(), &requested.url);
                }
                return response;
            }
        };
        let info = film.resource.film().info();
        let found = info.location.clone();
        let kind = PlaylistKind::detect(info.content_type.as_deref(), &found);
        let Some(kind) = kind.filter(|_| wanted.place.bytes.is_none()) else {
            let Some((presentation, segment)) = of_segment else {
                if let Some(Part { what: What::Index(track), .. }) = &part {
                    read_index(&self.playlists, track, &wanted.place, &film.resource).await;
                }
                return film.resource.answer(request);
            };
            presentation.opened(segment, wanted, &film, began, &self.films);
            // What comes while its player waits tells by itself what the paths give.
            return film.resource.answer_at(request, is_ahead.then(|| presentation.read_rate()));
        };
        // A live playlist changes all the time, so that each request gets the one of now.
        self.films.forget(&wanted, &film);
        if let Some(found) = elsewhere(&requested.url, &found) {
            return moved(&self.scope.path(&requested, &found));
        }
        self.playlist(request, kind, &requested, &film.resource).await
    }

    /// Where players find what the user named.
    pub(crate) fn entrance(&self, url: &Url) -> Response<Body> {
        moved(&self.scope.entrance(url))
    }

    /// Closes what nobody reads any more, all the time.
    pub(crate) async fn keep(&self) {
        let mut sweep = tokio::time::interval(SWEEP);
        loop {
            sweep.tick().await;
            self.playlists.sweep();
            self.films.sweep();
        }
    }

    /// Ends what goes on beside requests. Nothing is to be asked for any more.
    pub(crate) async fn end(&self) {
        self.films.end().await;
    }

    /// A playlist whose references lead through here.
    async fn playlist(
        &self,
        request: &Request<Incoming>,
        kind: PlaylistKind,
        requested: &Requested,
        film: &FilmResource,
    ) -> Response<Body> {
        let original = match read_whole(film).await {
            Ok(Some(original)) => original,
            // Nothing that could be rewritten.
            Ok(None) => return film.answer(request),
            Err(error) => return message(StatusCode::BAD_GATEWAY, error),
        };
        let (_, url) = Said::of(&requested.url, request.headers());
        self.playlists.read(kind, &original, &url, self.films.memory());
        let original = match rungs::is_chosen_here(self.chooser, request.headers()) {
            true => {
                let rungs = Rungs { films: &self.films, playlists: &self.playlists };
                rungs.refresh(&original, &url).await;
                rungs.with_one(kind, &original, &url).await
            }
            false => original,
        };
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let own = host.map_or_else(|| format!("http://{}/", self.own), |host| format!("http://{host}/"));
        let route = self.scope.route(requested, own);
        let content = match playlist::rewrite(kind, &original, &requested.url, &route) {
            Ok(rewritten) => rewritten.into(),
            Err(error) => {
                tracing::warn!(host = requested.url.host_str(), %error, "a playlist is passed on as it is");
                original
            }
        };
        let representation = Representation {
            size: anabranch_units::Bytes::of(content.len()).get(),
            media_type: media_type(kind).to_owned(),
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
}

/// What a player itself tells of a segment that no playlist lists.
fn segment_by_its_player(cmcd: &Cmcd) -> Option<PlaylistSegment> {
    let play_time = cmcd.play_time.filter(|time| !time.is_zero() && *time <= LONGEST_SEGMENT)?;
    let ahead = cmcd.to_play().unwrap_or(play_time);
    Some(PlaylistSegment::alone(play_time, ahead))
}

/// Whether a reader wants the object from its first byte on.
fn begins_at_start(request: &Request<Incoming>) -> bool {
    request.headers().get(header::RANGE).is_none_or(|range| range.as_bytes().starts_with(b"bytes=0-"))
}

/// Where a player has to go because the redirects ended there: relative references of a playlist start from
/// it.
fn elsewhere(requested: &Url, found: &Url) -> Option<Url> {
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
    Some(location)
}

/// Sends a player to another path.
fn moved(path: &str) -> Response<Body> {
    match HeaderValue::from_str(path) {
        Ok(path) => {
            let mut response = message(StatusCode::FOUND, "it is elsewhere");
            response.headers_mut().insert(header::LOCATION, path);
            response
        }
        Err(_) => message(StatusCode::BAD_GATEWAY, "it is at no address that could be told"),
    }
}

/// Asks a player for what its host wants, in the form that players know.
fn challenge(headers: &mut HeaderMap, url: &Url) {
    let realm = format!("Basic realm=\"{}\"", url.host_str().unwrap_or_default());
    if let Ok(realm) = HeaderValue::from_str(&realm) {
        headers.insert(header::WWW_AUTHENTICATE, realm);
    }
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
        FilmError::TooMany => {
            (StatusCode::SERVICE_UNAVAILABLE, Some(anabranch_units::Duration::from_secs(1)))
        }
        FilmError::Open(OpenError::Refused { status, retry_after, .. }) => {
            let status = StatusCode::from_u16(*status).ok().filter(|status| status.as_u16() >= 400);
            (status.unwrap_or(StatusCode::BAD_GATEWAY), *retry_after)
        }
        _ => (StatusCode::BAD_GATEWAY, None),
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
    let endpoint = Endpoint::bind(arguments.listen).map_err(Failure::failed)?;
    let reporter = Arc::new(Reporter::start("proxy", &[], &arguments.report, output).await?);
    let ended = serve(endpoint, settings, &arguments.access, reporter.clone(), output).await;
    // Everything that held it is gone with the endpoint.
    match Arc::into_inner(reporter) {
        Some(reporter) => reporter.finish(ended).await,
        None => ended,
    }
}

async fn serve(
    endpoint: Endpoint,
    settings: Settings,
    access: &AccessArguments,
    reporter: Arc<Reporter>,
    output: &Output,
) -> Result<(), Failure> {
    let own = endpoint.address();
    let guard = Guard::new(own, access);
    let proxy = Arc::new(
        Proxy::new(own, Scope::Everything, RungChooser::Player, settings, reporter)
            .map_err(Failure::usage)?,
    );
    output.say(format_args!(
        "ask for http://{}/URL, with URL as it is: http://host/path",
        endpoint.reachable()
    ));
    if !own.ip().is_loopback() {
        output.warn("everybody who can reach this address can reach through it what this machine can");
    }
    let mut ended = Ok(());
    let stop = async {
        tokio::select! {
            () = proxy.keep() => {}
            signal = output.stop().signal() => ended = Err(Failure::stopped(signal, "interrupted")),
        }
    };
    endpoint.serve(guard, proxy.clone(), stop, std::future::ready(())).await;
    proxy.end().await;
    ended
}
