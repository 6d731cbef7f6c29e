//! The answer to a request.

use std::convert::Infallible;
use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;

use super::body::{Body, Piece};
use super::conditional::{Verdict, evaluate, range_applies};
use super::connection::{Context, Upgrade};
use super::files::{self, Found, Opened};
use super::io_guard::BusyGuard;
use super::log::Entry;
use super::metrics::increment;
use super::range::{Selection, select};
use super::stripe::{self, SIZE_HEADER};

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");
/// When a client that was turned away may come again.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("5");

/// A response without what all responses have.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    pieces: Vec<Piece>,
    file: Option<Arc<std::fs::File>>,
}

impl Answer {
    fn new(status: StatusCode) -> Self {
        Self { status, headers: HeaderMap::new(), pieces: Vec::new(), file: None }
    }

    /// A status with its name as the page.
    fn page(status: StatusCode) -> Self {
        let name = status.canonical_reason().unwrap_or_default();
        Self::new(status).text(format!("{} {name}\n", status.as_u16()), "text/plain; charset=utf-8")
    }

    fn text(mut self, text: String, media_type: &'static str) -> Self {
        self.pieces = vec![Piece::Text(text.into())];
        self.with(header::CONTENT_TYPE, HeaderValue::from_static(media_type))
    }

    fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// With a value that this server made; one that is no header value would be a fault here, and is left out.
    fn with_text(self, name: HeaderName, value: &str) -> Self {
        match HeaderValue::from_str(value) {
            Ok(value) => self.with(name, value),
            Err(_) => self,
        }
    }
}

/// Answers one request.
pub(super) async fn answer(
    context: Arc<Context>,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let busy = BusyGuard::new(&context.activity);
    let shared = &context.shared;
    if let Some(shape) = shared.config.shape {
        tokio::time::sleep(shape.first_byte_delay).await;
    }
    let mut entry = Entry::new(shared.log.as_ref(), context.client, &request);
    let answer = respond(&context, &mut request).await.unwrap_or_else(|error| {
        increment(&shared.metrics.errors);
        tracing::warn!(%error, path = request.uri().path(), "cannot serve");
        Answer::page(StatusCode::INTERNAL_SERVER_ERROR)
    });
    shared.metrics.count_response(answer.status);
    entry.status = answer.status;
    let (pool, shaper) = (shared.pool.clone(), shared.shaper.clone());
    if answer.status == StatusCode::SWITCHING_PROTOCOLS {
        // The connection writes the line when it ends, with what it carried.
        if let Some(upgrade) = &mut *context.upgrade.lock().unwrap_or_else(PoisonError::into_inner) {
            std::mem::swap(&mut upgrade.entry, &mut entry);
        }
        let mut response = Response::new(Body::new([], None, pool, None, Entry::silent(), Some(busy)));
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        return Ok(response);
    }
    let has_body = answer.status != StatusCode::NOT_MODIFIED && answer.status != StatusCode::NO_CONTENT;
    let whole = Body::new(answer.pieces, answer.file, pool.clone(), shaper, entry, Some(busy));
    let length = whole.left();
    let body = if *request.method() == Method::HEAD || !has_body { whole.without_pieces() } else { whole };
    let mut response = Response::new(body);
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    *headers = answer.headers;
    if has_body {
        headers.insert(header::CONTENT_LENGTH, length.into());
    }
    headers.insert(header::SERVER, HeaderValue::from_static("anabranch"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("Accept-Ranges, Content-Length, Content-Range, ETag, Last-Modified"),
    );
    Ok(response)
}

async fn respond(context: &Context, request: &mut Request<Incoming>) -> io::Result<Answer> {
    if !context.served {
        return Ok(Answer::page(StatusCode::SERVICE_UNAVAILABLE)
            .with(header::RETRY_AFTER, RETRY_AFTER_SECONDS)
            .with(header::CONNECTION, HeaderValue::from_static("close")));
    }
    match *request.method() {
        Method::GET | Method::HEAD => {}
        // What a browser asks before it sends a request with If-Range.
        Method::OPTIONS => {
            return Ok(Answer::new(StatusCode::NO_CONTENT)
                .with(header::ALLOW, METHODS)
                .with(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS)
                .with(
                    header::ACCESS_CONTROL_ALLOW_HEADERS,
                    HeaderValue::from_static("Range, If-Range, If-Match"),
                ));
        }
        _ => return Ok(Answer::page(StatusCode::METHOD_NOT_ALLOWED).with(header::ALLOW, METHODS)),
    }
    let (root, path) = (context.shared.root.clone(), request.uri().path().to_owned());
    let found =
        tokio::task::spawn_blocking(move || files::find(&root, &path)).await.map_err(io::Error::other)??;
    Ok(match found {
        Found::Nothing => Answer::page(StatusCode::NOT_FOUND),
        Found::Redirect(location) => {
            Answer::page(StatusCode::MOVED_PERMANENTLY).with_text(header::LOCATION, &location)
        }
        Found::Listing(page) => Answer::new(StatusCode::OK).text(page, "text/html; charset=utf-8"),
        Found::File(opened) => send(context, request, opened)?,
    })
}

/// The answer when a file was found.
fn send(context: &Context, request: &mut Request<Incoming>, opened: Opened) -> io::Result<Answer> {
    let with_validators = |answer: Answer| {
        let answer = answer.with_text(header::ETAG, &opened.validators.etag);
        match opened.validators.modified {
            Some(modified) => answer.with_text(header::LAST_MODIFIED, &modified.to_string()),
            None => answer,
        }
    };
    match evaluate(request.headers(), &opened.validators) {
        Verdict::Proceed => {}
        Verdict::NotModified => return Ok(with_validators(Answer::new(StatusCode::NOT_MODIFIED))),
        Verdict::Failed => return Ok(Answer::page(StatusCode::PRECONDITION_FAILED)),
    }
    if let Some(token) = stripe::requested(request) {
        return Ok(upgrade(context, request, &token, opened));
    }
    let size = opened.size;
    // A Range means something in a GET only (RFC 9110 section 14.2).
    let selection =
        if *request.method() == Method::GET && range_applies(request.headers(), &opened.validators) {
            select(request.headers(), size)
        } else {
            Selection::Whole
        };
    let media_type = files::media_type(&opened.path);
    let mut answer = match selection {
        Selection::Unsatisfiable => {
            return Ok(with_validators(Answer::page(StatusCode::RANGE_NOT_SATISFIABLE))
                .with_text(header::CONTENT_RANGE, &format!("bytes */{size}")));
        }
        Selection::Whole => {
            let mut answer = Answer::new(StatusCode::OK).with_text(header::CONTENT_TYPE, &media_type);
            answer.pieces.push(Piece::File(0..size));
            answer
        }
        Selection::Parts(parts) => match &parts[..] {
            [part] => {
                let range = format!("bytes {}-{}/{size}", part.start, part.end - 1);
                let mut answer = Answer::new(StatusCode::PARTIAL_CONTENT)
                    .with_text(header::CONTENT_TYPE, &media_type)
                    .with_text(header::CONTENT_RANGE, &range);
                answer.pieces.push(Piece::File(part.clone()));
                answer
            }
            parts => multipart(parts, &media_type, size),
        },
    };
    answer = with_validators(answer).with(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    answer.file = Some(Arc::new(opened.file));
    Ok(answer)
}

/// Several parts in one body (RFC 9110 section 14.6).
fn multipart(parts: &[std::ops::Range<u64>], media_type: &str, size: u64) -> Answer {
    // Every `RandomState` has keys of its own; nobody can put this in a file in advance.
    let boundary = format!("{:016x}{:016x}", RandomState::new().hash_one(0), RandomState::new().hash_one(1));
    let mut pieces = Vec::new();
    for part in parts {
        let mut head = String::new();
        let _ = write!(
            head,
            "\r\n--{boundary}\r\nContent-Type: {media_type}\r\nContent-Range: bytes {}-{}/{size}\r\n\r\n",
            part.start,
            part.end - 1
        );
        pieces.push(Piece::Text(head.into()));
        pieces.push(Piece::File(part.clone()));
    }
    pieces.push(Piece::Text(Bytes::from(format!("\r\n--{boundary}--\r\n"))));
    let mut answer = Answer::new(StatusCode::PARTIAL_CONTENT)
        .with_text(header::CONTENT_TYPE, &format!("multipart/byteranges; boundary={boundary}"));
    answer.pieces = pieces;
    answer
}

/// Takes the connection into a stripe group, or says why not.
fn upgrade(
    context: &Context,
    request: &mut Request<Incoming>,
    token: &HeaderValue,
    opened: Opened,
) -> Answer {
    if request.version() != Version::HTTP_11 {
        return Answer::page(StatusCode::BAD_REQUEST);
    }
    let size = opened.size;
    let etag = opened.validators.etag.clone();
    let seat = match context.shared.groups.enter(token, opened) {
        Ok(seat) => seat,
        Err(status) => return Answer::page(status),
    };
    let on_upgrade = hyper::upgrade::on(request);
    *context.upgrade.lock().unwrap_or_else(PoisonError::into_inner) =
        Some(Upgrade { on_upgrade, seat, entry: Entry::silent() });
    Answer::new(StatusCode::SWITCHING_PROTOCOLS)
        .with(header::CONNECTION, HeaderValue::from_static("Upgrade"))
        .with(header::UPGRADE, HeaderValue::from_static(::stream::stripe::PROTOCOL))
        .with(SIZE_HEADER, size.into())
        .with_text(header::ETAG, &etag)
}
