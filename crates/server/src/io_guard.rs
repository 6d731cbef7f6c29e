//! A client's connection, plain or TLS, that gives up when the client takes too long.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Duration, Instant, Sleep, sleep_until};
use tokio_rustls::server::TlsStream;

use super::config::Config;
use super::metrics::{Metrics, add};
use super::passage::{Passage, stands_in};

/// The bytes of a connection.
#[derive(Debug)]
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// The socket beneath.
    pub(super) fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }
}

/// Hands a call of an asynchronous trait to whichever stream this is.
macro_rules! delegate {
    ($self:expr, $stream:ident => $call:expr) => {
        match $self {
            Stream::Plain($stream) => {
                let $stream = Pin::new($stream);
                $call
            }
            Stream::Tls($stream) => {
                let $stream = Pin::new(&mut **$stream);
                $call
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        delegate!(&mut *self, stream => stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        delegate!(&mut *self, stream => stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        delegate!(&mut *self, stream => stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(&mut *self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(&mut *self, stream => stream.poll_shutdown(cx))
    }
}

/// How long a client may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// From the first byte of a request's head (of a connection's first request: from the start) to its end.
    pub(super) header: Duration,
    /// Between two requests.
    pub(super) idle: Duration,
    /// Without taking a single byte of a response.
    pub(super) write: Duration,
}

/// What a client that is turned away may take to listen.
const REFUSAL_TIME: Duration = Duration::from_secs(2);

impl Patience {
    /// The patience of a server with this configuration, with a client that is served or turned away.
    pub(super) fn of(config: &Config, is_served: bool) -> Self {
        let Config { header_timeout, idle_timeout, write_timeout, .. } = *config;
        Self { header: header_timeout, idle: idle_timeout, write: write_timeout }.with(is_served)
    }

    /// The same for a client that is served; less for one that is turned away.
    pub(super) fn with(self, is_served: bool) -> Self {
        if is_served {
            self
        } else {
            Self { header: self.header.min(REFUSAL_TIME), idle: REFUSAL_TIME, write: REFUSAL_TIME }
        }
    }
}

/// What a connection is doing, as the one who answers its requests knows it. One that was never said to wait
/// for its client ([`Self::default`]) does not.
#[derive(Debug, Default)]
pub(super) struct Activity {
    busy: AtomicBool,
    /// Requests so far: tells that a head is complete.
    requests: AtomicU64,
    wait: Mutex<Option<Wait>>,
}

/// A wait for a client. Where there are too many connections, the least of these goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wait {
    what: Awaited,
    since: Instant,
}

/// What a client has to do for its connection to go on; what comes first is the cheaper to lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Awaited {
    /// The rest of a request's head, or all of it.
    Head,
    /// Another request.
    Request,
    /// Taking any of its answers, beyond what the system holds for it.
    Taking,
    /// Taking more. It may be a player that pauses.
    TakingMore,
}

impl Activity {
    /// Of a connection that just came, and has yet to say what it wants.
    pub(super) fn waiting() -> Self {
        let wait = Wait { what: Awaited::Head, since: Instant::now() };
        Self { wait: Mutex::new(Some(wait)), ..Self::default() }
    }

    /// The wait for the client, if it is the client's turn.
    pub(super) fn wait(&self) -> Option<Wait> {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Wait>> {
        self.wait.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_wait(&self, what: Awaited, since: Instant) {
        *self.lock() = Some(Wait { what, since });
    }

    /// Nothing is waited for.
    pub(super) fn wait_is_over(&self) {
        *self.lock() = None;
    }

    /// A response is made: another request is waited for, where nothing else is.
    fn waits_for_request(&self) {
        self.lock().get_or_insert_with(|| Wait { what: Awaited::Request, since: Instant::now() });
    }

    /// The client has asked for something. It may still have to take what it asked for before.
    fn has_asked(&self) {
        self.lock().take_if(|wait| wait.what < Awaited::Taking);
    }
}

/// While it lives, a response is being made or sent, and the client need not say anything.
#[derive(Debug)]
pub(super) struct BusyGuard(Arc<Activity>);

impl BusyGuard {
    pub(super) fn new(activity: &Arc<Activity>) -> Self {
        activity.busy.store(true, Ordering::Relaxed);
        activity.requests.fetch_add(1, Ordering::Relaxed);
        activity.has_asked();
        Self(activity.clone())
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Relaxed);
        self.0.waits_for_request();
    }
}

/// A deadline that moves. As long as it only moves on, the runtime's timer is set anew when it has run out and
/// not each time: most deadlines are never reached.
#[derive(Debug, Default)]
pub(super) struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if sleep.deadline() > deadline {
            sleep.as_mut().reset(deadline);
        }
        ready!(sleep.as_mut().poll(cx));
        if sleep.deadline() < deadline {
            sleep.as_mut().reset(deadline);
            return sleep.as_mut().poll(cx);
        }
        Poll::Ready(())
    }
}

/// A stream that fails with [`io::ErrorKind::TimedOut`] when its client is out of [`Patience`].
#[derive(Debug)]
pub(super) struct Guarded {
    stream: Stream,
    patience: Patience,
    metrics: Arc<Metrics>,
    activity: Arc<Activity>,
    /// Requests that had come when this was last looked at.
    requests: u64,
    /// When the head that is arriving began; `None` between requests.
    head_since: Option<Instant>,
    /// When the last response moved; the idle time counts from here.
    last_moved: Instant,
    /// Since when the client has taken nothing although there was something to take.
    stuck_since: Option<Instant>,
    /// Whether it took more after it had been waited for: the system holds a good deal for those who take
    /// nothing.
    has_taken: bool,
    read_timer: Timer,
    write_timer: Timer,
    passage: Option<Passage>,
    /// What was read and is to be read again.
    unread: Vec<u8>,
}

impl Guarded {
    pub(super) fn new(
        stream: Stream,
        patience: Patience,
        metrics: Arc<Metrics>,
        activity: Arc<Activity>,
    ) -> Self {
        let now = Instant::now();
        Self {
            stream,
            patience,
            metrics,
            activity,
            requests: 0,
            head_since: Some(now),
            last_moved: now,
            stuck_since: None,
            has_taken: false,
            read_timer: Timer::default(),
            write_timer: Timer::default(),
            passage: None,
            unread: Vec::new(),
        }
    }

    /// The same with parts of files in place of what stands in for them.
    pub(super) fn with_passage(self, passage: Option<Passage>) -> Self {
        Self { passage, ..self }
    }

    pub(super) fn into_stream(self) -> Stream {
        self.stream
    }

    /// These bytes are read again, before all others.
    pub(super) fn unread(&mut self, bytes: Vec<u8>) {
        self.unread = bytes;
    }

    /// The result of a write, or the end of patience.
    fn wrote<T>(&mut self, cx: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            if self.stuck_since.take().is_some() {
                self.has_taken = true;
                self.activity.wait_is_over();
                // The reader's time counts again.
                cx.waker().wake_by_ref();
            }
            self.last_moved = Instant::now();
            return poll;
        }
        let since = *self.stuck_since.get_or_insert_with(Instant::now);
        let what = if self.has_taken { Awaited::TakingMore } else { Awaited::Taking };
        self.activity.set_wait(what, since);
        ready!(self.write_timer.poll(cx, since + self.patience.write));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing")))
    }

    fn count(&self, poll: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(length)) = poll {
            add(&self.metrics.bytes_sent, *length);
        }
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        let poll = if this.unread.is_empty() {
            Pin::new(&mut this.stream).poll_read(cx, buf)
        } else {
            let length = buf.remaining().min(this.unread.len());
            buf.put_slice(&this.unread[..length]);
            this.unread.drain(..length);
            Poll::Ready(Ok(()))
        };
        let requests = this.activity.requests.load(Ordering::Relaxed);
        if requests != this.requests {
            this.requests = requests;
            this.head_since = None;
        }
        let is_busy = this.activity.busy.load(Ordering::Relaxed);
        if is_busy || poll.is_ready() {
            let now = Instant::now();
            if poll.is_ready() && !is_busy && buf.filled().len() > before {
                this.head_since.get_or_insert(now);
            }
            // Nobody says when the answer is made: hyper may not read again before it hears of the client. So it
            // is looked at when the client could be out of patience at the soonest.
            let _ = this.read_timer.poll(cx, now + this.patience.idle);
            return poll;
        }
        // What was answered is still to be taken, and until then nothing need be said.
        if this.stuck_since.is_some() {
            return Poll::Pending;
        }
        let (what, since, patience) = match this.head_since {
            Some(since) => (Awaited::Head, since, this.patience.header),
            None => (Awaited::Request, this.last_moved, this.patience.idle),
        };
        this.activity.set_wait(what, since);
        let deadline = since + patience;
        ready!(this.read_timer.poll(cx, deadline));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client says nothing")))
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.count(&poll);
        self.wrote(cx, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let poll = match (&mut this.stream, &this.passage) {
            (Stream::Plain(socket), Some(passage)) if bufs.iter().any(|slice| stands_in(slice)) => {
                passage.poll_write(socket, cx, bufs)
            }
            (stream, _) => Pin::new(stream).poll_write_vectored(cx, bufs),
        };
        self.count(&poll);
        self.wrote(cx, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.passage.iter().try_for_each(|passage| passage.flush(self.stream.socket()))?;
        let poll = Pin::new(&mut self.stream).poll_flush(cx);
        if poll.is_pending() { self.wrote(cx, poll) } else { poll }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.wrote(cx, poll)
    }
}
