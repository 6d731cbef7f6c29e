//! A sender, and the task that drives its connections.

mod connecting;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use quinn::{ClientConfig, Connection, Endpoint, SendDatagramError, SendStream};
use rand::RngExt;
use stream::live::hello::Message;
use stream::live::wire::{MAX_DATAGRAM, MAX_PAYLOAD};
use stream::live::{self, ConnectionId, LinkId, SenderStatus};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use super::control::write;
use super::{Clock, Size, Trusted, code, leave, transport};
use crate::http::Interface;

use connecting::{Event, Shared, connect_again, endpoint};

/// Events of connections that wait for the driver.
const EVENTS: usize = 1024;
/// How long the end waits for the receiver to say that it is done, besides its latency budget.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// What a sender needs.
#[derive(Clone, Debug)]
pub struct SenderSettings {
    /// The receiver.
    pub to: SocketAddr,
    /// Its name, which its certificate has to have.
    pub name: String,
    /// Whom to trust.
    pub trusted: Trusted,
    /// What the receiver lets in.
    pub token: Vec<u8>,
    /// Decisions.
    pub live: live::Settings,
    /// A link for each of these; none: the one that the system chooses.
    pub interfaces: Vec<Interface>,
}

/// Why a sender ends.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// There is no socket for it.
    #[error("cannot open a UDP socket: {0}")]
    Socket(String),
    /// A network interface cannot be used.
    #[error("{0}")]
    Interface(String),
    /// The TLS configuration cannot be made.
    #[error("{0}")]
    Tls(String),
    /// No connection was made for long.
    #[error("no receiver answers at {0}: is 'anabranch receive' running there, and does UDP get through?")]
    NoReceiver(SocketAddr),
    /// It does not let us in.
    #[error("the receiver refuses: {0}")]
    Refused(String),
    /// It is not the one that was asked for.
    #[error("the receiver is not trusted: {0}; give its --fingerprint, or its authority with --cacert")]
    NotTrusted(String),
}

/// Something that a person should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SenderEvent {
    /// A connection is there.
    Connected,
    /// A connection was lost, and why.
    Lost(String),
}

/// A sender that runs.
#[derive(Debug)]
pub struct Sender {
    input: Option<mpsc::Sender<Arc<[u8]>>>,
    /// How it is doing.
    pub status: watch::Receiver<SenderStatus>,
    /// Whether media can leave.
    pub ready: watch::Receiver<bool>,
    /// What happens.
    pub events: mpsc::Receiver<SenderEvent>,
    /// Most bytes in a payload at the moment.
    pub payload: watch::Receiver<usize>,
    /// The task that sends; it ends after the input was closed, or says why it cannot go on.
    pub ended: JoinSet<Result<(), SendError>>,
    links: Vec<Endpoint>,
}

impl Sender {
    /// Begins to connect, within a tokio runtime.
    ///
    /// # Errors
    /// No socket, or no usable TLS.
    pub fn start(settings: SenderSettings) -> Result<Self, SendError> {
        let links: Vec<Endpoint> = if settings.interfaces.is_empty() {
            vec![endpoint(settings.to, None)?]
        } else {
            let each = settings.interfaces.iter().map(|interface| endpoint(settings.to, Some(interface)));
            each.collect::<Result<_, _>>()?
        };
        let crypto = settings.trusted.config().map_err(|error| SendError::Tls(error.to_string()))?;
        let config = |size| {
            let mut config = ClientConfig::new(crypto.clone());
            config.transport_config(transport(size));
            config
        };
        let (whole, least) = (config(Size::Whole), config(Size::Least));
        let (input, payloads) = mpsc::channel(EVENTS);
        let (status_sender, status) = watch::channel(SenderStatus::default());
        let (ready_sender, ready) = watch::channel(false);
        let (notices, events) = mpsc::channel(64);
        let (payload_sender, payload) = watch::channel(MAX_PAYLOAD);
        let (to_driver, from_connections) = mpsc::channel(EVENTS);
        let shared = Arc::new(Shared {
            links: links.clone(),
            whole,
            least,
            session: rand::rng().random(),
            next_connection: AtomicU32::new(0),
            next_media: AtomicU64::new(0),
            events: to_driver,
            settings,
        });
        let driver = Driver {
            core: live::Sender::new(shared.settings.live),
            clock: Clock::start(),
            connections: BTreeMap::new(),
            shared,
            status: status_sender,
            ready: ready_sender,
            payload: payload_sender,
            notices,
            slots: BTreeMap::new(),
        };
        let mut running = JoinSet::new();
        running.spawn(driver.run(payloads, from_connections));
        Ok(Self { input: Some(input), status, ready, events, payload, ended: running, links })
    }

    /// Ends at once. The receiver is told, so that another sender need not wait until this one's silence is noticed.
    pub async fn close(mut self) {
        // First of all: a connection that nobody holds is closed without a word.
        for endpoint in &self.links {
            leave(endpoint, code::LEFT, b"the sender was ended").await;
        }
        self.ended.shutdown().await;
    }

    /// Where payloads of the stream go in; when all of these are dropped the stream ends. Only the first time it is the
    /// sender's.
    pub fn take_input(&mut self) -> mpsc::Sender<Arc<[u8]>> {
        self.input.take().unwrap_or_else(|| mpsc::channel(1).0)
    }
}

/// A place for a connection; its task keeps one there.
struct Slot {
    task: AbortHandle,
    connection: Arc<AtomicU32>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Driver {
    core: live::Sender,
    clock: Clock,
    connections: BTreeMap<ConnectionId, (Connection, SendStream)>,
    shared: Arc<Shared>,
    status: watch::Sender<SenderStatus>,
    ready: watch::Sender<bool>,
    payload: watch::Sender<usize>,
    notices: mpsc::Sender<SenderEvent>,
    slots: BTreeMap<LinkId, Vec<Slot>>,
}

impl Driver {
    async fn run(
        mut self,
        mut payloads: mpsc::Receiver<Arc<[u8]>>,
        mut events: mpsc::Receiver<Event>,
    ) -> Result<(), SendError> {
        let mut status = tokio::time::interval(Duration::from_millis(200));
        status.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut is_open = true;
        let mut told_end: Option<units::Time> = None;
        loop {
            self.send_all();
            self.adjust();
            if self.core.is_drained() && told_end.is_some() && self.connections.is_empty() {
                return Ok(());
            }
            let deadline = self.core.deadline(self.clock.now());
            tokio::select! {
                event = events.recv() => {
                    let Some(event) = event else { return Ok(()) };
                    if matches!(event, Event::Done) && told_end.is_some() {
                        break;
                    }
                    self.event(event)?;
                }
                payload = payloads.recv(), if is_open => match payload {
                    Some(payload) => self.core.push(&payload, self.clock.now()),
                    None => {
                        is_open = false;
                        self.core.finish();
                    }
                },
                _ = status.tick() => self.tell_status(),
                () = self.clock.sleep_until(deadline) => {}
            }
            if !is_open && told_end.is_none() && self.core.is_drained() {
                told_end = Some(self.clock.now());
                self.tell_end().await;
            }
            let patience = self.core.latency() + units::Duration::from(LAST_WORDS);
            if told_end.is_some_and(|told| self.clock.now().since(told) > patience) {
                break;
            }
        }
        self.tell_status();
        for (connection, _) in self.connections.values() {
            connection.close(code::DONE, b"the stream has ended");
        }
        for endpoint in &self.shared.links {
            let _ = timeout(Duration::from_secs(1), endpoint.wait_idle()).await;
        }
        Ok(())
    }

    /// Opens and closes connections, as many as the scheme wants.
    fn adjust(&mut self) {
        for link in (0..).zip(&self.shared.links).map(|(number, _)| LinkId(number)) {
            let slots = self.slots.entry(link).or_default();
            let wanted = self.core.wanted_connections(link).max(1);
            while slots.len() < wanted {
                let connection = Arc::new(AtomicU32::new(u32::MAX));
                let task = connect_again(self.shared.clone(), link, connection.clone());
                slots.push(Slot { task: tokio::spawn(task).abort_handle(), connection });
            }
            while slots.len() > wanted {
                let Some(slot) = slots.pop() else { break };
                let id = ConnectionId(slot.connection.load(Ordering::Relaxed));
                self.core.connection_down(id, self.clock.now());
                if let Some((connection, _)) = self.connections.remove(&id) {
                    connection.close(code::DONE, b"one connection less");
                }
            }
        }
    }

    fn send_all(&mut self) {
        let now = self.clock.now();
        while let Some((id, datagram)) = self.core.transmit(now) {
            let Some((connection, _)) = self.connections.get(&id) else { continue };
            match connection.send_datagram(datagram.into()) {
                // What does not fit any more counts as lost, and the payloads after it are shorter.
                Ok(()) | Err(SendDatagramError::TooLarge) => {}
                Err(error) => tracing::debug!(%error, "a datagram was not sent"),
            }
        }
        self.shared.next_media.store(self.core.next_media(), Ordering::Relaxed);
    }

    fn event(&mut self, event: Event) -> Result<(), SendError> {
        match event {
            Event::Up { id, link, connection, control, latency } => {
                self.core.set_latency(latency);
                if self.core.connection_up(id, link, connection.rtt().into()) {
                    self.connections.insert(id, (connection, control));
                }
                self.tell_status();
                let _ = self.notices.try_send(SenderEvent::Connected);
            }
            Event::Datagram(id, datagram) => {
                if let Err(error) = self.core.receive(id, &datagram, self.clock.now()) {
                    tracing::debug!(%error, "a datagram of the receiver was ignored");
                }
                let is_ready = self.core.is_ready();
                self.ready.send_if_modified(|ready| std::mem::replace(ready, is_ready) != is_ready);
            }
            Event::Down(id, reason) => {
                self.core.connection_down(id, self.clock.now());
                self.connections.remove(&id);
                let _ = self.notices.try_send(SenderEvent::Lost(reason));
            }
            // Nobody has told the receiver of an end.
            Event::Done => {}
            // One link of several may be dead from the start.
            Event::Fatal(error) if self.connections.is_empty() => return Err(error),
            Event::Fatal(error) => {
                let _ = self.notices.try_send(SenderEvent::Lost(error.to_string()));
            }
        }
        Ok(())
    }

    async fn tell_end(&mut self) {
        let end = Message::End { next: self.core.next_media() };
        for (_, control) in self.connections.values_mut() {
            // A connection that is gone is told of by its own task.
            let _ = timeout(Duration::from_secs(1), write(control, &end)).await;
        }
    }

    fn tell_status(&mut self) {
        let sizes = self.connections.values().filter_map(|(connection, _)| connection.max_datagram_size());
        let overhead = MAX_DATAGRAM - MAX_PAYLOAD;
        let payload = sizes.min().map_or(MAX_PAYLOAD, |size| size.saturating_sub(overhead).min(MAX_PAYLOAD));
        self.core.set_payload(payload);
        self.payload.send_replace(payload);
        self.status.send_replace(self.core.status());
    }
}
