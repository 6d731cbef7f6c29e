//! `anabranch serve --h3` with a browser: Chromium, made to trust the certificate by its key. Where it is
//! missing the test skips and says so.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::{World, film};
use rcgen::PublicKeyData as _;
use sha2::{Digest, Sha256};

/// Fetches the film by a script, and writes down what came by which protocol, as the browser tells it
/// (Resource Timing, nextHopProtocol).
const PAGE: &str = r#"<p id="said">nothing yet</p><script>
fetch("film.bin").then(answer => answer.arrayBuffer()).then(body => {
    const by = kind => performance.getEntriesByType(kind).pop().nextHopProtocol;
    document.getElementById("said").textContent = `${body.byteLength} bytes by ${by("resource")}, page by ${by("navigation")}`;
});
</script>"#;

#[test]
fn a_page_and_its_film_come_by_http3() {
    if Command::new("chromium").arg("--version").output().is_err() {
        anabranch_testkit::skipped("there is no chromium (Debian's package chromium)");
        return;
    }
    let world = World::new(&film(3_000_000, 1));
    fs::write(world.path("served/page.html"), PAGE).unwrap();
    let key = world.certificate();
    let server = world.serve_h3(&[]);
    let address = server.url.trim_start_matches("https://").trim_end_matches('/');
    let trusted = STANDARD.encode(Sha256::digest(key.subject_public_key_info()));
    let run = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
        ])
        .arg(format!("--user-data-dir={}", world.path("profile").display()))
        .arg(format!("--origin-to-force-quic-on={address}"))
        .arg(format!("--ignore-certificate-errors-spki-list={trusted}"))
        .args(["--virtual-time-budget=20000", "--dump-dom"])
        .arg(format!("{}page.html", server.url))
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let page = String::from_utf8_lossy(&run.stdout);
    assert!(
        page.contains("3000000 bytes by h3, page by h3"),
        "{page}\n{}",
        String::from_utf8_lossy(&run.stderr)
    );
}
