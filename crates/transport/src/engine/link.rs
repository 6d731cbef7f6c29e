//! One connection of a stream: a task that sends the session's requests and hands it what arrives.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::BytesMut;
use stream::content::RequestId;
use stream::control::{ConnectionId, PathId};
use stream::session::Refusal;
use stream::stripe::frame::Frame;
use tokio::sync::mpsc;

use super::pacer::{LARGEST_READ, Pacer};
use super::shared::Shared;
use super::stripe;
use crate::http::{Connection, Error, Method, RangeError, Received, RequestHead, ResponseHead};

/// A request that waits for its answer.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) request: RequestId,
    pub(super) range: Range<u64>,
}

/// What a connection's task is told to do.
pub(super) enum Command {
    /// Ask for a range.
    Ask(Asked),
    /// Send a frame to the stripe group.
    Order(Frame<'static>),
    /// Leave the stripe group in good order.
    Leave,
}

/// How a connection's life ended.
pub(super) enum End {
    /// In good order, by the server.
    Closed,
    /// By an error of the connection.
    Failed(String),
    /// The server refused.
    Refused(Refusal),
    /// The path leads to something else.
    Lost(String),
    /// The place where the film goes cannot be written.
    Storage(String),
}

/// Runs a connection until it ends; tells the session about everything.
pub(super) async fn run(
    shared: Arc<Shared>,
    id: ConnectionId,
    path: PathId,
    first: Option<Connection>,
    commands: mpsc::UnboundedReceiver<Command>,
    own_pacer: Arc<Pacer>,
) {
    let is_probed = first.is_some();
    let connection = match first {
        Some(connection) => Ok(connection),
        None => {
            let (target, _, _) = shared.replica(path);
            let options = shared.settings.connect_options(shared.interface(path));
            Connection::connect(target.origin(), &options)
                .await
                .map_err(|error| End::Failed(error.to_string()))
        }
    };
    let joined = match connection {
        Ok(connection) => stripe::join(&shared, id, path, connection, is_probed).await,
        Err(end) => Err(end),
    };
    let end = match joined {
        Err(end) => end,
        Ok(Ok(member)) => member.serve(&shared, commands, &own_pacer).await,
        Ok(Err(connection)) => {
            shared.connected(id, &connection);
            let queue = VecDeque::new();
            Link { shared: &shared, id, path, connection, queue, left: 0, reads: 0, own_pacer }
                .serve(commands)
                .await
        }
    };
    shared.log_end(
        id,
        path,
        match &end {
            End::Failed(error) | End::Lost(error) | End::Storage(error) => Some(error.as_str()),
            End::Refused(Refusal::TooMany(_)) => Some("the server asks for fewer requests"),
            End::Refused(Refusal::Trouble(error) | Refusal::Gone(error)) => Some(error.as_str()),
            End::Closed => None,
        },
    );
    match end {
        End::Closed => shared.tell(|session, now| session.closed(id, None, now)),
        End::Failed(error) => shared.tell(|session, now| session.closed(id, Some(&error), now)),
        End::Refused(refusal) => shared.tell(|session, now| session.refused(id, &refusal, now)),
        End::Lost(error) => shared.path_lost(id, path, &error),
        End::Storage(error) => shared.fail(&error),
    }
}

struct Link<'a> {
    shared: &'a Arc<Shared>,
    id: ConnectionId,
    path: PathId,
    connection: Connection,
    /// What has to be answered; those beyond what is in flight on the connection were not sent yet.
    queue: VecDeque<Asked>,
    /// Bytes of the present answer that belong to its request and have not come.
    left: u64,
    /// Reads so far, up to [`EARLY_READS`].
    reads: u32,
    own_pacer: Arc<Pacer>,
}

/// The kernel overwrites a window when the first data comes: during the first reads it is set again at once.
pub(super) const EARLY_READS: u32 = 32;

impl Link<'_> {
    async fn serve(mut self, mut commands: mpsc::UnboundedReceiver<Command>) -> End {
        let mut buffer = BytesMut::with_capacity(LARGEST_READ.as_usize());
        // A server without ranges began its answer when it was probed.
        let mut answering = self.connection.in_flight() > 0;
        let mut adopted = answering;
        loop {
            tokio::select! {
                biased;
                command = commands.recv() => {
                    let Some(Command::Ask(asked)) = command else { return End::Closed };
                    if std::mem::take(&mut adopted) {
                        self.left = asked.range.end - asked.range.start;
                    }
                    self.queue.push_back(asked);
                    if let Err(error) = self.send_waiting() {
                        return End::Failed(error.to_string());
                    }
                }
                received = receive(self.shared, &self.own_pacer, &mut self.connection, &mut buffer),
                    if !adopted =>
                {
                    let received = match received {
                        Ok(received) => received,
                        Err(error) => return End::Failed(error.to_string()),
                    };
                    match received {
                        Received::Head(head) => {
                            if let Err(end) = self.head(&head) {
                                return end;
                            }
                            answering = true;
                            if let Err(error) = self.send_waiting() {
                                return End::Failed(error.to_string());
                            }
                        }
                        Received::Data(count) => {
                            self.shared.pacer.spend(count);
                            self.own_pacer.spend(count);
                            if let Err(end) = self.data(&mut buffer) {
                                return end;
                            }
                        }
                        Received::End { keep_alive } => {
                            answering = false;
                            if let Err(end) = self.ended() {
                                return end;
                            }
                            if !keep_alive {
                                return End::Closed;
                            }
                        }
                        Received::Closed if answering => {
                            return End::Failed("the server closed the connection".into());
                        }
                        Received::Closed => return End::Closed,
                    }
                }
            }
        }
    }

    /// Sends what was not sent yet, as far as the connection takes it now.
    fn send_waiting(&mut self) -> Result<(), Error> {
        let (target, headers, validator) = self.shared.replica(self.path);
        while self.connection.may_send()
            && let Some(asked) = self.queue.get(self.connection.in_flight())
        {
            let mut request = RequestHead::new(Method::Get, target, headers);
            if self.shared.ranges {
                request = request.range(asked.range.start, Some(asked.range.end - 1));
                if let Some(validator) = validator {
                    request = request.if_range(validator);
                }
            }
            self.connection.send(&request)?;
        }
        Ok(())
    }

    /// Checks that the answer is what was asked for.
    fn head(&mut self, head: &ResponseHead) -> Result<(), End> {
        let Some(asked) = self.queue.front() else {
            return Err(End::Failed("the server answers without being asked".into()));
        };
        let status = head.status;
        match status {
            429 | 503 => return Err(End::Refused(Refusal::TooMany(head.retry_after))),
            // On one of several connections it means: not so many.
            403 if self.shared.has_others(self.path, self.id) => {
                return Err(End::Refused(Refusal::TooMany(head.retry_after)));
            }
            401 | 403 | 404 | 410 | 412 | 416 => {
                return Err(End::Refused(Refusal::Gone(format!("the server answers with status {status}"))));
            }
            200 | 206 => {}
            _ => {
                return Err(End::Refused(Refusal::Trouble(format!(
                    "the server answers with status {status}"
                ))));
            }
        }
        let (_, _, validator) = self.shared.replica(self.path);
        if !self.shared.ranges {
            let size_differs =
                self.shared.size.is_some_and(|size| head.content_length.is_some_and(|now| now != size));
            if status != 200
                || size_differs
                || (validator.is_some() && head.strong_validator().as_ref() != validator)
            {
                return Err(End::Lost("the film changed on the server".into()));
            }
            self.left = asked.range.end - asked.range.start;
            return Ok(());
        }
        let range =
            head.check_range(asked.range.start, Some(asked.range.end - 1)).map_err(|error| match error {
                RangeError::Ignored => {
                    End::Lost("the film changed on the server, or the server stopped knowing ranges".into())
                }
                error => End::Lost(format!("the server cannot be trusted: {error}")),
            })?;
        if range.total.is_some() && range.total != self.shared.size {
            return Err(End::Lost("the film changed its size on the server".into()));
        }
        let tag = head.etag.as_ref().filter(|tag| !tag.weak).map(ToString::to_string);
        if let (Some(tag), Some(validator)) = (tag, validator)
            && validator.as_bytes().starts_with(b"\"")
            && validator.as_bytes() != tag.as_bytes()
        {
            return Err(End::Lost("the film changed on the server".into()));
        }
        self.left = range.length();
        Ok(())
    }

    fn data(&mut self, buffer: &mut BytesMut) -> Result<(), End> {
        let count = units::Bytes::of(buffer.len()).get();
        if count > self.left {
            return Err(End::Failed("the server sends more than it was asked for".into()));
        }
        self.left -= count;
        if self.reads < EARLY_READS {
            self.reads += 1;
            // Where it cannot be set there is nothing to keep.
            let _ = self.connection.control().keep_window();
        }
        self.shared.arrived(self.id, buffer).map_err(End::Storage)
    }

    /// An answer is complete, perhaps with fewer bytes than were asked for, but with those that it promised.
    fn ended(&mut self) -> Result<(), End> {
        let Some(asked) = self.queue.pop_front() else { return Ok(()) };
        if !self.shared.ranges {
            return self.shared.whole_ended(self.id).map_err(End::Lost);
        }
        if self.left > 0 {
            return Err(End::Failed("the server sends less than it says".into()));
        }
        self.shared.answer_ended(self.id, asked.request);
        Ok(())
    }
}

/// Waits until reading is allowed, then for something to read.
async fn receive(
    shared: &Shared,
    own: &Pacer,
    connection: &mut Connection,
    buffer: &mut BytesMut,
) -> Result<Received, Error> {
    if !shared.ranges {
        shared.wanted().await;
    }
    let room = shared.pacer.ready().await.min(own.ready().await).as_usize();
    if room < LARGEST_READ.as_usize() {
        // A buffer of just this size: what is read at once is what may be read.
        *buffer = BytesMut::with_capacity(room);
    } else if buffer.capacity() < LARGEST_READ.as_usize() / 4 {
        *buffer = BytesMut::with_capacity(LARGEST_READ.as_usize());
    }
    connection.receive(buffer).await
}
