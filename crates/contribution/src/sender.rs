//! A sender, and the task that drives its connections.

mod ahead;
mod connecting;
mod events;
mod group;
mod handshake;
mod settings;
#[cfg(test)]
mod tests;
mod uplink;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anabranch_live::{ConnectionId, SenderStatus, UplinkId};
use anabranch_protocol::live::hello::Message;
use anabranch_protocol::live::wire::MAX_PAYLOAD;
use quinn::{Connection, SendDatagramError, SendStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use super::control::write;
use super::{AROUND, AT_ONCE, Clock, LEAST_WHOLE, code, leave};

use connecting::connect_again;
use group::Group;
use handshake::{Event, Shared};
use uplink::Uplink;

pub use events::{SendError, SenderEvent};
pub use group::{GroupName, GroupNameError, GroupSettings};
pub use settings::SenderSettings;

/// Events of connections that wait for the driver.
const EVENTS: usize = 1024;
/// Another sender that is there may be this one, killed and started again: its receiver finds that out in this time.
const BUSY: anabranch_units::Duration = anabranch_units::Duration::from_secs(3);
/// How long a first connection is tried for.
const FIRST_CONNECT: anabranch_units::Duration = anabranch_units::Duration::from_secs(10);
/// A link from which nothing is heard for so long gets a new socket.
const SILENCE: anabranch_units::Duration = anabranch_units::Duration::from_millis(600);
/// How it is doing is told so often: an encoder that follows has to hear soon. The others of a group are told
/// every second time.
const STATUS: Duration = Duration::from_millis(50);
/// How long the end waits for the receiver to say that it is done, besides its latency budget.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// A sender that runs.
#[derive(Debug)]
pub struct Sender {
    input: Option<mpsc::Sender<Arc<[u8]>>>,
    /// How it is doing.
    pub status: watch::Receiver<SenderStatus>,
    /// Whether a receiver has let it in.
    pub ready: watch::Receiver<bool>,
    /// What happens.
    pub events: mpsc::Receiver<SenderEvent>,
    /// Most bytes in a payload at the moment.
    pub payload: watch::Receiver<usize>,
    /// The task that sends; it ends after the input was closed, or says why it cannot go on.
    pub ended: JoinSet<Result<(), SendError>>,
    links: Arc<[Uplink]>,
}

impl Sender {
    /// Begins to connect, within a tokio runtime.
    ///
    /// # Errors
    /// No socket on any link, no usable TLS, or no place for the group's sockets.
    pub fn start(settings: SenderSettings) -> Result<Self, SendError> {
        let each = settings.interfaces.iter().cloned().map(Some);
        let links: Arc<[Uplink]> = match settings.interfaces.is_empty() {
            true => [Uplink::new(settings.to, None)].into(),
            false => each.map(|interface| Uplink::new(settings.to, interface)).collect(),
        };
        // One of several may come later.
        if !links.iter().any(|link| link.check().is_ok()) {
            links.iter().try_for_each(Uplink::check)?;
        }
        let group = settings.group.as_ref().map(|group| Group::join(group, &links)).transpose()?;
        let (input, payloads) = mpsc::channel(EVENTS);
        let (status_sender, status) = watch::channel(SenderStatus::default());
        let (ready_sender, ready) = watch::channel(false);
        let (notices, events) = mpsc::channel(64);
        let (payload_sender, payload) = watch::channel(MAX_PAYLOAD);
        let (to_driver, from_connections) = mpsc::channel(EVENTS);
        let shared = Arc::new(Shared::new(links.clone(), settings, to_driver)?);
        let clock = Clock::start();
        let driver = Driver {
            core: match &shared.settings.group {
                Some(group) => anabranch_live::Sender::new(shared.settings.live).with_weight(group.weight),
                None => anabranch_live::Sender::new(shared.settings.live),
            },
            group,
            is_to_tell: false,
            clock,
            began: clock.now(),
            connections: BTreeMap::new(),
            shared,
            status: status_sender,
            ready: ready_sender,
            payload: payload_sender,
            notices,
            slots: BTreeMap::new(),
            told: BTreeMap::new(),
            silent: BTreeMap::new(),
            was_up: false,
            forgotten_before: 0,
        };
        let mut running = JoinSet::new();
        running.spawn(driver.run(payloads, from_connections));
        Ok(Self { input: Some(input), status, ready, events, payload, ended: running, links })
    }

    /// Ends at once. The receiver is told, so that another sender need not wait until this one's silence is
    /// noticed.
    pub async fn close(mut self) {
        // First of all: a connection that nobody holds is closed without a word.
        for endpoint in self.links.iter().filter_map(Uplink::current) {
            leave(&endpoint, code::LEFT, b"the sender was ended").await;
        }
        self.ended.shutdown().await;
    }

    /// Where payloads of the stream go in; when all of these are dropped the stream ends. Only the first time
    /// it is the sender's.
    pub fn take_input(&mut self) -> mpsc::Sender<Arc<[u8]>> {
        self.input.take().unwrap_or_else(|| mpsc::channel(1).0)
    }
}

/// A place for a connection; its task keeps one there.
struct Slot {
    task: AbortHandle,
    connection: Arc<AtomicU32>,
    /// Since nothing is heard on it: the time from one packet to the next when that began.
    silent: watch::Sender<Option<Duration>>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A connection that is there.
struct Up {
    link: UplinkId,
    connection: Connection,
    control: SendStream,
    /// The receiver has let it in.
    is_welcome: bool,
}

struct Driver {
    core: anabranch_live::Sender,
    group: Option<Group>,
    /// Whether the others of the group are told at the next status.
    is_to_tell: bool,
    clock: Clock,
    /// When it began.
    began: anabranch_units::Time,
    connections: BTreeMap<ConnectionId, Up>,
    shared: Arc<Shared>,
    status: watch::Sender<SenderStatus>,
    ready: watch::Sender<bool>,
    payload: watch::Sender<usize>,
    notices: mpsc::Sender<SenderEvent>,
    slots: BTreeMap<UplinkId, Vec<Slot>>,
    /// What was told of links without a connection.
    told: BTreeMap<UplinkId, String>,
    /// Links from which nothing is heard, and since when they have the socket of now.
    silent: BTreeMap<UplinkId, anabranch_units::Time>,
    /// Whether there was a connection.
    was_up: bool,
    /// Connections with lower numbers are older than the receiver, as one of them has told.
    forgotten_before: u32,
}

impl Driver {
    async fn run(
        mut self,
        mut payloads: mpsc::Receiver<Arc<[u8]>>,
        mut events: mpsc::Receiver<Event>,
    ) -> Result<(), SendError> {
        let mut status = tokio::time::interval(STATUS);
        status.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        self.fit();
        let mut is_open = true;
        let mut told_end: Option<anabranch_units::Time> = None;
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
                    Some(payload) => {
                        let now = self.clock.now();
                        self.core.push(&payload, now);
                        // What came with it leaves with it.
                        for _ in 1..AT_ONCE {
                            let Ok(payload) = payloads.try_recv() else { break };
                            self.core.push(&payload, now);
                        }
                    }
                    None => {
                        is_open = false;
                        self.core.finish();
                    }
                },
                _ = status.tick() => {
                    self.tell_group();
                    self.tell_status();
                }
                (member, standings) = group::hear(self.group.as_ref()) => {
                    let now = self.clock.now();
                    for (link, standing) in standings {
                        self.core.hear(link, member, standing, now);
                    }
                }
                () = self.clock.sleep_until(deadline) => {}
            }
            if !is_open && told_end.is_none() && self.core.is_drained() {
                told_end = Some(self.clock.now());
                self.tell_end().await;
            }
            let patience = self.core.latency() + anabranch_units::Duration::from(LAST_WORDS);
            if told_end.is_some_and(|told| self.clock.now().since(told) > patience) {
                break;
            }
        }
        self.tell_status();
        for Up { connection, .. } in self.connections.values() {
            connection.close(code::DONE, b"the stream has ended");
        }
        for endpoint in self.shared.links.iter().filter_map(Uplink::current) {
            let _ = timeout(Duration::from_secs(1), endpoint.wait_idle()).await;
        }
        Ok(())
    }

    /// Opens and closes connections, as many as the scheme wants.
    fn adjust(&mut self) {
        for link in (0..).zip(self.shared.links.iter()).map(|(number, _)| UplinkId(number)) {
            let slots = self.slots.entry(link).or_default();
            let wanted = self.core.wanted_connections(link).max(1);
            while slots.len() < wanted {
                let connection = Arc::new(AtomicU32::new(u32::MAX));
                let (silent, is_silent) = watch::channel(None);
                let task = connect_again(self.shared.clone(), link, connection.clone(), is_silent);
                slots.push(Slot { task: tokio::spawn(task).abort_handle(), connection, silent });
            }
            while slots.len() > wanted {
                let Some(slot) = slots.pop() else { break };
                let id = ConnectionId(slot.connection.load(Ordering::Relaxed));
                self.core.connection_down(id, self.clock.now());
                if let Some(Up { connection, .. }) = self.connections.remove(&id) {
                    connection.close(code::DONE, b"one connection less");
                }
            }
        }
    }

    fn send_all(&mut self) {
        let now = self.clock.now();
        while let Some((id, datagram)) = self.core.transmit(now) {
            let Some(Up { connection, .. }) = self.connections.get(&id) else { continue };
            match connection.send_datagram(datagram.into()) {
                Ok(()) => {}
                // It counts as lost, and what comes after it is shorter.
                Err(SendDatagramError::TooLarge) => self.measure(id),
                Err(error) => tracing::debug!(%error, "a datagram was not sent"),
            }
        }
        self.shared.first_media.store(self.core.first_media(), Ordering::Relaxed);
        for Slot { connection, silent, .. } in self.slots.values().flatten() {
            let is = self.core.silent(ConnectionId(connection.load(Ordering::Relaxed)));
            silent.send_if_modified(|was| {
                let is_other = was.is_some() != is.is_some();
                if is_other {
                    *was = is.map(Duration::from);
                }
                is_other
            });
        }
    }

    fn event(&mut self, event: Event) -> Result<(), SendError> {
        match event {
            Event::Up { id, link, connection, control } => {
                if self.core.connection_up(id, link, connection.rtt().into()) {
                    self.connections.insert(id, Up { link, connection, control, is_welcome: false });
                }
                self.measure(id);
            }
            Event::Welcome(id, latency) => {
                self.core.set_latency(latency);
                let Some(up) = self.connections.get_mut(&id) else { return Ok(()) };
                let link = up.link;
                up.is_welcome = true;
                self.was_up = true;
                self.ready.send_replace(true);
                self.tell_status();
                if self.on(link).count() == 1 {
                    self.told.remove(&link);
                    self.notice(SenderEvent::Connected { link: self.name(link) });
                }
            }
            Event::Datagram(id, datagram) => {
                if let Err(error) = self.core.receive(id, &datagram, self.clock.now()) {
                    tracing::debug!(%error, "a datagram of the receiver was ignored");
                }
                self.measure(id);
            }
            Event::Down { id, why, is_forgotten, is_known } => {
                let now = self.clock.now();
                self.core.connection_down(id, now);
                if is_forgotten && id.0 >= self.forgotten_before && !self.core.is_drained() {
                    self.forgotten_before = self.shared.next_connection.load(Ordering::Relaxed);
                    self.core.receiver_is_new(now);
                    self.shared.first_media.store(self.core.first_media(), Ordering::Relaxed);
                }
                // Nobody waits for it where the sender ends.
                let _ = is_known.send(());
                if let Some(Up { link, .. }) = self.connections.remove(&id)
                    && let Some(why) = why
                    && self.on(link).count() == 0
                {
                    self.notice(SenderEvent::Lost { link: self.name(link), why });
                }
                self.tell_status();
            }
            // Nobody has told the receiver of an end.
            Event::Done => {}
            Event::Failed(link, error) => {
                if self.connections.is_empty() && self.is_final(&error) {
                    return Err(error);
                }
                self.tell_waiting(link, error);
            }
        }
        Ok(())
    }

    /// Whether there is no use in going on. Who cannot show the receiver's certificate cannot end a stream
    /// that has begun.
    fn is_final(&self, error: &SendError) -> bool {
        match error {
            SendError::Refused(_) => true,
            SendError::NotTrusted(..) => !self.was_up,
            SendError::Busy(_) => !self.was_up && self.clock.now().since(self.began) >= BUSY,
            _ => !self.was_up && self.clock.now().since(self.began) >= FIRST_CONNECT,
        }
    }

    /// A link has no connection: the same is told once.
    fn tell_waiting(&mut self, link: UplinkId, why: SendError) {
        let is_first = !self.was_up && matches!(why, SendError::NoReceiver(_));
        if self.on(link).count() == 0 && !is_first {
            let text = why.to_string();
            if self.told.insert(link, text.clone()) != Some(text) {
                self.notice(SenderEvent::Waits { link: self.name(link), why });
            }
        }
    }

    /// The connections of a link that the receiver has let in.
    fn on(&self, link: UplinkId) -> impl Iterator<Item = &Up> {
        self.connections.values().filter(move |up| up.link == link && up.is_welcome)
    }

    fn name(&self, link: UplinkId) -> Option<String> {
        usize::try_from(link.0).ok().and_then(|link| self.shared.links.get(link)?.name())
    }

    fn notice(&self, event: SenderEvent) {
        // A listener that does not listen misses it.
        let _ = self.notices.try_send(event);
    }

    /// How long datagrams on this connection may be at the moment.
    fn measure(&mut self, id: ConnectionId) {
        let longest = self.connections.get(&id).and_then(|up| up.connection.max_datagram_size());
        if let Some(longest) = longest {
            self.core.set_datagram_size(id, longest);
            self.tell_payload();
        }
    }

    /// What was cut for a path that carried more goes in fragments once the system knows that this one does
    /// not; what comes is cut to fit. Without it all that is lost meanwhile would be too late: quinn looks at
    /// no ICMP, and takes several round trips to find out (RFC 8899).
    fn fit(&mut self) {
        // A path may have shown that it carries more (RFC 8899) without a word of the receiver.
        for (id, up) in &self.connections {
            if let Some(longest) = up.connection.max_datagram_size() {
                self.core.set_datagram_size(*id, longest);
            }
        }
        // What waits for the first connection is not cut anew for it.
        let mut least = (!self.was_up).then_some(usize::from(LEAST_WHOLE) - AROUND);
        for (number, link) in (0..).zip(self.shared.links.iter()) {
            let mine = self.connections.values().filter(|up| up.link == UplinkId(number));
            let Some(longest) = mine.filter_map(|up| up.connection.max_datagram_size()).max() else {
                continue;
            };
            // Shorter ones than QUIC's no path may ask for.
            let whole = link.whole().map(|bytes| bytes.max(LEAST_WHOLE.into()).saturating_sub(AROUND));
            let whole = whole.filter(|whole| *whole < longest);
            link.allow_fragments(whole.is_some());
            least = least.into_iter().chain(whole).min();
        }
        self.core.set_whole(least);
        self.tell_payload();
    }

    fn tell_payload(&self) {
        let payload = self.core.payload();
        self.payload.send_if_modified(|told| std::mem::replace(told, payload) != payload);
    }

    /// A link from which nothing is heard may have another address now, or be another one of the same name.
    fn renew(&mut self, status: &SenderStatus) {
        let now = self.clock.now();
        for (number, link) in (0..).zip(self.shared.links.clone().iter()) {
            let id = UplinkId(number);
            let mut mine = status.connections.iter().filter(|connection| connection.link == id).peekable();
            if mine.peek().is_none() || mine.any(|connection| !connection.is_silent) {
                self.silent.remove(&id);
                continue;
            }
            let since = *self.silent.entry(id).or_insert(now);
            if now.since(since) >= SILENCE {
                self.silent.insert(id, now);
                match link.renew() {
                    Ok(()) => drop(self.told.remove(&id)),
                    Err(why) => {
                        let text = why.to_string();
                        if self.told.insert(id, text.clone()) != Some(text) {
                            self.notice(SenderEvent::Waits { link: link.name(), why });
                        }
                    }
                }
            }
        }
    }

    /// Tells the others of the group how it stands, as often as they have to know.
    fn tell_group(&mut self) {
        self.is_to_tell = !self.is_to_tell;
        if let Some(group) = self.group.as_mut().filter(|_| self.is_to_tell) {
            group.tell(&self.core.standings(self.clock.now()));
        }
    }

    async fn tell_end(&mut self) {
        let end = Message::End { next: self.core.next_media() };
        for Up { control, .. } in self.connections.values_mut() {
            // A connection that is gone is told of by its own task.
            let _ = timeout(Duration::from_secs(1), write(control, &end)).await;
        }
    }

    fn tell_status(&mut self) {
        let status = self.core.status();
        self.renew(&status);
        self.fit();
        self.status.send_replace(status);
    }
}
