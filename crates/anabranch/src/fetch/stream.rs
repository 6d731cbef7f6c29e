//! In order, to where nothing can be changed any more: standard output, a pipe, a device.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anabranch_client::{Settings, Storage};
use anabranch_units::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::digest::{Check, mismatch};
use crate::arguments::Digest;
use crate::failure::Failure;
use crate::opening::open as open_film;
use crate::output::Output;
use crate::report::Reporter;

/// Pieces of at most 64 KiB that wait for the reader of our output.
const WAITING_PIECES: usize = 16;

/// To standard output.
pub(super) async fn to_standard_output(
    settings: Settings,
    digest: Option<Digest>,
    reporter: &Reporter,
    output: &Output,
) -> Result<(), Failure> {
    fetch(settings, digest, || Ok(io::stdout()), Failure::output, reporter, output).await
}

/// To a file that exists and is none that keeps what is written: a pipe, a device.
pub(super) async fn to_special_file(
    path: &Path,
    settings: Settings,
    digest: Option<Digest>,
    reporter: &Reporter,
    output: &Output,
) -> Result<(), Failure> {
    let failed =
        |error: &io::Error| Failure::failed(format_args!("cannot write to {}: {error}", path.display()));
    let owned = path.to_owned();
    let open = move || {
        let file = std::fs::OpenOptions::new().write(true).open(&owned)?;
        match file.is_terminal() {
            true => Err(io::Error::other("it is a terminal, which media would garble")),
            false => Ok(file),
        }
    };
    fetch(settings, digest, open, failed, reporter, output).await
}

async fn fetch<W: Write>(
    settings: Settings,
    digest: Option<Digest>,
    open: impl FnOnce() -> io::Result<W> + Send + 'static,
    write_failure: impl Fn(&io::Error) -> Failure,
    reporter: &Reporter,
    output: &Output,
) -> Result<(), Failure> {
    let film = tokio::select! {
        film = open_film(settings, |_| Ok(Storage::Memory), output) => film.map_err(Failure::failed)?,
        signal = output.stop().signal() => return Err(Failure::stopped(signal, "stopped")),
    };
    let _watch = reporter.watch(&film);
    let (pieces, waiting) = mpsc::channel(WAITING_PIECES);
    let mut ended = write_in_thread(open, waiting)?;
    let mut check = digest.map(Check::new);
    let reading = async {
        let mut reader = film.reader(0..u64::MAX);
        while let Some(piece) = reader.next().await.map_err(Failure::failed)? {
            if let Some(check) = &mut check {
                check.update(&piece);
            }
            // Fails when the writer has ended, and then it says why.
            if pieces.send(piece).await.is_err() {
                break;
            }
        }
        drop(pieces);
        Ok::<_, Failure>(())
    };
    let stopped = || async {
        let signal = output.stop().signal().await;
        Failure::stopped(signal, "stopped before the end")
    };
    tokio::select! {
        result = reading => result?,
        failure = stopped() => return Err(failure),
    }
    tokio::select! {
        written = &mut ended => match written {
            Ok(written) => written.map_err(|error| write_failure(&error))?,
            Err(_) => return Err(Failure::failed("the thread that writes has ended")),
        },
        failure = stopped() => return Err(failure),
    }
    if let (Some(check), Some(wanted)) = (check, digest) {
        // It says more than any server.
        return check.finish().map_err(|found| mismatch("what was written", wanted, found));
    }
    film.shut_down().await;
    let grown = tokio::select! {
        grown = film.check() => grown.map_err(Failure::failed)?,
        failure = stopped() => return Err(failure),
    };
    if let Some(now) = grown {
        output.say(format_args!(
            "this is the film as it was at first: it has grown to {} since",
            Bytes::new(now)
        ));
    }
    Ok(())
}

/// Writes pieces in a thread of its own: a pipe that nobody reads may hold it for ever.
fn write_in_thread<W: Write>(
    open: impl FnOnce() -> io::Result<W> + Send + 'static,
    mut pieces: mpsc::Receiver<bytes::Bytes>,
) -> Result<oneshot::Receiver<io::Result<()>>, Failure> {
    let (sender, receiver) = oneshot::channel();
    let work = move || {
        let write = || {
            let mut out = open()?;
            while let Some(piece) = pieces.blocking_recv() {
                out.write_all(&piece)?;
            }
            out.flush()
        };
        // Nobody listens any more when a signal has come.
        let _ = sender.send(write());
    };
    std::thread::Builder::new().name("output".into()).spawn(work).map_err(Failure::failed)?;
    Ok(receiver)
}
