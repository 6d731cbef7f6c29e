//! The task that drives all sessions of a receiver.

use std::collections::BTreeMap;
use std::time::Duration;

use anabranch_live::{ConnectionId, LEAST_LATENCY, MOST_LATENCY, ReceiverStatus};
use anabranch_protocol::live::hello::Message;
use quinn::Endpoint;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::greeting::{Event, Hello, listen};
use super::place::{LiveSession, Place};
use super::settings::{ReceiverEvent, ReceiverSettings};
use crate::control::write;
use crate::{AT_ONCE, Clock, code, leave};

/// What is due waits so long for others that are due soon, or for a datagram that wakes this task anyway.
const SLACK: anabranch_units::Duration = anabranch_units::Duration::from_millis(2);

/// The task that drives them all.
pub(super) struct Driver {
    pub(super) endpoint: Endpoint,
    pub(super) settings: ReceiverSettings,
    pub(super) clock: Clock,
    pub(super) places: Vec<Place>,
    /// Of the sessions that are over.
    pub(super) past: ReceiverStatus,
    pub(super) next_connection: u32,
    pub(super) status: watch::Sender<(ReceiverStatus, u64)>,
    pub(super) notices: mpsc::Sender<ReceiverEvent>,
    /// Senders are told that their streams have ended.
    pub(super) farewells: JoinSet<()>,
    pub(super) _tasks: JoinSet<()>,
}

impl Driver {
    pub(super) async fn run(mut self, mut events: mpsc::Receiver<Event>) {
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
                    Some(event) => {
                        self.event(event).await;
                        // What has come with it is reported with it.
                        for _ in 1..AT_ONCE {
                            let Ok(event) = events.try_recv() else { break };
                            self.event(event).await;
                        }
                    }
                    None => break,
                },
                _ = status.tick() => self.tell_status(),
                () = self.clock.sleep_until(deadline + SLACK) => {}
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
                let Some(session) = self.session(id) else { return };
                session.heard = now;
                if let Err(error) = session.core.receive(id, &datagram, now) {
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
        let place = |may: &dyn Fn(&Place) -> bool| self.places.iter().position(may);
        let left = || place(&|place| place.is_left_to(from.ip(), now));
        let Some(number) = mine.or_else(|| place(&|place| place.is_free(now))).or_else(left) else {
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
                from: from.ip(),
                heard: now,
                gone: None,
                has_left: false,
                latency,
                tasks: JoinSet::new(),
            });
            if let Some(before) = before {
                self.past = self.past.with(ReceiverStatus { waiting: 0, ..before.core.status() });
                for (connection, _) in before.connections.into_values() {
                    connection.close(code::BUSY, b"another sender is here");
                }
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
        (session.from, session.heard) = (from.ip(), now);
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
