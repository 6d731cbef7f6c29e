//! Takes responses apart as they come, without any I/O: what arrived goes in, heads and payload come out.

use std::collections::VecDeque;

use anabranch_units::Bytes;
use bytes::{Buf, BytesMut};

use super::chunked::ChunkedDecoder;
use super::error::{Error, Malformed};
use super::head::{LONGEST_HEAD, ResponseHead};
use super::request::Method;

/// Most requests without an answer. Two keep a connection busy; this only bounds the memory.
pub(super) const MOST_IN_FLIGHT: usize = 16;

/// Most interim responses (1xx) before a final one.
const MOST_INTERIM: usize = 16;

/// How every response begins that can be understood here.
const HTTP_1: &[u8] = b"HTTP/1.";

/// What came over the connection.
#[derive(Debug)]
pub enum Received {
    /// The head of the response to the oldest request without one.
    Head(Box<ResponseHead>),
    /// So many bytes of the body were put at the end of the buffer, at least one.
    Data(usize),
    /// The response is complete.
    End {
        /// Whether the connection can be used further.
        keep_alive: bool,
    },
    /// The server closed the connection between two responses; requests without an answer will not get one.
    Closed,
}

/// What the decoder wants next.
#[derive(Debug)]
pub(super) enum Step {
    /// It has something.
    Got(Received),
    /// Read into its own input.
    Fill,
    /// Read up to so many bytes straight to the end of the caller's buffer, then tell [`Decoder::delivered`].
    Deliver(usize),
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    method: Method,
    upgrade: bool,
}

#[derive(Debug)]
enum State {
    /// Between two responses, or inside a head.
    Head,
    Body(Body),
    /// Another protocol goes on here.
    Upgraded,
    Closed,
}

#[derive(Debug)]
struct Body {
    framing: Framing,
    keep_alive: bool,
}

#[derive(Debug)]
enum Framing {
    Length(u64),
    Chunked(ChunkedDecoder),
    UntilClose,
}

#[derive(Debug)]
pub(super) struct Decoder {
    /// Arrived and not yet understood.
    pub(super) input: BytesMut,
    /// How much of a head was searched for its end.
    searched: usize,
    interim: usize,
    asked: VecDeque<Asked>,
    /// Whether the server has answered here and keeps the connection.
    persistent: bool,
    state: State,
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self {
            input: BytesMut::new(),
            searched: 0,
            interim: 0,
            asked: VecDeque::with_capacity(2),
            persistent: false,
            state: State::Head,
        }
    }

    /// A request goes out.
    pub(super) fn expect(&mut self, method: Method, upgrade: bool) -> Result<(), Error> {
        if !self.is_open() {
            return Err(Error::Closed);
        }
        if self.asked.len() >= MOST_IN_FLIGHT {
            return Err(Error::TooManyInFlight);
        }
        self.asked.push_back(Asked { method, upgrade });
        Ok(())
    }

    /// Requests whose response has not ended.
    pub(super) fn in_flight(&self) -> usize {
        self.asked.len() + usize::from(matches!(self.state, State::Body(_)))
    }

    /// Whether requests can still be sent.
    pub(super) fn is_open(&self) -> bool {
        match &self.state {
            State::Head => true,
            State::Body(body) => body.keep_alive,
            State::Upgraded | State::Closed => false,
        }
    }

    /// Whether a request can go out now: behind others only when the server is known to keep the connection
    /// (RFC 9112, 9.3.2). One that closes would answer what it does not read with a reset, and that destroys
    /// what it has sent.
    pub(super) fn may_send(&self) -> bool {
        self.is_open() && (self.in_flight() == 0 || self.persistent)
    }

    pub(super) fn is_upgraded(&self) -> bool {
        matches!(self.state, State::Upgraded)
    }

    /// Nothing more can come.
    pub(super) fn close(&mut self) {
        self.state = State::Closed;
        self.asked.clear();
    }

    /// The next thing that is known; payload goes to the end of `buffer`, whose room it does not exceed.
    pub(super) fn step(&mut self, buffer: &mut BytesMut) -> Result<Step, Error> {
        let body = match &mut self.state {
            State::Closed | State::Upgraded => return Ok(Step::Got(Received::Closed)),
            State::Head => {
                return Ok(match self.head()? {
                    Some(head) => Step::Got(Received::Head(Box::new(head))),
                    None if self.is_open() => Step::Fill,
                    None => Step::Got(Received::Closed),
                });
            }
            State::Body(body) => body,
        };
        let left = match &mut body.framing {
            Framing::Length(left) => *left,
            Framing::UntilClose => u64::MAX,
            Framing::Chunked(chunks) => {
                let framing = chunks.advance(&self.input)?;
                self.input.advance(framing);
                match chunks.data() {
                    0 if !chunks.is_done() => return Ok(Step::Fill),
                    left => left,
                }
            }
        };
        if left == 0 {
            return Ok(Step::Got(self.end()));
        }
        let room = buffer.capacity() - buffer.len();
        let limit = room.min(Bytes::new(left).as_usize());
        if self.input.is_empty() {
            return Ok(Step::Deliver(limit));
        }
        let count = self.input.len().min(limit);
        buffer.extend_from_slice(&self.input.split_to(count));
        self.delivered(count);
        Ok(Step::Got(Received::Data(count)))
    }

    /// `count` bytes of payload went to the caller.
    pub(super) fn delivered(&mut self, count: usize) {
        let count = Bytes::of(count).get();
        if let State::Body(Body { framing, .. }) = &mut self.state {
            match framing {
                Framing::Length(left) => *left = left.saturating_sub(count),
                Framing::Chunked(chunks) => chunks.took(count),
                Framing::UntilClose => {}
            }
        }
    }

    /// The server closed its side; `properly`: not in a way that an attacker on the path could imitate (TLS,
    /// RFC 9112, 9.8).
    pub(super) fn end_of_stream(&mut self, properly: bool) -> Result<Received, Error> {
        match &self.state {
            State::Body(Body { framing: Framing::UntilClose, .. }) if properly => Ok(self.end()),
            State::Body(Body { framing: Framing::UntilClose, .. }) => Err(Error::CutOff),
            State::Body(Body { framing: Framing::Length(left), .. }) => {
                Err(Error::Truncated { missing: Some(Bytes::new(*left)) })
            }
            State::Body(_) => Err(Error::Truncated { missing: None }),
            State::Head if !self.input.is_empty() => Err(Error::Truncated { missing: None }),
            State::Head | State::Upgraded | State::Closed => {
                self.close();
                Ok(Received::Closed)
            }
        }
    }

    fn end(&mut self) -> Received {
        let keep_alive = matches!(&self.state, State::Body(body) if body.keep_alive);
        if keep_alive {
            self.state = State::Head;
        } else {
            self.close();
        }
        Received::End { keep_alive }
    }

    /// Takes a final head off the input, and the interim ones before it; `None` when more input is needed.
    fn head(&mut self) -> Result<Option<ResponseHead>, Error> {
        let Some(&asked) = self.asked.front() else {
            return self.unasked();
        };
        while self.head_is_waiting()? {
            let Some((head, length)) = ResponseHead::parse(&self.input)? else {
                return Err(Malformed("its head is not HTTP").into());
            };
            self.input.advance(length);
            self.searched = 0;
            match head.status {
                101 if asked.upgrade => {
                    self.close();
                    self.state = State::Upgraded;
                    return Ok(Some(head));
                }
                101 => return Err(Malformed("it changes to a protocol that was not asked for").into()),
                100..=199 => self.interim += 1,
                _ => {
                    self.begin_body(asked.method, &head);
                    return Ok(Some(head));
                }
            }
            if self.interim > MOST_INTERIM {
                return Err(Malformed("it only says that it will come (1xx)").into());
            }
        }
        Ok(None)
    }

    /// Something came that answers no request.
    fn unasked(&mut self) -> Result<Option<ResponseHead>, Error> {
        if self.input.get(9..12) == Some(b"408") {
            // The server gave up waiting for a request: another way to close an idle connection (RFC 9110,
            // 15.5.9).
            self.close();
        } else if !self.input.is_empty() {
            return Err(Malformed("nobody asked for it").into());
        }
        Ok(None)
    }

    fn begin_body(&mut self, method: Method, head: &ResponseHead) {
        self.interim = 0;
        self.asked.pop_front();
        // RFC 9112, 6.3.
        let framing = match head.content_length {
            _ if method == Method::Head || matches!(head.status, 204 | 304) => Framing::Length(0),
            _ if head.chunked => Framing::Chunked(ChunkedDecoder::default()),
            Some(length) => Framing::Length(length),
            None => Framing::UntilClose,
        };
        let keep_alive = head.keep_alive && !matches!(framing, Framing::UntilClose);
        self.persistent = keep_alive;
        self.state = State::Body(Body { framing, keep_alive });
    }

    /// Whether the end of a head (an empty line) is in the input.
    fn head_is_waiting(&mut self) -> Result<bool, Malformed> {
        // Whoever speaks another protocol may wait for us after its greeting: do not wait for the end of a
        // head.
        let start = &self.input[..self.input.len().min(HTTP_1.len())];
        if !HTTP_1.starts_with(start) {
            return Err(Malformed("it is not HTTP/1"));
        }
        let unseen = &self.input[self.searched.saturating_sub(2)..];
        if unseen.windows(2).any(|end| end == b"\n\n") || unseen.windows(3).any(|end| end == b"\n\r\n") {
            return Ok(true);
        }
        self.searched = self.input.len();
        if self.input.len() >= LONGEST_HEAD.as_usize() {
            return Err(Malformed("its head does not end within 64 KiB"));
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests;
