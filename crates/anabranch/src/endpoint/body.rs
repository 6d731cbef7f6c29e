//! Bodies of responses: text, and parts of a film as they arrive.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use anabranch_client::{EngineError, Film, Reader};
use anabranch_server::{Busy, Piece, Reply};
use bytes::Bytes;
use http::{Response, StatusCode, header};
use hyper::body::{Frame, SizeHint};

use super::delivery::Delivering;

/// The reader with what it read.
type Reading = Pin<Box<dyn Future<Output = (Reader, Result<Option<Bytes>, EngineError>)> + Send>>;

/// The body of a response. Its reader is made when its part's turn comes, and dropped with the body, which
/// hyper does as soon as the player closes the connection.
pub(crate) struct Body {
    pieces: VecDeque<Piece>,
    content: Content,
    /// The read that is under way, of the front piece.
    reading: Option<Reading>,
    /// Bytes to come; `None`: nobody knows.
    left: Option<u64>,
    delivering: Option<Delivering>,
    _busy: Option<Busy>,
}

/// The response of a reply, with this body.
pub(crate) fn respond_with(reply: Reply, body: Body) -> Response<Body> {
    let length = body.left;
    let mut response = Response::new(body);
    *response.status_mut() = reply.status;
    *response.headers_mut() = reply.headers;
    // A 304 has no body, and the length that it could tell is that of the 200.
    if let Some(length) = length.filter(|_| reply.status != StatusCode::NOT_MODIFIED) {
        response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    }
    response
}

/// What [`Piece::File`] is a part of.
enum Content {
    Nothing,
    Memory(Bytes),
    Film(Film),
}

impl Body {
    fn new(pieces: impl Into<VecDeque<Piece>>, content: Content) -> Self {
        let pieces = pieces.into();
        let left = Some(pieces.iter().map(Piece::length).sum());
        Self { pieces, content, reading: None, left, delivering: None, _busy: None }
    }

    /// Until it is sent, or nobody wants it any more, its client need not say anything.
    pub(super) fn until_sent(self, busy: Busy) -> Self {
        Self { _busy: Some(busy), ..self }
    }

    /// Nothing.
    pub(crate) fn empty() -> Self {
        Self::new([], Content::Nothing)
    }

    /// A text.
    pub(crate) fn text(text: impl Into<Bytes>) -> Self {
        Self::new([Piece::Text(text.into())], Content::Nothing)
    }

    /// Parts of something that is in memory as a whole.
    pub(crate) fn parts_of(pieces: Vec<Piece>, content: Bytes) -> Self {
        Self::new(pieces, Content::Memory(content))
    }

    /// Parts of a film.
    pub(super) fn of_film(pieces: Vec<Piece>, film: Film, delivering: Option<Delivering>) -> Self {
        Self { delivering, ..Self::new(pieces, Content::Film(film)) }
    }

    /// A film from its start to its end, wherever that is.
    pub(super) fn of_endless_film(film: Film, delivering: Option<Delivering>) -> Self {
        Self { left: None, ..Self::of_film(vec![Piece::File(0..u64::MAX)], film, delivering) }
    }

    /// The next bytes of the film, from the front piece; `None` at its end.
    fn poll_film(&mut self, cx: &mut Context<'_>, range: &Range<u64>) -> Poll<io::Result<Option<Bytes>>> {
        let reading = match (&mut self.reading, &self.content) {
            (Some(reading), _) => reading,
            (None, Content::Film(film)) => self.reading.insert(read(film.reader(range.clone()))),
            (None, Content::Memory(bytes)) => {
                let slice = |position: u64| usize::try_from(position).unwrap_or(usize::MAX).min(bytes.len());
                return Poll::Ready(Ok(Some(bytes.slice(slice(range.start)..slice(range.end)))));
            }
            (None, Content::Nothing) => return Poll::Ready(Err(io::Error::other("a part of nothing"))),
        };
        let (reader, result) = ready!(reading.as_mut().poll(cx));
        self.reading = None;
        match result {
            Ok(Some(bytes)) => {
                self.reading = Some(read(reader));
                Poll::Ready(Ok(Some(bytes)))
            }
            Ok(None) => Poll::Ready(Ok(None)),
            Err(error) => {
                if let Some(delivering) = &self.delivering {
                    delivering.failed(&error);
                }
                Poll::Ready(Err(io::Error::other(error)))
            }
        }
    }

    /// Tells what was handed over, and that there is no more of its part.
    fn reached(&self, position: u64, length: u64, last: bool) {
        if let Some(delivering) = &self.delivering {
            delivering.reached(position, length, last);
        }
    }
}

fn read(mut reader: Reader) -> Reading {
    Box::pin(async move {
        let result = reader.next().await;
        (reader, result)
    })
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        loop {
            let Some(piece) = self.pieces.pop_front() else { return Poll::Ready(None) };
            let bytes = match piece {
                Piece::Text(text) => text,
                Piece::File(range) => match self.poll_film(cx, &range) {
                    Poll::Pending => {
                        self.pieces.push_front(Piece::File(range));
                        return Poll::Pending;
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                    Poll::Ready(Ok(Some(bytes))) => {
                        let length = bytes.len() as u64;
                        let rest = range.start + length..range.end;
                        self.reached(rest.start, length, rest.is_empty());
                        if rest.is_empty() {
                            self.reading = None;
                        } else {
                            self.pieces.push_front(Piece::File(rest));
                        }
                        bytes
                    }
                    Poll::Ready(Ok(None)) if self.left.is_none() => {
                        self.reached(range.start, 0, true);
                        continue;
                    }
                    Poll::Ready(Ok(None)) => {
                        let error = "the film ended before its end";
                        return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::UnexpectedEof, error))));
                    }
                },
            };
            if let Some(left) = &mut self.left {
                *left = left.saturating_sub(bytes.len() as u64);
            }
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map(SizeHint::with_exact).unwrap_or_default()
    }
}
