//! Making connections, and failing to.

use anabranch_http::{ConnectError, ConnectOptions, Connection, Pool, Target};
use anabranch_sockets::{Interface, InterfaceError};
use anabranch_units::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use url::Url;

use crate::server::{answer, connect, get, options, receive_response, serve, target};

async fn connect_to(url: &str, options: &ConnectOptions) -> Result<Connection, ConnectError> {
    Connection::connect(Target::new(&Url::parse(url).unwrap()).unwrap().origin(), options).await
}

#[tokio::test]
async fn nobody_listens() {
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = connect_to(&format!("http://{address}/"), &options()).await.unwrap_err();
    assert!(matches!(error, ConnectError::Refused { address: refused } if refused == address), "{error}");
}

#[tokio::test]
async fn an_unknown_host() {
    // Reserved to never exist (RFC 6761, 6.4).
    let error = connect_to("http://nowhere.invalid/", &options()).await.unwrap_err();
    assert!(matches!(&error, ConnectError::UnknownHost { host, .. } if host == "nowhere.invalid"), "{error}");
}

#[tokio::test]
async fn a_server_that_takes_the_connection_and_says_nothing() {
    let address = serve(|mut stream| async move {
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    // Over TLS the handshake hangs.
    let options = ConnectOptions { connect_timeout: Duration::from_millis(100), ..options() };
    let error = connect_to(&format!("https://{address}/"), &options).await.unwrap_err();
    assert!(matches!(error, ConnectError::Timeout { .. }), "{error}");
}

#[tokio::test]
async fn a_name_with_several_addresses_finds_the_one_that_answers() {
    // localhost is 127.0.0.1 and, on most machines, ::1 too, where this server does not listen.
    let address = answer(b"HTTP/1.1 204 No Content\r\n\r\n").await;
    let mut connection =
        connect_to(&format!("http://localhost:{}/", address.port()), &options()).await.unwrap();
    connection.send(&get(address)).unwrap();
    assert_eq!(receive_response(&mut connection).await.unwrap().0.status, 204);
}

/// Two at a time to a host: the third one waits, and goes on over the first that is given back.
#[tokio::test]
async fn a_bounded_pool_lets_one_more_wait_for_one_that_is_given_back() {
    let address = serve(|mut stream| async move {
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let pool = Pool::default().bounded(2);
    let options = ConnectOptions { pool: Some(pool.clone()), ..options() };
    let origin = target(address).origin().clone();
    let first = Connection::connect_within(&origin, &options).await.unwrap();
    let second = Connection::connect_within(&origin, &options).await.unwrap();
    let other = ConnectOptions { pool: Some(pool.of(7)), ..options.clone() };
    Connection::connect_within(&origin, &other).await.expect("another one's are counted apart");
    let mut third = std::pin::pin!(Connection::connect_within(&origin, &options));
    let short = std::time::Duration::from_millis(50);
    assert!(tokio::time::timeout(short, &mut third).await.is_err(), "there are two");
    // One that cannot wait need not.
    drop(Connection::connect(&origin, &options).await.unwrap());
    drop(first);
    let third = third.await.unwrap();
    assert!(third.is_reused());
    drop((second, third));
    assert_eq!(pool.len(), 4, "with the other one's");
}

#[tokio::test]
async fn an_interface_by_name_and_by_address() {
    let address = answer(b"HTTP/1.1 204 No Content\r\n\r\n").await;
    for interface in ["lo", "127.0.0.1"] {
        let options = ConnectOptions { interface: Some(interface.parse().unwrap()), ..options() };
        Connection::connect(target(address).origin(), &options).await.unwrap();
    }
}

#[tokio::test]
async fn interfaces_that_cannot_be_used() {
    let address = answer(b"").await;
    let error = async |interface: &str| {
        let interface: Interface = interface.parse().unwrap();
        let options = ConnectOptions { interface: Some(interface), ..options() };
        match Connection::connect(target(address).origin(), &options).await.unwrap_err() {
            ConnectError::Interface(error) => error,
            other => panic!("{other}"),
        }
    };
    assert!(matches!(error("nothing0").await, InterfaceError::Unknown(_)));
    assert!(matches!(error("::1").await, InterfaceError::NoAddress { family: "IPv4", .. }));
    // An address for documentation (RFC 5737), which no machine has.
    assert!(matches!(error("192.0.2.1").await, InterfaceError::Bind { .. }));
}

#[tokio::test]
async fn a_handle_on_the_socket_does_not_keep_it_open() {
    let (closed, is_closed) = tokio::sync::oneshot::channel();
    let closed = std::sync::Mutex::new(Some(closed));
    let address = serve(move |mut stream| {
        let closed = closed.lock().unwrap().take().unwrap();
        async move {
            let _ = closed.send(stream.read(&mut [0; 10]).await.unwrap());
        }
    })
    .await;
    let connection = connect(address).await;
    let control = connection.control();
    drop(connection);
    assert_eq!(is_closed.await.unwrap(), 0);
    assert!(control.set_window(None).is_err() && control.info().is_none());
}
