//! Bodies of responses: text, and parts of a film as they arrive.

use std::future::Future;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use anabranch_client::{EngineError, Film, ReadRate, Reader};
use anabranch_server::{Busy, Content, Piece, Pieces, Reply};
use bytes::Bytes;
use http::{Response, StatusCode, header};
use hyper::body::{Frame, SizeHint};

use super::delivery::Delivering;

/// The reader with what it read.
type Reading = Pin<Box<dyn Future<Output = (Reader, Result<Option<Bytes>, EngineError>)> + Send>>;

/// The body of a response. Its reader is made when its part's turn comes, and dropped with the body, which
/// hyper does as soon as the player closes the connection.
pub(crate) struct Body {
    pieces: Pieces,
    parts: Parts,
    _busy: Option<Busy>,
}

/// What its parts are of, and the read of one.
struct Parts {
    content: Whole,
    /// The read that is under way, of the front piece.
    reading: Option<Reading>,
    delivering: Option<Delivering>,
    /// How fast they are handed over; `None`: as fast as they are taken.
    rate: Option<Arc<ReadRate>>,
}

/// The response of a reply, with this body.
pub(crate) fn respond_with(reply: Reply, body: Body) -> Response<Body> {
    let length = body.pieces.left();
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
enum Whole {
    Nothing,
    Memory(Bytes),
    Film(Film),
}

impl Body {
    fn new(pieces: Pieces, content: Whole, delivering: Option<Delivering>) -> Self {
        Self { pieces, parts: Parts { content, reading: None, delivering, rate: None }, _busy: None }
    }

    /// Until it is sent, or nobody wants it any more, its client need not say anything.
    pub(super) fn until_sent(self, busy: Busy) -> Self {
        Self { _busy: Some(busy), ..self }
    }

    /// The same, handed over no faster than so.
    pub(super) fn at(mut self, rate: Option<Arc<ReadRate>>) -> Self {
        self.parts.rate = rate;
        self
    }

    /// Nothing.
    pub(crate) fn empty() -> Self {
        Self::new(Pieces::new([]), Whole::Nothing, None)
    }

    /// A text.
    pub(crate) fn text(text: impl Into<Bytes>) -> Self {
        Self::new(Pieces::new([Piece::Text(text.into())]), Whole::Nothing, None)
    }

    /// Parts of something that is in memory as a whole.
    pub(crate) fn parts_of(pieces: Vec<Piece>, content: Bytes) -> Self {
        Self::new(Pieces::new(pieces), Whole::Memory(content), None)
    }

    /// Parts of a film.
    pub(super) fn of_film(pieces: Vec<Piece>, film: Film, delivering: Option<Delivering>) -> Self {
        Self::new(Pieces::new(pieces), Whole::Film(film), delivering)
    }

    /// A film from its start to its end, wherever that is.
    pub(super) fn of_endless_film(film: Film, delivering: Option<Delivering>) -> Self {
        Self::new(Pieces::endless(), Whole::Film(film), delivering)
    }
}

impl Parts {
    /// Tells what was handed over, and whether there is no more of its part.
    fn reached(&self, position: u64, length: u64, last: bool) {
        if let Some(delivering) = &self.delivering {
            delivering.reached(position, length, last);
        }
    }
}

impl Content for Parts {
    fn poll_bytes(&mut self, cx: &mut Context<'_>, range: &Range<u64>) -> Poll<io::Result<Option<Bytes>>> {
        let reading = match (&mut self.reading, &self.content) {
            (Some(reading), _) => reading,
            (None, Whole::Film(film)) => {
                self.reading.insert(read(film.reader(range.clone()), self.rate.clone()))
            }
            (None, Whole::Memory(bytes)) => {
                let slice = |position: u64| usize::try_from(position).unwrap_or(usize::MAX).min(bytes.len());
                return Poll::Ready(Ok(Some(bytes.slice(slice(range.start)..slice(range.end)))));
            }
            (None, Whole::Nothing) => return Poll::Ready(Err(io::Error::other("a part of nothing"))),
        };
        let (reader, result) = ready!(reading.as_mut().poll(cx));
        self.reading = None;
        Poll::Ready(match result {
            Ok(Some(bytes)) => {
                let reached = range.start + bytes.len() as u64;
                if reached < range.end {
                    self.reading = Some(read(reader, self.rate.clone()));
                }
                self.reached(reached, bytes.len() as u64, reached >= range.end);
                Ok(Some(bytes))
            }
            Ok(None) => {
                if range.end == u64::MAX {
                    self.reached(range.start, 0, true);
                }
                Ok(None)
            }
            Err(error) => {
                if let Some(delivering) = &self.delivering {
                    delivering.failed(&error);
                }
                Err(io::Error::other(error))
            }
        })
    }
}

fn read(mut reader: Reader, rate: Option<Arc<ReadRate>>) -> Reading {
    Box::pin(async move {
        if let Some(rate) = &rate {
            rate.ready().await;
        }
        let result = reader.next().await;
        if let (Some(rate), Ok(Some(bytes))) = (&rate, &result) {
            rate.took(anabranch_units::Bytes::of(bytes.len()));
        }
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
        let Self { pieces, parts, .. } = &mut *self;
        pieces.poll_next(cx, parts)
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_over()
    }

    fn size_hint(&self) -> SizeHint {
        self.pieces.size_hint()
    }
}
