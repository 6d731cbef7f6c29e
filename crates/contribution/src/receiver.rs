//! A receiver of live media: it listens, lets senders in, and hands out their streams.

mod driver;
mod greeting;
mod place;
mod settings;
mod tokens;

use std::net::SocketAddr;
use std::sync::Arc;

use anabranch_live::ReceiverStatus;
use anabranch_quic::{Handshakes, Thrifty};
use anabranch_sockets::ListenError;
use quinn::{Endpoint, EndpointConfig, Runtime, ServerConfig, ValidationTokenConfig};
use quinn_proto::RandomConnectionIdGenerator;
use socket2::{Domain, Socket, Type};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::socket::Quiet;
use super::{Clock, code, leave, transport};
use driver::Driver;
use greeting::accept;
use place::Place;
pub use settings::{MOST_SENDERS, PacketStream, ReceiverError, ReceiverEvent, ReceiverSettings};
use tokens::Tokens;

/// Connections that wait to be looked at.
const MOST_INCOMING: usize = 256;
/// Events of connections that wait for the driver.
const EVENTS: usize = 1024;

/// Bytes of a connection's identifier, which every datagram of the stream has: more than guessing finds, few connections
/// have to be told apart.
const IDENTIFIER_BYTES: usize = 4;
/// So many tokens a sender gets on each connection, for its next ones.
const TOKENS: u32 = 2;
/// Room for what comes while others have the processor, as far as the system allows.
const SOCKET_BUFFER: usize = 4 << 20;

/// A receiver that runs.
#[derive(Debug)]
pub struct Receiver {
    /// A stream for each place that a sender can have; they end when the receiver does.
    pub outputs: Vec<PacketStream>,
    /// How it is doing, all senders together, and packets that nobody took in time.
    pub status: watch::Receiver<(ReceiverStatus, u64)>,
    /// What happens.
    pub events: mpsc::Receiver<ReceiverEvent>,
    address: SocketAddr,
    endpoint: Endpoint,
    driver: JoinSet<()>,
}

impl Receiver {
    /// Begins to listen, within a tokio runtime.
    ///
    /// # Errors
    /// The address cannot be listened at.
    pub fn start(settings: ReceiverSettings) -> Result<Self, ReceiverError> {
        let listen = settings.listen;
        let failure = |error: std::io::Error| ListenError::new(listen, &error);
        let mut config = ServerConfig::with_crypto(settings.identity.config());
        let mut tokens = ValidationTokenConfig::default();
        tokens.sent(TOKENS).log(Arc::new(Tokens::default()));
        config
            .transport_config(Arc::new(transport()))
            .max_incoming(MOST_INCOMING)
            .token_key(settings.identity.token_key())
            .validation_token_config(tokens);
        let mut endpoint_config = EndpointConfig::new(settings.identity.reset_key());
        // quinn's own identifiers are those of one process: what another one made would get no reset.
        endpoint_config.cid_generator(|| Box::new(RandomConnectionIdGenerator::new(IDENTIFIER_BYTES)));
        let unproven = Arc::new(Handshakes::default());
        let socket = Quiet.wrap_udp_socket(socket(listen).map_err(failure)?).map_err(failure)?;
        let socket = Arc::new(Thrifty { inner: socket, handshakes: unproven.clone() });
        let endpoint =
            Endpoint::new_with_abstract_socket(endpoint_config, Some(config), socket, Arc::new(Quiet));
        let endpoint = endpoint.map_err(failure)?;
        let address = endpoint.local_addr().map_err(failure)?;
        let (to_driver, from_connections) = mpsc::channel(EVENTS);
        let places = settings.senders.clamp(1, MOST_SENDERS);
        let (places, outputs) = (0..places).map(|_| Place::new()).unzip();
        let (status_sender, status) = watch::channel((ReceiverStatus::default(), 0));
        let (notices, events) = mpsc::channel(64);
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(endpoint.clone(), settings.clone(), unproven, to_driver, notices.clone()));
        let driver = Driver {
            endpoint: endpoint.clone(),
            settings,
            clock: Clock::start(),
            places,
            past: ReceiverStatus::default(),
            next_connection: 0,
            status: status_sender,
            notices,
            farewells: JoinSet::new(),
            _tasks: tasks,
        };
        let mut running = JoinSet::new();
        running.spawn(driver.run(from_connections));
        Ok(Self { outputs, status, events, address, endpoint, driver: running })
    }

    /// Ends at once. The sender is told: it connects again when there is a receiver.
    pub async fn close(mut self) {
        leave(&self.endpoint, code::DONE, b"the receiver was ended").await;
        self.driver.shutdown().await;
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }
}

/// A socket that listens, by IPv4 as well where the address is IPv6's unspecified one.
fn socket(listen: SocketAddr) -> std::io::Result<std::net::UdpSocket> {
    let socket = Socket::new(Domain::for_address(listen), Type::DGRAM, None)?;
    if listen.is_ipv6() {
        // As quinn has it: where that cannot be the address says enough.
        let _ = socket.set_only_v6(false);
    }
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
    socket.bind(&listen.into())?;
    Ok(socket.into())
}
