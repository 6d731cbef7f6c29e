//! Before a server that has caps: passes its connections on, and its answers no faster than allowed.
//!
//! It is a program of its own beside the server, so that both are killed as one. nginx's `limit_rate` counts
//! every request anew and lets a second's worth of each pass at once: a client that asks for small ranges
//! would never meet it. Here as in the simulator what is written goes in small pieces, a rest is not made up
//! for, and what is held back waits in the server.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use anabranch_units::{Bytes, Duration, Rate};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, sleep_until};

use crate::Error;

/// Where the server behind it listens.
pub const BEHIND: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
/// Where it listens itself.
const BEFORE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 80);
/// As much is written at once as may be in this time, in whole segments.
const PIECE: Duration = Duration::from_millis(10);
const SEGMENT: u64 = 1448;
const LARGEST_PIECE: u64 = 64 * 1024;
/// A timer that is so late is made up for.
const LATE: StdDuration = StdDuration::from_millis(20);
/// How long the server behind it may take to listen.
const PATIENCE: StdDuration = StdDuration::from_secs(10);

/// What a server's answers are held to.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Caps {
    /// The most over each connection.
    #[arg(long)]
    pub connection_cap: Option<Rate>,
    /// The most over all of them; there is one client in a run.
    #[arg(long)]
    pub client_cap: Option<Rate>,
}

impl Caps {
    /// The command that runs `server` behind a relay, with the testbed's `program`.
    pub fn command(&self, program: &str, server: Vec<String>) -> Vec<String> {
        let mut words = vec![program.to_owned(), "relay".into()];
        for (option, cap) in [("--connection-cap", self.connection_cap), ("--client-cap", self.client_cap)] {
            words.extend(cap.into_iter().flat_map(|cap| [option.to_owned(), cap.as_bps().to_string()]));
        }
        words.push("--".into());
        words.extend(server);
        words
    }

    fn piece(&self) -> usize {
        let slowest = self.connection_cap.into_iter().chain(self.client_cap).min().unwrap_or(Rate::ZERO);
        let most = slowest.amount_in(PIECE).get().min(LARGEST_PIECE);
        Bytes::new((most / SEGMENT * SEGMENT).max(SEGMENT)).as_usize()
    }
}

/// Starts the server, and passes on what comes to port 80 until both are killed.
///
/// # Errors
/// When the server cannot be started or does not listen, or the port is taken.
pub fn relay(caps: Caps, server: &[String]) -> Result<(), Error> {
    let line = server.join(" ");
    let failed = |cause: String| Error::Program { program: line.clone(), cause };
    let (program, arguments) = server.split_first().ok_or_else(|| failed("no program is named".into()))?;
    Command::new(program).args(arguments).spawn().map_err(|error| failed(error.to_string()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Error::io("the relay"))?.block_on(async {
        if tokio::time::timeout(PATIENCE, until_it_listens()).await.is_err() {
            return Err(failed("it does not listen".into()));
        }
        accept(caps).await.map_err(Error::io("port 80"))
    })
}

async fn until_it_listens() {
    while TcpStream::connect(BEHIND).await.is_err() {
        sleep(StdDuration::from_millis(20)).await;
    }
}

async fn accept(caps: Caps) -> io::Result<()> {
    let listener = TcpListener::bind(BEFORE).await?;
    let client = caps.client_cap.map(|rate| Arc::new(Pace::new(rate)));
    loop {
        let (stream, _) = listener.accept().await?;
        let own = caps.connection_cap.map(|rate| Arc::new(Pace::new(rate)));
        let paces: Vec<_> = own.into_iter().chain(client.clone()).collect();
        // A connection that fails is the client's to notice.
        tokio::spawn(async move { carry(stream, &paces, caps.piece()).await });
    }
}

/// Carries one connection until either end closes it.
async fn carry(mut client: TcpStream, paces: &[Arc<Pace>], piece: usize) -> io::Result<()> {
    let mut server = TcpStream::connect(BEHIND).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut client_reads, mut client_writes) = client.split();
    let (mut server_reads, mut server_writes) = server.split();
    let answers = async {
        let mut buffer = vec![0; piece];
        loop {
            let count = server_reads.read(&mut buffer).await?;
            if count == 0 {
                return client_writes.shutdown().await;
            }
            for pace in paces {
                pace.pass(Bytes::of(count)).await;
            }
            client_writes.write_all(&buffer[..count]).await?;
        }
    };
    let requests = async { tokio::io::copy(&mut client_reads, &mut server_writes).await.map(|_| ()) };
    tokio::select! {
        done = answers => done,
        done = requests => done,
    }
}

/// Lets pieces pass in turn, at a rate.
struct Pace {
    rate: Rate,
    /// Whoever waits for it takes turns.
    free_at: Mutex<Option<Instant>>,
}

impl Pace {
    fn new(rate: Rate) -> Self {
        Self { rate, free_at: Mutex::new(None) }
    }

    async fn pass(&self, piece: Bytes) {
        let mut free_at = self.free_at.lock().await;
        let now = Instant::now();
        let start = free_at.filter(|at| *at + LATE > now).unwrap_or(now);
        sleep_until(start).await;
        *free_at = Some(start + StdDuration::from(self.rate.time_for(piece)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_what_ten_milliseconds_bring_in_whole_segments() {
        let piece = |connection: u64, client: u64| {
            let caps = Caps {
                connection_cap: Some(Rate::from_kbps(connection)),
                client_cap: Some(Rate::from_kbps(client)),
            };
            caps.piece()
        };
        assert_eq!((piece(1000, 9000), piece(5000, 4000), piece(900_000, 800_000)), (1448, 4344, 65_160));
    }

    #[test]
    fn the_server_s_command_stands_behind_the_relay_s() {
        let caps = Caps { connection_cap: Some(Rate::from_mbps(1)), client_cap: None };
        let words = caps.command("testbed", vec!["nginx".into(), "-c".into()]);
        assert_eq!(words, ["testbed", "relay", "--connection-cap", "1000000", "--", "nginx", "-c"]);
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_wait_take_turns_at_the_rate() {
        let pace = Arc::new(Pace::new(Rate::from_mbps(8)));
        let start = Instant::now();
        let mut tasks = Vec::new();
        for _ in 0..4 {
            let pace = Arc::clone(&pace);
            tasks.push(tokio::spawn(async move {
                for _ in 0..25 {
                    pace.pass(Bytes::new(1000)).await;
                }
                start.elapsed()
            }));
        }
        let mut ended = Vec::new();
        for task in tasks {
            ended.push(task.await.unwrap().as_millis());
        }
        // A hundred pieces of a millisecond, of which the first goes at once; who came first is a turn ahead.
        assert!(ended.iter().all(|millis| *millis >= 92) && ended[3] == 99, "{ended:?}");
    }
}
