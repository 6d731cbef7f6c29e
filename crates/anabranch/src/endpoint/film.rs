//! A film as an HTTP resource: one size, one entity tag and one content type for as long as it is open.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;

use anabranch_client::{Film, FilmInfo, ReadRate};
use anabranch_server::{Piece, Representation, Validators, content_reply, media_type, precondition_reply};
use http::header::{self, HeaderValue};
use http::{Method, Request, Response};
use hyper::body::Incoming;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

use super::Answer;
use super::body::{Body, respond_with};
use super::delivery::Delivery;

/// What a server says that does not know what it sends.
const VAGUE_TYPES: [&str; 3] = ["application/octet-stream", "binary/octet-stream", "text/plain"];

/// An open film and how it presents itself to players.
pub(crate) struct FilmResource {
    film: Film,
    representation: Representation,
    delivery: Arc<Delivery>,
}

impl FilmResource {
    /// An open film.
    pub(crate) fn new(film: Film) -> Self {
        let representation = representation(film.info());
        let delivery = Delivery::new(media_end(film.info()));
        Self { film, representation, delivery }
    }

    /// The film itself.
    pub(crate) fn film(&self) -> &Film {
        &self.film
    }

    /// What players have taken of it.
    pub(crate) fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// Answers a GET or a HEAD; of a film that is a part of something, a GET for bytes within that part.
    pub(crate) fn answer<B>(&self, request: &Request<B>) -> Response<Body> {
        self.answer_at(request, None)
    }

    /// The same, handed over no faster than so.
    pub(crate) fn answer_at<B>(&self, request: &Request<B>, rate: Option<Arc<ReadRate>>) -> Response<Body> {
        self.whole_speed(request).map(|body| body.at(rate))
    }

    fn whole_speed<B>(&self, request: &Request<B>) -> Response<Body> {
        let FilmInfo { size, within, .. } = *self.film.info();
        let delivering = || (*request.method() == Method::GET).then(|| self.delivery.begin());
        if self.film.is_seekable() {
            let mut reply = precondition_reply(request.headers(), &self.representation)
                .unwrap_or_else(|| content_reply(request.method(), request.headers(), &self.representation));
            let mut pieces = std::mem::take(&mut reply.pieces);
            if let Some(within) = within {
                pieces.iter_mut().for_each(|piece| shift(piece, within.start));
            }
            return respond_with(reply, Body::of_film(pieces, self.film.clone(), delivering()));
        }
        // A server without ranges, and more than is kept: from the start to the end, and no promise of
        // anything else.
        let body = match size {
            Some(size) => Body::of_film(vec![Piece::File(0..size)], self.film.clone(), delivering()),
            None => Body::of_endless_film(self.film.clone(), delivering()),
        };
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("none"));
        if let Ok(value) = HeaderValue::from_str(&self.representation.media_type) {
            headers.insert(header::CONTENT_TYPE, value);
        }
        if let Some(size) = size {
            headers.insert(header::CONTENT_LENGTH, size.into());
        }
        response
    }
}

impl Answer for FilmResource {
    /// The film is at every path (for a viewer of ours: the demo).
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        Self::answer(self, &request)
    }
}

/// A piece of all that the film is a part of, as a piece of the film, which begins at `start` there.
fn shift(piece: &mut Piece, start: u64) {
    if let Piece::File(range) = piece {
        *range = range.start.saturating_sub(start)..range.end.saturating_sub(start);
    }
}

/// How a film presents itself.
fn representation(info: &FilmInfo) -> Representation {
    // A tag that players can rely on: the engine never joins bytes of two versions, so while the film is open
    // there is one only, also where the server gives a weak tag or none.
    let etag = match &info.etag {
        Some(etag) if !etag.starts_with("W/") => etag.clone(),
        _ => format!("\"{:016x}\"", RandomState::new().hash_one(0)),
    };
    let modified = info.last_modified.as_deref().and_then(|date| date.parse().ok());
    let said = info.content_type.as_deref().filter(|said| {
        let essence = said.split(';').next().unwrap_or_default().trim();
        !VAGUE_TYPES.iter().any(|vague| essence.eq_ignore_ascii_case(vague))
    });
    let media_type = match said {
        Some(said) => super::media_type(said),
        None => super::media_type(&media_type(Path::new(&file_name(info)))),
    };
    Representation {
        size: info.within.map(|within| within.size).or(info.size).unwrap_or_default(),
        media_type,
        validators: Validators { etag, modified },
    }
}

/// The position behind the last byte of the media: where an index at the film's end begins, if there is one.
fn media_end(info: &FilmInfo) -> Option<u64> {
    let size = info.size?;
    let index = info.media.as_ref().and_then(|media| media.index.clone());
    Some(index.filter(|index| index.end == size).map_or(size, |index| index.start))
}

/// What is left of a name in a URL when a shell, or another parser of command lines, must find nothing in it
/// to obey.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The film's name as players are told it, in a URL and on a command line.
pub(crate) fn offered_name(info: &FilmInfo) -> String {
    let name: Vec<u8> = percent_decode_str(&file_name(info)).collect();
    percent_encode(&name, PLAIN).to_string()
}

/// The last part of the path of the film's first URL, as it is written there; perhaps nothing.
fn file_name(info: &FilmInfo) -> String {
    let name = info.location.path_segments().and_then(|mut segments| segments.next_back());
    name.unwrap_or_default().to_owned()
}
