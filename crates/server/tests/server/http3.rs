//! HTTP/3 with clients that begin and do not go on, and in which order the answers of one client come.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_congestion::algorithm::Algorithm;
use anabranch_server::{Config, Http3};
use anabranch_sockets::tls;
use bytes::{Buf, Bytes};
use h3::client::{RequestStream, SendRequest};
use http::Request;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint, EndpointConfig, TransportConfig, VarInt};
use tokio::net::UdpSocket;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::client::Running;

/// Longer than anything here takes on a slow machine.
const LONG: Duration = Duration::from_secs(20);

/// A server, and what a client has to know of it.
struct World {
    server: Running,
    crypto: Arc<QuicClientConfig>,
}

fn start(configure: impl FnOnce(&mut Config)) -> World {
    start_as(vec!["localhost".to_owned()], configure)
}

/// With a certificate for these names.
fn start_as(names: Vec<String>, configure: impl FnOnce(&mut Config)) -> World {
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let server = Running::start(|config| {
        let (certificate, key) =
            (config.root.with_file_name("cert.pem"), config.root.with_file_name("key.pem"));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let identity = tls::load_quic_server(&certificate, &key).unwrap();
        config.http3 = Some(Http3 { identity, congestion: Algorithm::Cubic, weights: None });
        configure(config);
    });
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut crypto = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    crypto.alpn_protocols = vec![b"h3".to_vec()];
    World { server, crypto: Arc::new(QuicClientConfig::try_from(crypto).unwrap()) }
}

/// A connection of HTTP/3.
struct Client {
    sender: SendRequest<h3_quinn::OpenStreams, Bytes>,
    driver: AbortHandle,
    _endpoint: Endpoint,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

type Stream = RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

impl World {
    fn config(&self) -> ClientConfig {
        ClientConfig::new(self.crypto.clone())
    }

    async fn connect(&self, config: ClientConfig) -> Client {
        let endpoint = Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let connecting = endpoint.connect_with(config, self.server.address, "localhost").unwrap();
        let connection = timeout(LONG, connecting).await.expect("a handshake in time").unwrap();
        let mut builder = h3::client::builder();
        let building = builder.send_grease(false).build(h3_quinn::Connection::new(connection));
        let (mut driver, sender) = building.await.unwrap();
        let driver = tokio::spawn(async move {
            let _ = poll_fn(|cx| driver.poll_close(cx)).await;
        });
        Client { sender, driver: driver.abort_handle(), _endpoint: endpoint }
    }

    /// The first packet of a client that goes on with nothing.
    fn first_packet(&self, endpoint: &mut quinn_proto::Endpoint) -> Vec<u8> {
        let now = Instant::now();
        let (_, mut connection) =
            endpoint.connect(now, self.config(), self.server.address, "localhost").unwrap();
        let mut packet = Vec::new();
        let transmit = connection.poll_transmit(now, 1, &mut packet).unwrap();
        assert_eq!(transmit.size, packet.len());
        packet
    }
}

impl Client {
    async fn ask(&mut self, path: &str, priority: &str) -> Stream {
        let request = Request::get(format!("https://localhost{path}")).header("priority", priority);
        let mut stream = self.sender.send_request(request.body(()).unwrap()).await.unwrap();
        stream.finish().await.unwrap();
        stream
    }

    async fn status(&mut self, path: &str) -> u16 {
        let mut stream = self.ask(path, "u=3").await;
        timeout(LONG, stream.recv_response()).await.expect("an answer in time").unwrap().status().as_u16()
    }
}

/// Some more bytes of an answer; zero at its end.
async fn more(stream: &mut Stream) -> usize {
    timeout(LONG, stream.recv_data())
        .await
        .expect("bytes in time")
        .unwrap()
        .map_or(0, |data| data.remaining())
}

fn prober() -> quinn_proto::Endpoint {
    quinn_proto::Endpoint::new(Arc::new(EndpointConfig::default()), None, true, None)
}

#[tokio::test]
async fn first_packets_that_never_go_on_lock_nobody_out() {
    let world = start(|config| config.max_connections_per_client = 8);
    world.server.put("film.mp4", 1000);
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut endpoint = prober();
    for _ in 0..40 {
        socket.send_to(&world.first_packet(&mut endpoint), world.server.address).await.unwrap();
        // Whatever is said to it: then it has been looked at.
        timeout(LONG, socket.recv(&mut [0; 2048])).await.expect("an answer in time").unwrap();
    }
    let mut client = world.connect(world.config()).await;
    assert_eq!(client.status("/film.mp4").await, 200);
}

#[tokio::test]
async fn who_proves_no_address_gets_no_more_than_three_times_what_came_from_there() {
    let world = start(|config| config.header_timeout = Duration::from_secs(5));
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut endpoint = prober();
    let packet = world.first_packet(&mut endpoint);
    socket.send_to(&packet, world.server.address).await.unwrap();
    let (mut sizes, mut buffer) = (Vec::new(), [0; 4096]);
    // Until the server has given up: what is lost it sends again after a second and after three.
    while let Ok(received) = timeout(Duration::from_secs(6), socket.recv(&mut buffer)).await {
        sizes.push(received.unwrap());
    }
    let sum: usize = sizes.iter().sum();
    println!("{} bytes came, {sizes:?} went out: {sum}", packet.len());
    assert!(sum > 0 && sum <= 3 * packet.len(), "{} bytes came, {sizes:?} went out: {sum}", packet.len());
}

#[tokio::test]
async fn a_server_with_a_long_certificate_is_not_held_up() {
    // Some 25 kB, of which 3600 bytes go out before the client answers.
    let names = (0..400).map(|number| format!("{number}.{}.example", "long".repeat(12)));
    let world = start_as(names.chain(["localhost".to_owned()]).collect(), |config| {
        config.header_timeout = Duration::from_secs(5);
    });
    world.server.put("film.mp4", 10);
    let mut client = world.connect(world.config()).await;
    assert_eq!(client.status("/film.mp4").await, 200);
}

#[tokio::test]
async fn a_paced_control_sends_whole_answers_also_after_a_rest_and_a_long_handshake() {
    let names = (0..400).map(|number| format!("{number}.{}.example", "long".repeat(12)));
    let world = start_as(names.chain(["localhost".to_owned()]).collect(), |config| {
        config.http3.as_mut().unwrap().congestion = Algorithm::Bbr;
    });
    const SIZE: usize = 3_000_000;
    world.server.put("film.mp4", SIZE);
    let mut client = world.connect(world.config()).await;
    for _ in 0..2 {
        let mut stream = client.ask("/film.mp4", "u=3").await;
        timeout(LONG, stream.recv_response()).await.expect("an answer in time").unwrap();
        let mut received = 0;
        loop {
            match more(&mut stream).await {
                0 => break,
                bytes => received += bytes,
            }
        }
        assert_eq!(received, SIZE);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// A client whose windows are the bottleneck: what it reads decides what comes.
fn narrow(world: &World, stream_window: u32, window: u32) -> ClientConfig {
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(VarInt::from_u32(stream_window)).receive_window(VarInt::from_u32(window));
    let mut config = world.config();
    config.transport_config(Arc::new(transport));
    config
}

#[tokio::test]
async fn what_is_urgent_to_a_client_does_not_share_with_what_is_not() {
    const URGENT: usize = 2 << 20;
    let world = start(|_| {});
    world.server.put("later.mp4", 64 << 20);
    world.server.put("now.mp4", URGENT);
    let mut client = world.connect(narrow(&world, 64 << 10, 64 << 10)).await;
    let mut later = client.ask("/later.mp4", "u=5").await;
    timeout(LONG, later.recv_response()).await.unwrap().unwrap();
    let mut before = 0;
    while before < 200_000 {
        before += more(&mut later).await;
    }
    let mut now = client.ask("/now.mp4", "u=1").await;
    let (mut meanwhile, mut got) = (0, 0);
    let reading = async {
        timeout(LONG, now.recv_response()).await.unwrap().unwrap();
        while got < URGENT {
            got += more(&mut now).await;
        }
    };
    let mut reading = std::pin::pin!(reading);
    loop {
        tokio::select! {
            () = &mut reading => break,
            bytes = more(&mut later) => meanwhile += bytes,
        }
    }
    // Equals would have had the same; what a busy machine had let through before the request counts as well.
    assert!(meanwhile < URGENT / 2, "{meanwhile} bytes of the other came meanwhile");
}

#[tokio::test]
async fn an_urgent_answer_that_is_not_read_holds_no_other_up() {
    let world = start(|_| {});
    world.server.put("paused.mp4", 8 << 20);
    world.server.put("film.mp4", 1 << 20);
    let mut client = world.connect(narrow(&world, 64 << 10, 16 << 20)).await;
    let mut paused = client.ask("/paused.mp4", "u=0").await;
    timeout(LONG, paused.recv_response()).await.unwrap().unwrap();
    let mut film = client.ask("/film.mp4", "u=7").await;
    timeout(LONG, film.recv_response()).await.unwrap().unwrap();
    let mut got = 0;
    while got < 1 << 20 {
        got += more(&mut film).await;
    }
    assert!(more(&mut paused).await > 0);
}
