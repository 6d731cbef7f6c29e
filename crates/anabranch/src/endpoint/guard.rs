//! Whom the endpoint answers: any program, the person at a browser's address bar, and pages that are let in.
//!
//! Any page in a browser can send requests to this machine, so a page is answered only when it comes from
//! this machine or its origin was allowed. What tells pages apart, none of it under their control:
//!
//! - `Host`: a page whose own name was made to lead here (DNS rebinding) says that name.
//! - `Origin`: who asks, where a script wants to read the answer. `null` is the origin of a file, but also of
//!   a sandboxed frame in any page, so that it tells nothing and has to be allowed like any other.
//! - `Sec-Fetch-Site`: whether a page asks at all, also where it only embeds (W3C Fetch Metadata). Browsers
//!   send it to loopback addresses and over TLS; who does not send it is taken for a program.
//! - `Sec-Fetch-Dest`: what for. What is served here is played or looked at: it is no script, no frame, no
//!   worker.
//! - `Referer`: which page embeds, where it does not hide that. A page can hide it, but not name another one.

use std::net::{IpAddr, SocketAddr};

use http::header::{HOST, ORIGIN, REFERER};
use http::uri::Authority;
use http::{HeaderMap, StatusCode};
use url::{Host, Url};

use crate::arguments::{AccessArguments, PageOrigin};

/// What media are fetched for by a page.
const MEDIA_DESTINATIONS: [&str; 5] = ["empty", "audio", "image", "track", "video"];

/// Decides who is answered.
#[derive(Debug)]
pub(crate) struct Guard {
    own: SocketAddr,
    names: Vec<String>,
    origins: Vec<PageOrigin>,
}

/// Who is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// A player, or any other program that is no browser.
    Program,
    /// A browser on behalf of its user: an address that was typed, or a document that shows what is here.
    Browser,
    /// A browser on behalf of a page that is let in.
    Page,
}

/// Why somebody is not answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) text: String,
}

impl Refusal {
    fn page(text: impl Into<String>) -> Self {
        Self { status: StatusCode::FORBIDDEN, text: text.into() }
    }
}

impl Guard {
    /// Of an endpoint that listens at `own`.
    pub(crate) fn new(own: SocketAddr, access: &AccessArguments) -> Self {
        let mut names: Vec<String> = access.allow_host.iter().map(|name| plain(name)).collect();
        if !own.ip().is_loopback() {
            // What others in the same network call this machine; nobody else can own these names.
            let system = rustix::system::uname();
            let own_name = plain(&system.nodename().to_string_lossy());
            names.extend([format!("{own_name}.local"), own_name]);
        }
        Self { own, names, origins: access.allow_origin.clone() }
    }

    /// Decides about a request with these headers; `authority` is the host in its target, if there is one.
    ///
    /// # Errors
    /// It is not answered.
    pub(super) fn judge(&self, headers: &HeaderMap, authority: Option<&Authority>) -> Result<Asker, Refusal> {
        let mut hosts = headers.get_all(HOST).iter().map(|host| host.to_str().unwrap_or_default());
        // Without a Host it is no browser.
        let strange = hosts.find(|host| !self.is_named(host));
        let strange = strange.or(authority.map(Authority::as_str).filter(|host| !self.is_named(host)));
        if let Some(host) = strange {
            let text = format!("this is http://{}/, not {host} (--allow-host NAME adds a name)", self.own);
            return Err(Refusal { status: StatusCode::MISDIRECTED_REQUEST, text });
        }
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let destination = text("sec-fetch-dest").unwrap_or("empty");
        let is_document = destination == "document";
        if !is_document && !MEDIA_DESTINATIONS.contains(&destination)
            || headers.contains_key("service-worker")
        {
            return Err(Refusal::page(format!("media are served here, no {destination}")));
        }
        if let Some(origin) = text(ORIGIN.as_str()) {
            return if self.is_own_origin(origin, headers) {
                Ok(Asker::Browser)
            } else if self.admits(origin) {
                Ok(Asker::Page)
            } else {
                Err(not_admitted(origin))
            };
        }
        match text("sec-fetch-site") {
            None => Ok(Asker::Program),
            // Nothing that is served here can ask by itself, so that it is the browser that shows it.
            Some("none" | "same-origin") => Ok(Asker::Browser),
            Some(_) => {
                let origin = text(REFERER.as_str()).and_then(|page| Url::parse(page).ok());
                let origin = origin.map_or_else(|| "null".into(), |page| page.origin().ascii_serialization());
                if self.admits(&origin) { Ok(Asker::Page) } else { Err(not_admitted(&origin)) }
            }
        }
    }

    /// Whether pages of this origin are let in.
    fn admits(&self, origin: &str) -> bool {
        is_local_origin(origin) || self.origins.iter().any(|allowed| allowed.0.eq_ignore_ascii_case(origin))
    }

    fn is_own_origin(&self, origin: &str, headers: &HeaderMap) -> bool {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        host.is_some_and(|host| origin.strip_prefix("http://") == Some(host))
    }

    /// Whether a `Host` header names this endpoint. A page whose own name was made to lead here says that
    /// name (DNS rebinding); an address cannot be made to lead elsewhere.
    fn is_named(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        let name = authority.host();
        if self.names.contains(&plain(name)) {
            return true;
        }
        let ip = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        if self.own.ip().is_loopback() {
            authority.port_u16().unwrap_or(80) == self.own.port()
                && ip.map_or_else(|_| is_localhost(name), |ip| is_own(ip, self.own))
        } else {
            ip.is_ok() || is_localhost(name)
        }
    }
}

fn not_admitted(origin: &str) -> Refusal {
    Refusal::page(match origin {
        "null" => "pages of files, of sandboxed frames and those that hide where they are from are not \
                   answered here: \
                   serve the page on this machine, or see --allow-origin in the manual"
            .to_owned(),
        origin => format!("pages of {origin} are not answered here (--allow-origin {origin} lets them in)"),
    })
}

/// Whether the origin of a web page is on this machine.
fn is_local_origin(origin: &str) -> bool {
    Url::parse(origin).is_ok_and(|url| match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => is_localhost(name),
        None => false,
    })
}

/// Whether this address leads to the endpoint that listens at `own`.
pub(crate) fn is_own(ip: IpAddr, own: SocketAddr) -> bool {
    let ip = ip.to_canonical();
    ip.is_loopback() || ip.is_unspecified() || ip == own.ip().to_canonical()
}

/// Whether this name always means this machine (RFC 6761, section 6.3).
pub(crate) fn is_localhost(name: &str) -> bool {
    let name = plain(name);
    name == "localhost" || name.ends_with(".localhost")
}

/// A name as it is compared.
fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    const OWN: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8090);

    fn guard(own: SocketAddr, origins: &[&str]) -> Guard {
        let access = AccessArguments {
            allow_origin: origins.iter().map(|origin| origin.parse().unwrap()).collect(),
            allow_host: vec!["nas.example".into()],
        };
        Guard::new(own, &access)
    }

    fn asked(guard: &Guard, lines: &[(&str, &str)]) -> Result<Asker, u16> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("127.0.0.1:8090"));
        for (name, value) in lines {
            headers.insert(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        guard.judge(&headers, None).map_err(|refusal| refusal.status.as_u16())
    }

    #[test]
    fn only_its_own_names_are_answered() {
        let loopback = guard(OWN, &[]);
        for (host, own) in [
            ("127.0.0.1:8090", true),
            ("localhost:8090", true),
            ("x.LOCALHOST.:8090", true),
            ("[::1]:8090", true),
            ("nas.example:8090", true),
            ("localhost", false),
            ("127.0.0.1:80", false),
            ("evil.example:8090", false),
            ("localhost.evil.example:8090", false),
            ("10.0.0.1:8090", false),
            ("", false),
            ("a b", false),
        ] {
            assert_eq!(loopback.is_named(host), own, "{host}");
        }
        // One that others in the network can reach knows addresses, and no names but its own.
        let open = guard("0.0.0.0:8090".parse().unwrap(), &[]);
        let system = rustix::system::uname().nodename().to_string_lossy().into_owned();
        for (host, own) in [
            ("10.0.0.1:8090", true),
            ("192.168.1.2", true),
            ("[fd00::1]:8090", true),
            ("localhost:8090", true),
            ("NAS.example:1", true),
            (&*format!("{system}:8090"), true),
            (&*format!("{system}.local:8090"), true),
            ("evil.example:8090", false),
        ] {
            assert_eq!(open.is_named(host), own, "{host}");
        }
    }

    #[test]
    fn pages_of_other_origins_are_not_answered() {
        let guard = guard(OWN, &["https://player.example", "chrome-extension://abc"]);
        let cross = ("sec-fetch-site", "cross-site");
        for (what, lines, expected) in [
            ("a player", &[][..], Ok(Asker::Program)),
            ("a player with a referrer", &[("referer", "https://evil.example/")], Ok(Asker::Program)),
            (
                "an address that was typed",
                &[("sec-fetch-site", "none"), ("sec-fetch-dest", "document")],
                Ok(Asker::Browser),
            ),
            (
                "what shows it",
                &[("sec-fetch-site", "same-origin"), ("sec-fetch-dest", "video")],
                Ok(Asker::Browser),
            ),
            ("a link in a page", &[cross, ("sec-fetch-dest", "document")], Err(403)),
            (
                "a link in a local page",
                &[cross, ("sec-fetch-dest", "document"), ("referer", "http://localhost:3000/x")],
                Ok(Asker::Page),
            ),
            ("an image in a page", &[cross, ("sec-fetch-dest", "image")], Err(403)),
            (
                "an image in a page that says where it is",
                &[cross, ("sec-fetch-dest", "image"), ("referer", "https://evil.example/")],
                Err(403),
            ),
            ("a neighbour", &[("sec-fetch-site", "same-site"), ("sec-fetch-dest", "image")], Err(403)),
            (
                "a video in an allowed page",
                &[cross, ("sec-fetch-dest", "video"), ("referer", "https://player.example/")],
                Ok(Asker::Page),
            ),
            ("a script of a page", &[cross, ("origin", "https://evil.example")], Err(403)),
            ("a script of an old browser", &[("origin", "https://evil.example")], Err(403)),
            ("a script of a sandboxed frame", &[cross, ("origin", "null")], Err(403)),
            ("a script of a local page", &[cross, ("origin", "http://localhost:3000")], Ok(Asker::Page)),
            ("a script of an allowed page", &[cross, ("origin", "https://player.example")], Ok(Asker::Page)),
            ("a script of an extension", &[cross, ("origin", "chrome-extension://abc")], Ok(Asker::Page)),
            ("its neighbour", &[cross, ("origin", "https://player.example:444")], Err(403)),
            ("itself", &[("origin", "http://127.0.0.1:8090")], Ok(Asker::Browser)),
        ] {
            assert_eq!(asked(&guard, lines), expected, "{what}");
        }
        for destination in
            ["script", "iframe", "frame", "embed", "object", "serviceworker", "worker", "style"]
        {
            for site in ["none", "same-origin", "cross-site"] {
                let lines = [
                    ("sec-fetch-dest", destination),
                    ("sec-fetch-site", site),
                    ("origin", "http://localhost"),
                ];
                assert_eq!(asked(&guard, &lines), Err(403), "{destination}, {site}");
            }
        }
        assert_eq!(asked(&guard, &[("service-worker", "script")]), Err(403));
        assert_eq!(asked(&guard, &[("host", "evil.example:8090")]), Err(421));
    }

    #[test]
    fn nobody_in_particular_can_be_allowed() {
        let guard = guard(OWN, &["null"]);
        let video = [("sec-fetch-site", "cross-site"), ("sec-fetch-dest", "video")];
        assert_eq!(asked(&guard, &video), Ok(Asker::Page));
        assert_eq!(asked(&guard, &[("origin", "null")]), Ok(Asker::Page));
        assert_eq!(asked(&guard, &[("origin", "https://evil.example")]), Err(403));
    }

    #[test]
    fn what_is_local() {
        for (origin, local) in [
            ("http://localhost:3000", true),
            ("http://127.0.0.1", true),
            ("https://[::1]:1", true),
            ("https://evil.example", false),
            ("http://localhost.evil.example", false),
            ("null", false),
        ] {
            assert_eq!(is_local_origin(origin), local, "{origin}");
        }
    }
}
