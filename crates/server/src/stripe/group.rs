//! Sends one file over the connections of a group.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use anabranch_protocol::ConnectionId;
use anabranch_protocol::stripe::frame::{DATA_HEADER_BYTES, Frame, data_header};
use anabranch_protocol::stripe::{Block, MAX_BLOCK_BYTES, MAX_CONNECTIONS, Striper, WantError};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Duration, Instant, timeout};

use super::Member;
use super::registry::Registered;
use crate::io_guard::Timer;
use crate::metrics::add;
use crate::shared::Shared;
use crate::source::{Source, truncated};

/// For saying good-bye to all connections.
const FAREWELL_TIME: Duration = Duration::from_secs(1);

/// A block's frame, once the disk has given its payload.
type Reading = JoinHandle<io::Result<Vec<u8>>>;

struct Group<'a> {
    shared: &'a Shared,
    registered: Registered,
    source: Arc<Source>,
    striper: Striper,
    members: BTreeMap<ConnectionId, Member>,
    next_id: u32,
    /// A block that waits for the disk, and whose connection it goes to. No other is cut meanwhile.
    reading: Option<(ConnectionId, Reading)>,
    /// The server stops: what is queued still goes out.
    stopping: bool,
    /// The client said END.
    ended: bool,
    /// When a byte was last taken, or something was first wanted.
    moved_at: Instant,
    /// When an order last came.
    ordered_at: Instant,
    patience: Timer,
    /// When the shaped link is free for the next block.
    link_free_at: Option<Instant>,
    link: Timer,
}

/// Runs a group until its last connection closes, the client ends it, nothing is wanted for the idle time,
/// nothing is taken for the write time, or (when the server stops) everything that was wanted is sent.
pub(super) async fn run(
    registered: Registered,
    source: Source,
    size: u64,
    first: Member,
    shared: &Shared,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut group = Group {
        shared,
        registered,
        source: Arc::new(source),
        striper: Striper::new(size),
        members: BTreeMap::new(),
        next_id: 0,
        reading: None,
        stopping: false,
        ended: false,
        moved_at: Instant::now(),
        ordered_at: Instant::now(),
        patience: Timer::default(),
        link_free_at: None,
        link: Timer::default(),
    };
    group.join(first);
    let result = loop {
        tokio::select! {
            result = poll_fn(|cx| group.poll(cx)) => break result,
            _ = stop.wait_for(|stop| *stop), if !group.stopping => group.stopping = true,
        }
    };
    let farewells = poll_fn(|cx| {
        group.members.retain(|_, member| member.poll_shutdown(cx).is_pending());
        if group.members.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    });
    let _ = timeout(FAREWELL_TIME, farewells).await;
    result
}

impl Group<'_> {
    fn join(&mut self, member: Member) {
        // Beyond the limit the connection is closed at once.
        if self.members.len() < MAX_CONNECTIONS {
            let id = ConnectionId(self.next_id);
            self.next_id += 1;
            self.members.insert(id, member);
            self.striper.connected(id);
            self.ordered_at = Instant::now();
        }
    }

    fn leave(&mut self, id: ConnectionId, why: &io::Error) {
        tracing::debug!(%id, %why, "left its stripe group");
        self.striper.closed(id);
        self.members.remove(&id);
    }

    /// Whether there is nothing that the client could take.
    fn is_idle(&self) -> bool {
        let all_written = self.members.values().all(|member| member.is_written() && member.sync.is_none());
        self.striper.is_idle() && self.reading.is_none() && all_written
    }

    /// Ready when the group has ended.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Poll::Ready(Some(member)) = self.registered.joining.poll_recv(cx) {
            self.join(member);
        }
        self.poll_orders(cx);
        if let Poll::Ready(result) = self.poll_blocks(cx) {
            result?;
        }
        let idle = self.is_idle();
        if self.ended || self.members.is_empty() || (self.stopping && idle) {
            return Poll::Ready(Ok(()));
        }
        let config = &self.shared.config;
        let deadline = if idle {
            self.moved_at.max(self.ordered_at) + config.idle_timeout
        } else {
            // Orders do not keep a group that takes nothing of what it ordered.
            self.moved_at + config.write_timeout
        };
        ready!(self.patience.poll(cx, deadline));
        if idle { Poll::Ready(Ok(())) } else { Poll::Ready(Err(io::ErrorKind::TimedOut.into())) }
    }

    /// Takes the orders that have come.
    fn poll_orders(&mut self, cx: &mut Context<'_>) {
        let (mut sync, mut ended) = (None, false);
        let mut left = Vec::new();
        let had_nothing_to_take = self.is_idle();
        for (id, member) in &mut self.members {
            let orders = member.poll_orders(cx, |frame| {
                self.ordered_at = Instant::now();
                if had_nothing_to_take {
                    self.moved_at = self.ordered_at;
                }
                match frame {
                    Frame::Want { .. } if self.stopping => Ok(()),
                    Frame::Want { range, priority } => self.striper.want(range, priority),
                    Frame::Cancel { range } => self.striper.cancel(&range),
                    Frame::Sync { mark } => {
                        sync = Some(mark);
                        Ok(())
                    }
                    Frame::End => {
                        ended = true;
                        Ok(())
                    }
                    Frame::Data { .. } | Frame::Synced { .. } => {
                        return Err(io::Error::other("a client sends no such frame"));
                    }
                }
                .map_err(|error: WantError| io::Error::other(error))
            });
            if let Poll::Ready(Err(error)) = orders {
                left.push((*id, error));
            }
        }
        if sync.is_some() {
            self.members.values_mut().for_each(|member| member.sync = sync);
        }
        self.ended |= ended;
        for (id, error) in left {
            self.leave(id, &error);
        }
    }

    /// Sends blocks until nothing is wanted or no connection takes more. Ready only with an error that ends
    /// the group.
    fn poll_blocks(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            self.poll_written(cx);
            if let Some((id, reading)) = &mut self.reading {
                let frame = ready!(Pin::new(reading).poll(cx)).map_err(io::Error::other)??;
                if let Some(member) = self.members.get_mut(id) {
                    member.send(frame);
                }
                self.reading = None;
                continue;
            }
            if self.striper.is_idle() {
                return Poll::Pending;
            }
            if let Some(shaper) = &self.shared.shaper {
                let free_at = *self.link_free_at.get_or_insert_with(|| shaper.reserve(MAX_BLOCK_BYTES));
                ready!(self.link.poll(cx, free_at));
            }
            let Some((id, block)) = self.next_block(cx) else { return Poll::Pending };
            self.link_free_at = None;
            self.fill(id, &block)?;
        }
    }

    /// Lets every connection write what it has, and answers SYNC where all is written.
    fn poll_written(&mut self, cx: &mut Context<'_>) {
        let (mut moved, mut left) = (0, Vec::new());
        // What waits for the disk was cut before, so the answer must not overtake it.
        let reading = self.reading.as_ref().map(|(id, _)| *id);
        for (id, member) in &mut self.members {
            loop {
                match member.poll_written(cx, &mut moved) {
                    Poll::Pending => break,
                    Poll::Ready(Err(error)) => {
                        left.push((*id, error));
                        break;
                    }
                    Poll::Ready(Ok(())) if reading == Some(*id) => break,
                    Poll::Ready(Ok(())) => {
                        let Some(mark) = member.sync.take() else { break };
                        let mut frame = member.buffer();
                        frame.clear();
                        Frame::Synced { mark, queued: self.striper.queued().cloned().collect() }
                            .encode(&mut frame);
                        member.send(frame);
                    }
                }
            }
        }
        if moved > 0 {
            add(&self.shared.metrics.bytes_sent, moved);
            self.moved_at = Instant::now();
        }
        for (id, error) in left {
            self.leave(id, &error);
        }
    }

    /// The next block and its connection, `None` when no connection takes data now.
    fn next_block(&mut self, cx: &mut Context<'_>) -> Option<(ConnectionId, Block)> {
        let mut left = Vec::new();
        let members = &mut self.members;
        let next = self.striper.next_block(|id| {
            let Some(member) = members.get_mut(&id).filter(|member| member.is_written()) else {
                return false;
            };
            match member.poll_available(cx) {
                Poll::Ready(Ok(())) => true,
                Poll::Pending => false,
                Poll::Ready(Err(error)) => {
                    left.push((id, error));
                    false
                }
            }
        });
        for (id, error) in left {
            self.leave(id, &error);
        }
        next
    }

    /// Reads a block and gives it to its connection, at once or when the disk has it.
    fn fill(&mut self, id: ConnectionId, block: &Block) -> io::Result<()> {
        let Some(member) = self.members.get_mut(&id) else { return Ok(()) };
        let length = usize::try_from(block.range.end - block.range.start).map_err(io::Error::other)?;
        let offset = block.range.start;
        let mut frame = member.buffer();
        frame.resize(DATA_HEADER_BYTES + length, 0);
        let (header, payload) = frame.split_at_mut(DATA_HEADER_BYTES);
        header.copy_from_slice(&data_header(block.sequence, offset, length));
        match self.source.read_cached(payload, offset)? {
            Some(0) => return Err(truncated()),
            Some(read) if read == length => member.send(frame),
            _ => {
                let source = self.source.clone();
                let reading = tokio::task::spawn_blocking(move || {
                    let mut read = DATA_HEADER_BYTES;
                    while read < frame.len() {
                        let at = offset + (read - DATA_HEADER_BYTES) as u64;
                        match source.read_at(&mut frame[read..], at)? {
                            0 => return Err(truncated()),
                            more => read += more,
                        }
                    }
                    Ok(frame)
                });
                self.reading = Some((id, reading));
            }
        }
        Ok(())
    }
}
