//! In order, to where nothing can be changed any more: standard output, a pipe, a device.

use std::fs::File;
use std::io::{self, IoSlice, IsTerminal, Write};
use std::os::fd::AsFd;
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

/// Pieces of at most 64 KiB that wait for the reader of our output; they go out together.
const WAITING_PIECES: usize = 16;
/// A pipe has room for as much, where it may: its reader and we wake each other less often.
const PIPE_SIZE: usize = WAITING_PIECES * 64 * 1024;

/// To standard output.
pub(super) async fn to_standard_output(
    settings: Settings,
    digest: Option<Digest>,
    reporter: &Reporter,
    output: &Output,
) -> Result<(), Failure> {
    // Not what the standard library has for text: that looks for the ends of lines.
    let open = || io::stdout().as_fd().try_clone_to_owned().map(File::from);
    fetch(settings, digest, open, Failure::output, reporter, output).await
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

async fn fetch(
    settings: Settings,
    digest: Option<Digest>,
    open: impl FnOnce() -> io::Result<File> + Send + 'static,
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
fn write_in_thread(
    open: impl FnOnce() -> io::Result<File> + Send + 'static,
    mut pieces: mpsc::Receiver<bytes::Bytes>,
) -> Result<oneshot::Receiver<io::Result<()>>, Failure> {
    let (sender, receiver) = oneshot::channel();
    let work = move || {
        let write = || {
            let mut out = open()?;
            if rustix::pipe::fcntl_getpipe_size(&out).is_ok_and(|size| size < PIPE_SIZE) {
                // One that may not be so large stays as it is.
                let _ = rustix::pipe::fcntl_setpipe_size(&out, PIPE_SIZE);
            }
            let mut together = Vec::with_capacity(WAITING_PIECES);
            while pieces.blocking_recv_many(&mut together, WAITING_PIECES) > 0 {
                write_together(&mut out, &together)?;
                together.clear();
            }
            out.flush()
        };
        // Nobody listens any more when a signal has come.
        let _ = sender.send(write());
    };
    std::thread::Builder::new().name("output".into()).spawn(work).map_err(Failure::failed)?;
    Ok(receiver)
}

/// Writes all of these, with as few calls as that takes.
fn write_together(out: &mut impl Write, pieces: &[bytes::Bytes]) -> io::Result<()> {
    let mut slices: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    let mut left = &mut slices[..];
    while !left.is_empty() {
        match out.write_vectored(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => IoSlice::advance_slices(&mut left, count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes three bytes at most, and every other time it is interrupted.
    #[derive(Default)]
    struct Slow(Vec<u8>, bool);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            self.0.extend_from_slice(&bytes[..bytes.len().min(3)]);
            Ok(bytes.len().min(3))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn everything_is_written_in_order_however_little_is_taken_at_once() {
        let pieces = ["abcd", "e", "fghijkl"].map(bytes::Bytes::from);
        let mut out = Slow::default();
        write_together(&mut out, &pieces).unwrap();
        assert_eq!(out.0, b"abcdefghijkl");
    }
}
