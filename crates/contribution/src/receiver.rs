//! The receiver's connections, and the task that drives them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anabranch_live::{ConnectionId, LEAST_LATENCY, MOST_LATENCY, ReceiverStatus};
use anabranch_protocol::live::hello::{Message, SESSION_BYTES};
use anabranch_sockets::ListenError;
use bytes::Bytes;
use quinn::{Connection, ConnectionError, Endpoint, Incoming, SendStream, ServerConfig};
use subtle::ConstantTimeEq;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::control::{read, write};
use super::{Clock, HANDSHAKE, Identity, code, leave, transport};

/// Handshakes at a time.
const MOST_HANDSHAKES: usize = 64;
/// Connections that wait to be looked at.
const MOST_INCOMING: usize = 256;
/// Events of connections that wait for the driver.
const EVENTS: usize = 1024;
/// PacketStream that wait for whoever takes the stream.
const PACKETS: usize = 8192;
/// Most senders at a time: what waits of each is in memory.
pub const MOST_SENDERS: usize = 64;
/// A sender that is gone for so long has to make room for another.
const RETURN: Duration = Duration::from_secs(10);

/// The stream, a packet at a time.
pub type PacketStream = mpsc::Receiver<Arc<[u8]>>;

/// What a receiver needs.
#[derive(Clone, Debug)]
pub struct ReceiverSettings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Who it is.
    pub identity: Identity,
    /// What a sender has to show; empty: nothing.
    pub token: Vec<u8>,
    /// The least latency budget: the larger of this and the sender's holds.
    pub latency: anabranch_units::Duration,
    /// Whether it waits for the next sender when all streams have ended.
    pub keep: bool,
    /// Senders at a time, 1 to [`MOST_SENDERS`].
    pub senders: usize,
}

/// Why a receiver cannot work.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiverError {
    /// The address is not ours or taken.
    #[error(transparent)]
    Listen(#[from] ListenError),
}

/// Something that a person should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiverEvent {
    /// A sender is there.
    Sender {
        /// Where it sends from.
        from: SocketAddr,
        /// The latency budget of both.
        latency: anabranch_units::Duration,
        /// Its place, from 0: the stream goes to this one of [`Receiver::outputs`].
        place: usize,
    },
    /// A connection of the sender is gone, and why.
    Lost(SocketAddr, String),
    /// Somebody was not let in, and why.
    Refused(SocketAddr, &'static str),
    /// The stream of the sender in this place has ended.
    Ended(usize),
}

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
        config.transport_config(Arc::new(transport())).max_incoming(MOST_INCOMING);
        let endpoint = Endpoint::server(config, listen).map_err(failure)?;
        let address = endpoint.local_addr().map_err(failure)?;
        let (to_driver, from_connections) = mpsc::channel(EVENTS);
        let places = settings.senders.clamp(1, MOST_SENDERS);
        let (places, outputs) = (0..places).map(|_| Place::new()).unzip();
        let (status_sender, status) = watch::channel((ReceiverStatus::default(), 0));
        let (notices, events) = mpsc::channel(64);
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(endpoint.clone(), settings.clone(), to_driver, notices.clone()));
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

/// A sender that showed the token.
struct Hello {
    connection: Connection,
    control: SendStream,
    session: [u8; SESSION_BYTES],
    next: u64,
    latency: anabranch_units::Duration,
    is_published: bool,
    /// What comes later from this connection.
    incoming: mpsc::Sender<Event>,
    messages: quinn::RecvStream,
}

enum Event {
    Hello(Box<Hello>),
    Datagram(ConnectionId, Bytes),
    End(ConnectionId, u64),
    Down { id: ConnectionId, reason: String, has_left: bool },
}

/// Lets connections in. Before an address is known to be that of the one who asks it gets a short Retry and
/// nothing else (RFC 9000, section 8.1.2), for which nothing is kept.
async fn accept(
    endpoint: Endpoint,
    settings: ReceiverSettings,
    events: mpsc::Sender<Event>,
    notices: mpsc::Sender<ReceiverEvent>,
) {
    let places = Arc::new(Semaphore::new(MOST_HANDSHAKES));
    let settings = Arc::new(settings);
    let mut handshakes = JoinSet::new();
    while let Some(incoming) = endpoint.accept().await {
        while handshakes.try_join_next().is_some() {}
        if !incoming.remote_address_validated() {
            // It fails only when the address was validated.
            let _ = incoming.retry();
            continue;
        }
        let Ok(place) = places.clone().try_acquire_owned() else {
            incoming.refuse();
            continue;
        };
        let (settings, events, notices) = (settings.clone(), events.clone(), notices.clone());
        handshakes.spawn(async move {
            let from = incoming.remote_address();
            match timeout(HANDSHAKE, greet(incoming, &settings, events.clone())).await {
                Ok(Ok(hello)) => {
                    // Fails when the receiver ends.
                    let _ = events.send(Event::Hello(Box::new(hello))).await;
                }
                Ok(Err(why)) => {
                    let _ = notices.try_send(ReceiverEvent::Refused(from, why));
                }
                Err(_) => {
                    let _ = notices.try_send(ReceiverEvent::Refused(from, "its handshake took too long"));
                }
            }
            drop(place);
        });
    }
}

async fn greet(
    incoming: Incoming,
    settings: &ReceiverSettings,
    events: mpsc::Sender<Event>,
) -> Result<Hello, &'static str> {
    let connection = match incoming.accept() {
        Ok(connecting) => connecting.await.map_err(|_| "the handshake failed")?,
        Err(_) => return Err("the handshake failed"),
    };
    let refuse = |code, why: &'static str| {
        connection.close(code, why.as_bytes());
        why
    };
    let (control, mut messages) =
        connection.accept_bi().await.map_err(|_| "it was gone before it said anything")?;
    let hello = read(&mut messages).await;
    let Ok(Message::Hello { session, next, latency, is_published, token }) = hello else {
        return Err(refuse(code::PROTOCOL, "it does not speak this version of the protocol"));
    };
    let is_right: bool = token.ct_eq(&settings.token).into();
    if !is_right {
        let why = match (token.is_empty(), settings.token.is_empty()) {
            (true, _) => "a token is needed, and none was given (--token-file of the sender)",
            (_, true) => "a token was given, and none is known (--token-file of the receiver)",
            _ => "the token is wrong",
        };
        return Err(refuse(code::TOKEN, why));
    }
    Ok(Hello {
        connection: connection.clone(),
        control,
        session,
        next,
        latency,
        is_published,
        incoming: events,
        messages,
    })
}

/// Passes on what comes until the connection is closed.
async fn listen(
    id: ConnectionId,
    connection: Connection,
    mut messages: quinn::RecvStream,
    events: mpsc::Sender<Event>,
) {
    let end = async {
        if let Ok(Message::End { next }) = read(&mut messages).await {
            let _ = events.send(Event::End(id, next)).await;
        }
        std::future::pending::<()>().await;
    };
    let datagrams = async {
        loop {
            match connection.read_datagram().await {
                Ok(datagram) => {
                    if events.send(Event::Datagram(id, datagram)).await.is_err() {
                        break;
                    }
                }
                Err(error) => {
                    let has_left = matches!(&error, ConnectionError::ApplicationClosed(close)
                        if close.error_code == code::LEFT);
                    let reason = match error {
                        ConnectionError::ApplicationClosed(close) if close.error_code == code::DONE => {
                            "its sender has ended".to_owned()
                        }
                        error => error.to_string(),
                    };
                    let _ = events.send(Event::Down { id, reason, has_left }).await;
                    break;
                }
            }
        }
    };
    tokio::select! {
        () = datagrams => {}
        () = end => {}
    }
}

/// One sender and its stream.
struct LiveSession {
    name: [u8; SESSION_BYTES],
    core: anabranch_live::Receiver,
    connections: BTreeMap<ConnectionId, (Connection, SendStream)>,
    /// Since when there is no connection.
    gone: Option<anabranch_units::Time>,
    /// Its sender does not come back.
    has_left: bool,
    latency: anabranch_units::Duration,
    tasks: JoinSet<()>,
}

/// Where a sender can be.
struct Place {
    session: Option<LiveSession>,
    output: mpsc::Sender<Arc<[u8]>>,
    /// PacketStream that nobody took in time.
    untaken: u64,
}

impl Place {
    fn new() -> (Self, PacketStream) {
        let (output, packets) = mpsc::channel(PACKETS);
        (Self { session: None, output, untaken: 0 }, packets)
    }

    /// Hands on and reports what is due. Answers whether the stream has ended.
    fn work(&mut self, now: anabranch_units::Time) -> bool {
        let Some(session) = &mut self.session else { return false };
        while let Some((id, datagram)) = session.core.transmit(now) {
            if let Some((connection, _)) = session.connections.get(&id)
                && let Err(error) = connection.send_datagram(datagram.into())
            {
                tracing::debug!(%error, "a report was not sent");
            }
        }
        while let Some(packet) = session.core.deliver(now) {
            if self.output.try_send(packet).is_err() {
                self.untaken += 1;
            }
        }
        session.core.has_ended(now)
    }

    /// Whether another sender may have this place.
    fn is_free(&self, now: anabranch_units::Time) -> bool {
        self.session.as_ref().is_none_or(|session| {
            let is_gone =
                session.gone.is_some_and(|gone| now.since(gone) > anabranch_units::Duration::from(RETURN));
            is_gone || session.has_left
        })
    }
}

struct Driver {
    endpoint: Endpoint,
    settings: ReceiverSettings,
    clock: Clock,
    places: Vec<Place>,
    /// Of the sessions that are over.
    past: ReceiverStatus,
    next_connection: u32,
    status: watch::Sender<(ReceiverStatus, u64)>,
    notices: mpsc::Sender<ReceiverEvent>,
    /// Senders are told that their streams have ended.
    farewells: JoinSet<()>,
    _tasks: JoinSet<()>,
}

impl Driver {
    async fn run(mut self, mut events: mpsc::Receiver<Event>) {
        let mut status = tokio::time::interval(Duration::from_millis(200));
        status.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if self.work() && !self.settings.keep && self.places.iter().all(|place| place.session.is_none()) {
                break;
            }
            let sessions = self.places.iter().filter_map(|place| place.session.as_ref());
            let deadline =
                sessions.map(|session| session.core.deadline()).min().unwrap_or(anabranch_units::Time::NEVER);
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => self.event(event).await,
                    None => break,
                },
                _ = status.tick() => self.tell_status(),
                () = self.clock.sleep_until(deadline) => {}
            }
        }
        // Each of them waits for a bounded time.
        while self.farewells.join_next().await.is_some() {}
        leave(&self.endpoint, code::DONE, b"the receiver has ended").await;
    }

    /// Does what is due, and takes leave of senders whose streams have ended. Answers whether there is one.
    fn work(&mut self) -> bool {
        let now = self.clock.now();
        let worked: Vec<bool> = self.places.iter_mut().map(|place| place.work(now)).collect();
        if !worked.contains(&true) {
            return false;
        }
        self.tell_status();
        while self.farewells.try_join_next().is_some() {}
        for (number, _) in worked.into_iter().enumerate().filter(|(_, has_ended)| *has_ended) {
            if let Some(session) = self.places[number].session.take() {
                self.past = self.past.with(ReceiverStatus { waiting: 0, ..session.core.status() });
                self.farewells.spawn(tell_done(session));
            }
            self.notice(ReceiverEvent::Ended(number));
        }
        true
    }

    /// The session of a connection.
    fn session(&mut self, id: ConnectionId) -> Option<&mut LiveSession> {
        let mut sessions = self.places.iter_mut().filter_map(|place| place.session.as_mut());
        sessions.find(|session| session.connections.contains_key(&id))
    }

    async fn event(&mut self, event: Event) {
        match event {
            Event::Hello(hello) => self.hello(*hello).await,
            Event::Datagram(id, datagram) => {
                let now = self.clock.now();
                if let Some(session) = self.session(id)
                    && let Err(error) = session.core.receive(id, &datagram, now)
                {
                    tracing::debug!(%error, "a datagram of the sender was ignored");
                }
            }
            Event::End(id, next) => {
                let now = self.clock.now();
                if let Some(session) = self.session(id) {
                    session.core.end(next, now);
                }
            }
            Event::Down { id, reason, has_left } => {
                let now = self.clock.now();
                let Some(session) = self.session(id) else { return };
                session.core.connection_down(id);
                session.has_left |= has_left;
                if let Some((connection, _)) = session.connections.remove(&id) {
                    if session.connections.is_empty() {
                        session.gone = Some(now);
                    }
                    self.notice(ReceiverEvent::Lost(connection.remote_address(), reason));
                }
            }
        }
    }

    /// A sender that may come in: a new one, or one that is here with another connection.
    async fn hello(&mut self, mut hello: Hello) {
        let now = self.clock.now();
        let from = hello.connection.remote_address();
        let is_mine = |place: &Place| place.session.as_ref().is_some_and(|it| it.name == hello.session);
        let mine = self.places.iter().position(is_mine);
        let Some(number) = mine.or_else(|| self.places.iter().position(|place| place.is_free(now))) else {
            let why = if self.places.len() == 1 {
                "another sender is here"
            } else {
                "as many senders are here as may be (--senders of the receiver)"
            };
            hello.connection.close(code::BUSY, why.as_bytes());
            self.notice(ReceiverEvent::Refused(from, why));
            return;
        };
        if mine.is_none() {
            let latency = hello.latency.max(self.settings.latency).clamp(LEAST_LATENCY, MOST_LATENCY);
            let before = self.places[number].session.replace(LiveSession {
                name: hello.session,
                core: anabranch_live::Receiver::new(latency, hello.next)
                    .with_published_control(hello.is_published),
                connections: BTreeMap::new(),
                gone: None,
                has_left: false,
                latency,
                tasks: JoinSet::new(),
            });
            if let Some(before) = before {
                self.past = self.past.with(ReceiverStatus { waiting: 0, ..before.core.status() });
            }
            self.notice(ReceiverEvent::Sender { from, latency, place: number });
        }
        let Some(session) = &mut self.places[number].session else { return };
        let id = ConnectionId(self.next_connection);
        self.next_connection = self.next_connection.wrapping_add(1);
        let welcome = Message::Welcome { latency: session.latency };
        // It is the first that is written: it does not wait.
        let is_welcome = timeout(Duration::from_secs(1), write(&mut hello.control, &welcome)).await;
        if !matches!(is_welcome, Ok(Ok(()))) || !session.core.connection_up(id) {
            hello.connection.close(code::BUSY, b"too many connections");
            return;
        }
        session.gone = None;
        while session.tasks.try_join_next().is_some() {}
        session.tasks.spawn(listen(id, hello.connection.clone(), hello.messages, hello.incoming));
        session.connections.insert(id, (hello.connection, hello.control));
    }

    fn tell_status(&mut self) {
        let sessions = self.places.iter().filter_map(|place| place.session.as_ref());
        let all = sessions.map(|session| session.core.status()).fold(self.past, ReceiverStatus::with);
        let untaken = self.places.iter().map(|place| place.untaken).sum();
        self.status.send_replace((all, untaken));
    }

    fn notice(&self, event: ReceiverEvent) {
        // A listener that does not listen misses it.
        let _ = self.notices.try_send(event);
    }
}

/// The stream has ended: its sender may go.
async fn tell_done(mut session: LiveSession) {
    for (connection, control) in session.connections.values_mut() {
        let _ = timeout(Duration::from_secs(1), write(control, &Message::Done)).await;
        // The sender closes, so that it has heard it.
        let _ = timeout(Duration::from_secs(2), connection.closed()).await;
    }
}
