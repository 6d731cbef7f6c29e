//! What a GET or a HEAD gets of something that has a size and validators: status, headers, and which parts
//! (RFC 9110 sections 13, 14 and 15). It knows nothing of where the bytes are.

use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, StatusCode};

use super::conditional::{Validators, Verdict, evaluate, range_applies};
use super::pieces::Piece;
use super::range::{Selection, select};

/// Three numbers of 20 digits at the most, and what is between them.
const LONGEST_RANGE: usize = 3 * 20 + 8;
/// A date of HTTP (RFC 9110, section 5.6.7).
const DATE: usize = "Sun, 06 Nov 1994 08:49:37 GMT".len();
/// A reply has no more of them, as a rule: the map need not grow.
const MOST_HEADERS: usize = 12;

/// Something that can be served in parts.
#[derive(Clone, Debug)]
pub struct Representation {
    /// In bytes.
    pub size: u64,
    /// Its media type, as `Content-Type` has it.
    pub media_type: String,
    /// What its version is recognised by.
    pub validators: Validators,
}

/// A response without its bytes.
#[derive(Debug)]
pub struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// Its headers, without `Content-Length`.
    pub headers: HeaderMap,
    /// Its body, in this order.
    pub pieces: Vec<Piece>,
}

impl Reply {
    /// Nothing but a status.
    pub(super) fn new(status: StatusCode) -> Self {
        Self { status, headers: HeaderMap::with_capacity(MOST_HEADERS), pieces: Vec::new() }
    }

    /// A status with its name as the page.
    pub(super) fn page(status: StatusCode) -> Self {
        let name = status.canonical_reason().unwrap_or_default();
        Self::new(status).text(format!("{} {name}\n", status.as_u16()), "text/plain; charset=utf-8")
    }

    pub(super) fn text(mut self, text: String, media_type: &'static str) -> Self {
        self.pieces = vec![Piece::Text(text.into())];
        self.with(header::CONTENT_TYPE, HeaderValue::from_static(media_type))
    }

    pub(super) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// With a value that was made here; one that is no header value would be a fault here, and is left out.
    pub(super) fn with_text(self, name: HeaderName, value: &str) -> Self {
        match HeaderValue::from_str(value) {
            Ok(value) => self.with(name, value),
            Err(_) => self,
        }
    }

    fn with_validators(self, validators: &Validators) -> Self {
        let reply = self.with_text(header::ETAG, &validators.etag);
        match validators.modified {
            Some(modified) => {
                let mut date = String::with_capacity(DATE);
                let _ = write!(date, "{modified}");
                reply.with_text(header::LAST_MODIFIED, &date)
            }
            None => reply,
        }
    }
}

/// The reply when the request's preconditions forbid to do what its method says: 304 or 412.
pub fn precondition_reply(headers: &HeaderMap, of: &Representation) -> Option<Reply> {
    match evaluate(headers, &of.validators) {
        Verdict::Proceed => None,
        Verdict::NotModified => Some(Reply::new(StatusCode::NOT_MODIFIED).with_validators(&of.validators)),
        Verdict::Failed => Some(Reply::page(StatusCode::PRECONDITION_FAILED)),
    }
}

/// The reply to a GET or a HEAD whose preconditions hold: all of it, the parts that are asked for, or 416. A
/// HEAD has the pieces as well, for their length.
pub fn content_reply(method: &Method, headers: &HeaderMap, of: &Representation) -> Reply {
    let size = of.size;
    // A Range means something in a GET only (RFC 9110 section 14.2).
    let selection = if *method == Method::GET && range_applies(headers, &of.validators) {
        select(headers, size)
    } else {
        Selection::Whole
    };
    let reply = match selection {
        Selection::Unsatisfiable => {
            return Reply::page(StatusCode::RANGE_NOT_SATISFIABLE)
                .with_validators(&of.validators)
                .with_text(header::CONTENT_RANGE, &format!("bytes */{size}"));
        }
        Selection::Whole => {
            let mut reply = Reply::new(StatusCode::OK).with_text(header::CONTENT_TYPE, &of.media_type);
            reply.pieces.push(Piece::File(0..size));
            reply
        }
        Selection::Parts(parts) => match &parts[..] {
            [part] => {
                let mut reply = Reply::new(StatusCode::PARTIAL_CONTENT)
                    .with_text(header::CONTENT_TYPE, &of.media_type)
                    .with_text(header::CONTENT_RANGE, &content_range(part, size));
                reply.pieces.push(Piece::File(part.clone()));
                reply
            }
            parts => multipart(parts, &of.media_type, size),
        },
    };
    reply.with_validators(&of.validators).with(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"))
}

fn content_range(part: &Range<u64>, size: u64) -> String {
    let mut text = String::with_capacity(LONGEST_RANGE);
    let _ = write!(text, "bytes {}-{}/{size}", part.start, part.end - 1);
    text
}

/// Several parts in one body (RFC 9110 section 14.6).
fn multipart(parts: &[Range<u64>], media_type: &str, size: u64) -> Reply {
    // Every `RandomState` has keys of its own; nobody can put this in a file in advance.
    let boundary = format!("{:016x}{:016x}", RandomState::new().hash_one(0), RandomState::new().hash_one(1));
    let mut reply = Reply::new(StatusCode::PARTIAL_CONTENT)
        .with_text(header::CONTENT_TYPE, &format!("multipart/byteranges; boundary={boundary}"));
    for part in parts {
        let mut head = String::new();
        let _ = write!(
            head,
            "\r\n--{boundary}\r\nContent-Type: {media_type}\r\nContent-Range: {}\r\n\r\n",
            content_range(part, size)
        );
        reply.pieces.push(Piece::Text(head.into()));
        reply.pieces.push(Piece::File(part.clone()));
    }
    reply.pieces.push(Piece::Text(format!("\r\n--{boundary}--\r\n").into()));
    reply
}
