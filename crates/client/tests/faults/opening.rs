//! What keeps a film from beginning.

use std::net::TcpListener;

use anabranch_client::{Film, OpenError, Storage};
use anabranch_testkit::{Answer, ScriptedServer, film, status};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio_rustls::TlsAcceptor;

use crate::viewer::{is_left, millis, refused, settings};

#[tokio::test]
async fn an_unknown_host() {
    let error = refused(settings(&["http://nowhere.invalid/film".parse().unwrap()])).await;
    assert!(error.starts_with("cannot find the host nowhere.invalid"), "{error}");
}

#[tokio::test]
async fn a_refused_connection() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = refused(settings(&[format!("http://{address}/film").parse().unwrap()])).await;
    assert_eq!(error, format!("{address} refused the connection"));
}

#[tokio::test]
async fn a_status_that_says_no() {
    for (said, words) in [
        ("404 Not Found", "the server answers with status 404 (Not Found)"),
        ("403 Forbidden", "the server answers with status 403 (Forbidden)"),
        ("500 Internal Server Error", "the server answers with status 500 (Internal Server Error)"),
        ("429 Too Many Requests", "the server answers with status 429 (Too Many Requests)"),
        ("503 Service Unavailable", "the server answers with status 503 (Service Unavailable)"),
    ] {
        let server = ScriptedServer::of(&film(1), move |_| status(said, "Retry-After: 7\r\n"));
        match Film::open(settings(&[server.film_url()]), Storage::Memory).await {
            Err(OpenError::Refused { message, status: number, retry_after }) => {
                assert_eq!(message, format!("{}: {words}", server.film_url()));
                assert!(said.starts_with(&number.to_string()));
                assert_eq!(retry_after, Some(millis(7000)));
            }
            other => panic!("{:?}", other.map(|_| ())),
        }
        is_left(&server).await;
    }
}

#[tokio::test]
async fn redirects_in_a_circle_and_without_an_end() {
    let circle = ScriptedServer::of(&film(1), |x| {
        let to = if x.target == "/film.bin" { "/other" } else { "/film.bin" };
        status("302 Found", &format!("Location: {to}\r\n"))
    });
    let error = refused(settings(&[circle.film_url()])).await;
    assert_eq!(error, format!("{}: redirected in a circle", circle.film_url()));
    let endless = ScriptedServer::of(&film(1), |x| {
        status("301 Moved Permanently", &format!("Location: /{}\r\n", x.number))
    });
    let error = refused(settings(&[endless.film_url()])).await;
    assert!(error.ends_with("more than 10 redirects"), "{error}");
    assert_eq!(endless.requests(), 11);
}

#[tokio::test]
async fn a_certificate_that_nobody_trusts() {
    let error = untrusted(generate_simple_self_signed(["localhost".to_owned()]).unwrap()).await;
    assert!(error.starts_with("the certificate of localhost is not accepted: its issuer"), "{error}");
}

/// As openssl makes them.
#[tokio::test]
async fn a_self_signed_certificate_that_says_it_is_an_authoritys() {
    let mut parameters = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let signing_key = rcgen::KeyPair::generate().unwrap();
    let cert = parameters.self_signed(&signing_key).unwrap();
    let error = untrusted(CertifiedKey { cert, signing_key }).await;
    assert!(error.contains("it is self-signed") && error.contains("--cacert FILE"), "{error}");
}

/// What is said of a server with this certificate.
async fn untrusted(certified: CertifiedKey<rcgen::KeyPair>) -> String {
    let CertifiedKey { cert: own, signing_key } = certified;
    let folder = tempfile::TempDir::new().unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, own.pem()).unwrap();
    std::fs::write(&key, signing_key.serialize_pem()).unwrap();
    let acceptor = TlsAcceptor::from(anabranch_sockets::tls::load_server(&cert, &key).unwrap());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = acceptor.accept(stream).await;
        }
    });
    // One root at least, so that a machine without any fails for the same reason.
    let mut not_trusted = settings(&[format!("https://localhost:{port}/film").parse().unwrap()]);
    let CertifiedKey { cert: another, .. } = generate_simple_self_signed(["other".to_owned()]).unwrap();
    std::fs::write(&cert, another.pem()).unwrap();
    not_trusted.tls = anabranch_sockets::tls::TlsClient::new(&[cert]).unwrap();
    refused(not_trusted).await
}

#[tokio::test]
async fn a_head_that_is_cut_off_or_never_ends() {
    let cut = ScriptedServer::of(&film(1), |_| Answer::default().send("HTTP/1.1 206 Partial Con").hang_up());
    let error = refused(settings(&[cut.film_url()])).await;
    assert_eq!(
        error,
        format!("{}: the server closed the connection in the middle of a response", cut.film_url())
    );
    let endless = ScriptedServer::of(&film(1), |_| {
        Answer::default().send("HTTP/1.1 200 OK\r\n").send_for_ever("X-Filler: more and more and more\r\n")
    });
    let error = refused(settings(&[endless.film_url()])).await;
    assert!(
        error.contains("the server's response is broken: its head does not end within 64 KiB"),
        "{error}"
    );
    let interim =
        ScriptedServer::of(&film(1), |_| Answer::default().send_for_ever("HTTP/1.1 102 Processing\r\n\r\n"));
    let error = refused(settings(&[interim.film_url()])).await;
    assert!(error.contains("it only says that it will come"), "{error}");
}

#[tokio::test]
async fn something_that_is_not_http() {
    let server = ScriptedServer::of(&film(1), |_| Answer::default().send("SSH-2.0-OpenSSH_9.2\r\n"));
    let error = refused(settings(&[server.film_url()])).await;
    assert!(error.contains("it is not HTTP/1"), "{error}");
}

#[tokio::test]
async fn every_url_tells_what_is_wrong_with_it() {
    let gone = ScriptedServer::of(&film(1), |_| status("404 Not Found", ""));
    let nowhere = "http://nowhere.invalid/film".parse().unwrap();
    let error = refused(settings(&[nowhere, gone.film_url()])).await;
    assert!(error.contains("nowhere.invalid") && error.contains("404"), "{error}");
}
