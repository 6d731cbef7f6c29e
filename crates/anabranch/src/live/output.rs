//! Where a live stream goes.

use std::fmt::Display;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_contribution::PacketStream;
use tokio::fs::File;
use tokio::io::{AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::net::UdpSocket;
use tokio::process::ChildStdin;
use tokio::sync::mpsc;

use super::bursts::Bursts;
use super::hls::Directory;
use super::recording;
#[cfg(feature = "srt")]
use super::srt::Viewers;
use crate::arguments::Endpoint;
use crate::failure::Failure;
use crate::output::Output;

/// An opened place.
pub(super) enum Sink {
    Udp(UdpSocket, SocketAddr),
    #[cfg(feature = "srt")]
    Srt(Viewers),
    File(BufWriter<File>, String),
    Standard,
    Player(ChildStdin),
    Hls(Box<Directory>),
    /// One that does not take packets in time goes without; the other does not wait for it.
    Both(Box<[Sink; 2]>),
}

/// Where the stream of each of `senders` places goes: with more than one the files are numbered, and so are
/// the ports.
///
/// # Errors
/// They would go to one place.
pub(super) fn places(output: &Endpoint, senders: usize) -> Result<Vec<Endpoint>, Failure> {
    let port = |first: u16, number: usize, of: &dyn Display| {
        u16::try_from(usize::from(first) + number - 1).map_err(|_| {
            Failure::usage(format_args!("--output {of}: {senders} ports from there are too many"))
        })
    };
    let one = |number: usize| match output {
        Endpoint::Udp(address) => {
            let port = port(address.port(), number, &format_args!("udp://{address}"))?;
            Ok(Endpoint::Udp(SocketAddr::new(address.ip(), port)))
        }
        #[cfg(feature = "srt")]
        Endpoint::Srt(address) => {
            let port = port(address.port(), number, address)?;
            Ok(Endpoint::Srt(address.clone().with_port(port)))
        }
        Endpoint::File(path) => {
            let path = path.to_string_lossy();
            if senders > 1 && !path.contains(PLACE) {
                return Err(Failure::usage(format_args!(
                    "--senders {senders} needs a file for each: a name with {PLACE}, such as --output \
                     camera-{PLACE}.ts"
                )));
            }
            Ok(Endpoint::File(path.replace(PLACE, &number.to_string()).into()))
        }
        Endpoint::Standard if senders > 1 => Err(Failure::usage(format_args!(
            "--senders {senders} needs an output for each: --output with a name with {PLACE}, udp:// or srt://"
        ))),
        Endpoint::Standard => Ok(Endpoint::Standard),
    };
    (1..=senders).map(one).collect()
}

/// The directory of HLS of each of `senders` places, numbered as the files are.
///
/// # Errors
/// They would be one.
pub(super) fn directories(hls: &Path, senders: usize) -> Result<Vec<PathBuf>, Failure> {
    let name = hls.to_string_lossy();
    if senders == 1 {
        return Ok(vec![hls.to_owned()]);
    }
    if !name.contains(PLACE) {
        return Err(Failure::usage(format_args!(
            "--senders {senders} needs a directory for each: a name with {PLACE}, such as --hls camera-{PLACE}"
        )));
    }
    Ok((1..=senders).map(|number| name.replace(PLACE, &number.to_string()).into()).collect())
}

/// Packets that wait for one of two sinks, as many as wait for one.
const PACKETS: usize = 8192;
/// What stands for a place's number in a file's name.
const PLACE: &str = "{}";

impl Sink {
    /// Opens it before any stream comes.
    ///
    /// # Errors
    /// It cannot be written to.
    pub(super) async fn open(to: &Endpoint, output: &Output) -> Result<Self, Failure> {
        match to {
            Endpoint::Standard => Ok(Self::Standard),
            Endpoint::File(path) => {
                let failure = |error: std::io::Error| {
                    Failure::failed(format_args!("cannot write to {}: {error}", path.display()))
                };
                let wanted = path.clone();
                // A pipe opens when somebody reads it.
                let opened = tokio::task::spawn_blocking(move || recording::open(&wanted)).await;
                let (file, found) = opened.map_err(|error| failure(error.into()))?.map_err(failure)?;
                if found != *path {
                    output.say(format_args!(
                        "{} is kept: the stream goes to {}",
                        path.display(),
                        found.display()
                    ));
                }
                Ok(Self::File(BufWriter::new(File::from_std(file)), found.display().to_string()))
            }
            #[cfg(feature = "srt")]
            Endpoint::Srt(address) => Viewers::open(address, output).map(Self::Srt),
            Endpoint::Udp(address) => {
                let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let socket = UdpSocket::bind(any).await;
                let socket =
                    socket.map_err(|error| Failure::failed(format_args!("cannot send by UDP: {error}")))?;
                Ok(Self::Udp(socket, *address))
            }
        }
    }

    /// Writes until the stream ends.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) async fn run(self, packets: &mut PacketStream) -> Result<(), Failure> {
        match self {
            Self::Udp(socket, address) => {
                let socket = socket.into_std();
                let socket =
                    socket.map_err(|error| Failure::failed(format_args!("cannot send by UDP: {error}")))?;
                let mut bursts = Bursts::new(socket, address);
                while let Some(packet) = packets.recv().await {
                    bursts.push(&packet).await;
                    while let Ok(packet) = packets.try_recv() {
                        bursts.push(&packet).await;
                    }
                    bursts.flush().await;
                }
                Ok(())
            }
            #[cfg(feature = "srt")]
            Self::Srt(viewers) => viewers.run(packets).await,
            Self::File(file, name) => copy(packets, file)
                .await
                .map_err(|error| Failure::failed(format_args!("cannot write to {name}: {error}"))),
            Self::Player(input) => match copy(packets, input).await {
                // It tells itself why it ends.
                Ok(()) | Err(_) => Ok(()),
            },
            Self::Hls(directory) => directory.run(packets).await,
            Self::Both(sinks) => {
                let [one, other] = *sinks;
                let ((to_one, mut of_one), (to_other, mut of_other)) =
                    (mpsc::channel(PACKETS), mpsc::channel(PACKETS));
                let divide = async {
                    while let Some(packet) = packets.recv().await {
                        let _ = to_one.try_send(packet.clone());
                        let _ = to_other.try_send(packet);
                    }
                    drop((to_one, to_other));
                    Ok(())
                };
                let (one, other) = (Box::pin(one.run(&mut of_one)), Box::pin(other.run(&mut of_other)));
                tokio::try_join!(divide, one, other).map(|_| ())
            }
            Self::Standard => {
                let output = std::io::stdout().as_fd().try_clone_to_owned();
                let output = output.map_err(|error| Failure::output(&error))?;
                let output = BufWriter::new(File::from_std(output.into()));
                copy(packets, output).await.map_err(|error| Failure::output(&error))
            }
        }
    }
}

/// Writes everything that waits before it flushes.
async fn copy(packets: &mut PacketStream, mut to: impl AsyncWrite + Unpin) -> std::io::Result<()> {
    let mut next: Option<Arc<[u8]>> = packets.recv().await;
    while let Some(packet) = next {
        to.write_all(&packet).await?;
        next = match packets.try_recv() {
            Ok(packet) => Some(packet),
            Err(_) => {
                to.flush().await?;
                packets.recv().await
            }
        };
    }
    to.flush().await
}
