//! Servers that follow a script, on a port of their own.

use std::net::SocketAddr;

use anabranch_http::{
    ConnectOptions, Connection, Error, ExtraHeaders, Method, Received, RequestHead, ResponseHead, Target,
};
use anabranch_units::Duration;
use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

/// Starts a server that gives every connection to `script`.
pub async fn serve<F, S>(script: F) -> SocketAddr
where
    F: Fn(TcpStream) -> S + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(script(stream));
        }
    });
    address
}

/// Starts a server that reads one request, answers with `response` and closes.
pub async fn answer(response: impl AsRef<[u8]> + Clone + Send + Sync + 'static) -> SocketAddr {
    serve(move |mut stream| {
        let response = response.clone();
        async move {
            read_head(&mut stream).await;
            // The client may hang up on a response that it does not like.
            let _ = stream.write_all(response.as_ref()).await;
        }
    })
    .await
}

/// Reads one request.
pub async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}

pub fn url(address: SocketAddr, path: &str) -> Url {
    Url::parse(&format!("http://{address}{path}")).unwrap()
}

/// Options with times that suit tests.
pub fn options() -> ConnectOptions {
    ConnectOptions {
        connect_timeout: Duration::from_secs(5),
        response_timeout: Duration::from_secs(5),
        ..ConnectOptions::default()
    }
}

pub fn target(address: SocketAddr) -> Target {
    Target::new(&url(address, "/film")).unwrap()
}

pub fn get(address: SocketAddr) -> RequestHead {
    RequestHead::new(Method::Get, &target(address), &ExtraHeaders::default())
}

pub async fn connect(address: SocketAddr) -> Connection {
    Connection::connect(target(address).origin(), &options()).await.unwrap()
}

/// Receives one whole response: its head, its body and whether the connection stays.
pub async fn receive_response(connection: &mut Connection) -> Result<(ResponseHead, Vec<u8>, bool), Error> {
    let mut buffer = BytesMut::with_capacity(1 << 16);
    let mut head = None;
    let mut body = Vec::new();
    loop {
        buffer.clear();
        match connection.receive(&mut buffer).await? {
            Received::Head(received) => head = Some(*received),
            Received::Data(count) => {
                assert_eq!(count, buffer.len());
                body.extend_from_slice(&buffer);
            }
            Received::End { keep_alive } => {
                return Ok((head.expect("a head before the end"), body, keep_alive));
            }
            other => panic!("{other:?} instead of a response"),
        }
    }
}
