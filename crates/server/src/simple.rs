//! HTTP/1.1 as nearly all who want files speak it: a GET or a HEAD without a body, its head in one piece. With
//! the first request that is more than that, the connection is hyper's. What is answered, [`answer`] says for
//! both. Here a connection that says nothing holds no buffer, and a request takes a quarter less time.

use std::future::poll_fn;
use std::io::{self, IoSlice, Write};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as Poller, Poll, ready};
use std::time::SystemTime;

use bytes::{Buf, Bytes};
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, Uri};
use httpdate::HttpDate;
use hyper::body::Body as _;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::answer::answer;
use super::body::Body;
use super::context::Context;
use super::io_guard::Guarded;
use super::reload::Wanted;

/// A longer head is hyper's.
const LONGEST_HEAD: usize = 4096;
/// A head with more fields is hyper's.
const MOST_FIELDS: usize = 32;
/// An answer's head is no longer, as a rule.
const ANSWER_HEAD: usize = 1024;
/// What is shorter and not the end goes with what follows it.
const SHORTEST_WRITE: usize = 1024;

/// Answers requests until one side ends it (`None`), or until one comes that is for hyper: it is still to be
/// read then. Whether the server stops is looked at whenever this is polled.
///
/// # Errors
/// The client breaks off or is out of patience, or a file cannot be read.
pub(super) async fn converse(
    mut io: Guarded,
    context: &Arc<Context>,
    stops: &AtomicBool,
) -> io::Result<Option<Guarded>> {
    let mut came = Came::Nothing;
    loop {
        if let Came::Nothing = came {
            came = poll_fn(|poller| poll_read(&mut io, poller, stops)).await?;
        }
        let (request, rest) = match came {
            Came::Nothing => break,
            Came::Other(bytes) => {
                io.unread(bytes);
                return Ok(Some(io));
            }
            Came::Request(request, rest) => (request, rest),
        };
        let Ok(mut response) = answer(context.clone(), request).await;
        if stops.load(Ordering::Relaxed) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        let is_last = response.headers().contains_key(header::CONNECTION);
        let mut sending = Sending::of(response);
        poll_fn(|poller| sending.poll(&mut io, poller)).await?;
        drop(sending);
        if is_last {
            break;
        }
        came = Came::of(&rest);
    }
    // Who is gone need not be told.
    let _ = io.shutdown().await;
    Ok(None)
}

/// What a client has sent.
#[allow(clippy::large_enum_variant, reason = "nearly all that comes is a request, and none of it is kept")]
enum Came {
    Nothing,
    /// A request, and what is behind it.
    Request(Request<()>, Vec<u8>),
    /// Something for hyper.
    Other(Vec<u8>),
}

/// What comes next; [`Came::Nothing`] when nothing will.
fn poll_read(io: &mut Guarded, poller: &mut Poller<'_>, stops: &AtomicBool) -> Poll<io::Result<Came>> {
    // Here and not in the connection: who says nothing needs no memory for it.
    let mut space = [MaybeUninit::uninit(); LONGEST_HEAD];
    let mut buffer = ReadBuf::uninit(&mut space);
    match Pin::new(io).poll_read(poller, &mut buffer)? {
        Poll::Ready(()) => Poll::Ready(Ok(Came::of(buffer.filled()))),
        Poll::Pending if stops.load(Ordering::Relaxed) => Poll::Ready(Ok(Came::Nothing)),
        Poll::Pending => Poll::Pending,
    }
}

impl Came {
    fn of(bytes: &[u8]) -> Self {
        if bytes.is_empty() {
            return Self::Nothing;
        }
        match simple_request(bytes) {
            Some((request, length)) => Self::Request(request, bytes[length..].to_vec()),
            None => Self::Other(bytes.to_vec()),
        }
    }
}

/// The request that these bytes begin with, and the length of its head. `None`: it is not whole, it is wrong,
/// or there is more to it than a head.
fn simple_request(bytes: &[u8]) -> Option<(Request<()>, usize)> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut parsed = httparse::Request::new(&mut fields);
    let httparse::Status::Complete(length) = parsed.parse(bytes).ok()? else { return None };
    let method = match parsed.method? {
        "GET" => Method::GET,
        "HEAD" => Method::HEAD,
        _ => return None,
    };
    if parsed.version != Some(1) {
        return None;
    }
    // One piece of memory, which all that is kept of it is a part of.
    let head = Bytes::copy_from_slice(&bytes[..length]);
    let part = |text: &[u8]| {
        let at = text.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr());
        head.slice(at..at + text.len())
    };
    let target = parsed.path.filter(|target| target.starts_with('/'))?;
    let mut headers = HeaderMap::with_capacity(parsed.headers.len());
    for field in &*parsed.headers {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        match name {
            header::CONTENT_LENGTH | header::TRANSFER_ENCODING | header::EXPECT | header::UPGRADE => {
                return None;
            }
            header::CONNECTION if !field.value.eq_ignore_ascii_case(b"keep-alive") => return None,
            _ => {}
        }
        let value = if field.value.is_empty() { Bytes::new() } else { part(field.value) };
        headers.append(name, HeaderValue::from_maybe_shared(value).ok()?);
    }
    let uri = Uri::from_maybe_shared(part(target.as_bytes())).ok()?;
    // Such an answer may wait, and hyper notices that its client is gone.
    if Wanted::of(uri.path(), uri.query()) != Ok(None) {
        return None;
    }
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    Some((request, length))
}

/// A response on its way.
struct Sending {
    /// What goes before the next bytes of the body.
    before: Vec<u8>,
    bytes: Bytes,
    body: Body,
    /// How much of `before` is written.
    written: usize,
}

impl Sending {
    fn of(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        let mut before = Vec::with_capacity(ANSWER_HEAD);
        // Writing to memory does not fail.
        let _ = write!(before, "HTTP/1.1 {}", parts.status.as_str());
        let _ = write!(before, " {}\r\n", parts.status.canonical_reason().unwrap_or_default());
        for (name, value) in &parts.headers {
            before.extend_from_slice(name.as_str().as_bytes());
            before.extend_from_slice(b": ");
            before.extend_from_slice(value.as_bytes());
            before.extend_from_slice(b"\r\n");
        }
        let _ = write!(before, "date: {}\r\n\r\n", HttpDate::from(SystemTime::now()));
        Self { before, bytes: Bytes::new(), body, written: 0 }
    }

    /// Ready when all of it is written.
    fn poll(&mut self, io: &mut Guarded, poller: &mut Poller<'_>) -> Poll<io::Result<()>> {
        let Self { before, bytes, body, written } = self;
        loop {
            while bytes.is_empty() && !body.is_end_stream() {
                let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(poller) else { break };
                let frame = frame.transpose()?.ok_or(io::ErrorKind::UnexpectedEof)?;
                *bytes = frame.into_data().unwrap_or_default();
                if bytes.len() < SHORTEST_WRITE && !body.is_end_stream() {
                    before.extend_from_slice(bytes);
                    bytes.clear();
                }
            }
            let head = &before[*written..];
            if head.is_empty() && bytes.is_empty() {
                // TLS may hold some of what it took.
                ready!(Pin::new(&mut *io).poll_flush(poller))?;
                return if body.is_end_stream() { Poll::Ready(Ok(())) } else { Poll::Pending };
            }
            let slices = [IoSlice::new(head), IoSlice::new(bytes)];
            let first = usize::from(head.is_empty());
            let sent = ready!(Pin::new(&mut *io).poll_write_vectored(poller, &slices[first..]))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let of_head = sent.min(head.len());
            bytes.advance(sent - of_head);
            *written += of_head;
            if *written == before.len() {
                before.clear();
                *written = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_whole_head_without_a_body_is_read_and_what_follows_is_left() {
        let head =
            "GET /a%20b?c HTTP/1.1\r\nHost: test\r\nRange: bytes=1-2\r\nX:\r\nconnection: Keep-Alive\r\n\r\n";
        let (request, length) = simple_request(format!("{head}HEAD").as_bytes()).unwrap();
        assert_eq!((request.method(), request.uri().path()), (&Method::GET, "/a%20b"));
        assert_eq!((request.uri().query(), length), (Some("c"), head.len()));
        let value = |name: &str| request.headers()[name].to_str().unwrap();
        assert_eq!((value("host"), value("range"), value("x")), ("test", "bytes=1-2", ""));
    }

    #[test]
    fn what_is_more_than_a_head_is_for_hyper() {
        for (line, fields) in [
            ("POST / HTTP/1.1", ""),
            ("OPTIONS / HTTP/1.1", ""),
            ("GET / HTTP/1.0", ""),
            ("GET / HTTP/2.0", ""),
            ("GET http://test/ HTTP/1.1", ""),
            ("GET * HTTP/1.1", ""),
            ("GET /live.m3u8?_HLS_msn=2 HTTP/1.1", ""),
            ("GET / HTTP/1.1", "Content-Length: 0\r\n"),
            ("GET / HTTP/1.1", "Transfer-Encoding: chunked\r\n"),
            ("GET / HTTP/1.1", "Expect: 100-continue\r\n"),
            ("GET / HTTP/1.1", "Upgrade: other\r\n"),
            ("GET / HTTP/1.1", "Connection: close\r\n"),
            ("GET / HTTP/1.1", "Connection: keep-alive, upgrade\r\n"),
            ("GET / HTTP/1.1", "No field\r\n"),
            ("GET / HTTP/1.1", &"X: y\r\n".repeat(MOST_FIELDS)),
        ] {
            let head = format!("{line}\r\nHost: test\r\n{fields}\r\n");
            assert!(simple_request(head.as_bytes()).is_none(), "{head}");
        }
        assert!(simple_request(b"GET / HTTP/1.1\r\nHost: test\r\n").is_none(), "there is more to come");
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_left(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            fields in "([A-Za-z-]{0,9}[: \t]{0,2}[ -\u{ff}]{0,9}\r?\n){0,5}",
            target in "[ -~]{0,20}",
        ) {
            simple_request(&bytes);
            let head = format!("GET /{target} HTTP/1.1\r\n{fields}\r\n");
            if let Some((_, length)) = simple_request(head.as_bytes()) {
                prop_assert!(length <= head.len());
            }
        }
    }
}
