//! The head of a response, and what it says about the body behind it.

use ::http::header::{
    ACCEPT_RANGES, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG,
    LAST_MODIFIED, LOCATION, RETRY_AFTER, TRANSFER_ENCODING,
};
use ::http::{HeaderMap, HeaderName, HeaderValue};
use anabranch_units::{Bytes, Duration};

use super::error::Malformed;
use super::fields::{self, ContentRange, EntityTag};

/// Longest head that is read.
pub const LONGEST_HEAD: Bytes = Bytes::kib(64);

/// Most headers of a response.
const MOST_HEADERS: usize = 100;

/// The head of a response.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ResponseHead {
    /// Status code, 100 to 999.
    pub status: u16,
    /// Minor version of HTTP/1: 0 or 1.
    pub minor_version: u8,
    /// All headers.
    pub headers: HeaderMap,
    /// Length of the body, or for `HEAD` of what `GET` would give.
    pub content_length: Option<u64>,
    /// Which bytes the body holds: with status 206 only.
    pub content_range: Option<ContentRange>,
    /// Size of the whole that a 416 response tells.
    pub unsatisfied_total: Option<u64>,
    /// Whether the server says that it takes ranges, if it says anything.
    pub accept_ranges: Option<bool>,
    /// Name of this version. One that cannot be understood counts as none.
    pub etag: Option<EntityTag>,
    /// When this version was made, as the server wrote it.
    pub last_modified: Option<HeaderValue>,
    /// Where to look instead.
    pub location: Option<String>,
    /// How long to leave the server alone.
    pub retry_after: Option<Duration>,
    /// What kind of media it is.
    pub content_type: Option<String>,
    /// Whether more requests can follow on the connection, as far as the head tells.
    pub keep_alive: bool,
    /// Whether the body is in chunks.
    pub(super) chunked: bool,
}

/// A response that is not the range that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RangeError {
    /// The server sends everything instead: it does not know ranges, or the validator of `If-Range` did not
    /// match.
    #[error("the server sends the whole instead of a range")]
    Ignored,
    /// The range begins behind the end.
    #[error("the server has no bytes at that position")]
    Unsatisfied {
        /// The size, if the server tells.
        total: Option<u64>,
    },
    /// Another status than 200, 206 and 416.
    #[error("the server answers with status {0}")]
    Status(u16),
    /// The server does not say which bytes it sends.
    #[error("the server does not say which range it sends")]
    Missing,
    /// The server sends it encoded, which was not asked for: positions in it are not positions in the film.
    #[error("the server sends a range of an encoded form, which nobody asked for")]
    Encoded,
    /// The server sends other bytes.
    #[error("the server was asked for bytes from {asked} on and sends {got}")]
    Different {
        /// First byte that was asked for.
        asked: u64,
        /// What comes.
        got: ContentRange,
    },
    /// The length of the body is not that of the range.
    #[error("the server sends {length} bytes as the range {got}")]
    Length {
        /// Length of the body.
        length: u64,
        /// What it is said to be.
        got: ContentRange,
    },
}

impl ResponseHead {
    /// Reads a head from the start of `input`. Returns it with its length, `None` when it is not complete.
    ///
    /// # Errors
    /// It is not HTTP/1, longer than [`LONGEST_HEAD`], or contradicts itself.
    pub fn parse(input: &[u8]) -> Result<Option<(Self, usize)>, Malformed> {
        const TOO_LONG: Malformed = Malformed("its head does not end within 64 KiB");
        let mut storage = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut response = httparse::Response::new(&mut storage);
        let limit = input.len().min(LONGEST_HEAD.as_usize());
        let length = match response.parse(&input[..limit]) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if limit == LONGEST_HEAD.as_usize() => return Err(TOO_LONG),
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return Err(Malformed("it has more than 100 headers")),
            Err(httparse::Error::Version) => return Err(Malformed("it is not HTTP/1")),
            Err(_) => return Err(Malformed("its head is not HTTP")),
        };
        let status = response.code.filter(|status| *status >= 100).ok_or(Malformed("it has no status"))?;
        let mut headers = HeaderMap::with_capacity(response.headers.len());
        for header in response.headers.iter() {
            let (Ok(name), Ok(value)) =
                (HeaderName::from_bytes(header.name.as_bytes()), HeaderValue::from_bytes(header.value))
            else {
                return Err(Malformed("a header of it makes no sense"));
            };
            headers.append(name, value);
        }
        Self::from_headers(status, response.version.unwrap_or(0), headers).map(|head| Some((head, length)))
    }

    /// The head of a response over HTTP/3, whose framing says nothing of transfer codings and connections.
    ///
    /// # Errors
    /// It contradicts itself.
    pub(super) fn from_http3(response: ::http::Response<()>) -> Result<Self, Malformed> {
        let (head, ()) = response.into_parts();
        if head.headers.contains_key(TRANSFER_ENCODING) {
            // RFC 9114, section 4.2.
            return Err(Malformed("it has a header that HTTP/3 does not know"));
        }
        Self::from_headers(head.status.as_u16(), 1, head.headers)
    }

    fn from_headers(status: u16, minor_version: u8, headers: HeaderMap) -> Result<Self, Malformed> {
        let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
        let content_length = content_length(&headers)?;
        let chunked = is_chunked(&headers, minor_version)?;
        if chunked && content_length.is_some() {
            // RFC 9112, 6.3: possibly an attempt to smuggle a response.
            return Err(Malformed("it has both a Content-Length and a Transfer-Encoding"));
        }
        let content_range = match text(CONTENT_RANGE) {
            Some(range) if status == 206 => Some(range.parse()?),
            _ => None,
        };
        let server_now = text(DATE).and_then(|date| httpdate::parse_http_date(date).ok());
        Ok(Self {
            status,
            minor_version,
            content_length,
            content_range,
            unsatisfied_total: text(CONTENT_RANGE)
                .filter(|_| status == 416)
                .and_then(ContentRange::unsatisfied_total),
            accept_ranges: has_token(&headers, &ACCEPT_RANGES, "bytes")
                .then_some(true)
                .or_else(|| headers.contains_key(ACCEPT_RANGES).then_some(false)),
            etag: text(ETAG).and_then(|tag| tag.parse().ok()),
            last_modified: headers.get(LAST_MODIFIED).cloned(),
            location: headers
                .get(LOCATION)
                .map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned()),
            retry_after: text(RETRY_AFTER).and_then(|wait| fields::retry_after(wait, server_now)),
            content_type: text(CONTENT_TYPE).map(str::to_owned),
            keep_alive: if minor_version == 0 {
                has_token(&headers, &CONNECTION, "keep-alive")
            } else {
                !has_token(&headers, &CONNECTION, "close")
            },
            chunked,
            headers,
        })
    }

    /// How the body is encoded, if it is. Nothing but the film as it is was asked for, and positions in
    /// anything else are none in the film.
    pub fn encoding(&self) -> Option<String> {
        let value = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).trim().to_owned();
        let values: Vec<_> = self.headers.get_all(CONTENT_ENCODING).iter().map(value).collect();
        let encoded = values.iter().any(|value| !value.is_empty() && !value.eq_ignore_ascii_case("identity"));
        encoded.then(|| values.join(", "))
    }

    /// The size of the whole film, as far as it is told: with all of it, or with a range.
    pub fn size_of_film(&self) -> Option<u64> {
        match self.status {
            206 => self.content_range.and_then(|range| range.total),
            200 if self.encoding().is_none() => self.content_length,
            _ => None,
        }
    }

    /// Checks that the body is what was asked for: bytes from `first` on, and none behind `last`. A server
    /// may send fewer.
    ///
    /// # Errors
    /// It is something else.
    pub fn check_range(&self, first: u64, last: Option<u64>) -> Result<ContentRange, RangeError> {
        match self.status {
            206 => {}
            200 => return Err(RangeError::Ignored),
            416 => return Err(RangeError::Unsatisfied { total: self.unsatisfied_total }),
            other => return Err(RangeError::Status(other)),
        }
        if self.encoding().is_some() {
            return Err(RangeError::Encoded);
        }
        let got = self.content_range.ok_or(RangeError::Missing)?;
        if got.first != first || last.is_some_and(|last| got.last > last) {
            return Err(RangeError::Different { asked: first, got });
        }
        match self.content_length {
            Some(length) if length != got.length() => Err(RangeError::Length { length, got }),
            _ => Ok(got),
        }
    }
}

/// Whether a header that is a list of words has this one.
fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|word| word.trim().eq_ignore_ascii_case(token))
}

/// The one length of the body; the same value several times is taken (RFC 9112, 6.3).
fn content_length(headers: &HeaderMap) -> Result<Option<u64>, Malformed> {
    let bad = Malformed("its Content-Length makes no sense");
    let mut length = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        for part in value.to_str().map_err(|_| bad)?.split(',') {
            let this = fields::decimal(part.trim()).filter(|length| *length < u64::MAX).ok_or(bad)?;
            if length.is_some_and(|length| length != this) {
                return Err(Malformed("it has several Content-Lengths that differ"));
            }
            length = Some(this);
        }
    }
    Ok(length)
}

/// Whether the body is in chunks. No other transfer coding was offered.
fn is_chunked(headers: &HeaderMap, minor_version: u8) -> Result<bool, Malformed> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(false),
        (Some(coding), None) if minor_version > 0 && coding.as_bytes().eq_ignore_ascii_case(b"chunked") => {
            Ok(true)
        }
        _ => Err(Malformed("its Transfer-Encoding is not supported")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::version::Version;
    use super::*;

    fn head(text: &str) -> Result<ResponseHead, Malformed> {
        let (head, length) = ResponseHead::parse(text.as_bytes())?.expect("a whole head");
        assert_eq!(length, text.len());
        Ok(head)
    }

    fn with(headers: &str) -> Result<ResponseHead, Malformed> {
        head(&format!("HTTP/1.1 206 Partial Content\r\n{headers}\r\n\r\n"))
    }

    #[test]
    fn everything_a_head_tells() {
        let film = with(
            "Content-Length: 10\r\nContent-Range: bytes 0-9/100\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\n\
             Content-Type: video/mp4\r\nLocation: /b\r\nRetry-After: 7",
        )
        .unwrap();
        assert_eq!((film.status, film.content_length, film.keep_alive), (206, Some(10), true));
        assert_eq!(film.content_range, Some(ContentRange { first: 0, last: 9, total: Some(100) }));
        assert_eq!(film.etag.as_ref().unwrap().to_string(), "\"v1\"");
        assert_eq!((film.accept_ranges, film.content_type.as_deref()), (Some(true), Some("video/mp4")));
        assert_eq!((film.location.as_deref(), film.retry_after), (Some("/b"), Some(Duration::from_secs(7))));
        assert_eq!(film.check_range(0, Some(9)), Ok(film.content_range.unwrap()));
        assert_eq!(film.check_range(0, Some(99)), Ok(film.content_range.unwrap()));
    }

    #[test]
    fn keeping_alive() {
        assert!(!with("Connection: foo, Close").unwrap().keep_alive);
        assert!(!head("HTTP/1.0 200 OK\r\n\r\n").unwrap().keep_alive);
        assert!(head("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\n").unwrap().keep_alive);
    }

    #[test]
    fn contradictions_are_refused() {
        for wrong in [
            "Content-Length: 1\r\nContent-Length: 2",
            "Content-Length: 1, 2",
            "Content-Length: -1",
            "Content-Length: +1",
            "Content-Length:",
            "Content-Length: 18446744073709551616",
            "Content-Length: 0x10",
            "Content-Length: 3\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: gzip",
            "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Content-Range: bytes 9-0/100",
            "No colon",
            "Bad name: x",
        ] {
            assert!(with(wrong).is_err(), "{wrong}");
        }
        assert_eq!(with("Content-Length: 3, 3\r\nContent-Length: 3").unwrap().content_length, Some(3));
        assert!(with("Transfer-Encoding: Chunked").unwrap().chunked);
        for wrong in [
            "HTTP/2.0 200 OK\r\n\r\n",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 099 No\r\n\r\n",
        ] {
            assert!(head(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lies_about_ranges_are_found() {
        let film = with("Content-Range: bytes 5-9/100\r\nContent-Length: 5").unwrap();
        let got = film.content_range.unwrap();
        assert_eq!(film.check_range(0, Some(9)), Err(RangeError::Different { asked: 0, got }));
        assert_eq!(film.check_range(5, Some(8)), Err(RangeError::Different { asked: 5, got }));
        assert_eq!(film.check_range(5, None), Ok(got));
        let film = with("Content-Range: bytes 5-9/100\r\nContent-Length: 6").unwrap();
        assert_eq!(film.check_range(5, None), Err(RangeError::Length { length: 6, got }));
        assert_eq!(with("X: y").unwrap().check_range(0, None), Err(RangeError::Missing));
        let status = |status: u16, rest: &str| head(&format!("HTTP/1.1 {status} X\r\n{rest}\r\n")).unwrap();
        assert_eq!(status(200, "").check_range(0, None), Err(RangeError::Ignored));
        assert_eq!(status(503, "").check_range(0, None), Err(RangeError::Status(503)));
        assert_eq!(
            status(416, "Content-Range: bytes */7\r\n").check_range(9, None),
            Err(RangeError::Unsatisfied { total: Some(7) })
        );
    }

    #[test]
    fn encoded_bodies_are_no_ranges_of_the_film() {
        let range = "Content-Range: bytes 0-4/100\r\n";
        for encoded in ["gzip", "GZIP", "identity\r\nContent-Encoding: br"] {
            let head = with(&format!("{range}Content-Encoding: {encoded}")).unwrap();
            assert_eq!(head.check_range(0, None), Err(RangeError::Encoded), "{encoded}");
        }
        for plain in ["Identity", ""] {
            assert!(with(&format!("{range}Content-Encoding: {plain}")).unwrap().check_range(0, None).is_ok());
        }
    }

    #[test]
    fn endless_heads_are_cut_off() {
        let line = format!("X: {}", "a".repeat(LONGEST_HEAD.as_usize()));
        assert!(ResponseHead::parse(format!("HTTP/1.1 200 OK\r\n{line}").as_bytes()).is_err());
        assert!(ResponseHead::parse(format!("HTTP/1.1 200 OK\r\n{line}\r\n\r\n").as_bytes()).is_err());
        let most = "a: b\r\n".repeat(MOST_HEADERS);
        assert!(ResponseHead::parse(format!("HTTP/1.1 200 OK\r\n{most}\r\n").as_bytes()).is_ok());
        assert!(ResponseHead::parse(format!("HTTP/1.1 200 OK\r\n{most}a: b\r\n\r\n").as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(input in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = ResponseHead::parse(&input);
        }

        #[test]
        fn any_headers_are_read_or_refused(
            headers in "((Content-Length|Content-Range|Transfer-Encoding|ETag|Retry-After|Date|Connection): \
                        [ -~]{0,30}\r\n){0,6}",
        ) {
            let text = format!("HTTP/1.1 206 OK\r\n{headers}\r\n");
            if let Ok(Some((head, length))) = ResponseHead::parse(text.as_bytes()) {
                prop_assert_eq!(length, text.len());
                prop_assert!(!(head.chunked && head.content_length.is_some()));
                let _ = (head.check_range(0, None), head.encoding(), Version::of(&head).strong_validator());
            }
        }
    }
}
