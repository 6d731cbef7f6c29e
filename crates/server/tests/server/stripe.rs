//! Striping: a file over the connections of a group.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anabranch_protocol::ConnectionId;
use anabranch_protocol::stripe::frame::Frame;
use anabranch_protocol::stripe::{Arrivals, QueueEnd};
use anabranch_server::Shape;
use anabranch_units::Rate;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::client::{Running, receive_head, send};

pub const TOKEN: &str = "00112233445566778899aabbccddeeff";

fn fields(token: &str) -> String {
    format!("Connection: Upgrade\r\nUpgrade: anabranch-stripe/1\r\nAnabranch-Stripe: {token}\r\n")
}

pub async fn join(server: &Running, path: &str, token: &str) -> (TcpStream, String) {
    let mut stream = server.connect().await;
    send(&mut stream, &format!("GET {path}"), &fields(token)).await;
    let head = receive_head(&mut stream).await;
    (stream, head)
}

/// What a connection of the group brought.
#[derive(Debug)]
enum Brought {
    Block(u64, u64, Vec<u8>),
    Synced(u64, Vec<std::ops::Range<u64>>),
    Closed,
}

/// Three or so connections of a group, read at the same time.
struct Group {
    writers: Vec<OwnedWriteHalf>,
    readers: Vec<JoinHandle<()>>,
    brought: mpsc::Receiver<(usize, Brought)>,
}

impl Group {
    async fn open(server: &Running, count: usize) -> Self {
        let (sender, brought) = mpsc::channel(1);
        let (mut writers, mut readers) = (Vec::new(), Vec::new());
        for id in 0..count {
            let (stream, head) = join(server, "/film.mp4", TOKEN).await;
            assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
            let (mut reader, writer) = stream.into_split();
            let sender = sender.clone();
            writers.push(writer);
            readers.push(tokio::spawn(async move {
                let mut input = Vec::new();
                loop {
                    while let Some((frame, length)) = Frame::decode(&input).expect("frames only") {
                        let brought = match frame {
                            Frame::Data { sequence, offset, payload } => {
                                Brought::Block(sequence, offset, payload.to_vec())
                            }
                            Frame::Synced { mark, queued } => Brought::Synced(mark, queued),
                            other => panic!("a server sends no {other:?}"),
                        };
                        input.drain(..length);
                        if sender.send((id, brought)).await.is_err() {
                            return;
                        }
                    }
                    if !matches!(reader.read_buf(&mut input).await, Ok(read) if read > 0) {
                        let _ = sender.send((id, Brought::Closed)).await;
                        return;
                    }
                }
            }));
        }
        Self { writers, readers, brought }
    }

    async fn order(&mut self, connection: usize, frame: Frame<'_>) {
        let mut wire = Vec::new();
        frame.encode(&mut wire);
        self.writers[connection].write_all(&wire).await.unwrap();
    }

    async fn next(&mut self) -> (usize, Brought) {
        tokio::time::timeout(Duration::from_secs(10), self.brought.recv())
            .await
            .expect("something comes")
            .unwrap()
    }
}

fn id(connection: usize) -> ConnectionId {
    ConnectionId(u32::try_from(connection).unwrap())
}

#[tokio::test]
async fn three_connections_bring_every_byte_once() {
    let server = Running::start(|_| {});
    let film = server.put("film.mp4", 5_000_001);
    let mut group = Group::open(&server, 3).await;
    let all = 0..film.len() as u64;
    group.order(1, Frame::Want { range: all.clone(), priority: QueueEnd::Back }).await;
    let mut arrivals = Arrivals::new();
    (0..3).for_each(|connection| arrivals.connected(id(connection)));
    arrivals.wanted(all);
    let (mut got, mut shares) = (vec![0; film.len()], [0; 3]);
    while !arrivals.due().is_empty() {
        let (connection, Brought::Block(sequence, offset, payload)) = group.next().await else {
            panic!("blocks only")
        };
        let range = offset..offset + payload.len() as u64;
        assert_eq!(
            arrivals.arrived(id(connection), sequence, range).unwrap(),
            payload.len() as u64,
            "once only"
        );
        got[offset as usize..][..payload.len()].copy_from_slice(&payload);
        shares[connection] += 1;
    }
    assert!(got == film);
    assert!(shares.iter().all(|share| *share > 10), "all three take part: {shares:?}");
    assert_eq!(server.metrics.stripe_groups.load(Ordering::Relaxed), 1);
    assert_eq!(server.metrics.stripe_connections.load(Ordering::Relaxed), 3);
    group.order(0, Frame::End).await;
    for _ in 0..3 {
        assert!(matches!(group.next().await.1, Brought::Closed));
    }
}

/// The window of the client decides the share: a connection that is not read gets what fits in front of it
/// and the others go on.
#[tokio::test]
async fn a_connection_that_is_not_read_holds_nobody_up() {
    let server = Running::start(|_| {});
    let film = server.put("film.mp4", 30_000_000);
    let (_stuck, head) = join(&server, "/film.mp4", TOKEN).await;
    assert!(head.contains(" 101 "), "{head}");
    let mut group = Group::open(&server, 2).await;
    group.order(0, Frame::Want { range: 0..film.len() as u64, priority: QueueEnd::Back }).await;
    let mut got = 0;
    while let Ok(Some((_, Brought::Block(_, _, payload)))) =
        tokio::time::timeout(Duration::from_secs(1), group.brought.recv()).await
    {
        got += payload.len();
    }
    assert!(got > film.len() / 2, "{got} of {}", film.len());
}

#[tokio::test]
async fn a_connection_that_dies_loses_nothing() {
    // Slow enough that the connection dies in the middle.
    let server = Running::start(|config| {
        config.shape = Some(Shape { rate: Some(Rate::from_mbps(40)), ..Shape::default() });
    });
    let film = server.put("film.mp4", 3_000_000);
    let mut group = Group::open(&server, 3).await;
    let all = 0..film.len() as u64;
    group.order(0, Frame::Want { range: all.clone(), priority: QueueEnd::Back }).await;
    let mut arrivals = Arrivals::new();
    (0..3).for_each(|connection| arrivals.connected(id(connection)));
    arrivals.wanted(all);
    let (mut got, mut received, mut lost) = (vec![0; film.len()], 0, 0);
    let mut killed = false;
    while !arrivals.due().is_empty() {
        let Ok(brought) = tokio::time::timeout(Duration::from_millis(500), group.brought.recv()).await else {
            // The server had not noticed the death at the first SYNC.
            let mark = arrivals.sync().unwrap();
            group.order(1, Frame::Sync { mark }).await;
            continue;
        };
        match brought.unwrap() {
            (2, _) if killed => {}
            (2, Brought::Block(..)) if received > 1_000_000 => {
                // This block and what follows it are lost with connection 2.
                killed = true;
                group.readers[2].abort();
                group.writers.truncate(2);
                if let Some(mark) = arrivals.closed(id(2)) {
                    group.order(1, Frame::Sync { mark }).await;
                }
            }
            (connection, Brought::Block(sequence, offset, payload)) => {
                let range = offset..offset + payload.len() as u64;
                arrivals.arrived(id(connection), sequence, range).unwrap();
                got[offset as usize..][..payload.len()].copy_from_slice(&payload);
                received += payload.len();
            }
            (connection, Brought::Synced(mark, queued)) => {
                for range in arrivals.synced(id(connection), mark, &queued).unwrap() {
                    lost += range.end - range.start;
                    group.order(1, Frame::Want { range: range.clone(), priority: QueueEnd::Front }).await;
                    arrivals.wanted(range);
                }
            }
            (connection, Brought::Closed) => panic!("connection {connection} was closed"),
        }
    }
    assert!(killed && lost >= 16_384, "{lost} bytes were lost");
    assert!(got == film);
    assert!(received as u64 <= film.len() as u64, "only what was lost came again");
}

#[tokio::test]
async fn the_front_of_the_queue_comes_first_and_cancelled_bytes_do_not() {
    let server = Running::start(|config| {
        config.shape = Some(Shape { rate: Some(Rate::from_mbps(8)), ..Shape::default() });
    });
    server.put("film.mp4", 1_000_000);
    let mut group = Group::open(&server, 1).await;
    group.order(0, Frame::Want { range: 0..1_000_000, priority: QueueEnd::Back }).await;
    group.order(0, Frame::Want { range: 900_000..900_100, priority: QueueEnd::Front }).await;
    group.order(0, Frame::Cancel { range: 200_000..1_000_000 }).await;
    let mut offsets = Vec::new();
    let mut total = 0;
    while let Ok(Some((_, Brought::Block(_, offset, payload)))) =
        tokio::time::timeout(Duration::from_secs(1), group.brought.recv()).await
    {
        offsets.push(offset);
        total += payload.len();
    }
    assert_eq!(total, 200_000, "the three orders came before the first block left: {offsets:?}");
    assert!(offsets.is_sorted());
}

#[tokio::test]
async fn requests_that_make_no_group() {
    let server = Running::start(|config| config.idle_timeout = Duration::from_millis(300));
    server.put("film.mp4", 1000);
    server.put("other.mp4", 1000);
    assert!(join(&server, "/film.mp4", "short").await.1.contains(" 400 "));
    assert!(join(&server, "/film.mp4", &"g".repeat(32)).await.1.contains(" 400 "));
    assert!(join(&server, "/missing.mp4", TOKEN).await.1.contains(" 404 "));
    let (mut first, head) = join(&server, "/film.mp4", TOKEN).await;
    assert!(
        head.contains(" 101 ") && head.to_ascii_lowercase().contains("anabranch-size: 1000\r\n"),
        "{head}"
    );
    assert!(head.to_ascii_lowercase().contains("etag: \""), "{head}");
    assert!(join(&server, "/other.mp4", TOKEN).await.1.contains(" 409 "));
    let with_match = format!("{}If-Match: \"x\"\r\n", fields(TOKEN));
    assert_eq!(server.get("/film.mp4", &with_match).await.status, 412);
    let plain = server.get("/film.mp4", &format!("Anabranch-Stripe: {TOKEN}\r\n")).await;
    assert_eq!(plain.status, 200, "without Upgrade it is a plain GET");
    // Nothing is wanted for the idle time; afterwards the token is free again.
    assert_eq!(first.read(&mut [0; 1]).await.unwrap(), 0);
    assert!(join(&server, "/other.mp4", TOKEN).await.1.contains(" 101 "));
}

#[tokio::test]
async fn garbage_closes_its_connection_and_no_other() {
    let server = Running::start(|_| {});
    let film = server.put("film.mp4", 100_000);
    let mut group = Group::open(&server, 4).await;
    group.writers[0].write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    group.order(1, Frame::Data { sequence: 0, offset: 0, payload: b"x" }).await;
    group.order(2, Frame::Want { range: 0..100_001, priority: QueueEnd::Back }).await;
    let mut closed = Vec::new();
    for _ in 0..3 {
        let (connection, Brought::Closed) = group.next().await else { panic!("closed only") };
        closed.push(connection);
    }
    closed.sort_unstable();
    assert_eq!(closed, [0, 1, 2]);
    group.order(3, Frame::Want { range: 0..100_000, priority: QueueEnd::Back }).await;
    let mut got = Vec::new();
    while got.len() < film.len() {
        let (3, Brought::Block(_, _, payload)) = group.next().await else { panic!("blocks of connection 3") };
        got.extend(payload);
    }
    assert!(got == film);
}

#[tokio::test]
async fn a_stop_sends_what_was_wanted() {
    let mut server = Running::start(|config| {
        config.shape = Some(Shape { rate: Some(Rate::from_mbps(20)), ..Shape::default() });
    });
    server.put("film.mp4", 1_000_000);
    let mut group = Group::open(&server, 2).await;
    group.order(0, Frame::Want { range: 0..1_000_000, priority: QueueEnd::Back }).await;
    let (mut got, mut closed) = (0, 0);
    while closed < 2 {
        match group.next().await.1 {
            Brought::Block(_, offset, payload) => {
                if offset == 0 {
                    server.stop();
                }
                got += payload.len();
            }
            Brought::Closed => closed += 1,
            Brought::Synced(..) => panic!("nobody asked"),
        }
    }
    assert_eq!(got, 1_000_000);
}

#[tokio::test]
async fn orders_do_not_keep_a_group_that_takes_nothing() {
    let server = Running::start(|config| config.write_timeout = Duration::from_millis(500));
    server.put("film.mp4", 64 << 20);
    let (mut stream, head) = join(&server, "/film.mp4", TOKEN).await;
    assert!(head.contains(" 101 "), "{head}");
    let mut order = Vec::new();
    Frame::Want { range: 0..64 << 20, priority: QueueEnd::Back }.encode(&mut order);
    let began = std::time::Instant::now();
    // It orders again and again, and reads nothing.
    while server.metrics.connections.load(Ordering::Relaxed) > 0 {
        assert!(began.elapsed() < Duration::from_secs(10), "the group is still there");
        let _ = stream.write_all(&order).await;
        order.clear();
        Frame::Sync { mark: 1 }.encode(&mut order);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_client_that_orders_without_end_takes_nothing_from_others() {
    let server = Running::start(|_| {});
    let film = server.put("film.mp4", 1_000_000);
    let (stream, head) = join(&server, "/film.mp4", TOKEN).await;
    assert!(head.contains(" 101 "), "{head}");
    let (mut reader, mut writer) = stream.into_split();
    let reading = tokio::spawn(async move {
        let mut space = vec![0; 1 << 16];
        while matches!(reader.read(&mut space).await, Ok(read) if read > 0) {}
    });
    let ordering = tokio::spawn(async move {
        let mut state = 1_u64;
        loop {
            let mut orders = Vec::new();
            for _ in 0..1000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let start = (state >> 20) % 999_000;
                let range = start..start + 1 + (state >> 50) % 900;
                match state >> 62 {
                    0 => Frame::Want { range, priority: QueueEnd::Front }.encode(&mut orders),
                    1 => Frame::Cancel { range }.encode(&mut orders),
                    2 => Frame::Sync { mark: state }.encode(&mut orders),
                    _ => Frame::Want { range, priority: QueueEnd::Back }.encode(&mut orders),
                }
            }
            // Too many ranges at a time end it; that is as good.
            if writer.write_all(&orders).await.is_err() {
                return;
            }
        }
    });
    for _ in 0..5 {
        assert!(server.get("/film.mp4", "").await.body == film);
    }
    ordering.abort();
    reading.abort();
}

#[tokio::test]
async fn more_connections_than_a_group_takes_are_closed_and_the_others_go_on() {
    let server = Running::start(|_| {});
    let film = server.put("film.mp4", 100_000);
    let mut members = Vec::new();
    for _ in 0..anabranch_protocol::stripe::MAX_CONNECTIONS {
        members.push(join(&server, "/film.mp4", TOKEN).await.0);
    }
    let mut beyond = join(&server, "/film.mp4", TOKEN).await.0;
    let closed = tokio::time::timeout(Duration::from_secs(10), beyond.read(&mut [0; 1])).await;
    assert!(matches!(closed.expect("closed"), Ok(0) | Err(_)));
    let mut order = Vec::new();
    Frame::Want { range: 0..film.len() as u64, priority: QueueEnd::Back }.encode(&mut order);
    members[5].write_all(&order).await.unwrap();
    assert_eq!(members[0].read(&mut [0; 1]).await.unwrap(), 1);
}
