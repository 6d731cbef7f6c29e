//! TLS: whom a client trusts.

use std::net::SocketAddr;
use std::path::PathBuf;

use anabranch_http::{
    ConnectError, ConnectOptions, Connection, Error, ExtraHeaders, ProbeError, Target, probe,
};
use anabranch_sockets::tls::{TlsClient, TlsError, load_server};
use anabranch_units::Bytes;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedKey, IsCa, KeyPair, date_time_ymd,
    generate_simple_self_signed,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use url::Url;

use crate::server::{answer, get, options, read_head, receive_response, serve};

/// Certificate and key of a server, in files.
pub struct Identity {
    folder: TempDir,
}

impl Identity {
    pub fn new(name: &str) -> Self {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed([name.to_owned()]).unwrap();
        Self::of(&cert, &signing_key)
    }

    /// As `openssl req -x509` makes it: an authority of its own. It is valid until the end of this year.
    fn authority(name: &str, until_year: i32) -> Self {
        let mut parameters = CertificateParams::new([name.to_owned()]).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.not_after = date_time_ymd(until_year, 12, 31);
        let key = KeyPair::generate().unwrap();
        Self::of(&parameters.self_signed(&key).unwrap(), &key)
    }

    fn of(cert: &Certificate, signing_key: &KeyPair) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("cert.pem"), cert.pem()).unwrap();
        std::fs::write(folder.path().join("key.pem"), signing_key.serialize_pem()).unwrap();
        Self { folder }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Answers one request on every connection; says that it closes TLS only if it is `polite`.
    async fn serve(&self, response: impl Into<String>, polite: bool) -> SocketAddr {
        let acceptor = TlsAcceptor::from(load_server(&self.file("cert.pem"), &self.file("key.pem")).unwrap());
        let response = response.into();
        serve(move |stream| {
            let (acceptor, response) = (acceptor.clone(), response.clone());
            async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                read_head(&mut stream).await;
                let _ = stream.write_all(response.as_bytes()).await;
                let _ = stream.flush().await;
                if polite {
                    let _ = stream.shutdown().await;
                }
            }
        })
        .await
    }

    pub fn trusted(&self) -> ConnectOptions {
        ConnectOptions { tls: TlsClient::new(&[self.file("cert.pem")]).unwrap(), ..options() }
    }
}

async fn connect(
    host: &str,
    address: SocketAddr,
    options: &ConnectOptions,
) -> Result<Connection, ConnectError> {
    let url = Url::parse(&format!("https://{host}:{}/", address.port())).unwrap();
    Connection::connect(Target::new(&url).unwrap().origin(), options).await
}

#[tokio::test]
async fn a_certificate_that_is_its_own_authority() {
    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let good = Identity::authority("localhost", 2999);
    let address = good.serve(OK, true).await;
    connect("localhost", address, &good.trusted()).await.expect("just this certificate is trusted");
    // Everything else is still refused: not trusted, another name, too old, another authority's.
    let refused = |result: Result<Connection, ConnectError>| {
        assert!(matches!(result, Err(ConnectError::Certificate { .. })), "{result:?}");
    };
    refused(connect("localhost", address, &options()).await);
    refused(connect("127.0.0.1", address, &good.trusted()).await);
    let old = Identity::authority("localhost", 2001);
    refused(connect("localhost", old.serve(OK, true).await, &old.trusted()).await);
    refused(connect("localhost", address, &old.trusted()).await);
}

#[tokio::test]
async fn a_certificate_that_is_trusted() {
    let identity = Identity::new("localhost");
    let body = "x".repeat(1_000_000);
    let address =
        identity.serve(format!("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{body}"), true).await;
    let mut connection = connect("localhost", address, &identity.trusted()).await.unwrap();
    connection.send(&get(address)).unwrap();
    let (_, received, keep_alive) = receive_response(&mut connection).await.unwrap();
    assert!(received == body.as_bytes() && keep_alive);
    assert_eq!(connection.control().info().is_some(), anabranch_http::tcp::SocketControl::is_supported());
}

#[tokio::test]
async fn certificates_that_are_not_accepted() {
    let identity = Identity::new("localhost");
    let address = identity.serve("", true).await;
    let reason = async |host: &str, options: &ConnectOptions| match connect(host, address, options).await {
        Err(ConnectError::Certificate { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    let stranger = Identity::new("localhost");
    assert!(reason("localhost", &stranger.trusted()).await.contains("not trusted"));
    assert!(reason("127.0.0.1", &identity.trusted()).await.contains("another name"));
}

#[tokio::test]
async fn a_server_without_tls() {
    let address = serve(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let identity = Identity::new("localhost");
    let error = connect("127.0.0.1", address, &identity.trusted()).await.unwrap_err();
    assert!(matches!(error, ConnectError::Tls { .. }), "{error}");
}

#[tokio::test]
async fn a_body_without_length_has_to_end_properly() {
    let identity = Identity::new("localhost");
    for polite in [true, false] {
        let address = identity.serve("HTTP/1.1 200 OK\r\n\r\nall of it", polite).await;
        let mut connection = connect("localhost", address, &identity.trusted()).await.unwrap();
        connection.send(&get(address)).unwrap();
        match receive_response(&mut connection).await {
            Ok((_, body, _)) => assert!(polite && body == b"all of it"),
            Err(error) => assert!(!polite && matches!(error, Error::CutOff), "{error}"),
        }
    }
}

#[tokio::test]
async fn a_truncated_body_is_told_with_and_without_a_proper_end() {
    let identity = Identity::new("localhost");
    for polite in [true, false] {
        let address = identity.serve("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", polite).await;
        let mut connection = connect("localhost", address, &identity.trusted()).await.unwrap();
        connection.send(&get(address)).unwrap();
        let error = receive_response(&mut connection).await.unwrap_err();
        assert!(
            matches!(error, Error::Truncated { missing: Some(missing) } if missing == Bytes::new(7)),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_redirect_may_lead_to_tls_but_not_away_from_it() {
    let identity = Identity::new("localhost");
    let plain = answer("HTTP/1.1 206 X\r\nContent-Range: bytes 0-2/3\r\nContent-Length: 3\r\n\r\nabc").await;
    let away = format!(
        "HTTP/1.1 301 Moved\r\nLocation: http://localhost:{}/\r\nContent-Length: 0\r\n\r\n",
        plain.port()
    );
    let secure = identity.serve(away, true).await;
    let entry = answer(format!(
        "HTTP/1.1 301 Moved\r\nLocation: https://localhost:{}/\r\nContent-Length: 0\r\n\r\n",
        secure.port()
    ))
    .await;
    let ask = async |scheme: &str, address: SocketAddr| {
        let url = Url::parse(&format!("{scheme}://localhost:{}/", address.port())).unwrap();
        probe(&url, &ExtraHeaders::default(), &identity.trusted()).await
    };
    assert!(matches!(ask("https", secure).await, Err(ProbeError::Downgrade { .. })));
    // Who began without TLS did not count on it.
    assert_eq!(&ask("http", entry).await.unwrap().first[..], b"abc");
}

#[test]
fn files_that_hold_no_certificate() {
    let identity = Identity::new("localhost");
    let write = |name: &str, text: &str| {
        std::fs::write(identity.file(name), text).unwrap();
        identity.file(name)
    };
    let client = |path: PathBuf| TlsClient::new(&[path]).unwrap_err();
    assert!(matches!(client(identity.file("none.pem")), TlsError::Read { .. }));
    assert!(matches!(client(write("empty.pem", "")), TlsError::NoCertificate(_)));
    let error = client(identity.file("key.pem"));
    assert!(
        error.to_string().starts_with("no certificate in ") && error.to_string().ends_with("key.pem"),
        "{error}"
    );
    let damaged = "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n";
    assert!(matches!(client(write("damaged.pem", damaged)), TlsError::Pem { .. }));
    let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(matches!(client(write("nonsense.pem", nonsense)), TlsError::BadRoot { .. }));
    let server = |cert: PathBuf, key: PathBuf| load_server(&cert, &key).unwrap_err();
    assert!(matches!(server(identity.file("cert.pem"), identity.file("cert.pem")), TlsError::NoKey(_)));
    assert!(matches!(server(identity.file("key.pem"), identity.file("key.pem")), TlsError::NoCertificate(_)));
    let other = Identity::new("localhost");
    assert!(matches!(server(identity.file("cert.pem"), other.file("key.pem")), TlsError::Pair { .. }));
}
