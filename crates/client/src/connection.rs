//! One connection of a film: a task that sends the requests that it is told and hands its owner what arrives.

use std::collections::VecDeque;
use std::sync::Arc;

use anabranch_film::control::{ConnectionId, PathId};
use anabranch_film::session::Refusal;
use anabranch_http::{
    Connection, Error, Method, RangeError, Received, RequestHead, ResponseHead, Version, status_in_words,
};
use anabranch_units::Bytes;
use bytes::BytesMut;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::allowance::Allowance;
use super::command::{Asked, Command, EARLY_READS, End, Report};
use super::error::Cure;
use super::pacer::LARGEST_READ;
use super::shared::Shared;
use super::unheard::Unheard;
use super::{growth, stripe};

/// What the task of a connection begins with.
pub(super) struct Beginning {
    pub(super) shared: Arc<Shared>,
    pub(super) id: ConnectionId,
    pub(super) path: PathId,
    /// A connection of the probing, where there is one.
    pub(super) first: Option<Connection>,
    /// How many of the film's first bytes are under way on it.
    pub(super) coming: u64,
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
    pub(super) allowance: Arc<Allowance>,
}

/// Starts the task of a connection.
pub(super) fn start(beginning: Beginning) -> AbortHandle {
    tokio::spawn(run(beginning)).abort_handle()
}

/// Runs a connection until it ends; tells the owner about everything.
async fn run(beginning: Beginning) {
    let Beginning { shared, id, path, first, coming, commands, allowance } = beginning;
    let is_probed = first.is_some();
    let connection = match first {
        Some(connection) => Ok(connection),
        None => {
            let options = shared.settings.connect_options(shared.interface(path));
            Connection::connect_within(shared.replica(path).target.origin(), &options)
                .await
                .map_err(|error| End::Failed(error.to_string()))
        }
    };
    let joined = match connection {
        Ok(connection) if coming > 0 => Ok(Err(connection)),
        Ok(connection) => stripe::join(&shared, id, path, connection, is_probed).await,
        Err(end) => Err(end),
    };
    let end = match joined {
        Err(end) => end,
        Ok(Ok(member)) => member.serve(&shared, commands, &allowance).await,
        Ok(Err(connection)) => {
            let (control, rtt) = (connection.control(), connection.handshake_rtt());
            shared.report(Report::Connected { id, control, rtt }).await;
            let first = Asked { request: None, range: 0..coming };
            RangeConnection {
                shared: &shared,
                id,
                path,
                connection,
                queue: VecDeque::from_iter((coming > 0).then_some(first)),
                left: coming,
                position: 0,
                reads: 0,
                has_answered: coming > 0,
                leave: Bytes::ZERO,
                allowance: &allowance,
            }
            .serve(commands)
            .await
        }
    };
    let end = match end {
        End::Grown { to } => growth::look(&shared, id, path, to).await,
        end => end,
    };
    shared.report(Report::Ended { id, path, end }).await;
}

/// A connection by itself, which is asked for ranges; one of a stripe group is a [`stripe::Member`].
struct RangeConnection<'a> {
    shared: &'a Arc<Shared>,
    id: ConnectionId,
    path: PathId,
    connection: Connection,
    /// What has to be answered; those beyond what is in flight on the connection were not sent yet.
    queue: VecDeque<Asked>,
    /// Bytes of the present answer that belong to its request and have not come.
    left: u64,
    /// Where the next of them belongs.
    position: u64,
    /// Reads so far, up to [`EARLY_READS`].
    reads: u32,
    /// Whether the head of an answer has come.
    has_answered: bool,
    /// What is left of what may be read at once, where the end of an answer or the head of one has cut it short.
    leave: Bytes,
    allowance: &'a Allowance,
}

impl RangeConnection<'_> {
    async fn serve(mut self, mut commands: mpsc::UnboundedReceiver<Command>) -> End {
        let mut buffer = BytesMut::with_capacity(LARGEST_READ.as_usize());
        // A server without ranges began its answer when it was probed.
        let mut answering = self.connection.in_flight() > 0;
        let mut adopted = answering && self.queue.is_empty();
        loop {
            tokio::select! {
                biased;
                command = commands.recv() => {
                    let Some(Command::Ask(asked)) = command else { return End::Closed };
                    if std::mem::take(&mut adopted) {
                        (self.position, self.left) = (asked.range.start, asked.range.end - asked.range.start);
                    }
                    self.queue.push_back(asked);
                    if let Err(error) = self.send_waiting() {
                        return End::Failed(error.to_string());
                    }
                }
                received = receive(self.shared, self.allowance, self.leave, &mut self.connection, &mut buffer),
                    if !adopted =>
                {
                    let (received, room, unheard) = match received {
                        Ok(received) => received,
                        Err(_) if self.was_idle() => return End::Closed,
                        Err(error) => return End::Failed(error.to_string()),
                    };
                    match received {
                        Received::Head(head) => {
                            if let Err(end) = self.head(&head) {
                                return end;
                            }
                            (self.has_answered, self.leave) = (true, room);
                            answering = true;
                            if let Err(error) = self.send_waiting() {
                                return End::Failed(error.to_string());
                            }
                        }
                        Received::Data(count) => {
                            self.allowance.spend(self.shared, count);
                            let behind_head =
                                self.queue.front().is_some_and(|asked| asked.range.start == self.position);
                            if let Err(end) = self.data(buffer.split(), unheard.only(count)).await {
                                return end;
                            }
                            let goes_on = behind_head || self.left == 0 && self.queue.len() > 1;
                            self.leave = if goes_on { room - Bytes::of(count) } else { Bytes::ZERO };
                        }
                        Received::End { keep_alive } => {
                            answering = false;
                            if let Err(end) = self.ended().await {
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

    /// Whether its server may have ended it before it was asked for anything here.
    fn was_idle(&self) -> bool {
        self.connection.is_reused() && !self.has_answered
    }

    /// Sends what was not sent yet, as far as the connection takes it now.
    fn send_waiting(&mut self) -> Result<(), Error> {
        let replica = self.shared.replica(self.path);
        while self.connection.may_send()
            && let Some(asked) = self.queue.get(self.connection.in_flight())
        {
            let mut request = RequestHead::new(Method::Get, &replica.target, &replica.jar.headers());
            if self.shared.ranges {
                let start = self.shared.start;
                request = request.range(start + asked.range.start, Some(start + asked.range.end - 1));
                if let Some(validator) = &replica.validator
                    && replica.growth.size().is_none()
                {
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
        let replica = self.shared.replica(self.path);
        replica.jar.take(head);
        let said = || format!("the server answers with {}", status_in_words(head.status));
        let too_many = || End::Refused(Refusal::TooMany { after: head.retry_after, said: said() });
        match head.status {
            200 | 206 => {}
            429 | 503 => return Err(too_many()),
            403 => return Err(End::Forbidden { after: head.retry_after, said: said() }),
            401 | 404 | 410 => return Err(End::Refused(Refusal::Gone(said()))),
            416 => return Err(End::changed("it has no bytes any more where there were some")),
            _ => return Err(End::Refused(Refusal::Trouble(said()))),
        }
        if let Some(encoding) = head.encoding() {
            let error = format!("the server sends it encoded ({encoding}), which nobody asked for");
            return Err(End::Lost(error, Cure::OtherUrl));
        }
        let grown = replica.growth.size();
        // What grows has another version after every write.
        let difference = if grown.is_some() { None } else { replica.version.difference(&Version::of(head)) };
        if !self.shared.ranges {
            if head.status != 200 {
                return Err(End::Refused(Refusal::Trouble(said())));
            }
            let sizes = self.shared.size.zip(head.content_length);
            let resized = sizes.filter(|(then, now)| then != now);
            let resized = resized.map(|(then, now)| format!("it had {then} bytes and has {now} now"));
            if let Some(difference) = resized.or(difference) {
                return Err(End::changed(&difference));
            }
            (self.position, self.left) = (asked.range.start, asked.range.end - asked.range.start);
            return Ok(());
        }
        // With 200 it is all of the film, which the server sends when it has become another one.
        let (asked, start) = (&asked.range, self.shared.start);
        let checked = head.check_range(start + asked.start, Some(start + asked.end - 1));
        let (then, now) = (grown.or(self.shared.whole), head.size_of_film());
        if let (Some(then), Some(to), Ok(_) | Err(RangeError::Ignored)) = (then, now, &checked)
            && to > then
        {
            match grown {
                Some(_) => replica.growth.note(to),
                // The same version with another size is a lie, or a fault.
                None if replica.version.is_that_of(&Version::of(head)) => {
                    return Err(End::changed(&format!("it had {then} bytes and has {to} now")));
                }
                None => return Err(End::Grown { to }),
            }
        }
        let range = match (checked, difference) {
            (Ok(range), None) => range,
            (Ok(_) | Err(RangeError::Ignored), Some(difference)) => return Err(End::changed(&difference)),
            (Err(RangeError::Ignored), None) => {
                let error = "the film changed on the server, or the server stopped knowing ranges";
                return Err(End::Lost(error.into(), Cure::StartOver));
            }
            (Err(error), _) => {
                return Err(End::Lost(format!("the server cannot be trusted: {error}"), Cure::OtherUrl));
            }
        };
        match (then, range.total) {
            (Some(then), Some(now)) if now < then => {
                return Err(End::changed(&format!("it had {then} bytes and has {now} now")));
            }
            _ => {}
        }
        (self.position, self.left) = (asked.start, range.length());
        Ok(())
    }

    async fn data(&mut self, mut bytes: BytesMut, unheard: Unheard) -> Result<(), End> {
        let too_many = || End::Failed("the server sends more than it was asked for".into());
        // What was asked for is good, however much came with it in the same read.
        let surplus = Bytes::of(bytes.len()).get() > self.left;
        bytes.truncate(Bytes::new(self.left).as_usize());
        let Some(asked) = self.queue.front().filter(|_| !bytes.is_empty()) else {
            return Err(too_many());
        };
        let count = Bytes::of(bytes.len()).get();
        self.left -= count;
        if self.reads < EARLY_READS {
            self.reads += 1;
            // Where it cannot be set there is nothing to keep.
            let _ = self.connection.control().keep_window();
        }
        let range = self.position..self.position + count;
        self.position = range.end;
        self.shared.store.take(range.start, bytes.freeze()).map_err(End::Fatal)?;
        let id = self.id;
        let report = match asked.request {
            Some(request) => Report::Arrived { id, request, range, unheard },
            None => Report::FirstArrived { id, length: count, unheard },
        };
        self.shared.report(report).await;
        if surplus { Err(too_many()) } else { Ok(()) }
    }

    /// An answer is complete, perhaps with fewer bytes than were asked for, but with those that it promised.
    async fn ended(&mut self) -> Result<(), End> {
        let Some(asked) = self.queue.pop_front() else { return Ok(()) };
        if !self.shared.ranges {
            self.shared.report(Report::WholeEnded { id: self.id, path: self.path }).await;
            return Ok(());
        }
        if self.left > 0 {
            return Err(End::Failed("the server sends less than it says".into()));
        }
        if let Some(request) = asked.request.filter(|_| self.position < asked.range.end) {
            self.shared.report(Report::CutShort { id: self.id, request }).await;
        }
        Ok(())
    }
}

/// Waits until reading is allowed, then for something to read: how much at once, where there is a limit. What
/// goes with it goes to the owner.
async fn receive(
    shared: &Shared,
    allowance: &Allowance,
    leave: Bytes,
    connection: &mut Connection,
    buffer: &mut BytesMut,
) -> Result<(Received, Bytes, Unheard), Error> {
    let (room, unheard) = allowance.read(shared, leave, || connection.rest()).await;
    if room < LARGEST_READ {
        // A buffer of just this size: what is read at once is what may be read.
        *buffer = BytesMut::with_capacity(room.as_usize());
    } else if buffer.capacity() < LARGEST_READ.as_usize() / 2 {
        shared.buffers.renew(buffer);
    }
    let limited = if room < LARGEST_READ { room } else { Bytes::ZERO };
    Ok((connection.receive(buffer).await?, limited, unheard))
}
