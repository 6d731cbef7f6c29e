//! The answer to a request.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, PoisonError};

use anabranch_protocol::stripe::{SIZE_HEADER, TOKEN_HEADER};
use http::header::{self, HeaderValue};
use http::uri::Authority;
use http::{Method, Request, Response, StatusCode, Version};

use super::answering::Answering;
use super::body::Body;
use super::context::{Context, Http1, Upgrade};
use super::files::{self, Found, Opened};
use super::io_guard::BusyGuard;
use super::log::Entry;
use super::metrics::increment;
use super::reload::Wanted;
use super::reply::{Reply, Representation, content_reply, precondition_reply};
use super::source::Source;
use super::stripe;

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");
const CLOSE: HeaderValue = HeaderValue::from_static("close");
/// When a client that was turned away may come again.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("5");

/// A reply with the file that its parts are of.
struct Answer {
    reply: Reply,
    file: Option<Arc<Source>>,
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        Self { reply, file: None }
    }
}

/// Answers one request.
pub(super) async fn answer<B>(
    context: Arc<Context>,
    mut request: Request<B>,
) -> Result<Response<Body>, Infallible> {
    let busy = context.http1.as_ref().map(|http1| BusyGuard::new(&http1.activity));
    let shared = &context.shared;
    if let Some(shape) = shared.config.shape {
        tokio::time::sleep(shape.first_byte_delay).await;
    }
    let mut entry = Entry::new(shared.log.as_ref(), context.client, &request);
    let answer = respond(&context, &mut request).await.unwrap_or_else(|error| {
        increment(&shared.metrics.errors);
        if has_no_descriptor(&error) {
            tracing::debug!(%error, path = request.uri().path(), "cannot serve");
            return unavailable(&context).into();
        }
        tracing::warn!(%error, path = request.uri().path(), "cannot serve");
        Reply::page(StatusCode::INTERNAL_SERVER_ERROR).into()
    });
    let Answer { reply, file } = answer;
    shared.metrics.count_response(reply.status);
    entry.status = reply.status;
    let pool = shared.pool.clone();
    // Not before it is there: who waits for a playlist that is yet to come needs nothing.
    let counting = context.http1.as_ref().and_then(|http1| Some(http1.sharer.as_ref()?.answer(&request)));
    if reply.status == StatusCode::SWITCHING_PROTOCOLS {
        // The connection writes the line when it ends, with what it carried.
        if let Some(http1) = &context.http1
            && let Some(upgrade) = &mut *http1.upgrade.lock().unwrap_or_else(PoisonError::into_inner)
        {
            std::mem::swap(&mut upgrade.entry, &mut entry);
            upgrade.counting = counting;
        }
        let answering = busy.map(|busy| Answering { _busy: busy, _counting: None });
        let mut response =
            Response::new(Body::new([], None, pool, None, Vec::new(), Entry::silent(), answering));
        *response.status_mut() = reply.status;
        *response.headers_mut() = reply.headers;
        return Ok(response);
    }
    let has_body = reply.status != StatusCode::NOT_MODIFIED && reply.status != StatusCode::NO_CONTENT;
    let passage = context.http1.as_ref().and_then(|http1| http1.passage.clone());
    let links = shared.links.of_response(context.client);
    let answering = busy.map(|busy| Answering { _busy: busy, _counting: counting });
    let whole = Body::new(reply.pieces, file, pool, passage, links, entry, answering);
    let length = whole.left();
    let body = if *request.method() == Method::HEAD || !has_body { whole.without_pieces() } else { whole };
    let mut response = Response::new(body);
    *response.status_mut() = reply.status;
    let headers = response.headers_mut();
    *headers = reply.headers;
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
    if let Some(alternative) = &shared.config.alt_svc {
        headers.insert(header::ALT_SVC, alternative.clone());
    }
    Ok(response)
}

/// Whether the system, or this process, has too many files open.
fn has_no_descriptor(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// There is no room for this client now.
fn unavailable(context: &Context) -> Reply {
    let reply = Reply::page(StatusCode::SERVICE_UNAVAILABLE).with(header::RETRY_AFTER, RETRY_AFTER_SECONDS);
    match context.http1 {
        Some(_) => reply.with(header::CONNECTION, CLOSE),
        // Such a header is malformed in HTTP/3 (RFC 9114, section 4.2).
        None => reply,
    }
}

/// Whether a request of HTTP/1 has the one valid `Host` that it needs (RFC 9112, section 3.2); before
/// HTTP/1.1 it may have none. Who takes one of two for the right one may take another one than whoever handed
/// the request on.
fn names_one_host<B>(request: &Request<B>) -> bool {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => request.version() < Version::HTTP_11,
        (Some(host), None) => {
            let host = host.as_bytes();
            // Empty where the target has no authority.
            host.is_empty() || (!host.contains(&b'@') && Authority::try_from(host).is_ok())
        }
        (Some(_), Some(_)) => false,
    }
}

async fn respond<B>(context: &Context, request: &mut Request<B>) -> io::Result<Answer> {
    if !context.served {
        return Ok(unavailable(context).into());
    }
    if context.http1.is_some() && !names_one_host(request) {
        return Ok(Reply::page(StatusCode::BAD_REQUEST).with(header::CONNECTION, CLOSE).into());
    }
    match *request.method() {
        Method::GET | Method::HEAD => {}
        // What a browser asks before it sends a request with If-Range.
        Method::OPTIONS => {
            let reply = Reply::new(StatusCode::NO_CONTENT)
                .with(header::ALLOW, METHODS)
                .with(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS)
                .with(
                    header::ACCESS_CONTROL_ALLOW_HEADERS,
                    HeaderValue::from_static("Range, If-Range, If-Match"),
                );
            return Ok(reply.into());
        }
        _ => {
            return Ok(Reply::page(StatusCode::METHOD_NOT_ALLOWED).with(header::ALLOW, METHODS).into());
        }
    }
    let (root, path) = (context.shared.root.clone(), request.uri().path());
    match Wanted::of(path, request.uri().query()) {
        Ok(None) => {}
        Ok(Some(wanted)) => {
            if let Err(status) = context.shared.reloads.wait(&root, path, wanted).await {
                return Ok(Reply::page(status).into());
            }
        }
        Err(status) => return Ok(Reply::page(status).into()),
    }
    let found = match files::find_cached(&root, path) {
        Some(opened) => Found::File(opened),
        None => {
            let path = path.to_owned();
            let finding = tokio::task::spawn_blocking(move || files::find(&root, &path));
            finding.await.map_err(io::Error::other)??
        }
    };
    Ok(match found {
        Found::Nothing => Reply::page(StatusCode::NOT_FOUND).into(),
        Found::Redirect(location) => {
            Reply::page(StatusCode::MOVED_PERMANENTLY).with_text(header::LOCATION, &location).into()
        }
        Found::Listing(page) => Reply::new(StatusCode::OK).text(page, "text/html; charset=utf-8").into(),
        Found::File(opened) => send(context, request, opened),
    })
}

/// The answer when a file was found.
fn send<B>(context: &Context, request: &mut Request<B>, opened: Opened) -> Answer {
    let Opened { path, size, validators, .. } = &opened;
    let representation =
        Representation { size: *size, media_type: files::media_type(path), validators: validators.clone() };
    if let Some(reply) = precondition_reply(request.headers(), &representation) {
        return reply.into();
    }
    let mut reply = content_reply(request.method(), request.headers(), &representation);
    // A group's connections may come from several clients, whose caps are different ones.
    if let Some(http1) = context.http1.as_ref().filter(|_| !context.shared.config.caps.are_set()) {
        if let Some(token) = stripe::requested(request) {
            return upgrade(context, http1, request, &token, opened).into();
        }
        reply = reply.with(TOKEN_HEADER, HeaderValue::from_static("1"));
    }
    Answer { reply, file: Some(Arc::new(opened.source)) }
}

/// Takes the connection into a stripe group, or says why not.
fn upgrade<B>(
    context: &Context,
    http1: &Http1,
    request: &mut Request<B>,
    token: &HeaderValue,
    opened: Opened,
) -> Reply {
    if request.version() != Version::HTTP_11 {
        return Reply::page(StatusCode::BAD_REQUEST);
    }
    let size = opened.size;
    let etag = opened.validators.etag.clone();
    let seat = match context.shared.groups.enter(token, opened) {
        Ok(seat) => seat,
        Err(status) => return Reply::page(status),
    };
    let on_upgrade = hyper::upgrade::on(request);
    *http1.upgrade.lock().unwrap_or_else(PoisonError::into_inner) =
        Some(Upgrade { on_upgrade, seat, entry: Entry::silent(), counting: None });
    Reply::new(StatusCode::SWITCHING_PROTOCOLS)
        .with(header::CONNECTION, HeaderValue::from_static("Upgrade"))
        .with(header::UPGRADE, HeaderValue::from_static(::anabranch_protocol::stripe::PROTOCOL))
        .with(SIZE_HEADER, size.into())
        .with_text(header::ETAG, &etag)
}
