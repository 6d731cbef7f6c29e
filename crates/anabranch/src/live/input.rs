//! Where a live stream comes from, at its own pace.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use anabranch_live::ts::{Clock, NoClock, Packetiser, Part};
use anabranch_protocol::live::wire::MAX_PAYLOAD;
use anabranch_sockets::ListenError;
#[cfg(feature = "srt")]
use anabranch_srt::Peers;
use anabranch_units::{Bytes, Rate};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncSeekExt};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::datagrams::{Datagrams, Inlet, cannot_receive};
#[cfg(feature = "srt")]
use super::srt;
use crate::arguments::Endpoint;
use crate::failure::Failure;
use crate::output::Output;

/// What is read at once.
const READ: usize = 64 * 1024;
/// What standard input is called.
const STANDARD: &str = "standard input";
/// A payload that is not full waits for so long at the most.
const PATIENCE: Duration = Duration::from_millis(20);

/// An opened input.
pub(super) enum Source {
    Udp(UdpSocket, SocketAddr),
    #[cfg(feature = "srt")]
    Srt(Peers),
    File(File, String),
    Standard,
}

impl Source {
    /// Opens it, and looks whether a file tells its rate when none is given, before a receiver is asked for.
    ///
    /// # Errors
    /// It cannot be read, or tells no rate.
    pub(super) async fn open(from: &Endpoint, rate: Option<Rate>) -> Result<Self, Failure> {
        match from {
            Endpoint::Udp(address) => {
                let failure = |error: std::io::Error| cannot_receive(*address, &error);
                let socket = UdpSocket::bind(address).await;
                let socket = socket.map_err(|error| Failure::failed(ListenError::new(*address, &error)))?;
                if let SocketAddr::V4(v4) = address
                    && v4.ip().is_multicast()
                {
                    socket.join_multicast_v4(*v4.ip(), Ipv4Addr::UNSPECIFIED).map_err(failure)?;
                }
                // Bursts of an encoder's key frames are longer than the system's buffer.
                let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(4 << 20);
                Ok(Self::Udp(socket, *address))
            }
            #[cfg(feature = "srt")]
            Endpoint::Srt(address) => srt::peers(address, 1).map(Self::Srt),
            Endpoint::File(path) => {
                let name = path.display().to_string();
                let mut file = File::open(path).await.map_err(|error| cannot_read(&name, &error))?;
                let metadata = file.metadata().await.map_err(|error| cannot_read(&name, &error))?;
                if metadata.is_dir() {
                    return Err(cannot_read(&name, &ErrorKind::IsADirectory.into()));
                }
                // What comes through a pipe comes once.
                if rate.is_none() && metadata.is_file() {
                    find_clock(&mut file, &name).await?;
                }
                Ok(Self::File(file, name))
            }
            Endpoint::Standard => Ok(Self::Standard),
        }
    }
}

fn cannot_read(name: &str, error: &std::io::Error) -> Failure {
    Failure::failed(format_args!("cannot read {name}: {error}"))
}

fn has_no_clock(name: &str) -> Failure {
    Failure::usage(format_args!("{name}: {NoClock}"))
}

/// Looks for what tells the rate, and goes back to the beginning.
async fn find_clock(file: &mut File, name: &str) -> Result<(), Failure> {
    let (mut packetiser, mut clock, mut buffer) = (Packetiser::new(), Clock::default(), vec![0; READ]);
    while clock.has_no_rate() {
        let length = file.read(&mut buffer).await.map_err(|error| cannot_read(name, &error))?;
        let payloads = match length {
            0 => packetiser.flush(MAX_PAYLOAD, true),
            _ => packetiser.push(&buffer[..length], MAX_PAYLOAD),
        };
        for payload in payloads {
            clock.push(payload).map_err(|NoClock| has_no_clock(name))?;
        }
        if length == 0 && clock.has_no_rate() {
            return Err(has_no_clock(name));
        }
    }
    file.rewind().await.map(drop).map_err(|error| cannot_read(name, &error))
}

/// Passes payloads on, at most of the size that `most` tells.
pub(super) struct Input<F> {
    pub(super) payloads: mpsc::Sender<Arc<[u8]>>,
    pub(super) most: F,
    pub(super) rate: Option<Rate>,
    pub(super) output: Output,
}

impl<F: Fn() -> usize> Input<F> {
    /// Reads to the end of the input, which UDP and SRT do not have.
    ///
    /// # Errors
    /// It cannot be read, or tells no rate.
    pub(super) async fn run(self, from: Source) -> Result<(), Failure> {
        let mut packetiser = Packetiser::new();
        let ended = match from {
            Source::Udp(socket, address) => {
                let inlet = socket.into_std().and_then(Inlet::new);
                let inlet = inlet.map_err(|error| cannot_receive(address, &error))?;
                self.datagrams(Datagrams::Udp(Box::new(inlet), address), &mut packetiser).await
            }
            #[cfg(feature = "srt")]
            Source::Srt(peers) => {
                let packets = srt::Packets::of(peers, self.output.clone());
                self.datagrams(Datagrams::Srt(packets), &mut packetiser).await
            }
            Source::File(file, name) => self.file(file, &name, &mut packetiser).await,
            Source::Standard => {
                let input = std::io::stdin().as_fd().try_clone_to_owned();
                let input = input.map_err(|error| cannot_read(STANDARD, &error))?;
                let input = File::from_std(input.into());
                match self.rate {
                    Some(rate) => self.paced(input, rate, &mut packetiser, STANDARD).await,
                    None => self.live(input, &mut packetiser).await,
                }
            }
        };
        let skipped = packetiser.skipped();
        if !skipped.is_zero() {
            self.output.warn(format_args!(
                "{skipped} of the input were no whole packets of a transport stream: skipped"
            ));
        }
        ended
    }

    /// `false`: nobody takes them any more.
    async fn pass(&self, payloads: Vec<Arc<[u8]>>) -> bool {
        for payload in payloads {
            if self.payloads.send(payload).await.is_err() {
                return false;
            }
        }
        true
    }

    async fn datagrams(&self, mut from: Datagrams, packetiser: &mut Packetiser) -> Result<(), Failure> {
        loop {
            let mut payloads = Vec::new();
            let waits = packetiser.is_waiting();
            let come = from.receive(|datagram| payloads.extend(packetiser.push(datagram, (self.most)())));
            if !waits {
                come.await?;
            } else if let Ok(come) = timeout(PATIENCE, come).await {
                come?;
            } else {
                payloads = packetiser.flush((self.most)(), false);
                if payloads.is_empty() {
                    // A piece of a packet: only more input helps.
                    from.receive(|datagram| payloads.extend(packetiser.push(datagram, (self.most)())))
                        .await?;
                }
            }
            // A burst goes on as one.
            if !self.pass(payloads).await {
                return Ok(());
            }
        }
    }

    /// As it comes.
    async fn live(
        &self,
        mut input: impl AsyncRead + Unpin,
        packetiser: &mut Packetiser,
    ) -> Result<(), Failure> {
        let mut buffer = vec![0; READ];
        loop {
            let read = input.read(&mut buffer).await;
            let length = read.map_err(|error| cannot_read(STANDARD, &error))?;
            let payloads = match length {
                0 => packetiser.flush((self.most)(), true),
                _ => packetiser.push(&buffer[..length], (self.most)()),
            };
            if !self.pass(payloads).await || length == 0 {
                return Ok(());
            }
        }
    }

    async fn file(&self, mut file: File, name: &str, packetiser: &mut Packetiser) -> Result<(), Failure> {
        if let Some(rate) = self.rate {
            return self.paced(file, rate, packetiser, name).await;
        }
        let mut clock = Clock::default();
        let (mut buffer, began) = (vec![0; READ], Instant::now());
        loop {
            let length = file.read(&mut buffer).await.map_err(|error| cannot_read(name, &error))?;
            let payloads = match length {
                0 => packetiser.flush((self.most)(), true),
                _ => packetiser.push(&buffer[..length], (self.most)()),
            };
            for payload in payloads {
                let part = clock.push(payload).map_err(|NoClock| has_no_clock(name))?;
                if let Some(part) = part
                    && !self.part(part, began).await
                {
                    return Ok(());
                }
            }
            if length == 0 {
                break;
            }
        }
        if clock.has_no_rate() {
            return Err(has_no_clock(name));
        }
        if let Some(part) = clock.finish() {
            self.part(part, began).await;
        }
        Ok(())
    }

    /// Passes a part on, evenly over its time.
    async fn part(&self, part: Part, began: Instant) -> bool {
        let count = u32::try_from(part.payloads.len().max(1)).unwrap_or(u32::MAX);
        let step = Duration::from((part.ends - part.begins) / u64::from(count));
        let first = began + Duration::from(part.begins);
        for (number, payload) in (0..).zip(part.payloads) {
            sleep_until(first + step * number).await;
            if self.payloads.send(payload).await.is_err() {
                return false;
            }
        }
        true
    }

    async fn paced(
        &self,
        mut input: impl AsyncRead + Unpin,
        rate: Rate,
        packetiser: &mut Packetiser,
        name: &str,
    ) -> Result<(), Failure> {
        let (mut buffer, began, mut sent) = (vec![0; READ], Instant::now(), Bytes::ZERO);
        loop {
            let read = input.read(&mut buffer).await;
            let length = read.map_err(|error| cannot_read(name, &error))?;
            let payloads = match length {
                0 => packetiser.flush((self.most)(), true),
                _ => packetiser.push(&buffer[..length], (self.most)()),
            };
            for payload in payloads {
                sleep_until(began + Duration::from(rate.time_for(sent))).await;
                sent += Bytes::of(payload.len());
                if self.payloads.send(payload).await.is_err() {
                    return Ok(());
                }
            }
            if length == 0 {
                return Ok(());
            }
        }
    }
}
