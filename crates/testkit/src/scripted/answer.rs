//! An answer as steps that a server takes one after the other.

use std::fmt::Write as _;
use std::io::{self, BufRead, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

/// What is done on a connection in answer to a request: nothing at first, and then what its methods add, in
/// their order. Afterwards the connection waits for the next request.
///
/// ```
/// use std::time::Duration;
///
/// use anabranch_testkit::{Answer, ScriptedServer, status};
///
/// let server = ScriptedServer::of(b"a film", |asked| match asked.number {
///     0 => status("503 Service Unavailable", "Retry-After: 1\r\n").hang_up(),
///     1 => asked.good_head().send("a").wait(Duration::from_secs(1)).reset(),
///     _ => asked.good(),
/// });
/// assert_eq!(server.requests(), 0);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Answer(Vec<Step>);

#[derive(Clone, Debug)]
enum Step {
    Send(Vec<u8>),
    SendForEver(Vec<u8>),
    SendInPieces { bytes: Vec<u8>, size: usize, pause: Duration },
    Wait(Duration),
    Silence,
    HangUp,
    Reset,
}

impl Answer {
    /// A head with this status and these lines.
    pub fn head(status: &str, lines: &[String]) -> Self {
        let mut head = format!("HTTP/1.1 {status}\r\n");
        for line in lines {
            write!(head, "{line}\r\n").expect("a string takes all");
        }
        Self::default().send(head + "\r\n")
    }

    fn and(mut self, step: Step) -> Self {
        self.0.push(step);
        self
    }

    /// Takes the steps of another answer after its own.
    pub fn then(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Sends any bytes.
    pub fn send(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.and(Step::Send(bytes.into()))
    }

    /// Sends the same bytes again and again until the client hangs up.
    pub fn send_for_ever(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.and(Step::SendForEver(bytes.into()))
    }

    /// Sends bytes in pieces of this size, and makes a pause after each.
    pub fn send_in_pieces(self, bytes: impl Into<Vec<u8>>, size: usize, pause: Duration) -> Self {
        self.and(Step::SendInPieces { bytes: bytes.into(), size, pause })
    }

    /// Waits.
    pub fn wait(self, time: Duration) -> Self {
        self.and(Step::Wait(time))
    }

    /// Says nothing until the client hangs up.
    pub fn silence(self) -> Self {
        self.and(Step::Silence)
    }

    /// Closes the connection in good order.
    pub fn hang_up(self) -> Self {
        self.and(Step::HangUp)
    }

    /// Cuts the connection with a reset, a little later, so that what was sent before it arrives before it.
    pub fn reset(self) -> Self {
        self.wait(Duration::from_millis(5)).and(Step::Reset)
    }

    /// Takes all steps; says whether the connection goes on.
    pub(super) fn send_on(&self, mut stream: &TcpStream, input: &mut impl BufRead) -> io::Result<bool> {
        for step in &self.0 {
            match step {
                Step::Send(bytes) => stream.write_all(bytes)?,
                Step::SendForEver(bytes) => loop {
                    stream.write_all(bytes)?;
                },
                Step::SendInPieces { bytes, size, pause } => {
                    for piece in bytes.chunks(*size) {
                        stream.write_all(piece)?;
                        sleep(*pause);
                    }
                }
                Step::Wait(time) => sleep(*time),
                Step::Silence => {
                    io::copy(input, &mut io::sink())?;
                    return Ok(false);
                }
                Step::HangUp => return Ok(false),
                Step::Reset => {
                    set_socket_linger(stream, Some(Duration::ZERO))?;
                    return Ok(false);
                }
            }
        }
        Ok(!self.says_close())
    }

    /// Whether the head that is sent first ends the connection.
    fn says_close(&self) -> bool {
        let Some(Step::Send(sent)) = self.0.first() else { return false };
        let end = sent.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(sent.len());
        String::from_utf8_lossy(&sent[..end]).to_ascii_lowercase().contains("\r\nconnection: close")
    }
}

/// These bytes; without any, the connection is closed.
impl From<Vec<u8>> for Answer {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.is_empty() { Self::default().hang_up() } else { Self::default().send(bytes) }
    }
}

/// A status without a body; each of the lines besides ends in CR and LF.
pub fn status(status: &str, lines: &str) -> Answer {
    Answer::default().send(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n{lines}\r\n"))
}

/// Everything, as a server without ranges answers.
pub fn whole(film: &[u8]) -> Answer {
    Answer::head("200 OK", &[format!("Content-Length: {}", film.len())]).send(film)
}
