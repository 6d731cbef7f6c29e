//! A request of HTTP/3, and what has come of its answer and was not told yet.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::http::{Request, Response};
use anabranch_units::Bytes as Size;
use bytes::{Buf, Bytes, BytesMut};
use h3::client::{RequestStream, SendRequest};
use h3::error::StreamError;
use tokio::task::JoinSet;

use super::error::{Error, Malformed};
use super::head::ResponseHead;
use super::request::Method;

type Stream = RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

/// What comes of an answer, in this order.
pub(super) enum Came {
    Head(Box<ResponseHead>),
    Data(Bytes),
    End,
    /// There is no head.
    NoAnswer(StreamError),
    /// The body does not go on.
    Broken(StreamError),
}

/// What was read, before it is looked at.
enum Read {
    Head(Response<()>),
    Data(Bytes),
    End,
}

/// The next read, with the stream that it reads.
type Reading = Pin<Box<dyn Future<Output = (Stream, Result<Read, StreamError>)> + Send + Sync>>;

enum Progress {
    /// The request is not sent yet.
    Waiting(Box<Request<()>>),
    /// The request goes out. The one task in it ends with this.
    Asking(JoinSet<Result<Stream, StreamError>>),
    Head(Reading),
    Body(Reading),
    /// No more comes.
    Over,
}

/// A request and its answer.
pub(super) struct Exchange {
    method: Method,
    /// How many bytes are asked for, if that is known.
    length: Option<u64>,
    progress: Progress,
    /// What was read; of a body what came in its turn.
    came: VecDeque<Result<Read, StreamError>>,
    /// What came early of the body, in one piece: a server that sends single bytes makes it no larger.
    early: BytesMut,
    /// Whether the head was told, and what the body still lacks, if the head says so.
    is_answered: bool,
    left: Option<u64>,
}

impl Exchange {
    pub(super) fn new(method: Method, length: Option<u64>, request: Request<()>) -> Self {
        let progress = Progress::Waiting(Box::new(request));
        Self {
            method,
            length,
            progress,
            came: VecDeque::new(),
            early: BytesMut::new(),
            is_answered: false,
            left: None,
        }
    }

    /// The most bytes that the answer may have, if that is known.
    pub(super) fn most(&self) -> Option<u64> {
        if self.method == Method::Head { Some(0) } else { self.length }
    }

    /// Sends the request, if it was not sent yet; it goes out by itself.
    pub(super) fn ask(&mut self, sender: &SendRequest<h3_quinn::OpenStreams, Bytes>) {
        let Progress::Waiting(request) = &mut self.progress else { return };
        let request = std::mem::take(&mut **request);
        let mut sender = sender.clone();
        let mut asking = JoinSet::new();
        asking.spawn(async move {
            let mut stream = sender.send_request(request).await?;
            stream.finish().await?;
            Ok(stream)
        });
        self.progress = Progress::Asking(asking);
    }

    /// Reads what has come before its turn, and no more than was asked for.
    pub(super) fn poll_early(&mut self, cx: &mut Context<'_>) {
        while self.most().is_some_and(|most| Size::of(self.early.len()).get() <= most) {
            if self.poll(cx).is_pending() {
                return;
            }
            if let Some(Ok(Read::Data(data))) = self.came.back() {
                self.early.extend_from_slice(data);
                self.came.pop_back();
            }
        }
    }

    /// Reads on. Ready when something has come.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let (read, is_head) = match &mut self.progress {
                Progress::Waiting(_) | Progress::Over => return Poll::Pending,
                Progress::Asking(asking) => {
                    let stream = match ready!(asking.poll_join_next(cx)) {
                        Some(Ok(Ok(stream))) => stream,
                        Some(Ok(Err(error))) => {
                            self.progress = Progress::Over;
                            self.came.push_back(Err(error));
                            return Poll::Ready(());
                        }
                        // Nobody ends the task but a panic.
                        Some(Err(_)) | None => {
                            self.progress = Progress::Over;
                            return Poll::Ready(());
                        }
                    };
                    self.progress = Progress::Head(Box::pin(head(stream)));
                    continue;
                }
                Progress::Head(reading) => (ready!(reading.as_mut().poll(cx)), true),
                Progress::Body(reading) => (ready!(reading.as_mut().poll(cx)), false),
            };
            let (stream, read) = read;
            self.progress = match &read {
                Ok(Read::Head(response)) if is_head && response.status().is_informational() => {
                    self.progress = Progress::Head(Box::pin(head(stream)));
                    continue;
                }
                Ok(Read::Head(_) | Read::Data(_)) => Progress::Body(Box::pin(body(stream))),
                Ok(Read::End) | Err(_) => Progress::Over,
            };
            self.came.push_back(read);
            return Poll::Ready(());
        }
    }

    /// The next of what has come, of a body so many bytes at most.
    ///
    /// # Errors
    /// The head makes no sense, or the body has another length than it says.
    pub(super) fn take(&mut self, room: usize) -> Result<Option<Came>, Error> {
        let is_head_next = matches!(self.came.front(), Some(Ok(Read::Head(_))));
        if !is_head_next && !self.early.is_empty() {
            self.came.push_front(Ok(Read::Data(std::mem::take(&mut self.early).freeze())));
        }
        let Some(read) = self.came.pop_front() else {
            let is_over = matches!(self.progress, Progress::Over);
            return if is_over { Err(Error::Closed) } else { Ok(None) };
        };
        let came = match read {
            Ok(Read::Head(response)) => {
                let head = ResponseHead::from_http3(response)?;
                let is_empty = self.method == Method::Head || matches!(head.status, 204 | 304);
                self.left = if is_empty { Some(0) } else { head.content_length };
                self.is_answered = true;
                Came::Head(Box::new(head))
            }
            Ok(Read::Data(mut data)) => {
                let piece = data.split_to(data.len().min(room));
                let taken = Size::of(piece.len()).get();
                if !data.is_empty() {
                    self.came.push_front(Ok(Read::Data(data)));
                }
                if let Some(left) = &mut self.left {
                    *left =
                        left.checked_sub(taken).ok_or(Malformed("it is longer than its Content-Length"))?;
                }
                Came::Data(piece)
            }
            Ok(Read::End) if self.left.is_some_and(|left| left > 0) => {
                return Err(Error::Truncated { missing: self.left.map(Size::new) });
            }
            Ok(Read::End) => Came::End,
            Err(error) if self.is_answered => Came::Broken(error),
            Err(error) => Came::NoAnswer(error),
        };
        Ok(Some(came))
    }
}

async fn head(mut stream: Stream) -> (Stream, Result<Read, StreamError>) {
    let read = stream.recv_response().await.map(Read::Head);
    (stream, read)
}

async fn body(mut stream: Stream) -> (Stream, Result<Read, StreamError>) {
    let read = stream.recv_data().await.map(|data| match data {
        Some(mut data) => Read::Data(data.copy_to_bytes(data.remaining())),
        None => Read::End,
    });
    (stream, read)
}
