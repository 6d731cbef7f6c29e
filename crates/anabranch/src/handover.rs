//! From one run of `anabranch serve` to the next without a broken answer: the new one gets the sockets that
//! are listened at, and the old one ends when its answers have ended.

use std::env;
use std::io;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::process::{Command, Stdio};

use command_fds::{CommandFdExt, FdMapping};
use tokio::io::AsyncReadExt;
use tokio::signal::unix::Signal;

use crate::output::Output;

/// Set where a run before waits at standard input to be told that this one serves.
const TAKES_OVER: &str = "ANABRANCH_TAKES_OVER";
/// The first file that a program is handed (`sd_listen_fds(3)`).
const FIRST_FILE: i32 = 3;

/// Starts the program again at each of these signals. Ready when a new run serves at the sockets.
pub async fn to_a_new_run(mut signal: Signal, sockets: Vec<OwnedFd>, output: Output) {
    while signal.recv().await.is_some() {
        match start(&sockets).await {
            Ok(process) => {
                output
                    .say(format_args!("process {process} serves from now on; running responses go on here"));
                return;
            }
            Err(error) => output.warn(format_args!("no other run takes over, this one goes on: {error}")),
        }
    }
    std::future::pending::<()>().await;
}

/// Starts the program as it was started, with these sockets, and waits until it serves.
async fn start(sockets: &[OwnedFd]) -> io::Result<u32> {
    let words: Vec<_> = env::args_os().collect();
    let (program, arguments) =
        words.split_first().ok_or_else(|| io::Error::other("the program's name is not known"))?;
    let (told, telling) = UnixStream::pair()?;
    told.set_nonblocking(true)?;
    let mut told = tokio::net::UnixStream::from_std(told)?;
    let handed = (FIRST_FILE..).zip(sockets).map(|(child_fd, socket)| {
        let parent_fd = socket.try_clone()?;
        Ok(FdMapping { parent_fd, child_fd })
    });
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::from(OwnedFd::from(telling))).env(TAKES_OVER, "1");
    command.env("LISTEN_FDS", sockets.len().to_string());
    command.env_remove("LISTEN_PID").env_remove("LISTEN_FDS_FIRST_FD");
    command.fd_mappings(handed.collect::<io::Result<_>>()?).map_err(io::Error::other)?;
    let mut child = command.spawn()?;
    // Its end of the pair is only the new run's from now on: where that ends, reading does.
    drop(command);
    if told.read(&mut [0]).await? == 0 {
        let ended = tokio::task::spawn_blocking(move || child.wait()).await.map_err(io::Error::other)??;
        return Err(io::Error::other(format!("the new one ended with {ended}")));
    }
    Ok(child.id())
}

/// Tells a run that hands over, and systemd, that this one serves.
///
/// # Errors
/// systemd cannot be told.
pub fn tell_ready() -> io::Result<()> {
    if env::var_os(TAKES_OVER).is_some() {
        // A run before that has ended meanwhile need not know.
        let _ = rustix::io::write(io::stdin(), b"1");
    }
    let Some(path) = env::var_os("NOTIFY_SOCKET") else { return Ok(()) };
    let address = match path.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(path)?,
    };
    let state = format!("READY=1\nMAINPID={}", std::process::id());
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}
