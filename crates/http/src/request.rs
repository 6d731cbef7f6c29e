//! The head of a request, and the headers that a user adds to it.

use ::http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, HOST, IF_RANGE, RANGE, TE,
    TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};
use ::http::{HeaderName, HeaderValue, Request};
use bytes::BytesMut;

use super::proxy::Proxy;
use super::target::{Origin, Target};

const OWN_USER_AGENT: &str = concat!("anabranch/", env!("CARGO_PKG_VERSION"));

/// Most headers that a user can add.
const MOST_EXTRA_HEADERS: usize = 50;

/// Headers that the client itself has to set.
const RESERVED: [HeaderName; 9] =
    [HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, TE, UPGRADE, RANGE, IF_RANGE, ACCEPT_ENCODING];

/// What to do with the target. Requests with a body are not needed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Its bytes.
    Get,
    /// Only the head that a `GET` would get.
    Head,
}

impl Method {
    fn verb(self) -> ::http::Method {
        match self {
            Self::Get => ::http::Method::GET,
            Self::Head => ::http::Method::HEAD,
        }
    }
}

/// A header that cannot be added to a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// Not of the form `Name: value`.
    #[error("a header is written 'Name: value', without line breaks")]
    Unreadable,
    /// A header that the client itself has to set.
    #[error("the header {0} cannot be set: the client needs it")]
    Reserved(HeaderName),
    /// Too many.
    #[error("more than {MOST_EXTRA_HEADERS} headers")]
    TooMany,
}

/// Headers that a user adds to requests, each for all hosts or for some. `Debug` does not show the values,
/// which can be secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtraHeaders(Vec<ExtraHeader>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct ExtraHeader {
    /// Who gets it; `None`: everybody.
    only: Option<Vec<Origin>>,
    name: HeaderName,
    value: HeaderValue,
}

impl ExtraHeader {
    fn is_for(&self, origin: &Origin) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|own| own.may_share_secrets_with(origin)))
    }
}

impl ExtraHeaders {
    /// Adds a header written `Name: value` to the requests to every host: nothing that is secret.
    ///
    /// # Errors
    /// It is not written so, it is one that the client has to set itself, or there are too many.
    pub fn add(&mut self, line: &str) -> Result<(), HeaderError> {
        self.push(None, line)
    }

    /// Adds a header written `Name: value` to the requests to these origins, and to no others, wherever
    /// redirects lead.
    ///
    /// # Errors
    /// It is not written so, it is one that the client has to set itself, or there are too many.
    pub fn add_for(&mut self, origins: &[Origin], line: &str) -> Result<(), HeaderError> {
        self.push(Some(origins.to_vec()), line)
    }

    /// Has requests to `origin` say this, in place of what they would say under that name.
    ///
    /// # Errors
    /// It is a header that the client has to set itself, or there are too many.
    pub fn replace_for(
        &mut self,
        origin: &Origin,
        name: &HeaderName,
        value: &HeaderValue,
    ) -> Result<(), HeaderError> {
        self.0.retain(|header| header.name != *name || !header.is_for(origin));
        self.push_value(Some(vec![origin.clone()]), name.clone(), value.clone())
    }

    /// Adds the user and the password of a target, if it has them, for its origin.
    ///
    /// # Errors
    /// There are too many.
    pub fn add_credentials_of(&mut self, target: &Target) -> Result<(), HeaderError> {
        match target.authorization() {
            Some(value) => self.replace_for(target.origin(), &AUTHORIZATION, value),
            None => Ok(()),
        }
    }

    fn push(&mut self, only: Option<Vec<Origin>>, line: &str) -> Result<(), HeaderError> {
        let (name, value) = line.split_once(':').ok_or(HeaderError::Unreadable)?;
        let name = HeaderName::try_from(name.trim()).map_err(|_| HeaderError::Unreadable)?;
        let value = HeaderValue::from_str(value.trim()).map_err(|_| HeaderError::Unreadable)?;
        self.push_value(only, name, value)
    }

    fn push_value(
        &mut self,
        only: Option<Vec<Origin>>,
        name: HeaderName,
        mut value: HeaderValue,
    ) -> Result<(), HeaderError> {
        if RESERVED.contains(&name) {
            return Err(HeaderError::Reserved(name));
        }
        if self.0.len() >= MOST_EXTRA_HEADERS {
            return Err(HeaderError::TooMany);
        }
        value.set_sensitive(true);
        self.0.push(ExtraHeader { only, name, value });
        Ok(())
    }

    /// The same with these cookies for `origin`, besides those that the user gives it.
    pub(super) fn with_cookies(&self, origin: &Origin, cookies: Option<&str>) -> Self {
        let mut headers = self.clone();
        let Some(cookies) = cookies else { return headers };
        let own =
            self.of(origin).filter(|(name, _)| **name == COOKIE).find_map(|(_, value)| value.to_str().ok());
        let all = own.map_or_else(|| cookies.to_owned(), |own| format!("{own}; {cookies}"));
        if let Ok(value) = HeaderValue::try_from(all) {
            // More headers than are allowed: then without what a server set.
            let _ = headers.replace_for(origin, &COOKIE, &value);
        }
        headers
    }

    /// What a request to `origin` says.
    fn of(&self, origin: &Origin) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> + Clone {
        self.0.iter().filter(|header| header.is_for(origin)).map(|header| (&header.name, &header.value))
    }
}

/// The head of a request, ready to be sent.
#[derive(Clone)]
pub struct RequestHead {
    pub(super) method: Method,
    pub(super) upgrade: bool,
    /// How many bytes are asked for, if it says so.
    pub(super) length: Option<u64>,
    path_and_query: String,
    fields: Vec<(HeaderName, Vec<u8>)>,
}

impl std::fmt::Debug for RequestHead {
    /// Without the fields, which can hold credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestHead").field("method", &self.method).finish_non_exhaustive()
    }
}

impl RequestHead {
    /// Asks for `target`; a user's headers for its origin replace the client's own.
    pub fn new(method: Method, target: &Target, extra: &ExtraHeaders) -> Self {
        let path_and_query = target.path_and_query().to_owned();
        let mut head = Self { method, upgrade: false, length: None, path_and_query, fields: Vec::new() };
        head.put(&HOST, target.origin().authority().as_bytes());
        // Positions in an encoded body are not positions in the film.
        head.put(&ACCEPT_ENCODING, b"identity");
        let extra = extra.of(target.origin());
        let is_given = |name: &HeaderName| extra.clone().any(|(given, _)| given == name);
        for (name, value) in [(ACCEPT, "*/*"), (USER_AGENT, OWN_USER_AGENT)] {
            if !is_given(&name) {
                head.put(&name, value.as_bytes());
            }
        }
        if let Some(value) = target.authorization().filter(|_| !is_given(&AUTHORIZATION)) {
            head.put(&AUTHORIZATION, value.as_bytes());
        }
        for (name, value) in extra {
            head.put(name, value.as_bytes());
        }
        head
    }

    /// Asks only for the bytes from `first` to `last` (counted from zero, both included), or to the end (RFC
    /// 9110, 14.2).
    #[must_use]
    pub fn range(mut self, first: u64, last: Option<u64>) -> Self {
        self.length = last.map(|last| last.saturating_add(1).saturating_sub(first));
        let last = last.map(|last| last.to_string()).unwrap_or_default();
        self.put(&RANGE, format!("bytes={first}-{last}").as_bytes());
        self
    }

    /// Asks for the range only if the film is still the one with this validator, a strong entity tag or a
    /// date, and else for all of it (RFC 9110, 13.1.5).
    #[must_use]
    pub fn if_range(mut self, validator: &HeaderValue) -> Self {
        self.put(&IF_RANGE, validator.as_bytes());
        self
    }

    /// Offers to go on in another protocol on this connection (RFC 9110, 7.8).
    #[must_use]
    pub fn upgrade(mut self, protocol: &HeaderValue) -> Self {
        self.put(&CONNECTION, b"Upgrade");
        self.put(&UPGRADE, protocol.as_bytes());
        self.upgrade = true;
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &HeaderName, value: &HeaderValue) -> Self {
        self.put(name, value.as_bytes());
        self
    }

    /// As HTTP/1.1 has it (RFC 9112, section 3); to a proxy in the absolute form, with the origin (3.2.2).
    pub(super) fn write(&self, out: &mut BytesMut, through: Option<(&Origin, &Proxy)>) {
        let verb = self.method.verb();
        let origin = through.map(|(origin, _)| origin.to_string()).unwrap_or_default();
        out.extend_from_slice(format!("{verb} {origin}{} HTTP/1.1\r\n", self.path_and_query).as_bytes());
        if let Some(value) = through.and_then(|(_, proxy)| proxy.authorization.as_ref()) {
            for part in [b"proxy-authorization: ", value.as_bytes(), b"\r\n"] {
                out.extend_from_slice(part);
            }
        }
        for (name, value) in &self.fields {
            for part in [name.as_str().as_bytes(), b": ", value, b"\r\n"] {
                out.extend_from_slice(part);
            }
        }
        out.extend_from_slice(b"\r\n");
    }

    /// As HTTP/3 has it (RFC 9114, section 4.3.1): the host is in the URI, and nothing is said of the
    /// connection.
    pub(super) fn to_http3(&self, origin: &Origin) -> Result<Request<()>, ::http::Error> {
        let uri = format!("https://{}{}", origin.authority(), self.path_and_query);
        let mut request = Request::builder().method(self.method.verb()).uri(uri);
        for (name, value) in
            self.fields.iter().filter(|(name, _)| ![HOST, CONNECTION, UPGRADE].contains(name))
        {
            request = request.header(name, value.as_slice());
        }
        request.body(())
    }

    fn put(&mut self, name: &HeaderName, value: &[u8]) {
        self.fields.push((name.clone(), value.to_vec()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        Target::new(&url::Url::parse("http://user:secret@example.org:8080/film?x#y").unwrap()).unwrap()
    }

    fn text(head: &RequestHead) -> String {
        let mut out = BytesMut::new();
        head.write(&mut out, None);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn a_head_as_it_goes_over_the_wire() {
        let head = RequestHead::new(Method::Get, &target(), &ExtraHeaders::default())
            .range(100, Some(199))
            .if_range(&HeaderValue::from_static("\"v1\""));
        assert_eq!(
            text(&head),
            format!(
                "GET /film?x HTTP/1.1\r\nhost: example.org:8080\r\naccept-encoding: identity\r\naccept: \
                 */*\r\n\
                 user-agent: {OWN_USER_AGENT}\r\nauthorization: Basic dXNlcjpzZWNyZXQ=\r\nrange: \
                 bytes=100-199\r\n\
                 if-range: \"v1\"\r\n\r\n"
            )
        );
        let head = RequestHead::new(Method::Head, &target(), &ExtraHeaders::default())
            .range(5, None)
            .upgrade(&HeaderValue::from_static("stripe/1"));
        assert!(text(&head).starts_with("HEAD "));
        assert!(text(&head).ends_with("range: bytes=5-\r\nconnection: Upgrade\r\nupgrade: stripe/1\r\n\r\n"));
        assert!(!format!("{head:?}").contains("dXNl"));
    }

    #[test]
    fn a_users_headers_replace_the_clients() {
        let mut extra = ExtraHeaders::default();
        extra.add("User-Agent: me").unwrap();
        extra.add("Authorization: Bearer token").unwrap();
        extra.add("X-Empty:").unwrap();
        let text = text(&RequestHead::new(Method::Get, &target(), &extra));
        assert!(text.contains("user-agent: me\r\n") && !text.contains("anabranch"), "{text}");
        assert!(text.contains("authorization: Bearer token\r\n") && !text.contains("Basic"), "{text}");
        assert!(text.contains("x-empty: \r\n"), "{text}");
        assert!(!format!("{extra:?}").contains("token"));
    }

    #[test]
    fn a_header_goes_to_no_host_but_its_own() {
        let origin = |url| Target::new(&url::Url::parse(url).unwrap()).unwrap().origin().clone();
        let mut extra = ExtraHeaders::default();
        extra.add("Via: 1.1 me").unwrap();
        extra
            .add_for(&[origin("http://a.example"), origin("https://b.example:444")], "X-Token: one")
            .unwrap();
        let asked = |extra: &ExtraHeaders, url| {
            let target = Target::new(&url::Url::parse(url).unwrap()).unwrap();
            text(&RequestHead::new(Method::Get, &target, extra))
        };
        for (url, is_told) in [
            ("http://a.example/film", true),
            // The same host, asked more safely.
            ("https://a.example/film", true),
            ("http://a.example:81/film", false),
            ("http://b.example:444/film", false),
            ("https://b.example:444/film", true),
            ("https://b.example/film", false),
            ("http://sub.a.example/film", false),
        ] {
            let head = asked(&extra, url);
            assert_eq!(head.contains("x-token: one\r\n"), is_told, "{url}: {head}");
            assert!(head.contains("via: 1.1 me\r\n"), "{url}: {head}");
        }
        let (name, value) = (HeaderName::from_static("x-token"), HeaderValue::from_static("two"));
        extra.replace_for(&origin("http://a.example"), &name, &value).unwrap();
        let head = asked(&extra, "http://a.example/film");
        assert!(head.contains("x-token: two\r\n") && !head.contains("one"), "{head}");
        assert!(!asked(&extra, "https://c.example/").contains("x-token"));
        assert!(!format!("{extra:?}").contains("two"));
    }

    #[test]
    fn headers_that_would_break_the_request_are_refused() {
        let mut extra = ExtraHeaders::default();
        for wrong in ["no colon", "A: b\r\nC: d", "A: b\nC: d", ": x", "A B: c", "A: \0"] {
            assert_eq!(extra.add(wrong), Err(HeaderError::Unreadable), "{wrong:?}");
        }
        for reserved in ["Host: x", "range: bytes=0-1", "Connection: close", "Transfer-Encoding: chunked"] {
            assert!(matches!(extra.add(reserved), Err(HeaderError::Reserved(_))), "{reserved}");
        }
        for _ in 0..MOST_EXTRA_HEADERS {
            extra.add("a: b").unwrap();
        }
        assert_eq!(extra.add("a: b"), Err(HeaderError::TooMany));
    }
}
