//! What a body is made of, and the way through it: of a server's answers, and of those of other endpoints
//! that have their bytes from elsewhere.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

/// One piece of a body.
#[derive(Debug)]
pub enum Piece {
    /// This text.
    Text(Bytes),
    /// These bytes of the file.
    File(Range<u64>),
}

impl Piece {
    /// Its bytes.
    pub fn length(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::File(range) => range.end - range.start,
        }
    }
}

/// What has the bytes of [`Piece::File`].
pub trait Content {
    /// The first bytes of `range`, at most all of them; `None`: it has none there, and none behind.
    ///
    /// # Errors
    /// They cannot be read.
    fn poll_bytes(
        &mut self,
        context: &mut Context<'_>,
        range: &Range<u64>,
    ) -> Poll<io::Result<Option<Bytes>>>;
}

/// The pieces that are still to be sent, in order.
#[derive(Debug)]
pub struct Pieces {
    pieces: VecDeque<Piece>,
    left: Option<u64>,
}

impl Pieces {
    /// These.
    pub fn new(pieces: impl Into<VecDeque<Piece>>) -> Self {
        let pieces = pieces.into();
        let left = Some(pieces.iter().map(Piece::length).sum());
        Self { pieces, left }
    }

    /// All of something whose length nobody knows.
    pub fn endless() -> Self {
        Self { pieces: [Piece::File(0..u64::MAX)].into(), left: None }
    }

    /// Bytes that are still to come; `None`: nobody knows.
    pub fn left(&self) -> Option<u64> {
        self.left
    }

    /// Nothing is to come.
    pub fn is_over(&self) -> bool {
        self.left.map_or(self.pieces.is_empty(), |left| left == 0)
    }

    /// For a body's.
    pub fn size_hint(&self) -> SizeHint {
        self.left.map(SizeHint::with_exact).unwrap_or_default()
    }

    /// The next frame of the body.
    ///
    /// # Errors
    /// The content cannot be read, or ends before its length.
    pub fn poll_next(
        &mut self,
        context: &mut Context<'_>,
        content: &mut impl Content,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        loop {
            let bytes = match self.pieces.front_mut() {
                None => return Poll::Ready(None),
                Some(Piece::Text(text)) => {
                    let text = std::mem::take(text);
                    self.pieces.pop_front();
                    text
                }
                Some(Piece::File(range)) => match ready!(content.poll_bytes(context, range)) {
                    Ok(Some(bytes)) => {
                        range.start += bytes.len() as u64;
                        if range.is_empty() {
                            self.pieces.pop_front();
                        }
                        bytes
                    }
                    Ok(None) if self.left.is_none() => {
                        self.pieces.pop_front();
                        continue;
                    }
                    Ok(None) => {
                        self.pieces.clear();
                        let error = "it ended before its end";
                        return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::UnexpectedEof, error))));
                    }
                    Err(error) => {
                        self.pieces.clear();
                        return Poll::Ready(Some(Err(error)));
                    }
                },
            };
            if let Some(left) = &mut self.left {
                *left = left.saturating_sub(bytes.len() as u64);
            }
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Numbers up to a length, three at a time; a wait before each.
    struct Numbers {
        length: u64,
        waits: bool,
    }

    impl Content for Numbers {
        fn poll_bytes(&mut self, _: &mut Context<'_>, range: &Range<u64>) -> Poll<io::Result<Option<Bytes>>> {
            self.waits = !self.waits;
            if self.waits {
                return Poll::Pending;
            }
            let end = range.end.min(self.length).min(range.start + 3);
            let bytes: Vec<u8> = (range.start..end).map(|number| number as u8).collect();
            Poll::Ready(Ok((!bytes.is_empty()).then(|| bytes.into())))
        }
    }

    /// What a body brings until it ends or fails.
    fn all(mut pieces: Pieces, length: u64) -> (Vec<u8>, Option<io::ErrorKind>) {
        let mut context = Context::from_waker(Waker::noop());
        let (mut content, mut all) = (Numbers { length, waits: false }, Vec::new());
        loop {
            match pieces.poll_next(&mut context, &mut content) {
                Poll::Pending => {}
                Poll::Ready(None) => return (all, None),
                Poll::Ready(Some(Ok(frame))) => all.extend_from_slice(frame.data_ref().unwrap()),
                Poll::Ready(Some(Err(error))) => return (all, Some(error.kind())),
            }
        }
    }

    #[test]
    fn texts_and_parts_come_in_order() {
        let text = |text: &'static str| Piece::Text(Bytes::from_static(text.as_bytes()));
        let pieces = Pieces::new([text("a"), Piece::File(2..6), text("b"), Piece::File(0..1)]);
        assert_eq!((pieces.left(), pieces.is_over()), (Some(7), false));
        assert_eq!(all(pieces, 10), (vec![b'a', 2, 3, 4, 5, b'b', 0], None));
    }

    #[test]
    fn what_has_no_length_ends_where_its_content_does() {
        assert_eq!(all(Pieces::endless(), 4), (vec![0, 1, 2, 3], None));
    }

    #[test]
    fn what_ends_before_its_length_is_an_error() {
        let short = all(Pieces::new([Piece::File(0..6)]), 4);
        assert_eq!(short, (vec![0, 1, 2, 3], Some(io::ErrorKind::UnexpectedEof)));
    }
}
