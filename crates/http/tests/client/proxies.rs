//! Through a proxy to a server with TLS.

use anabranch_http::{ConnectError, ConnectOptions, Connection, Proxies, RequestHead, Target};
use anabranch_http::{ExtraHeaders, Method};
use anabranch_sockets::tls::load_server;
use tokio::io::AsyncWriteExt;
use tokio_rustls::TlsAcceptor;

use crate::securing::Identity;
use crate::server::{options, read_head, receive_response, serve};

fn film() -> Target {
    Target::new(&"https://film.example/film".parse().unwrap()).unwrap()
}

fn through(proxy: std::net::SocketAddr, options: ConnectOptions) -> ConnectOptions {
    ConnectOptions { proxies: Proxies::through(&format!("http://user:secret@{proxy}"), ""), ..options }
}

#[tokio::test]
async fn a_tunnel_leads_to_a_server_with_tls() {
    let identity = Identity::new("film.example");
    let acceptor =
        TlsAcceptor::from(load_server(&identity.file("cert.pem"), &identity.file("key.pem")).unwrap());
    let proxy = serve(move |mut stream| {
        let acceptor = acceptor.clone();
        async move {
            let head = read_head(&mut stream).await;
            assert!(
                head.starts_with("CONNECT film.example:443 HTTP/1.1\r\nhost: film.example:443\r\n"),
                "{head}"
            );
            assert!(head.contains("proxy-authorization: Basic dXNlcjpzZWNyZXQ=\r\n"), "{head}");
            stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
            let mut stream = acceptor.accept(stream).await.unwrap();
            let head = read_head(&mut stream).await;
            assert!(head.starts_with("GET /film HTTP/1.1\r\n") && !head.contains("proxy"), "{head}");
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbytes").await.unwrap();
        }
    })
    .await;
    let options = through(proxy, identity.trusted());
    let mut connection = Connection::connect(film().origin(), &options).await.unwrap();
    connection.send(&RequestHead::new(Method::Get, &film(), &ExtraHeaders::default())).unwrap();
    assert_eq!(receive_response(&mut connection).await.unwrap().1, b"bytes");
}

#[tokio::test]
async fn a_proxy_that_leads_nowhere_is_named() {
    for (answer, words) in [
        ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "http_proxy=http://USER:PASSWORD@HOST:PORT"),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", "it answers with status 403 (Forbidden)"),
        ("HTTP/1.1 200 OK\r\n\r\nand more", "it sends what nobody asked for"),
        ("HTTP/1.1 200", "it closed the connection"),
        ("SSH-2.0\r\n", "it is not HTTP/1"),
    ] {
        let proxy = serve(move |mut stream| async move {
            read_head(&mut stream).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        })
        .await;
        let error = Connection::connect(film().origin(), &through(proxy, options())).await.unwrap_err();
        assert!(matches!(error, ConnectError::Proxy { .. }), "{error}");
        let error = error.to_string();
        assert!(error.contains(&proxy.to_string()) && error.contains(words), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn http3_does_not_go_past_the_proxy_that_is_wanted() {
    let options = ConnectOptions { http3: true, ..options() };
    let options = through(([127, 0, 0, 1], 9).into(), options);
    let error = Connection::connect(film().origin(), &options).await.unwrap_err().to_string();
    assert!(error.contains("it does not carry HTTP/3"), "{error}");
}
