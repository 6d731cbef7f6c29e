//! What `play` offers at its endpoint: a film, or a playlist with what it refers to.

use std::net::SocketAddr;
use std::sync::Arc;

use anabranch_client::{Film, Settings};
use anabranch_http::{HeaderError, Target};
use anabranch_media::playlist::PlaylistKind;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use prometheus_client::registry::Registry;
use url::Url;

use crate::arguments::RungChooser;
use crate::endpoint::{Answer, Body, FilmResource, message, offered_name, text_response};
use crate::metrics;
use crate::proxy::{Key, Proxy, Scope};
use crate::report::Reporter;

/// What is at `/` and at `/NAME`.
pub(super) struct Offer {
    name: String,
    registry: Arc<Registry>,
    content: Content,
}

enum Content {
    Film(Box<FilmResource>),
    /// The playlist is at this URL; the proxy knows it and what it names, and nothing else.
    Playlist(Box<Proxy>, Url),
}

impl Offer {
    /// What was found to be a film or a playlist, at an endpoint that listens at `own`.
    ///
    /// # Errors
    /// There are too many headers.
    pub(super) fn new(
        film: Film,
        settings: Settings,
        own: SocketAddr,
        chooser: RungChooser,
        reporter: &Arc<Reporter>,
    ) -> Result<Self, HeaderError> {
        let (name, registry) = (offered_name(film.info()), reporter.registry());
        let content = match playlist(&film) {
            Some(url) => Content::Playlist(Box::new(proxy(settings, own, chooser, reporter)?), url),
            None => Content::Film(Box::new(FilmResource::new(film))),
        };
        Ok(Self { name, registry, content })
    }

    /// The name behind the slash, as it can be told.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The film, if it is one.
    pub(super) fn film(&self) -> Option<&FilmResource> {
        match &self.content {
            Content::Film(film) => Some(film),
            Content::Playlist(..) => None,
        }
    }

    /// Ends what goes on beside requests. Nothing is to be asked for any more.
    pub(super) async fn end(&self) {
        if let Content::Playlist(proxy, _) = &self.content {
            proxy.end().await;
        }
    }

    /// Keeps house as long as it is offered. It never ends.
    pub(super) async fn keep(&self) {
        match &self.content {
            Content::Film(_) => std::future::pending().await,
            Content::Playlist(proxy, _) => proxy.keep().await,
        }
    }
}

/// Where the redirects ended, when a playlist is there.
fn playlist(film: &Film) -> Option<Url> {
    let info = film.info();
    PlaylistKind::detect(info.content_type.as_deref(), &info.location).map(|_| info.location.clone())
}

/// The proxy for what a playlist names. User and password of the typed URLs become headers of their hosts, as
/// the URLs that players are told have none.
fn proxy(
    mut settings: Settings,
    own: SocketAddr,
    chooser: RungChooser,
    reporter: &Arc<Reporter>,
) -> Result<Proxy, HeaderError> {
    for url in std::mem::take(&mut settings.urls) {
        if let Ok(target) = Target::new(&url) {
            settings.headers.add_credentials_of(&target)?;
        }
    }
    Proxy::new(own, Scope::Named(Key::default()), chooser, settings, reporter.clone())
}

impl Answer for Offer {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path();
        let is_start = path == "/"
            || percent_decode_str(path.trim_start_matches('/')).eq(percent_decode_str(&self.name));
        match &self.content {
            _ if path == "/metrics" => text_response(metrics::MEDIA_TYPE, metrics::encode(&self.registry)),
            Content::Film(film) if is_start => film.answer(&request),
            Content::Playlist(proxy, url) if is_start => proxy.entrance(url),
            Content::Playlist(proxy, _) => proxy.answer(request).await,
            Content::Film(_) => message(StatusCode::NOT_FOUND, format_args!("the film is at /{}", self.name)),
        }
    }
}
