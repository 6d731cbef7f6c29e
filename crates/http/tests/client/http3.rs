//! HTTP/3 with servers that answer several requests in an order of their own.

use std::net::SocketAddr;

use anabranch_http::{Connection, ExtraHeaders, Method, RequestHead, Target};
use anabranch_sockets::tls::load_quic_server;
use anabranch_units::Duration;
use bytes::Bytes as Buffer;
use h3::server::RequestResolver;
use quinn::{Endpoint, ServerConfig};
use tokio::time::timeout;

use crate::securing::Identity;
use crate::server::{options, receive_response};

type Asked = RequestResolver<h3_quinn::Connection, Buffer>;

/// A server that reads so many requests and then answers them, the last one first, each with so many bytes of its
/// number.
async fn serve_backwards(identity: &Identity, requests: u8, length: usize) -> SocketAddr {
    let tls = load_quic_server(&identity.file("cert.pem"), &identity.file("key.pem")).unwrap();
    let endpoint = Endpoint::server(ServerConfig::with_crypto(tls), "127.0.0.1:0".parse().unwrap()).unwrap();
    let address = endpoint.local_addr().unwrap();
    tokio::spawn(async move {
        let connection = endpoint.accept().await.unwrap().await.unwrap();
        let mut connection =
            h3::server::Connection::new(h3_quinn::Connection::new(connection)).await.unwrap();
        let mut asked = Vec::new();
        for number in 0..requests {
            asked.push((number, connection.accept().await.unwrap().unwrap()));
        }
        for (number, asked) in asked.into_iter().rev() {
            answer(asked, Buffer::from(vec![number; length])).await;
        }
        let _ = connection.accept().await;
        endpoint.wait_idle().await;
    });
    address
}

async fn answer(asked: Asked, body: Buffer) {
    let (_, mut stream) = asked.resolve_request().await.unwrap();
    let head = http::Response::builder().header("content-length", body.len());
    stream.send_response(head.body(()).unwrap()).await.unwrap();
    stream.send_data(body).await.unwrap();
    stream.finish().await.unwrap();
}

async fn connect(identity: &Identity, address: SocketAddr) -> (Connection, Target) {
    let url = format!("https://localhost:{}/film", address.port());
    let target = Target::new(&url::Url::parse(&url).unwrap()).unwrap();
    let options = anabranch_http::ConnectOptions { http3: true, tls: identity.trusted().tls, ..options() };
    (Connection::connect(target.origin(), &options).await.unwrap(), target)
}

fn range(target: &Target, number: u64, length: u64) -> RequestHead {
    let head = RequestHead::new(Method::Get, target, &ExtraHeaders::default());
    head.range(number * length, Some((number + 1) * length - 1))
}

#[tokio::test]
async fn what_comes_of_later_answers_does_not_keep_the_first_from_coming() {
    // Two of them fill the window of a connection.
    let length = 8 << 20;
    let identity = Identity::new("localhost");
    let address = serve_backwards(&identity, 3, length).await;
    let (mut connection, target) = connect(&identity, address).await;
    for number in 0..3 {
        connection.send(&range(&target, number, 8 << 20)).unwrap();
    }
    for number in 0..3_u8 {
        let answer = timeout(Duration::from_secs(20).into(), receive_response(&mut connection)).await;
        let (_, body, keep_alive) = answer.expect("it comes").unwrap();
        assert!(keep_alive && body == vec![number; length], "{number}: {} bytes", body.len());
    }
}

#[tokio::test]
async fn no_more_is_asked_for_than_is_kept_at_the_worst() {
    let identity = Identity::new("localhost");
    // It waits for a second request, which is not sent: its answer would be longer than what is kept.
    let address = serve_backwards(&identity, 2, 1000).await;
    let (mut connection, target) = connect(&identity, address).await;
    connection.send(&range(&target, 0, 1000)).unwrap();
    connection.send(&range(&target, 1, 17 << 20)).unwrap();
    let waited = timeout(Duration::from_secs(1).into(), receive_response(&mut connection)).await;
    assert!(waited.is_err(), "{waited:?}");
    assert_eq!(connection.in_flight(), 2);
}
