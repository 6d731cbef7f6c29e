//! `--tell-rate`: programs that connect are told which rate fits, for an encoder that follows.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::{Duration, Instant};

use anabranch_live::SenderStatus;
use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::arguments::TellRate;
use crate::failure::Failure;
use crate::output::Output;

/// Most programs that are told at a time.
const MOST_LISTENERS: usize = 16;
/// Lines follow each other no sooner than this, and no later than that.
const LEAST_INTERVAL: Duration = Duration::from_millis(50);
const MOST_INTERVAL: Duration = Duration::from_secs(1);
/// Who takes no line for so long is not told any more.
const PATIENCE: Duration = Duration::from_secs(5);
/// A rate that changes by a hundredth is told.
const CHANGE: u64 = 100;

/// A line.
#[derive(Clone, Copy, Debug, Serialize)]
struct Line {
    at_s: f64,
    fitting_rate_bps: u64,
    available_rate_bps: u64,
    waiting_bytes: u64,
    rtt_s: Option<f64>,
}

/// Tells until it is dropped.
pub(super) struct Teller {
    _listening: JoinSet<()>,
    /// What is to be removed in the end.
    socket: Option<PathBuf>,
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

type Stream = Pin<Box<dyn AsyncWrite + Send>>;

impl Listener {
    async fn accept(&self) -> io::Result<Stream> {
        Ok(match self {
            Self::Tcp(listener) => Box::pin(listener.accept().await?.0),
            Self::Unix(listener) => Box::pin(listener.accept().await?.0),
        })
    }
}

impl Teller {
    /// Listens.
    ///
    /// # Errors
    /// It cannot be listened there.
    pub(super) async fn start(
        at: &TellRate,
        status: watch::Receiver<SenderStatus>,
        output: &Output,
    ) -> Result<Self, Failure> {
        let failure =
            |error: io::Error| Failure::failed(format_args!("cannot tell the rate at {at}: {error}"));
        let (listener, socket) = match at {
            TellRate::Tcp(address) => {
                let listener = TcpListener::bind(address).await.map_err(failure)?;
                let address = listener.local_addr().map_err(failure)?;
                output.say(format_args!("tells the rate at {address}"));
                (Listener::Tcp(listener), None)
            }
            TellRate::Unix(path) => {
                remove_forgotten(path).await.map_err(failure)?;
                let listener = UnixListener::bind(path).map_err(failure)?;
                output.say(format_args!("tells the rate at {at}"));
                (Listener::Unix(listener), Some(path.clone()))
            }
        };
        let mut listening = JoinSet::new();
        listening.spawn(accept(listener, status));
        Ok(Self { _listening: listening, socket })
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            // It may have been removed.
            let _ = std::fs::remove_file(socket);
        }
    }
}

/// Removes the socket of a program that was killed: nobody listens there.
async fn remove_forgotten(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

async fn accept(listener: Listener, status: watch::Receiver<SenderStatus>) {
    let began = Instant::now();
    let mut told = JoinSet::new();
    loop {
        let stream = listener.accept().await;
        while told.try_join_next().is_some() {}
        match stream {
            // Who is too many is hung up on.
            Ok(stream) if told.len() < MOST_LISTENERS => {
                told.spawn(tell(stream, status.clone(), began));
            }
            Ok(_) => {}
            // There are no descriptors left, for example.
            Err(_) => tokio::time::sleep(MOST_INTERVAL).await,
        }
    }
}

/// Until it does not listen any more, or the sender ends.
async fn tell(mut to: Stream, mut status: watch::Receiver<SenderStatus>, began: Instant) {
    loop {
        let line = line(&status.borrow_and_update(), began);
        let last = line.fitting_rate_bps;
        let Ok(mut text) = serde_json::to_vec(&line) else { return };
        text.push(b'\n');
        if !matches!(timeout(PATIENCE, to.write_all(&text)).await, Ok(Ok(()))) {
            return;
        }
        tokio::time::sleep(LEAST_INTERVAL).await;
        let is_news = |status: &SenderStatus| last.abs_diff(status.fitting_rate.as_bps()) > last / CHANGE;
        let has_ended = matches!(timeout(MOST_INTERVAL, status.wait_for(is_news)).await, Ok(Err(_)));
        if has_ended {
            return;
        }
    }
}

fn line(status: &SenderStatus, began: Instant) -> Line {
    Line {
        at_s: began.elapsed().as_secs_f64(),
        fitting_rate_bps: status.fitting_rate.as_bps(),
        available_rate_bps: status.available_rate.as_bps(),
        waiting_bytes: status.waiting.get(),
        rtt_s: status.rtt().map(anabranch_units::Duration::as_secs_f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_a_line_is_documented() {
        let line = line(&SenderStatus::default(), Instant::now());
        crate::documented::keys("### Of `--tell-rate`", &line);
    }
}
