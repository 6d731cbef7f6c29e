//! HTTP proxies on the way to a server, as the environment names them.
//!
//! What the variables mean is hyper-util's business (`Matcher`), which reads them as curl does. Its connector
//! is not used: it hands out no socket whose window could be set.

use std::fmt;
use std::sync::Arc;

use ::http::{HeaderValue, Uri};
use bytes::BytesMut;
use hyper_util::client::proxy::matcher::Matcher;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Host;

use super::error::ConnectError;
use super::head::ResponseHead;
use super::status::status_in_words;
use super::target::Origin;

/// The port of a proxy whose URL names none, as with curl.
const USUAL_PORT: u16 = 1080;

/// Through which proxies servers are reached; by default through none.
#[derive(Clone, Default)]
pub struct Proxies(Option<Arc<Matcher>>);

/// A proxy on the way to a server.
#[derive(Clone)]
pub(super) struct Proxy {
    pub(super) origin: Origin,
    /// Marked as sensitive.
    pub(super) authorization: Option<HeaderValue>,
}

impl fmt::Debug for Proxies {
    /// Without the URLs, which can hold passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxies({})", if self.0.is_some() { "some" } else { "none" })
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({})", self.origin)
    }
}

impl Proxies {
    /// Those of `http_proxy`, `https_proxy`, `all_proxy`, but for the hosts of `no_proxy`.
    pub fn from_environment() -> Self {
        Self(Some(Arc::new(Matcher::from_env())))
    }

    /// This one for all servers, but for these hosts (as in `no_proxy`).
    pub fn through(proxy: &str, except: &str) -> Self {
        Self(Some(Arc::new(Matcher::builder().all(proxy).no(except).build())))
    }

    /// The proxy on the way to this server. There is never one to this machine itself.
    pub(super) fn to(&self, origin: &Origin) -> Result<Option<Proxy>, ConnectError> {
        let is_here = match origin.host() {
            Host::Domain(name) => name == "localhost" || name.ends_with(".localhost"),
            Host::Ipv4(address) => address.is_loopback(),
            Host::Ipv6(address) => address.is_loopback(),
        };
        let Some(matcher) = self.0.as_ref().filter(|_| !is_here) else { return Ok(None) };
        let Some(found) = origin.to_string().parse::<Uri>().ok().and_then(|uri| matcher.intercept(&uri))
        else {
            return Ok(None);
        };
        let uri = found.uri();
        let host = uri.host().unwrap_or_default();
        let unusable =
            |reason: &str| ConnectError::Proxy { proxy: host.to_owned(), reason: reason.to_owned() };
        if uri.scheme_str() != Some("http") {
            return Err(unusable("only http: proxies can be used (no_proxy=HOST leaves a host out)"));
        }
        let parsed = Host::parse(host).map_err(|_| unusable("its host is not a host"))?;
        let origin = Origin::plain(parsed, uri.port_u16().unwrap_or(USUAL_PORT));
        let mut authorization = found.basic_auth().cloned();
        authorization.iter_mut().for_each(|value| value.set_sensitive(true));
        Ok(Some(Proxy { origin, authorization }))
    }
}

impl Proxy {
    /// What went wrong on the way to it or behind it.
    pub(super) fn failed(&self, reason: impl fmt::Display) -> ConnectError {
        let proxy = format!("{}:{}", self.origin.host(), self.origin.port());
        ConnectError::Proxy { proxy, reason: reason.to_string() }
    }

    /// Asks for a way to `origin`: from then on the stream is one to it (RFC 9110, 9.3.6).
    pub(super) async fn tunnel(&self, stream: &mut TcpStream, origin: &Origin) -> Result<(), ConnectError> {
        let authority = format!("{}:{}", origin.host(), origin.port());
        let mut request = format!("CONNECT {authority} HTTP/1.1\r\nhost: {authority}\r\n").into_bytes();
        if let Some(value) = &self.authorization {
            for part in [b"proxy-authorization: ", value.as_bytes(), b"\r\n"] {
                request.extend_from_slice(part);
            }
        }
        request.extend_from_slice(b"\r\n");
        stream.write_all(&request).await.map_err(|error| self.failed(error))?;
        let mut answer = BytesMut::with_capacity(1024);
        loop {
            // The head's length is bounded there.
            let parsed = ResponseHead::parse(&answer).map_err(|error| self.failed(error))?;
            match parsed {
                Some((head, length)) if (200..300).contains(&head.status) => {
                    // Nothing comes through before we have spoken.
                    let is_all = length == answer.len();
                    return is_all.then_some(()).ok_or_else(|| self.failed("it sends what nobody asked for"));
                }
                Some((head, _)) => {
                    let said = status_in_words(head.status);
                    return Err(self.failed(format_args!("it answers with {said}")));
                }
                None => {}
            }
            let read = stream.read_buf(&mut answer).await.map_err(|error| self.failed(error))?;
            if read == 0 {
                return Err(self.failed("it closed the connection"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::super::target::Target;
    use super::*;

    fn way(proxies: &Proxies, url: &str) -> Result<Option<String>, String> {
        let target = Target::new(&Url::parse(url).unwrap()).unwrap();
        let found = proxies.to(target.origin()).map_err(|error| error.to_string())?;
        Ok(found.map(|proxy| format!("{}:{}", proxy.origin.host(), proxy.origin.port())))
    }

    #[test]
    fn hosts_that_are_left_out_and_this_machine_are_reached_directly() {
        let proxies = Proxies::through("http://user:secret@proxy.example:3128", "left.example,10.0.0.0/8");
        for url in ["http://film.example/", "https://film.example/"] {
            assert_eq!(way(&proxies, url), Ok(Some("proxy.example:3128".into())));
        }
        for url in [
            "http://left.example/",
            "https://a.left.example/",
            "http://10.1.2.3/",
            "http://127.0.0.1:8000/",
            "http://localhost/",
            "https://[::1]/",
        ] {
            assert_eq!(way(&proxies, url), Ok(None), "{url}");
        }
        assert_eq!(way(&Proxies::default(), "http://film.example/"), Ok(None));
        assert!(!format!("{proxies:?}").contains("secret"));
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_named() {
        let error = way(&Proxies::through("socks5://user:secret@proxy.example", ""), "http://a.example/");
        let error = error.unwrap_err();
        assert!(error.contains("proxy.example") && error.contains("only http:"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}
