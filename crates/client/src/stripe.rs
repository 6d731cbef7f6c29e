//! Connections to a server that stripes (`docs/protocol.md`): joining the group of a path, and what a member
//! does.
//!
//! Whatever goes wrong with joining ends in asking for ranges on that path: a proxy between may know nothing
//! of upgrades.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use ::http::HeaderValue;
use ::http::header::{IF_MATCH, UPGRADE};
use anabranch_film::control::{ConnectionId, PathId};
use anabranch_film::session::Refusal;
use anabranch_http::tcp::SocketControl;
use anabranch_http::{
    Connection, Error, Method, Received, RequestHead, ResponseHead, Stream, status_in_words,
};
use anabranch_protocol::stripe::PROTOCOL;
use anabranch_protocol::stripe::frame::{DATA_HEADER_BYTES, Frame, FrameError};
use anabranch_protocol::stripe::{SIZE_HEADER, TOKEN_HEADER};
use anabranch_units::Bytes;
use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::sync::{mpsc, oneshot};

use super::allowance::Allowance;
use super::command::{Command, EARLY_READS, End, Report};
use super::membership::{Brought, GroupName};
use super::shared::Shared;
use super::unheard::Unheard;

/// What the answer to the upgrade says.
enum Answer {
    Joined,
    /// Ranges have to do, for this reason.
    No(String),
    End(End),
}

/// Joins the group of the path when its server stripes. Without that, the connection comes back, or a new
/// one.
///
/// # Errors
/// The connection has ended.
pub(super) async fn join(
    shared: &Arc<Shared>,
    id: ConnectionId,
    path: PathId,
    mut connection: Connection,
    is_probed: bool,
) -> Result<Result<Member, Connection>, End> {
    let (answer, name) = oneshot::channel();
    shared.report(Report::Joining { path, answer }).await;
    let Ok(Some(name)) = name.await else { return Ok(Err(connection)) };
    let patience = shared.settings.connect_timeout;
    let answer = tokio::time::timeout(patience.into(), upgrade(shared, path, &name, &mut connection)).await;
    let refused = match answer {
        Ok(Ok(head)) => match judge(shared, path, &head) {
            Answer::Joined => None,
            Answer::No(why) => Some(why),
            Answer::End(end) => return Err(end),
        },
        // The server closed a connection that was idle since the probing.
        Ok(Err(Error::Closed)) if is_probed => return Err(End::Closed),
        Ok(Err(error)) if name.has_worked => return Err(End::Failed(error.to_string())),
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("no answer to the upgrade within {patience}")),
    };
    let Some(why) = refused else {
        let rtt = connection.handshake_rtt();
        let Some((stream, input)) = connection.into_upgraded() else { return Err(End::Closed) };
        let (answer, is_in) = oneshot::channel();
        let (number, control) = (name.number, stream.control());
        shared.report(Report::Joined { id, path, number, control, rtt, answer }).await;
        if !is_in.await.unwrap_or(false) {
            // The group ended while this connection was joining it.
            return Err(End::Closed);
        }
        let (output, is_leaving, reads) = (BytesMut::new(), false, 0);
        return Ok(Ok(Member { id, path, stream, input, output, is_leaving, reads }));
    };
    shared.report(Report::NotStriped { path, error: why }).await;
    let options = shared.settings.connect_options(shared.interface(path));
    match Connection::connect(shared.replica(path).target.origin(), &options).await {
        Ok(connection) => Ok(Err(connection)),
        Err(error) => Err(End::Failed(error.to_string())),
    }
}

async fn upgrade(
    shared: &Shared,
    path: PathId,
    name: &GroupName,
    connection: &mut Connection,
) -> Result<ResponseHead, Error> {
    let replica = shared.replica(path);
    let mut request = RequestHead::new(Method::Get, &replica.target, &replica.jar.headers())
        .upgrade(&HeaderValue::from_static(PROTOCOL))
        .header(&TOKEN_HEADER, &name.token);
    if let Some(tag) = replica.validator.as_ref().filter(|validator| is_tag(validator)) {
        request = request.header(&IF_MATCH, tag);
    }
    connection.send(&request)?;
    match connection.receive(&mut BytesMut::new()).await? {
        Received::Head(head) => {
            replica.jar.take(&head);
            Ok(*head)
        }
        _ => Err(Error::Closed),
    }
}

/// Whether a validator is an entity tag and no date.
fn is_tag(validator: &HeaderValue) -> bool {
    validator.as_bytes().starts_with(b"\"")
}

fn judge(shared: &Shared, path: PathId, head: &ResponseHead) -> Answer {
    match head.status {
        101 => {}
        429 | 503 => {
            let said = format!("the server answers with {}", status_in_words(head.status));
            return Answer::End(End::Refused(Refusal::TooMany { after: head.retry_after, said }));
        }
        status => return Answer::No(format!("the server answers the upgrade with status {status}")),
    }
    let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
    if !text(&UPGRADE).is_some_and(|protocol| protocol.eq_ignore_ascii_case(PROTOCOL)) {
        return Answer::No("the server changes to another protocol".into());
    }
    let size = text(&SIZE_HEADER).and_then(|size| size.parse::<u64>().ok());
    let validator = shared.replica(path).validator.as_ref();
    let tag = head.etag.as_ref().map(ToString::to_string);
    let differs = validator
        .filter(|validator| is_tag(validator))
        .is_some_and(|validator| tag.is_none_or(|tag| tag.as_bytes() != validator.as_bytes()));
    if let (Some(to), Some(then)) = (size, shared.size)
        && to > then
    {
        return Answer::End(End::Grown { to });
    }
    if size.is_none() || size != shared.size || differs {
        return Answer::End(End::changed("it has another size or entity tag"));
    }
    Answer::Joined
}

/// A connection of a group.
pub(super) struct Member {
    id: ConnectionId,
    path: PathId,
    stream: Stream,
    /// What has arrived and is no whole frame yet.
    input: BytesMut,
    /// Orders that the socket did not take yet.
    output: BytesMut,
    /// It sends nothing more, and ends when the server has ended it.
    is_leaving: bool,
    /// Reads so far, up to [`EARLY_READS`].
    reads: u32,
}

impl Member {
    /// Sends what it is told and hands over what arrives, until the connection ends.
    pub(super) async fn serve(
        mut self,
        shared: &Arc<Shared>,
        mut commands: mpsc::UnboundedReceiver<Command>,
        allowance: &Allowance,
    ) -> End {
        let control = self.stream.control();
        // Frames can have come with the answer to the upgrade.
        self.take_frames(shared, None).await;
        loop {
            tokio::select! {
                biased;
                command = commands.recv() => match command {
                    Some(Command::Order(frame)) => {
                        let mut wire = Vec::new();
                        frame.encode(&mut wire);
                        self.output.extend_from_slice(&wire);
                    }
                    Some(Command::Leave) => self.is_leaving = true,
                    Some(Command::Ask(_)) | None => return End::Closed,
                },
                received = self.receive(shared, allowance) => match received {
                    // When something was due, the session finds out; a server may also end an idle group.
                    Ok((0, _)) => return End::Closed,
                    Ok((count, unheard)) => {
                        allowance.spend(shared, count);
                        self.keep_window(&control);
                        self.take_frames(shared, Some(unheard.only(count))).await;
                    }
                    Err(_) if self.is_leaving => return End::Closed,
                    Err(error) => return End::Failed(Error::from(error).to_string()),
                },
            }
        }
    }

    fn keep_window(&mut self, control: &SocketControl) {
        if self.reads < EARLY_READS {
            self.reads += 1;
            let _ = control.keep_window();
        }
    }

    /// Writes what waits, and reads when reading is allowed. Nothing is lost when the future is dropped.
    async fn receive(&mut self, shared: &Shared, allowance: &Allowance) -> io::Result<(usize, Unheard)> {
        poll_fn(|context| {
            self.write(context);
            Poll::Ready(())
        })
        .await;
        let (room, unheard) = allowance.read(shared, Bytes::ZERO, || self.stream.rest()).await;
        let room = room.as_usize();
        if self.input.capacity() - self.input.len() < room {
            let begun = self.input.split();
            shared.buffers.renew(&mut self.input);
            self.input.extend_from_slice(&begun);
        }
        let count = poll_fn(|context| {
            self.write(context);
            // The future keeps nothing between two polls.
            pin!(self.stream.read_buf(&mut (&mut self.input).limit(room))).poll(context)
        })
        .await?;
        Ok((count, unheard))
    }

    /// Writes what the socket takes. A failure shows when reading.
    fn write(&mut self, context: &mut Context<'_>) {
        while !self.output.is_empty() {
            match Pin::new(&mut self.stream).poll_write(context, &self.output) {
                Poll::Ready(Ok(count)) if count > 0 => self.output.advance(count),
                Poll::Ready(_) => self.output.clear(),
                Poll::Pending => return,
            }
        }
        let _ = if self.is_leaving {
            Pin::new(&mut self.stream).poll_shutdown(context)
        } else {
            Pin::new(&mut self.stream).poll_flush(context)
        };
    }

    /// Hands over every whole frame that has arrived. Where something is wrong, the owner ends this task.
    async fn take_frames(&mut self, shared: &Shared, unheard: Option<Unheard>) {
        let mut frames = Vec::new();
        let broken = loop {
            match self.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        let (id, path) = (self.id, self.path);
        shared.report(Report::Brought { id, path, frames, broken, unheard }).await;
    }

    fn next_frame(&mut self) -> Result<Option<Brought>, String> {
        let frame = Frame::decode(&self.input).map_err(|error: FrameError| error.to_string())?;
        let Some((frame, length)) = frame else { return Ok(None) };
        let (sequence, offset) = match frame {
            Frame::Data { sequence, offset, .. } => (sequence, offset),
            Frame::Synced { mark, queued } => {
                self.input.advance(length);
                return Ok(Some(Brought::Synced { mark, queued }));
            }
            _ => return Err("a frame that only clients send".into()),
        };
        let mut payload = self.input.split_to(length);
        payload.advance(DATA_HEADER_BYTES);
        Ok(Some(Brought::Block { sequence, offset, payload }))
    }
}
