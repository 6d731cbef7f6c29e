//! What a request to the proxy asks for, and what it may not.

use std::net::{IpAddr, SocketAddr};

use http::uri::Authority;
use transport::http::Target;
use url::{Host, Url};

/// The URL in a request's target `/URL`. Programs that tidy paths make one slash of two; that is still a URL.
///
/// # Errors
/// It is no URL that can be asked for; the text says why.
pub(super) fn requested(path_and_query: &str) -> Result<Url, String> {
    const USAGE: &str = "ask for a URL behind the slash, such as /https://example.org/film.mp4";
    let text = path_and_query.strip_prefix('/').unwrap_or(path_and_query);
    let url = Url::parse(text).map_err(|error| match error {
        url::ParseError::RelativeUrlWithoutBase => USAGE.to_owned(),
        error => format!("this is no URL: {error}; {USAGE}"),
    })?;
    Target::new(&url).map_err(|error| error.to_string())?;
    Ok(url)
}

/// Whether `url` leads to the proxy that listens at `own`, as far as that can be seen without asking for the name.
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

/// Whether a `Host` header names the proxy that listens at `own`, a loopback address. A web page whose own name was made
/// to lead here says that name (DNS rebinding); it must not get to read through the proxy.
pub(super) fn names(host: &str, own: SocketAddr) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host();
    let ip = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    authority.port_u16().unwrap_or(80) == own.port()
        && ip.map_or_else(|_| is_localhost(name), |ip| is_own(ip, own))
}

/// Whether the origin of a web page is on this machine.
pub(super) fn is_local_origin(origin: &str) -> bool {
    Url::parse(origin).is_ok_and(|url| match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => is_localhost(name),
        None => false,
    })
}

fn is_own(ip: IpAddr, own: SocketAddr) -> bool {
    let ip = ip.to_canonical();
    ip.is_loopback() || ip.is_unspecified() || ip == own.ip().to_canonical()
}

fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8090);

    #[test]
    fn urls_behind_the_slash() {
        let of = |target: &str| requested(target).map(String::from);
        assert_eq!(of("/https://a.example/b/c?d=e/f"), Ok("https://a.example/b/c?d=e/f".into()));
        assert_eq!(of("/http:/a.example/b"), Ok("http://a.example/b".into()));
        for wrong in ["/", "/favicon.ico", "/file:///etc/passwd", "/ftp://a/b", "/http://", "*", ""] {
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

    #[test]
    fn only_its_own_names_are_answered() {
        for (host, own) in [
            ("127.0.0.1:8090", true),
            ("localhost:8090", true),
            ("[::1]:8090", true),
            ("localhost", false),
            ("127.0.0.1:80", false),
            ("evil.example:8090", false),
            ("localhost.evil.example:8090", false),
            ("10.0.0.1:8090", false),
            ("", false),
            ("a b", false),
        ] {
            assert_eq!(names(host, OWN), own, "{host}");
        }
        for (origin, local) in [
            ("http://localhost:3000", true),
            ("http://127.0.0.1", true),
            ("https://evil.example", false),
            ("null", false),
        ] {
            assert_eq!(is_local_origin(origin), local, "{origin}");
        }
    }
}
