//! Slow clients, too many clients, TLS, stopping, and files that change under the server.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anabranch_server::{AccessLog, BindError, Caps, Config, Listener, Rotation, Server, Shape};
use anabranch_units::Rate;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{Running, receive, receive_head, send};
use crate::stripe;

/// The server closed or reset the connection within a generous time.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await.is_ok()
}

#[tokio::test]
async fn a_head_that_trickles_is_cut_off() {
    let server = Running::start(|config| {
        config.header_timeout = Duration::from_millis(300);
        config.idle_timeout = Duration::from_secs(60);
    });
    server.put("film.mp4", 10);
    let (mut reader, mut writer) = server.connect().await.into_split();
    let trickle = tokio::spawn(async move {
        for byte in b"GET / HTTP/1.1\r\nHost: test\r\nX: ".iter().chain(std::iter::repeat(&b'x')) {
            if writer.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let started = Instant::now();
    let mut rest = Vec::new();
    let _ =
        tokio::time::timeout(Duration::from_secs(10), reader.read_to_end(&mut rest)).await.expect("closed");
    assert!(started.elapsed() >= Duration::from_millis(290), "it had its time");
    trickle.await.unwrap();
    // The same on a connection that had a request before, and for one that says nothing at all.
    let mut stream = server.connect().await;
    send(&mut stream, "GET /film.mp4", "").await;
    receive(&mut stream, false).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    send(&mut stream, "GET /film.mp4", "").await;
    assert_eq!(receive(&mut stream, false).await.status, 200, "the pause between requests has another limit");
    stream.write_all(b"GET").await.unwrap();
    assert!(is_closed(&mut stream).await);
    assert!(is_closed(&mut server.connect().await).await);
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let server = Running::start(|config| config.idle_timeout = Duration::from_millis(200));
    server.put("film.mp4", 10);
    server.put("long.mp4", 8 << 20);
    server.put("longer.mp4", 200 << 10);
    // Answers that are there at once, that go from memory or from the page cache, and one that is taken late.
    let answers = [
        ("GET /film.mp4", 200, 0),
        ("HEAD /film.mp4", 200, 0),
        ("GET /nothing.mp4", 404, 0),
        ("OPTIONS /film.mp4", 204, 0),
        ("GET /longer.mp4", 200, 0),
        ("GET /long.mp4", 200, 300),
    ];
    for (line, status, wait) in answers {
        for requests in 1..=3 {
            let mut stream = server.connect().await;
            for _ in 0..requests {
                send(&mut stream, line, "").await;
            }
            for _ in 0..requests {
                tokio::time::sleep(Duration::from_millis(wait)).await;
                assert_eq!(receive(&mut stream, line.starts_with("HEAD")).await.status, status, "{line}");
            }
            let since = Instant::now();
            assert!(is_closed(&mut stream).await, "after {requests} times {line}");
            assert!(since.elapsed() < Duration::from_secs(5), "after {requests} times {line}");
        }
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off_and_a_slow_one_is_not() {
    let server = Running::start(|config| config.write_timeout = Duration::from_millis(500));
    let film = server.put("film.mp4", 32 << 20);
    let mut slow = server.connect().await;
    let mut stuck = server.connect().await;
    send(&mut slow, "GET /film.mp4", "").await;
    send(&mut stuck, "GET /film.mp4", "").await;
    receive_head(&mut slow).await;
    let mut got = vec![0; film.len()];
    for part in got.chunks_mut(2 << 20) {
        tokio::time::sleep(Duration::from_millis(100)).await;
        slow.read_exact(part).await.unwrap();
    }
    assert!(got == film);
    let mut rest = Vec::new();
    let _ = stuck.read_to_end(&mut rest).await;
    assert!(rest.len() < film.len(), "it took nothing for longer than the limit");
    assert!(server.metrics.errors.load(Ordering::Relaxed) >= 1);
}

#[tokio::test]
async fn a_head_too_long_is_refused() {
    let server = Running::start(|_| {});
    server.put("film.mp4", 10);
    assert_eq!(server.get("/film.mp4", &format!("X: {}\r\n", "x".repeat(15_000))).await.status, 200);
    let mut stream = server.connect().await;
    let _ = stream.write_all(format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(17_000)).as_bytes()).await;
    assert!(receive_head(&mut stream).await.contains(" 431 "));
}

#[tokio::test]
async fn one_connection_too_many_is_told_to_come_again() {
    let server = Running::start(|config| {
        config.max_connections_per_client = 2;
        config.shape = Some(Shape { rate: Some(Rate::from_mbps(1)), ..Shape::default() });
    });
    server.put("film.mp4", 10 << 20);
    let (mut one, mut two) = (server.connect().await, server.connect().await);
    for stream in [&mut one, &mut two] {
        send(stream, "GET /film.mp4", "").await;
        receive_head(stream).await;
    }
    let mut third = server.connect().await;
    send(&mut third, "GET /film.mp4", "").await;
    let reply = receive(&mut third, false).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("5")));
    assert!(is_closed(&mut third).await);
    assert_eq!(server.metrics.connections_refused.load(Ordering::Relaxed), 1);
    drop(one);
    let freed = async { while server.get("/film.mp4", "Range: bytes=0-9\r\n").await.status != 206 {} };
    tokio::time::timeout(Duration::from_secs(10), freed).await.expect("a place gets free");
}

#[tokio::test]
async fn who_says_nothing_makes_room_for_who_asks() {
    let server = Running::start(|config| {
        config.max_connections_per_client = 3;
        config.header_timeout = Duration::from_secs(60);
    });
    server.put("film.mp4", 10);
    let (mut silent, mut half, mut idle) =
        (server.connect().await, server.connect().await, server.connect().await);
    half.write_all(b"GET /film.mp4 HTTP/1.1\r\n").await.unwrap();
    send(&mut idle, "GET /film.mp4", "").await;
    assert_eq!(receive(&mut idle, false).await.status, 200);
    for stream in [&mut silent, &mut half] {
        let mut another = server.connect().await;
        send(&mut another, "GET /film.mp4", "").await;
        assert_eq!(receive(&mut another, false).await.status, 200);
        assert!(is_closed(stream).await);
        // It stays.
        std::mem::forget(another);
    }
    send(&mut idle, "GET /film.mp4", "").await;
    assert_eq!(receive(&mut idle, false).await.status, 200, "who has asked before goes last");
    assert_eq!(server.metrics.connections_replaced.load(Ordering::Relaxed), 2);
    assert_eq!(server.metrics.connections_refused.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn who_was_answered_makes_room() {
    let server = Running::start(|config| config.max_connections_per_client = 1);
    server.put("film.mp4", 10);
    server.put("long.mp4", 200 << 10);
    for (line, status) in
        [("GET /film.mp4", 200), ("HEAD /film.mp4", 200), ("GET /nothing.mp4", 404), ("GET /long.mp4", 200)]
    {
        let mut idle = server.connect().await;
        send(&mut idle, line, "").await;
        assert_eq!(receive(&mut idle, line.starts_with("HEAD")).await.status, status, "{line}");
        // The client may be sooner than the server's own end of the answer.
        let asked = async { while server.get("/film.mp4", "").await.status != 200 {} };
        tokio::time::timeout(Duration::from_secs(5), asked).await.unwrap_or_else(|_| panic!("after {line}"));
        assert!(is_closed(&mut idle).await, "after {line}");
    }
}

#[tokio::test]
async fn who_takes_nothing_of_an_answer_makes_room_and_who_takes_some_does_not() {
    let server = Running::start(|config| config.max_connections_per_client = 2);
    let film = server.put("film.mp4", 64 << 20);
    let (mut taking, mut stuck) = (server.connect().await, server.connect().await);
    send(&mut taking, "GET /film.mp4", "").await;
    receive_head(&mut taking).await;
    let mut got = vec![0; film.len()];
    let (half, rest) = got.split_at_mut(film.len() / 2);
    taking.read_exact(half).await.unwrap();
    // Who takes some pauses even longer.
    tokio::time::sleep(Duration::from_millis(200)).await;
    send(&mut stuck, "GET /film.mp4", "").await;
    receive_head(&mut stuck).await;
    let asked = async { while server.get("/film.mp4", "Range: bytes=0-9\r\n").await.status != 206 {} };
    tokio::time::timeout(Duration::from_secs(10), asked).await.expect("a place as soon as nothing is taken");
    taking.read_exact(rest).await.unwrap();
    assert!(got == film);
    let mut rest = Vec::new();
    let _ =
        tokio::time::timeout(Duration::from_secs(10), stuck.read_to_end(&mut rest)).await.expect("closed");
    assert!(rest.len() < film.len());
}

#[tokio::test]
async fn over_tls() {
    let certified = rcgen::generate_simple_self_signed(["test".to_owned()]).unwrap();
    let certificate = certified.cert.der().clone();
    let key = rustls_pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let server = Running::start(|server| {
        server.tls = Some(Arc::new(config));
        server.header_timeout = Duration::from_millis(500);
    });
    let film = server.put("film.mp4", 3_000_000);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
    let mut stream = connector.connect("test".try_into().unwrap(), server.connect().await).await.unwrap();
    send(&mut stream, "GET /film.mp4", "").await;
    assert!(receive(&mut stream, false).await.body == film);
    let mut silent = server.connect().await;
    assert!(is_closed(&mut silent).await, "a handshake that never comes");
}

#[tokio::test]
async fn a_stop_lets_a_running_response_finish() {
    let mut server = Running::start(|config| {
        config.shape = Some(Shape { rate: Some(Rate::from_mbps(20)), ..Shape::default() });
    });
    let film = server.put("film.mp4", 1 << 20);
    let mut running = server.connect().await;
    let mut idle = server.connect().await;
    send(&mut idle, "HEAD /film.mp4", "").await;
    receive(&mut idle, true).await;
    send(&mut running, "GET /film.mp4", "").await;
    receive_head(&mut running).await;
    server.stop();
    assert!(is_closed(&mut idle).await);
    let refused = async { while TcpStream::connect(server.address).await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(10), refused).await.expect("no new connections");
    let mut body = vec![0; film.len()];
    running.read_exact(&mut body).await.unwrap();
    assert!(body == film);
    tokio::time::timeout(Duration::from_secs(5), server.ended()).await.expect("ended before the grace time");
}

#[tokio::test]
async fn a_stop_does_not_wait_longer_than_the_grace_time() {
    let mut server = Running::start(|config| {
        config.shape = Some(Shape { rate: Some(Rate::from_kbps(100)), ..Shape::default() });
        config.stop_grace = Duration::from_millis(300);
    });
    server.put("film.mp4", 10 << 20);
    let mut running = server.connect().await;
    send(&mut running, "GET /film.mp4", "").await;
    receive_head(&mut running).await;
    server.stop();
    tokio::time::timeout(Duration::from_secs(5), server.ended()).await.expect("cut off");
}

#[tokio::test]
async fn a_shape_holds_all_responses_together() {
    let server = Running::start(|config| {
        config.shape =
            Some(Shape { rate: Some(Rate::from_mbps(16)), first_byte_delay: Duration::from_millis(150) });
    });
    server.put("film.mp4", 500_000);
    let started = Instant::now();
    let (one, two) = tokio::join!(server.get("/film.mp4", ""), server.get("/film.mp4", ""));
    assert_eq!((one.body.len(), two.body.len()), (500_000, 500_000));
    // A million bytes at 2 MB/s, less the last block of each, and the delay.
    assert!(started.elapsed() > Duration::from_millis(150 + 480), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_file_that_shrinks_ends_the_connection() {
    let server = Running::start(|config| {
        config.shape = Some(Shape { rate: Some(Rate::from_mbps(20)), ..Shape::default() });
    });
    let film = server.put("film.mp4", 1 << 20);
    let mut stream = server.connect().await;
    send(&mut stream, "GET /film.mp4", "").await;
    receive_head(&mut stream).await;
    let file = std::fs::OpenOptions::new().write(true).open(server.root().join("film.mp4")).unwrap();
    file.set_len(100_000).unwrap();
    let mut body = Vec::new();
    let _ = stream.read_to_end(&mut body).await;
    assert!(body.len() < film.len() && body == film[..body.len()], "no filler: {} bytes", body.len());
}

#[tokio::test]
async fn the_log_has_a_line_for_every_response_and_no_way_to_forge_one() {
    let mut server = Running::start(|config| {
        config.access_log = Some(AccessLog::File(config.root.with_file_name("access.log")));
    });
    server.put("film.mp4", 1000);
    server.get("/film.mp4", "Range: bytes=0-9\r\nUser-Agent: a\"b\\\r\n").await;
    server.get("/missing", "").await;
    let path = server.directory.path().join("access.log");
    let _keep = std::mem::replace(&mut server.directory, tempfile::TempDir::new().unwrap());
    server.stop();
    server.ended().await;
    let log = std::fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert!(
        lines[0].starts_with("127.0.0.1 - - [")
            && lines[0].contains("\"GET /film.mp4 HTTP/1.1\" 206 10 \"-\""),
        "{log}"
    );
    assert!(lines[1].contains("\"GET /missing HTTP/1.1\" 404 "), "{log}");
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let address = "127.0.0.1:0".parse().unwrap();
    assert!(matches!(Server::bind(Config::new(&file, address)), Err(BindError::NotADirectory(_))));
    assert!(matches!(
        Server::bind(Config::new(directory.path().join("no"), address)),
        Err(BindError::Root { .. })
    ));
    let server = Server::bind(Config::new(directory.path(), address)).unwrap();
    let taken = Server::bind(Config::new(directory.path(), server.local_addr().unwrap())).err().unwrap();
    assert!(taken.to_string().contains("another program listens there"), "{taken}");
}

#[tokio::test]
async fn a_request_that_names_no_host_or_two_is_refused() {
    let server = Running::start(|_| {});
    server.put("film.mp4", 10);
    for (head, status) in [
        ("GET /film.mp4 HTTP/1.1\r\n\r\n", 400),
        ("GET /film.mp4 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET /film.mp4 HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("GET /film.mp4 HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        ("GET /film.mp4 HTTP/1.1\r\nHost: user@a\r\n\r\n", 400),
        ("GET /film.mp4 HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET /film.mp4 HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 200),
        ("GET /film.mp4 HTTP/1.1\r\nHost:\r\n\r\n", 200),
        ("GET http://a/film.mp4 HTTP/1.1\r\nHost: a\r\n\r\n", 200),
        ("GET /film.mp4 HTTP/1.0\r\n\r\n", 200),
    ] {
        let mut stream = server.connect().await;
        stream.write_all(head.as_bytes()).await.unwrap();
        assert_eq!(receive(&mut stream, false).await.status, status, "{head}");
    }
}

#[tokio::test]
async fn a_log_that_was_moved_away_goes_on_under_its_name() {
    let (rotation, told) = (Rotation::default(), Arc::new(std::sync::Mutex::new(Vec::new())));
    let server = Running::start(|config| {
        config.access_log = Some(AccessLog::File(config.root.with_file_name("access.log")));
        config.log_rotation = rotation.clone();
        let told = told.clone();
        config.listener = Some(Listener(Arc::new(move |line| told.lock().unwrap().push(line.to_owned()))));
    });
    server.put("film.mp4", 10);
    let (log, old) =
        (server.directory.path().join("access.log"), server.directory.path().join("access.log.1"));
    let has = |path: &std::path::Path, what: &str| {
        std::fs::read_to_string(path).is_ok_and(|text| text.contains(what))
    };
    let until = async |what: &dyn Fn() -> bool| {
        let waiting = async {
            while !what() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("it comes");
    };
    server.get("/film.mp4?key=secret", "").await;
    until(&|| has(&log, "/film.mp4?key=secret")).await;
    std::fs::rename(&log, &old).unwrap();
    rotation.rotate();
    until(&|| log.exists()).await;
    server.get("/missing", "").await;
    until(&|| has(&log, "/missing")).await;
    assert!(!has(&old, "/missing") && !has(&log, "/film"));
    assert_eq!(
        *told.lock().unwrap(),
        ["127.0.0.1: GET /film.mp4: 200, 10 bytes", "127.0.0.1: GET /missing: 404, 14 bytes"]
    );
}

#[tokio::test]
async fn a_response_and_a_client_get_no_more_than_their_caps() {
    let caps = Caps { per_response: Some(Rate::from_mbps(8)), per_client: Some(Rate::from_mbps(12)) };
    let server = Running::start(|config| config.caps = caps);
    let film = server.put("film.mp4", 500_000);
    let began = Instant::now();
    let reply = server.get("/film.mp4", "").await;
    // Half a megabyte at a megabyte a second, but for the chunk that leaves at once.
    assert!(reply.body == film && began.elapsed() >= Duration::from_millis(450), "{:?}", began.elapsed());
    let began = Instant::now();
    let (one, other, third) =
        tokio::join!(server.get("/film.mp4", ""), server.get("/film.mp4", ""), server.get("/film.mp4", ""));
    assert!(one.body == film && other.body == film && third.body == film);
    assert!(began.elapsed() >= Duration::from_millis(950), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_server_with_caps_does_not_stripe() {
    let caps = Caps { per_client: Some(Rate::from_mbps(80)), ..Caps::default() };
    let server = Running::start(|config| config.caps = caps);
    server.put("film.mp4", 1000);
    let (_, head) = stripe::join(&server, "/film.mp4", stripe::TOKEN).await;
    assert!(head.contains(" 200 ") && !head.to_ascii_lowercase().contains("anabranch-"), "{head}");
}
