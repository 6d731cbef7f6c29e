//! What a request to the proxy asks for, and what it may not.

use std::net::SocketAddr;

use anabranch_http::Target;
use url::{Host, Url};

use crate::endpoint::{is_localhost, is_own};

/// The URL behind the slash of a request's target. Programs that tidy paths make one slash of two; that is
/// still a URL.
///
/// # Errors
/// It is no URL that can be asked for; the text says why.
pub(super) fn requested(text: &str) -> Result<Url, String> {
    const USAGE: &str = "ask for a URL behind the slash, such as /https://example.org/film.mp4";
    let url = Url::parse(text).map_err(|error| match error {
        url::ParseError::RelativeUrlWithoutBase => USAGE.to_owned(),
        error => format!("this is no URL: {error}; {USAGE}"),
    })?;
    Target::new(&url).map_err(|error| error.to_string())?;
    Ok(url)
}

/// Whether `url` leads to the proxy that listens at `own`, as far as that can be seen without asking for the
/// name.
pub(super) fn leads_to(url: &Url, own: SocketAddr) -> bool {
    let same_port = url.port_or_known_default() == Some(own.port());
    same_port
        && match url.host() {
            Some(Host::Ipv4(ip)) => is_own(ip.into(), own),
            Some(Host::Ipv6(ip)) => is_own(ip.into(), own),
            Some(Host::Domain(name)) => is_localhost(name),
            None => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8090);

    #[test]
    fn urls_behind_the_slash() {
        let of = |target: &str| requested(target).map(String::from);
        assert_eq!(of("https://a.example/b/c?d=e/f"), Ok("https://a.example/b/c?d=e/f".into()));
        assert_eq!(of("http:/a.example/b"), Ok("http://a.example/b".into()));
        for wrong in ["favicon.ico", "file:///etc/passwd", "ftp://a/b", "http://", "*", ""] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_way_back_is_seen() {
        for (url, loops) in [
            ("http://127.0.0.1:8090/http://a/", true),
            ("http://127.9.9.9:8090/", true),
            ("http://localhost:8090/", true),
            ("http://x.LOCALHOST.:8090/", true),
            ("http://[::1]:8090/", true),
            ("http://[::ffff:127.0.0.1]:8090/", true),
            ("http://0.0.0.0:8090/", true),
            ("http://127.0.0.1:8091/", false),
            ("http://127.0.0.1/", false),
            ("http://a.example:8090/", false),
        ] {
            assert_eq!(leads_to(&Url::parse(url).unwrap(), OWN), loops, "{url}");
        }
    }
}
