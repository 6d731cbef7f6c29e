//! The engine against our own server in striping mode, on loopback, also through proxies that disturb it.

#![allow(clippy::unwrap_used, reason = "a test fails where it panics")]

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_client::{Event, Film, RateControl, Settings, Storage};
use anabranch_film::multitcp;
use anabranch_film::session::Pace;
use anabranch_protocol::ranges::RangeSet;
use anabranch_protocol::stripe::frame::Frame;
use anabranch_server::{Config, Metrics, Server, Shape};
use anabranch_units::Rate;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinHandle};

struct Running {
    address: SocketAddr,
    metrics: Arc<Metrics>,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn serve(root: &Path, rate: Option<Rate>, configure: impl FnOnce(&mut Config)) -> Running {
    let mut config = Config::new(root, SocketAddr::from(([127, 0, 0, 1], 0)));
    config.shape = rate.map(|rate| Shape { rate: Some(rate), first_byte_delay: Duration::ZERO });
    configure(&mut config);
    let server = Server::bind(config).expect("it binds");
    let (address, metrics) = (server.local_addr().expect("an address"), server.metrics());
    Running { address, metrics, task: tokio::spawn(server.run(std::future::pending())) }
}

fn film(root: &Path, size: usize) -> Vec<u8> {
    let content = anabranch_testkit::film(size);
    std::fs::write(root.join("film.bin"), &content).expect("written");
    content
}

fn settings(address: SocketAddr, connections: u32) -> Settings {
    let mut settings = Settings::new(vec![format!("http://{address}/film.bin").parse().expect("a URL")]);
    let parameters = multitcp::Parameters { connections, ..multitcp::Parameters::TABLE_8_1 };
    settings.algorithm = RateControl::Basic(parameters);
    settings.probe_media = false;
    settings
}

async fn read(film: &Film, start: u64, most: usize) -> Vec<u8> {
    let mut reader = film.reader(start..u64::MAX);
    let mut got = Vec::new();
    while got.len() < most {
        let next = tokio::time::timeout(Duration::from_secs(60), reader.next()).await;
        let Some(piece) = next.expect("it goes on").expect("no error") else { break };
        got.extend_from_slice(&piece);
    }
    got.truncate(most);
    got
}

/// What happens to a connection whose client asks for the upgrade.
#[derive(Clone)]
enum Upgrade {
    Passes,
    /// The request goes on without it, as proxies do.
    IsStripped,
    ClosesTheConnection,
    GetsNoAnswer,
    /// The server's answer is followed by these bytes.
    IsFollowedBy(Vec<u8>),
}

/// A proxy in front of a server.
struct Proxy {
    address: SocketAddr,
    /// Its connections, in the order of their upgrades.
    upgraded: Arc<Mutex<Vec<AbortHandle>>>,
}

impl Proxy {
    /// `pause` after each 16 KiB of the connections by their number.
    async fn start(server: SocketAddr, upgrade: Upgrade, pause: fn(usize) -> Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("a port");
        let upgraded = Arc::new(Mutex::new(Vec::new()));
        let list = upgraded.clone();
        tokio::spawn(async move {
            let mut number = 0;
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, server, upgrade.clone(), pause(number), list.clone()));
                number += 1;
            }
        });
        Self { address, upgraded }
    }
}

async fn pass(
    client: TcpStream,
    server: SocketAddr,
    upgrade: Upgrade,
    pause: Duration,
    upgraded: Arc<Mutex<Vec<AbortHandle>>>,
) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) =
        TcpStream::connect(server).await.expect("it is there").into_split();
    let more = if let Upgrade::IsFollowedBy(more) = &upgrade { more.clone() } else { Vec::new() };
    let down = async move {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
            if to_client.write_all(&buffer[..count]).await.is_err() {
                return;
            }
            if buffer.starts_with(b"HTTP/1.1 101 ") && to_client.write_all(&more).await.is_err() {
                return;
            }
            tokio::time::sleep(pause).await;
        }
    };
    let up = async move {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
            let mut bytes = buffer[..count].to_vec();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if text.contains("upgrade: anabranch-stripe/1\r\n") {
                match &upgrade {
                    Upgrade::Passes | Upgrade::IsFollowedBy(_) => {}
                    Upgrade::IsStripped => {
                        bytes = text.replace("upgrade: anabranch-stripe/1\r\n", "").into_bytes();
                    }
                    Upgrade::ClosesTheConnection => return,
                    Upgrade::GetsNoAnswer => continue,
                }
            }
            if to_server.write_all(&bytes).await.is_err() {
                return;
            }
        }
        let _ = to_server.shutdown().await;
        std::future::pending::<()>().await;
    };
    let both = tokio::spawn(async move {
        tokio::select! { () = down => {}, () = up => {} }
    });
    upgraded.lock().expect("no panic").push(both.abort_handle());
    let _ = both.await;
}

fn no_pause(_: usize) -> Duration {
    Duration::ZERO
}

#[tokio::test]
async fn one_three_and_five_connections_bring_the_right_bytes() {
    let root = tempfile::tempdir().unwrap();
    let content = film(root.path(), 7_000_001);
    for connections in [1, 3, 5] {
        let server = serve(root.path(), Some(Rate::from_mbps(80)), |_| {});
        let film = Film::open(settings(server.address, connections), Storage::Memory).await.unwrap();
        assert!(read(&film, 0, usize::MAX).await == content, "{connections} connections");
        let status = film.status();
        assert_eq!(server.metrics.stripe_groups.load(Ordering::Relaxed), 1, "{status:?}");
        assert_eq!(server.metrics.stripe_connections.load(Ordering::Relaxed), u64::from(connections));
        assert!(status.session.connections.iter().all(|one| one.delivered > 300_000), "{status:?}");
        assert_eq!(status.session.totals.duplicate, 0, "{status:?}");
    }
}

#[tokio::test]
async fn a_file_is_written_with_every_byte_in_its_place() {
    let root = tempfile::tempdir().unwrap();
    let content = film(root.path(), 20_000_000);
    let server = serve(root.path(), None, |_| {});
    let path = root.path().join("out");
    let file = std::fs::File::options().create_new(true).read(true).write(true).open(&path).unwrap();
    let storage = Storage::File { file: Arc::new(file), have: RangeSet::new(), in_doubt: false };
    let film = Film::open(settings(server.address, 4), storage).await.unwrap();
    film.complete().await.unwrap();
    assert!(std::fs::read(&path).unwrap() == content);
    assert_eq!(server.metrics.stripe_groups.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_connection_that_breaks_costs_only_what_was_on_it() {
    let root = tempfile::tempdir().unwrap();
    let content = film(root.path(), 6_000_000);
    let server = serve(root.path(), Some(Rate::from_mbps(30)), |_| {});
    let proxy = Proxy::start(server.address, Upgrade::Passes, no_pause).await;
    let film = Film::open(settings(proxy.address, 3), Storage::Memory).await.unwrap();
    let killer = {
        let upgraded = proxy.upgraded.clone();
        tokio::spawn(async move {
            for victim in [1, 0] {
                tokio::time::sleep(Duration::from_millis(400)).await;
                upgraded.lock().unwrap()[victim].abort();
            }
        })
    };
    assert!(read(&film, 0, usize::MAX).await == content);
    killer.await.unwrap();
    let status = film.status();
    assert_eq!(server.metrics.stripe_groups.load(Ordering::Relaxed), 1, "it goes on in its group");
    assert!(status.session.totals.duplicate < 600_000, "{status:?}");
    assert!(status.replicas[0].errors <= 2, "{status:?}");
}

#[tokio::test]
async fn whatever_happens_to_the_upgrade_ranges_bring_the_film() {
    let root = tempfile::tempdir().unwrap();
    let content = film(root.path(), 3_000_000);
    let mut unwanted = Vec::new();
    Frame::Data { sequence: 1 << 40, offset: content.len() as u64 - 5, payload: b"wrong" }
        .encode(&mut unwanted);
    let mut beyond = Vec::new();
    Frame::Data { sequence: 1 << 40, offset: u64::MAX - 5, payload: b"wrong" }.encode(&mut beyond);
    for upgrade in [
        Upgrade::IsStripped,
        Upgrade::ClosesTheConnection,
        Upgrade::GetsNoAnswer,
        Upgrade::IsFollowedBy(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()),
        Upgrade::IsFollowedBy(unwanted),
        Upgrade::IsFollowedBy(beyond),
    ] {
        let server = serve(root.path(), None, |_| {});
        let proxy = Proxy::start(server.address, upgrade, no_pause).await;
        let mut settings = settings(proxy.address, 2);
        settings.connect_timeout = anabranch_units::Duration::from_millis(500);
        // Then the end is not asked for at the beginning.
        settings.memory = anabranch_units::Bytes::mib(1);
        let film = Film::open(settings, Storage::Memory).await.unwrap();
        let mut notices = film.notices();
        assert!(read(&film, 0, usize::MAX).await == content);
        let mut told = false;
        while let Ok(notice) = notices.try_recv() {
            told |= matches!(notice.event, Event::NotStriped { .. });
        }
        assert!(told, "a reason is given");
    }
}

#[tokio::test]
async fn striping_can_be_switched_off() {
    let root = tempfile::tempdir().unwrap();
    let content = film(root.path(), 1_000_000);
    let server = serve(root.path(), None, |_| {});
    let mut settings = settings(server.address, 2);
    settings.stripe = false;
    let film = Film::open(settings, Storage::Memory).await.unwrap();
    assert!(read(&film, 0, usize::MAX).await == content);
    assert_eq!(server.metrics.stripe_groups.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn readers_seek_and_read_at_once() {
    let root = tempfile::tempdir().unwrap();
    let content = film(root.path(), 40_000_000);
    let server = serve(root.path(), Some(Rate::from_mbps(40)), |_| {});
    let mut settings = settings(server.address, 3);
    settings.memory = anabranch_units::Bytes::mib(2);
    let film = Film::open(settings, Storage::Memory).await.unwrap();
    for start in [0, 39_000_000, 20_000_000, 1_000_000, 10_000_003] {
        let begin = std::time::Instant::now();
        let got = read(&film, start as u64, 300_000).await;
        assert!(got == content[start..start + 300_000], "from {start}");
        // 40 Mbps bring 300 kB in 60 ms: a seek does not wait for what was asked for before (2 MiB: 400 ms).
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?} at {start}", begin.elapsed());
    }
    let (one, two) = tokio::join!(read(&film, 5_000_000, 500_000), read(&film, 30_000_000, 500_000));
    assert!(one == content[5_000_000..5_500_000] && two == content[30_000_000..30_500_000]);
    assert_eq!(server.metrics.stripe_groups.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_group_that_the_server_ended_for_idleness_is_replaced() {
    let root = tempfile::tempdir().unwrap();
    let content = film(root.path(), 10_000_000);
    let server = serve(root.path(), None, |config| config.idle_timeout = Duration::from_millis(300));
    let mut settings = settings(server.address, 3);
    settings.memory = anabranch_units::Bytes::mib(1);
    let film = Film::open(settings, Storage::Memory).await.unwrap();
    let mut reader = film.reader(0..u64::MAX);
    let mut got = Vec::new();
    while let Some(piece) = reader.next().await.unwrap() {
        got.extend_from_slice(&piece);
        if got.len() < 100_000 {
            // Nothing is wanted meanwhile: the memory is full.
            tokio::time::sleep(Duration::from_millis(900)).await;
        }
    }
    assert!(got == content);
    assert!(server.metrics.stripe_groups.load(Ordering::Relaxed) > 1);
}

#[tokio::test]
async fn a_limit_is_held() {
    let root = tempfile::tempdir().unwrap();
    let content = film(root.path(), 2_500_000);
    let server = serve(root.path(), None, |_| {});
    let mut settings = settings(server.address, 3);
    settings.pace = Pace::Limit(Rate::from_mbps(10));
    let begin = std::time::Instant::now();
    let film = Film::open(settings, Storage::Memory).await.unwrap();
    assert!(read(&film, 0, usize::MAX).await == content);
    // A busy machine may take longer.
    let seconds = begin.elapsed().as_secs_f64();
    assert!(seconds >= 1.8, "{seconds} s for two seconds' worth");
    assert_eq!(server.metrics.stripe_groups.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_slow_connection_gets_its_share_and_no_more() {
    let root = tempfile::tempdir().unwrap();
    let content = film(root.path(), 8_000_000);
    let server = serve(root.path(), None, |_| {});
    // The first connection is that of the probing. 16 KiB in 10 ms and in 40 ms: 13 and 3.3 Mbps.
    let pause = |number| Duration::from_millis(if number == 0 { 10 } else { 40 });
    let proxy = Proxy::start(server.address, Upgrade::Passes, pause).await;
    let film = Film::open(settings(proxy.address, 2), Storage::Memory).await.unwrap();
    assert!(read(&film, 0, usize::MAX).await == content);
    let status = film.status();
    let delivered: Vec<_> = status.session.connections.iter().map(|one| one.delivered as f64).collect();
    let ratio = delivered[0] / delivered[1];
    assert!((2.0..8.0).contains(&ratio), "{status:?}");
}

#[tokio::test]
async fn over_tls_as_well() {
    use anabranch_sockets::tls::TlsClient;
    let root = tempfile::tempdir().unwrap();
    let content = film(root.path(), 3_000_000);
    let key = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (certificate, private) = (root.path().join("certificate.pem"), root.path().join("key.pem"));
    std::fs::write(&certificate, key.cert.pem()).unwrap();
    std::fs::write(&private, key.signing_key.serialize_pem()).unwrap();
    let tls = anabranch_sockets::tls::load_server(&certificate, &private).unwrap();
    let server = serve(root.path(), None, |config| config.tls = Some(tls));
    let mut settings = settings(server.address, 3);
    settings.urls = vec![format!("https://{}/film.bin", server.address).parse().unwrap()];
    settings.tls = TlsClient::new(&[certificate]).unwrap();
    let film = Film::open(settings, Storage::Memory).await.unwrap();
    assert!(read(&film, 0, usize::MAX).await == content);
    assert_eq!(server.metrics.stripe_connections.load(Ordering::Relaxed), 3);
}
