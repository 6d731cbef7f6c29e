//! Receive windows, as far as this system can set them.

use anabranch_http::tcp::{SMALLEST_WINDOW, SocketControl};
use anabranch_http::{ConnectOptions, Connection, Received};
use anabranch_units::{Bytes, Duration};
use bytes::BytesMut;
use tokio::io::AsyncWriteExt;

use crate::server::{get, options, read_head, serve, target};

#[tokio::test]
async fn a_window_is_set_and_kept() {
    let address = serve(|mut stream| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 16000000\r\n\r\n").await;
        let _ = stream.write_all(&vec![7; 16_000_000]).await;
    })
    .await;
    let options = ConnectOptions { receive_buffer: Some(Bytes::mib(1)), ..options() };
    let mut connection = Connection::connect(target(address).origin(), &options).await.unwrap();
    let control = connection.control();
    let window = Bytes::kib(64);
    if !SocketControl::is_supported() {
        assert!(control.set_window(Some(window)).is_err() && control.info().is_none());
        return;
    }
    control.set_window(Some(window)).unwrap();
    connection.send(&get(address)).unwrap();
    let (mut received, mut changed, mut unread) = (0, 0, Bytes::ZERO);
    let mut buffer = BytesMut::with_capacity(16 << 10);
    loop {
        changed += u32::from(control.keep_window().unwrap());
        unread = unread.max(control.unread());
        // The kernel's tuning overwrites the clamp when the first data comes. What was advertised then is
        // never taken back: it is used up by what arrives.
        let advertised = control.info().unwrap().window.filter(|_| received > 8_000_000);
        assert!(advertised.is_none_or(|advertised| advertised <= window + Bytes::kib(4)), "{advertised:?}");
        buffer.clear();
        match connection.receive(&mut buffer).await.unwrap() {
            Received::Data(count) => received += count,
            Received::Head(_) => {}
            Received::End { .. } => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(received, 16_000_000);
    assert!(changed < 20, "it does not hold: changed {changed} times");
    // The window limits what is on its way, not what waits to be read: only the receive buffer does.
    assert!(unread > Bytes::ZERO && unread <= Bytes::mib(3), "{unread}");
    let info = control.info().unwrap();
    assert!(info.rtt > Duration::ZERO && info.rtt < Duration::from_secs(5), "{info:?}");
    assert!(info.mss > Bytes::new(500) && info.mss < Bytes::kib(128), "{info:?}");
    assert!(
        info.data_segments_received > 10
            && info.out_of_order.is_none_or(|late| late < info.data_segments_received),
        "{info:?}"
    );
    assert!(info.last_data_received < Duration::from_secs(60), "{info:?}");
}

#[tokio::test]
async fn windows_that_are_too_small_or_too_large_are_brought_into_bounds() {
    if !SocketControl::is_supported() {
        return;
    }
    let address = serve(|mut stream| async move {
        read_head(&mut stream).await;
    })
    .await;
    let connection = Connection::connect(target(address).origin(), &options()).await.unwrap();
    let control = connection.control();
    for window in [Some(Bytes::ZERO), Some(SMALLEST_WINDOW), Some(Bytes::MAX), None] {
        control.set_window(window).unwrap();
        assert!(!control.keep_window().unwrap(), "{window:?}");
    }
}
