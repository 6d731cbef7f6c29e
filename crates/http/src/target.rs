//! Where a request goes: [`Origin`] (whom to connect to) and [`Target`] (what to ask there).

use std::fmt;

use ::http::HeaderValue;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;
use url::{Host, Url};

/// Scheme, host and port (RFC 6454): what a connection can be shared for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    secure: bool,
    host: Host<String>,
    port: u16,
}

/// What to ask, and of whom. Neither `Debug` nor `Display` ever show a password or a query.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    origin: Origin,
    path_and_query: String,
    /// Marked as sensitive.
    authorization: Option<HeaderValue>,
}

/// A URL that cannot be asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// Not a URL at all.
    #[error("not a URL: {0}")]
    Unreadable(#[from] url::ParseError),
    /// Another scheme than HTTP.
    #[error("'{0}:' is not supported, only http: and https: are")]
    Scheme(String),
    /// No host.
    #[error("the URL names no host")]
    NoHost,
}

impl Origin {
    /// A host without TLS.
    pub(super) fn plain(host: Host<String>, port: u16) -> Self {
        Self { secure: false, host, port }
    }

    /// Whether TLS is used.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// The host: a name, or an address.
    pub fn host(&self) -> &Host<String> {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    fn has_default_port(&self) -> bool {
        self.port == if self.secure { 443 } else { 80 }
    }

    /// Whether secrets for `self` may be told to `other`: to the same origin, or to the same host when it
    /// only asks for TLS.
    pub(super) fn may_share_secrets_with(&self, other: &Self) -> bool {
        let upgraded = !self.secure
            && other.secure
            && self.host == other.host
            && self.has_default_port()
            && other.has_default_port();
        self == other || upgraded
    }

    /// The value of the `Host` header (RFC 9110, 7.2).
    pub(super) fn authority(&self) -> String {
        if self.has_default_port() { self.host.to_string() } else { format!("{}:{}", self.host, self.port) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.secure { "https" } else { "http" }, self.authority())
    }
}

impl Target {
    /// What a URL asks for. Its user and password become an `Authorization` (RFC 7617), its fragment is
    /// dropped.
    ///
    /// # Errors
    /// Another scheme than `http` and `https`, or no host.
    pub fn new(url: &Url) -> Result<Self, TargetError> {
        let secure = match url.scheme() {
            "http" => false,
            "https" => true,
            other => return Err(TargetError::Scheme(other.into())),
        };
        let host = url.host().ok_or(TargetError::NoHost)?.to_owned();
        let port = url.port_or_known_default().ok_or(TargetError::NoHost)?;
        let path_and_query = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        Ok(Self { origin: Origin { secure, host, port }, path_and_query, authorization: authorization(url) })
    }

    /// Whom to connect to.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The path and the query, as they are sent.
    pub fn path_and_query(&self) -> &str {
        &self.path_and_query
    }

    /// The value of the `Authorization` header.
    pub(super) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    /// The same with the credentials of `other`, unless it has its own.
    pub(super) fn with_credentials_of(mut self, other: &Self) -> Self {
        if self.authorization.is_none() {
            self.authorization.clone_from(&other.authorization);
        }
        self
    }
}

impl fmt::Display for Target {
    /// As [`shown`] has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path_and_query.split_once('?') {
            Some((path, _)) => write!(f, "{}{path}?{HIDDEN}", self.origin),
            None => write!(f, "{}{}", self.origin, self.path_and_query),
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

/// What stands for a query where a URL is shown.
const HIDDEN: &str = "...";

/// A URL for people, in messages, logs and reports: without user and password and without its query, which
/// can be a secret as well (`?...` stands for it).
pub fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Both fail only for URLs without a host, which are asked for nowhere.
    let _ = (url.set_username(""), url.set_password(None));
    url.set_fragment(None);
    if url.query().is_some() {
        url.set_query(Some(HIDDEN));
    }
    url.into()
}

/// `Basic` credentials from user and password of a URL, percent-decoded (RFC 7617, 2).
fn authorization(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut credentials: Vec<u8> = percent_decode_str(url.username()).collect();
    credentials.push(b':');
    credentials.extend(percent_decode_str(url.password().unwrap_or_default()));
    let mut value = HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(credentials))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Result<Target, TargetError> {
        Target::new(&Url::parse(url)?)
    }

    #[test]
    fn parts_of_a_url() {
        let film = target("http://example.org/a%20film.mp4?x=1#t=10").unwrap();
        assert_eq!(film.path_and_query(), "/a%20film.mp4?x=1");
        assert_eq!((film.origin().authority().as_str(), film.origin().port()), ("example.org", 80));
        assert_eq!(target("https://example.org:8443").unwrap().to_string(), "https://example.org:8443/");
        assert_eq!(target("http://[::1]:8080/").unwrap().origin().authority(), "[::1]:8080");
        assert_eq!(target("https://example.org:443/").unwrap().origin().authority(), "example.org");
    }

    #[test]
    fn other_schemes_are_refused() {
        assert_eq!(target("ftp://example.org/"), Err(TargetError::Scheme("ftp".into())));
        assert_eq!(target("file:///film"), Err(TargetError::Scheme("file".into())));
        assert!(matches!(target("film.mp4"), Err(TargetError::Unreadable(_))));
    }

    #[test]
    fn credentials_are_decoded_and_never_shown() {
        let url = "http://Aladdin:open%20sesame@example.org/film?token=geheim#x";
        let film = target(url).unwrap();
        // The example of RFC 7617, section 2.
        assert_eq!(film.authorization().unwrap(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        for shown in [film.to_string(), format!("{film:?}"), shown(&Url::parse(url).unwrap())] {
            for secret in ["sesame", "QWxh", "Aladdin", "geheim"] {
                assert!(!shown.contains(secret), "{shown}");
            }
            assert!(shown.contains("http://example.org/film?..."), "{shown}");
        }
    }

    #[test]
    fn secrets_stay_with_their_host() {
        let origin = |url| target(url).unwrap().origin;
        let plain = origin("http://a.example/");
        assert!(plain.may_share_secrets_with(&origin("http://a.example/b")));
        assert!(plain.may_share_secrets_with(&origin("https://a.example/")));
        for other in
            ["http://b.example/", "https://b.example/", "http://a.example:81/", "https://a.example:4433/"]
        {
            assert!(!plain.may_share_secrets_with(&origin(other)), "{other}");
        }
        assert!(!origin("https://a.example/").may_share_secrets_with(&plain));
    }
}
