//! Where the lines of `--stats` go.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::{Output, counted};

/// Lines that wait for a slow disk or reader; more are dropped, so that nobody holds up a stream.
const WAITING_LINES: usize = 4096;
/// How long the end of the program waits for a reader of the last lines.
const LAST_LINES: Duration = Duration::from_secs(5);

/// A thread that writes lines.
#[derive(Debug)]
pub struct Sink {
    lines: Mutex<Option<SyncSender<String>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    dropped: AtomicU64,
    output: Output,
}

impl Sink {
    /// Opens the place and begins to write.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn open(place: &Place, output: &Output) -> Result<Self, Failure> {
        let (out, name): (Box<dyn Write + Send>, _) = match place {
            Place::Standard => (Box::new(io::stdout()), "standard output".to_owned()),
            Place::File(path) => {
                let name = path.display().to_string();
                let file = append(path).map_err(|error| {
                    Failure::failed(format_args!("cannot write the statistics to {name}: {error}"))
                })?;
                (Box::new(file), name)
            }
        };
        let (sender, receiver) = sync_channel(WAITING_LINES);
        let told = output.clone();
        let writer = std::thread::Builder::new().name("stats".into()).spawn(move || {
            match write(out, &receiver) {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                    told.warn(format_args!("no more statistics: cannot write to {name}: {error}"));
                }
                // A reader who has seen enough.
                _ => {}
            }
        });
        let writer =
            writer.map_err(|error| Failure::failed(format_args!("cannot write statistics: {error}")))?;
        Ok(Self {
            lines: Mutex::new(Some(sender)),
            writer: Mutex::new(Some(writer)),
            dropped: AtomicU64::new(0),
            output: output.clone(),
        })
    }

    /// Hands a line to the thread, without waiting.
    pub fn write(&self, line: &impl Serialize) {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lines) = &*lines
            && lines.try_send(text(line)).is_err()
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes the last line, and waits until it is written.
    pub async fn finish(&self, line: &impl Serialize) {
        let sender = self.lines.lock().unwrap_or_else(PoisonError::into_inner).take();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (Some(sender), Some(writer)) = (sender, writer) else { return };
        let last = text(line);
        let written = tokio::task::spawn_blocking(move || {
            // Fails when the thread has given up, which it has told.
            let _ = sender.send(last);
            drop(sender);
            let _ = writer.join();
        });
        if tokio::time::timeout(LAST_LINES, written).await.is_err() {
            self.output.warn("nobody reads the statistics: the last lines are lost");
        }
        let dropped = self.dropped.load(Ordering::Relaxed);
        if dropped > 0 {
            let lines = counted(dropped, "line");
            self.output.warn(format_args!("{lines} of statistics came too fast to be written"));
        }
    }
}

/// What earlier runs have told stays in the file. A run that was killed may have left half a line.
fn append(path: &Path) -> io::Result<File> {
    let has_lines = fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0);
    let mut file = OpenOptions::new().read(has_lines).append(true).create(true).open(path)?;
    if has_lines {
        let mut last = [0];
        file.read_exact_at(&mut last, file.metadata()?.len().saturating_sub(1))?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

fn text(line: &impl Serialize) -> String {
    // Nothing in a line can fail to become JSON: all keys are text.
    let mut text = serde_json::to_string(line).unwrap_or_default();
    text.push('\n');
    text
}

fn write(out: impl Write, lines: &Receiver<String>) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    while let Ok(line) = lines.recv() {
        // Everything that waits goes out in one write.
        for line in std::iter::once(line).chain(lines.try_iter()) {
            out.write_all(line.as_bytes())?;
        }
        out.flush()?;
    }
    Ok(())
}
