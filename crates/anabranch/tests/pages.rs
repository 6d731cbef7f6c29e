//! The local endpoint of `play` and `proxy` before hostile pages and hosts: what is answered, as what, and
//! who gets which header.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod play_support;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use anabranch_testkit::film;
use play_support::{Program, Response, get, raw_origin, request};

/// The heads that a server saw.
type Heads = Arc<Mutex<Vec<String>>>;

/// A server without ranges that answers every path with what `answer` says of it: a content type and a body,
/// or a whole answer.
fn host(answer: impl Fn(&str) -> (String, String) + Send + Sync + 'static) -> (SocketAddr, Heads) {
    let heads = Heads::default();
    let seen = heads.clone();
    let address = raw_origin(move |head| {
        seen.lock().unwrap().push(head.to_ascii_lowercase());
        let (kind, body) = answer(head.split(' ').nth(1).unwrap_or_default());
        if kind.starts_with("HTTP/") {
            return format!("{kind}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len())
                .into();
        }
        format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: \
             {}\r\n\r\n{body}",
            body.len()
        )
        .into()
    });
    (address, heads)
}

fn proxy(options: &[&str]) -> (Program, SocketAddr) {
    let mut program = Program::start(["proxy", "--listen", "127.0.0.1:0"].iter().chain(options));
    let (address, _) = program.endpoint();
    (program, address)
}

#[track_caller]
fn assert_inert(response: &Response, what: &str) {
    let policy = response.header("content-security-policy");
    assert!(policy.contains("sandbox") && policy.contains("default-src 'none'"), "{what}: {policy}");
    assert!(!policy.contains("allow-scripts"), "{what}: {policy}");
    assert_eq!(response.header("x-content-type-options"), "nosniff", "{what}");
}

#[test]
fn nothing_that_a_proxied_host_sends_can_run_in_a_browser() {
    const SCRIPT: &str = "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>";
    let (origin, _) = host(|path| {
        let kind = path.split_once('?').map_or("", |(_, kind)| kind).replace("%20", " ");
        (kind, SCRIPT.into())
    });
    let (_program, address) = proxy(&[]);
    for (name, kind, told) in [
        ("evil.html", "text/html", "application/octet-stream"),
        ("evil.html", "text/plain", "application/octet-stream"),
        ("evil.html", "application/octet-stream", "application/octet-stream"),
        ("evil.svg", "image/svg+xml", "application/octet-stream"),
        ("evil.xhtml", "application/xhtml+xml", "application/octet-stream"),
        ("evil.xml", "text/xml", "application/octet-stream"),
        ("evil.js", "text/javascript", "application/octet-stream"),
        ("evil.pdf", "application/pdf", "application/octet-stream"),
        ("evil", "video/mp4,%20text/html", "application/octet-stream"),
        ("evil", "multipart/x-mixed-replace;boundary=x", "application/octet-stream"),
        // What is no playlist although its server says so.
        ("evil", "application/dash+xml", "application/dash+xml"),
        ("film", "video/mp4", "video/mp4"),
        ("picture", "image/png", "image/png"),
    ] {
        let response = get(address, &format!("/http://{origin}/{name}?{kind}"), &[]);
        assert_eq!((response.status, response.header("content-type")), (200, told), "{name} as {kind}");
        let is_shown = told.starts_with("video/") || told.starts_with("image/");
        let disposition = if is_shown { "" } else { "attachment" };
        assert_eq!(response.header("content-disposition"), disposition, "{name} as {kind}");
        assert_inert(&response, name);
    }
    for (what, method, path) in [
        ("a message", "GET", "/%3Cscript%3Ealert(1)%3C/script%3E"),
        ("a refusal", "GET", "/http://127.0.0.1:1/%3Cscript%3Ealert(1)%3C/script%3E"),
        ("metrics", "GET", "/metrics"),
        ("a wrong method", "POST", "/"),
        ("a question", "OPTIONS", "/"),
    ] {
        let response = request(address, method, path, &[]);
        assert_inert(&response, what);
        assert!(!response.header("content-type").contains("html"), "{what}");
    }
}

#[test]
fn a_page_of_elsewhere_gets_nothing_and_has_nothing_fetched() {
    let (origin, heads) = host(|_| ("video/mp4".into(), "secret".into()));
    let (_program, address) = proxy(&["--allow-origin", "https://player.example"]);
    let path = format!("/http://{origin}/film.mp4");
    let evil = "https://evil.example";
    for lines in [
        &["Origin: https://evil.example"][..],
        &["Origin: null"],
        &["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"],
        &[
            "Sec-Fetch-Site: cross-site",
            "Sec-Fetch-Mode: no-cors",
            "Sec-Fetch-Dest: video",
            "Referer: https://evil.example/",
        ],
        &["Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: empty"],
        &["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"],
        &["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"],
        &["Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"],
        &["Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: script"],
        &[
            "Sec-Fetch-Site: same-origin",
            "Sec-Fetch-Mode: same-origin",
            "Sec-Fetch-Dest: serviceworker",
            "Service-Worker: script",
        ],
    ] {
        let response = get(address, &path, lines);
        assert_eq!(response.status, 403, "{lines:?}");
        assert!(!response.text().contains("secret"), "{lines:?}");
        assert_eq!(response.header("access-control-allow-origin"), "", "{lines:?}");
        assert_inert(&response, "a refusal");
    }
    for host in ["evil.example", "evil.example:8090", "localhost.evil.example"] {
        assert_eq!(get(address, &path, &[&format!("Host: {host}")]).status, 421, "{host}");
    }
    let question = |origin: &str| {
        let origin = format!("Origin: {origin}");
        let lines =
            [&*origin, "Access-Control-Request-Method: GET", "Access-Control-Request-Private-Network: true"];
        request(address, "OPTIONS", &path, &lines)
    };
    let refused = question(evil);
    assert_eq!((refused.status, refused.header("access-control-allow-private-network")), (403, ""));
    assert!(heads.lock().unwrap().is_empty(), "fetched for a page of elsewhere: {:?}", heads.lock().unwrap());

    for page in ["https://player.example", "http://localhost:3000"] {
        let allowed = question(page);
        assert_eq!((allowed.status, allowed.header("access-control-allow-private-network")), (204, "true"));
        assert_eq!(allowed.header("access-control-allow-origin"), page);
        let response = get(address, &path, &[&format!("Origin: {page}"), "Sec-Fetch-Site: cross-site"]);
        assert_eq!((response.status, response.header("access-control-allow-origin")), (200, page));
        let lines = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Dest: video", &format!("Referer: {page}/")];
        let response = get(address, &path, &lines);
        assert_eq!((response.status, response.header("cross-origin-resource-policy")), (200, "cross-origin"));
    }
    // The person in front of the browser, and a player.
    let typed = ["Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"];
    assert_eq!(get(address, &path, &typed).status, 200);
    assert_eq!(get(address, &path, &["Referer: https://site.example/"]).status, 200);
}

#[test]
fn play_answers_no_page_of_elsewhere_either() {
    let film = film(100_000);
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("film.mp4"), &film).unwrap();
    let origin = play_support::Origin::start(directory.path(), None);
    let mut program = Program::start(["play", &origin.url("film.mp4"), "--allow-origin", "null"]);
    let (address, path) = program.endpoint();
    for (line, status) in [
        ("Origin: https://evil.example", 403),
        ("Origin: null", 206),
        ("Origin: http://127.0.0.1:1", 206),
        ("Host: evil.example", 421),
    ] {
        let response = get(address, &path, &["Range: bytes=0-9", line]);
        assert_eq!(response.status, status, "{line}");
        assert_inert(&response, line);
    }
}

#[test]
fn a_header_goes_to_no_host_but_its_own() {
    let (other, their_heads) = host(|_| ("video/mp4".into(), "film".into()));
    let (own, heads) = host(move |path| match path {
        "/moved.mp4" => (format!("HTTP/1.1 302 Found\r\nLocation: http://{other}/moved.mp4"), String::new()),
        "/a.m3u8" => {
            let lines = format!("#EXTM3U\n#EXTINF:2,\nhttp://{other}/1.ts\n#EXTINF:2,\n/2.ts\n");
            ("application/vnd.apple.mpegurl".into(), lines)
        }
        _ => ("video/mp4".into(), "film".into()),
    });
    let (_program, address) = proxy(&["--header-for", &format!("http://{own}"), "X-Token: secret"]);
    for path in [
        format!("/http://{own}/film.mp4"),
        format!("/http://{own}/moved.mp4"),
        format!("/http://{other}/film.mp4"),
    ] {
        assert_eq!(get(address, &path, &[]).status, 200, "{path}");
    }
    let playlist = get(address, &format!("/http://{own}/a.m3u8"), &[]).text();
    for line in playlist.lines().filter(|line| !line.starts_with('#')) {
        let path = line.strip_prefix(&format!("http://{address}")).unwrap();
        assert_eq!(get(address, path, &[]).status, 200, "{line}");
    }
    assert!(heads.lock().unwrap().iter().all(|head| head.contains("x-token: secret")), "{heads:?}");
    assert_eq!(their_heads.lock().unwrap().len(), 3, "{their_heads:?}");
    assert!(their_heads.lock().unwrap().iter().all(|head| !head.contains("x-token")), "{their_heads:?}");

    let mut unbound = Program::start(["proxy", "--listen", "127.0.0.1:0", "-H", "X-Token: secret"]);
    let (code, said) = unbound.ended();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--header-for https://HOST") && !said.contains("secret"), "{said}");
}

#[test]
fn a_loop_through_a_redirect_to_another_host_is_noticed() {
    let (_program, address) = proxy(&[]);
    // Somebody who passes requests on to the proxy, with their headers, under an address that is not its own.
    let relay = raw_origin(move |head| {
        let via =
            head.lines().find(|line| line.to_ascii_lowercase().starts_with("via:")).unwrap_or("X-None: 1");
        let answer = get(address, "/http://127.0.0.1:1/", &[via]);
        format!("HTTP/1.1 {} X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", answer.status).into()
    });
    let (elsewhere, _) =
        host(move |_| (format!("HTTP/1.1 302 Found\r\nLocation: http://{relay}/"), String::new()));
    let response = get(address, &format!("/http://{elsewhere}/film"), &[]);
    assert_eq!(response.status, 400, "{}", response.text());
}

#[test]
fn the_offered_name_means_nothing_to_a_shell() {
    let (origin, _) = host(|path| match path {
        "/film.mp4" => {
            ("HTTP/1.1 302 Found\r\nLocation: /good;touch$IFS$9x&'`(a)|<b>*~!#x".into(), String::new())
        }
        _ => ("video/mp4".into(), "film".into()),
    });
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let player = format!("sh -c \"curl -sf {{}} > {} && : {{}}\"", out.display());
    let mut program = Program::start(["play", &format!("http://{origin}/film.mp4"), "--player", &player]);
    let (code, said) = program.ended();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(std::fs::read_to_string(out).unwrap(), "film");
    let url = said.split("the film is at ").nth(1).unwrap().lines().next().unwrap();
    let path = url.splitn(4, '/').nth(3).unwrap();
    assert!(path.starts_with("good%3Btouch%24IFS%249x"), "{path}");
    assert!(path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"%-._~".contains(&byte)), "{path}");
}

#[test]
fn a_film_that_others_can_play_is_told() {
    let (origin, _) = host(|_| ("video/mp4".into(), "film".into()));
    for (listen, is_told) in [("127.0.0.1:0", false), ("0.0.0.0:0", true)] {
        let mut program = Program::start([
            "play",
            &format!("http://{origin}/film.mp4"),
            "--listen",
            listen,
            "--player",
            "true",
        ]);
        let (_, said) = program.ended();
        assert_eq!(
            said.contains("everybody who can reach this address can play the film"),
            is_told,
            "{said}"
        );
    }
}

#[test]
fn a_players_secrets_go_to_the_host_that_it_talks_to() {
    let (other, their_heads) = host(|_| ("video/mp4".into(), "film".into()));
    let (own, heads) = host(move |path| match path {
        "/moved.mp4" => (format!("HTTP/1.1 302 Found\r\nLocation: http://{other}/moved.mp4"), String::new()),
        "/moved.m3u8" => (format!("HTTP/1.1 302 Found\r\nLocation: http://{other}/a.m3u8"), String::new()),
        "/a.m3u8" => {
            let lines =
                format!("#EXTM3U\n#EXTINF:2,\nhttp://{other}/1.ts\n#EXTINF:2,\n/2.ts\n#EXTINF:2,\n3.ts\n");
            ("application/vnd.apple.mpegurl".into(), lines)
        }
        _ => ("video/mp4".into(), "film".into()),
    });
    let (_program, address) = proxy(&[]);
    let secrets = ["Cookie: session=secret", "Cookie: b=c", "Authorization: Bearer secret"];
    let path = |name: &str| format!("/http://{own}/{name}");
    for name in ["film.mp4", "moved.mp4"] {
        assert_eq!(get(address, &path(name), &secrets).status, 200, "{name}");
    }
    let playlist = get(address, &path("a.m3u8"), &secrets).text();
    for line in playlist.lines().filter(|line| !line.starts_with('#')) {
        // As a player resolves it.
        let url =
            url::Url::parse(&format!("http://{address}{}", path("a.m3u8"))).unwrap().join(line).unwrap();
        let path = url.as_str().strip_prefix(&format!("http://{address}")).unwrap();
        assert_eq!(get(address, path, &secrets).status, 200, "{line}");
    }
    {
        let heads = heads.lock().unwrap();
        assert_eq!(heads.len(), 5, "{heads:?}");
        let all = |words: &str| heads.iter().all(|head| head.contains(words));
        assert!(all("\ncookie: session=secret; b=c") && all("\nauthorization: bearer secret"), "{heads:?}");
    }
    // Where a redirect leads a player of playlists, it is a stranger.
    let moved = get(address, &path("moved.m3u8"), &secrets);
    assert_eq!(moved.status, 200, "{}", moved.text());
    assert_eq!(their_heads.lock().unwrap().len(), 3, "{their_heads:?}");
    assert!(their_heads.lock().unwrap().iter().all(|head| !head.contains("secret")), "{their_heads:?}");

    // A browser's cookies are those of other servers on this machine.
    heads.lock().unwrap().clear();
    let page = ["Origin: http://localhost:3000", "Cookie: session=secret", "Authorization: Bearer own"];
    let typed = ["Sec-Fetch-Site: none", "Cookie: session=secret", "Authorization: Basic secret"];
    for lines in [page, typed] {
        assert_eq!(get(address, &path("film.mp4"), &lines).status, 200);
    }
    let heads = heads.lock().unwrap();
    assert!(heads.iter().all(|head| !head.contains("secret")), "{heads:?}");
    assert!(heads[0].contains("authorization: bearer own"), "{heads:?}");
}

#[test]
fn what_one_player_may_see_another_is_asked_for() {
    let (own, heads) = host(|_| ("video/mp4".into(), "film".into()));
    let (_program, address) = proxy(&[]);
    let path = format!("/http://{own}/film.mp4");
    for lines in [&["Cookie: a=b"][..], &[], &["Cookie: c=d"]] {
        assert_eq!(get(address, &path, lines).status, 200);
    }
    let heads = heads.lock().unwrap();
    let cookies: Vec<_> = heads
        .iter()
        .map(|head| head.lines().find_map(|line| line.strip_prefix("cookie: ")).unwrap_or_default())
        .collect();
    assert_eq!(cookies, ["a=b", "", "c=d"]);
}

#[test]
fn a_refusal_of_the_host_is_passed_on_with_what_to_do() {
    let (own, _) = host(|path| {
        match path {
        "/busy" => ("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7".into(), String::new()),
        "/busy-until" => (
            "HTTP/1.1 503 Service Unavailable\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nRetry-After: Sun, 06 \
             Nov 1994 08:49:46 GMT".into(),
            String::new(),
        ),
        _ => ("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"".into(), String::new()),
    }
    });
    // A server that asks to wait at the opening is waited for no longer than this.
    let (_program, address) = proxy(&["--timeout", "1s"]);
    let asked = |path: &str, lines: &[&str]| get(address, path, lines);
    let busy = asked(&format!("/http://{own}/busy"), &[]);
    assert_eq!((busy.status, busy.header("retry-after")), (503, "7"), "{}", busy.text());
    let busy = asked(&format!("/http://{own}/busy-until"), &[]);
    assert_eq!((busy.status, busy.header("retry-after")), (503, "9"), "{}", busy.text());
    let locked = asked(&format!("/http://{own}/locked"), &[]);
    assert_eq!((locked.status, locked.header("www-authenticate")), (401, "Basic realm=\"127.0.0.1\""));
    // What a browser would tell to every host behind the proxy, and what is none of the player's business.
    for (path, line) in [("", "Sec-Fetch-Site: none"), ("anonymous/", "Accept: */*")] {
        let locked = asked(&format!("/{path}http://{own}/locked"), &[line]);
        assert_eq!((locked.status, locked.header("www-authenticate")), (401, ""), "{path}{line}");
    }
}
