//! Requests and responses on one connection.

use std::time::Duration;

use anabranch_http::{Connection, Error, Received};
use anabranch_units::Bytes;
use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::server::{answer, connect, get, options, read_head, receive_response, serve, target};

/// A film of which every byte depends on its position.
fn film(length: usize) -> Vec<u8> {
    (0..length).map(|position| (position * 7 % 251) as u8).collect()
}

#[tokio::test]
async fn two_requests_in_flight_are_answered_in_order() {
    let address = serve(|mut stream| async move {
        // Answers nothing before both requests are there.
        let heads = [read_head(&mut stream).await, read_head(&mut stream).await];
        for head in heads {
            let first: usize = head
                .split("bytes=")
                .nth(1)
                .and_then(|range| range.split('-').next())
                .unwrap()
                .parse()
                .unwrap();
            let body = film(3_000_000)[first..first + 1_000_000].to_vec();
            let last = first + 999_999;
            let head = format!(
                "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes \
                 {first}-{last}/3000000\r\nContent-Length: 1000000\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&body).await.unwrap();
        }
        let _ = stream.read_u8().await;
    })
    .await;
    let mut connection = connect(address).await;
    connection.send(&get(address).range(0, Some(999_999))).unwrap();
    connection.send(&get(address).range(2_000_000, Some(2_999_999))).unwrap();
    assert_eq!(connection.in_flight(), 2);
    let (head, body, keep_alive) = receive_response(&mut connection).await.unwrap();
    assert!(head.check_range(0, Some(999_999)).is_ok() && keep_alive);
    assert!(body == film(3_000_000)[..1_000_000]);
    let (head, body, _) = receive_response(&mut connection).await.unwrap();
    assert!(head.check_range(2_000_000, None).is_ok());
    assert!(body == film(3_000_000)[2_000_000..]);
    assert_eq!(connection.in_flight(), 0);
    assert!(connection.is_open() && connection.handshake_rtt() > anabranch_units::Duration::ZERO);
}

#[tokio::test]
async fn a_request_goes_out_while_a_body_comes_in() {
    let address = serve(|mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na").await.unwrap();
        // The rest only when the second request has come.
        read_head(&mut stream).await;
        stream.write_all(b"bHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nc").await.unwrap();
    })
    .await;
    let mut connection = connect(address).await;
    connection.send(&get(address)).unwrap();
    let mut buffer = BytesMut::with_capacity(100);
    assert!(matches!(connection.receive(&mut buffer).await.unwrap(), Received::Head(_)));
    assert!(matches!(connection.receive(&mut buffer).await.unwrap(), Received::Data(1)));
    connection.send(&get(address)).unwrap();
    assert!(matches!(connection.receive(&mut buffer).await.unwrap(), Received::Data(1)));
    assert!(matches!(connection.receive(&mut buffer).await.unwrap(), Received::End { keep_alive: true }));
    assert_eq!(receive_response(&mut connection).await.unwrap().1, b"c");
    assert_eq!(&buffer[..], b"ab");
}

#[tokio::test]
async fn receiving_can_be_given_up_and_taken_up_again() {
    let address = serve(|mut stream| async move {
        read_head(&mut stream).await;
        for byte in b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfilm\r\n0\r\n\r\n" {
            stream.write_all(&[*byte]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    let mut connection = connect(address).await;
    connection.send(&get(address)).unwrap();
    let mut buffer = BytesMut::new();
    let (mut given_up, mut heads) = (0, 0);
    loop {
        match tokio::time::timeout(Duration::from_micros(300), connection.receive(&mut buffer)).await {
            Err(_) => given_up += 1,
            Ok(Ok(Received::Head(_))) => heads += 1,
            Ok(Ok(Received::Data(_))) => {}
            Ok(Ok(Received::End { keep_alive: true })) => break,
            Ok(other) => panic!("{other:?}"),
        }
    }
    assert!(given_up > 5, "{given_up}");
    assert_eq!((heads, &buffer[..]), (1, b"film".as_slice()));
}

#[tokio::test]
async fn a_body_until_the_end_of_the_connection() {
    let address = answer(b"HTTP/1.0 200 OK\r\n\r\nall of it").await;
    let mut connection = connect(address).await;
    connection.send(&get(address)).unwrap();
    let (head, body, keep_alive) = receive_response(&mut connection).await.unwrap();
    assert_eq!((head.status, body.as_slice(), keep_alive), (200, b"all of it".as_slice(), false));
    assert!(!connection.is_open());
    assert!(matches!(connection.send(&get(address)), Err(Error::Closed)));
    assert!(matches!(connection.receive(&mut BytesMut::new()).await, Ok(Received::Closed)));
}

#[tokio::test]
async fn a_truncated_body_says_how_much_is_missing() {
    let address = answer(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nnot all").await;
    let mut connection = connect(address).await;
    connection.send(&get(address)).unwrap();
    let error = receive_response(&mut connection).await.unwrap_err();
    assert!(
        matches!(error, Error::Truncated { missing: Some(missing) } if missing == Bytes::new(93)),
        "{error}"
    );
    assert!(error.to_string().contains("93 B"), "{error}");
    assert!(!connection.is_open());
}

#[tokio::test]
async fn an_endless_head_is_cut_off() {
    let address = serve(|mut stream| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
        while stream.write_all(b"X-Endless: yes\r\n").await.is_ok() {}
    })
    .await;
    let mut connection = connect(address).await;
    connection.send(&get(address)).unwrap();
    let error = receive_response(&mut connection).await.unwrap_err();
    assert!(matches!(error, Error::Malformed(_)), "{error}");
}

#[tokio::test]
async fn a_reset_connection() {
    let address = serve(|mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\na").await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        stream.set_zero_linger().unwrap();
    })
    .await;
    let mut connection = connect(address).await;
    connection.send(&get(address)).unwrap();
    let error = receive_response(&mut connection).await.unwrap_err();
    assert!(matches!(error, Error::Reset), "{error}");
}

#[tokio::test]
async fn a_server_that_closes_without_an_answer() {
    let address = answer(b"").await;
    let mut connection = connect(address).await;
    connection.send(&get(address)).unwrap();
    assert!(matches!(connection.receive(&mut BytesMut::new()).await, Ok(Received::Closed)));
    assert_eq!(connection.in_flight(), 0);
}

#[tokio::test]
async fn a_server_that_speaks_something_else() {
    // It sends a greeting and waits, so that only its first bytes can tell.
    let address = serve(|mut stream| async move {
        let _ = stream.write_all(b"220 mail.example.org ESMTP\r\n").await;
        let _ = stream.read(&mut [0; 1000]).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
    })
    .await;
    let mut connection = connect(address).await;
    connection.send(&get(address)).unwrap();
    assert!(matches!(receive_response(&mut connection).await, Err(Error::Malformed(_))));
}

#[tokio::test]
async fn another_protocol_on_the_same_connection() {
    let address = serve(|mut stream| async move {
        let head = read_head(&mut stream).await;
        assert!(head.contains("connection: Upgrade\r\nupgrade: echo/1\r\n"), "{head}");
        let answer =
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo/1\r\n\r\nhello";
        stream.write_all(answer).await.unwrap();
        let byte = stream.read_u8().await.unwrap();
        stream.write_all(&[byte]).await.unwrap();
    })
    .await;
    let mut connection = Connection::connect(target(address).origin(), &options()).await.unwrap();
    connection.send(&get(address).upgrade(&http::HeaderValue::from_static("echo/1"))).unwrap();
    let received = connection.receive(&mut BytesMut::new()).await.unwrap();
    assert!(matches!(received, Received::Head(head) if head.status == 101));
    let (mut stream, mut leftover) = connection.into_upgraded().unwrap();
    while leftover.len() < 5 {
        stream.read_buf(&mut leftover).await.unwrap();
    }
    assert_eq!(&leftover[..], b"hello");
    stream.write_all(b"!").await.unwrap();
    assert_eq!(stream.read_u8().await.unwrap(), b'!');
}

#[tokio::test]
async fn a_server_that_does_not_read_cannot_hold_the_sender() {
    let address = serve(|stream| async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        drop(stream);
    })
    .await;
    let mut connection = connect(address).await;
    let large = get(address).header(
        &http::HeaderName::from_static("x-large"),
        &http::HeaderValue::try_from("a".repeat(4 << 20)).unwrap(),
    );
    // More than any socket buffer takes; `send` is not even async.
    for _ in 0..3 {
        connection.send(&large).unwrap();
    }
    let waiting =
        tokio::time::timeout(Duration::from_millis(100), connection.receive(&mut BytesMut::new())).await;
    assert!(waiting.is_err());
}
