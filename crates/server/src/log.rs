//! The access log, in the combined format that log tools know.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, Request, StatusCode, header};

use super::metrics::{Metrics, increment};

/// Where the access log goes.
#[derive(Clone, Debug)]
pub enum AccessLog {
    /// To standard output.
    Stdout,
    /// Appended to this file.
    File(PathBuf),
}

/// Who is told of every response in a line, without the query of its request: that may have secrets.
#[derive(Clone)]
pub struct Listener(pub Arc<dyn Fn(&str) + Send + Sync>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

/// Has logs open their files again, after they were moved away. Clones do the same.
#[derive(Clone, Debug, Default)]
pub struct Rotation(Arc<AtomicU64>);

impl Rotation {
    /// Every log goes on in a file of its old name, within a second.
    pub fn rotate(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What becomes of the lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Targets {
    pub(super) log: Option<AccessLog>,
    pub(super) listener: Option<Listener>,
    pub(super) rotation: Rotation,
}

/// Lines that wait for the disk; more are dropped and counted, so that a slow disk never holds up a stream.
const WAITING_LINES: usize = 4096;
/// How often it is looked whether the file is to be opened again.
const LOOK: Duration = Duration::from_millis(500);

/// A response, for a log and for a [`Listener`].
#[derive(Debug)]
struct Lines {
    log: String,
    told: String,
}

/// The way to the thread that writes.
#[derive(Clone, Debug)]
pub(super) struct Log {
    lines: SyncSender<Lines>,
    metrics: Arc<Metrics>,
}

impl Log {
    /// Opens the log, if there is to be one. The thread ends when every clone of the log is gone.
    pub(super) fn open(
        targets: Targets,
        metrics: Arc<Metrics>,
    ) -> io::Result<Option<(Self, JoinHandle<()>)>> {
        if targets.log.is_none() && targets.listener.is_none() {
            return Ok(None);
        }
        let mut writer =
            Writer { out: open(targets.log.as_ref())?, rotated: targets.rotation.count(), targets };
        let (sender, receiver) = sync_channel(WAITING_LINES);
        let thread =
            std::thread::Builder::new().name("access-log".into()).spawn(move || writer.run(&receiver))?;
        Ok(Some((Self { lines: sender, metrics }, thread)))
    }
}

type Out = io::BufWriter<Box<dyn Write + Send>>;

fn open(target: Option<&AccessLog>) -> io::Result<Option<Out>> {
    let out: Box<dyn Write + Send> = match target {
        None => return Ok(None),
        Some(AccessLog::Stdout) => Box::new(io::stdout()),
        Some(AccessLog::File(path)) => Box::new(OpenOptions::new().create(true).append(true).open(path)?),
    };
    Ok(Some(io::BufWriter::new(out)))
}

struct Writer {
    targets: Targets,
    out: Option<Out>,
    /// How often the file has been opened again.
    rotated: u64,
}

impl Writer {
    fn run(&mut self, lines: &Receiver<Lines>) {
        loop {
            let first = lines.recv_timeout(LOOK);
            self.rotate();
            match first {
                Ok(first) => self.write(std::iter::once(first).chain(lines.try_iter())),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Everything that waits goes out in one write.
    fn write(&mut self, lines: impl Iterator<Item = Lines>) {
        let Self { targets, out, .. } = self;
        let mut result = Ok(());
        for Lines { log, told } in lines {
            if let Some(Listener(tell)) = &targets.listener {
                tell(&told);
            }
            if let Some(out) = out {
                result = result.and_then(|()| out.write_all(log.as_bytes()));
            }
        }
        let flushed = out.as_mut().map_or(Ok(()), Write::flush);
        if let Err(error) = result.and(flushed) {
            tracing::warn!(%error, "cannot write the access log");
        }
    }

    /// Opens the file again when it is to be; where that fails, the one of before goes on.
    fn rotate(&mut self) {
        let count = self.targets.rotation.count();
        if count == self.rotated {
            return;
        }
        self.rotated = count;
        match open(self.targets.log.as_ref()) {
            Ok(out) => self.out = out,
            Err(error) => tracing::warn!(%error, "cannot open the access log again; the old file goes on"),
        }
    }
}

/// One response's line, written when it is dropped: by then all is known.
#[derive(Debug)]
pub(super) struct Entry {
    log: Option<Log>,
    before: String,
    after: String,
    told: String,
    pub(super) status: StatusCode,
    /// Bytes of the body that were sent.
    pub(super) sent: u64,
}

impl Entry {
    pub(super) fn new<B>(log: Option<&Log>, client: IpAddr, request: &Request<B>) -> Self {
        let mut entry = Self::silent();
        if let Some(log) = log {
            entry.log = Some(log.clone());
            let method = escape(request.method().as_str());
            let target = request.uri().path_and_query().map_or("-", |target| target.as_str());
            let (now, version, target) = (now(), request.version(), escape(target));
            entry.before = format!("{client} - - [{now}] \"{method} {target} {version:?}\"");
            let headers = request.headers();
            entry.after =
                format!("\"{}\" \"{}\"", field(headers, header::REFERER), field(headers, header::USER_AGENT));
            entry.told = format!("{client}: {method} {}", escape(request.uri().path()));
        }
        entry
    }

    /// One that writes nothing.
    pub(super) fn silent() -> Self {
        Self {
            log: None,
            before: String::new(),
            after: String::new(),
            told: String::new(),
            status: StatusCode::OK,
            sent: 0,
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let Some(log) = &self.log else { return };
        let Self { before, after, told, status, sent, .. } = self;
        let lines = Lines {
            log: format!("{before} {} {sent} {after}\n", status.as_u16()),
            told: format!("{told}: {}, {sent} bytes", status.as_u16()),
        };
        if log.lines.try_send(lines).is_err() {
            increment(&log.metrics.log_lines_lost);
        }
    }
}

/// The time as `06/Nov/1994:08:49:37 +0000`.
fn now() -> String {
    let date = httpdate::fmt_http_date(SystemTime::now());
    let mut parts = date.split_whitespace().skip(1);
    let mut part = || parts.next().unwrap_or("-");
    format!("{}/{}/{}:{} +0000", part(), part(), part(), part())
}

fn field(headers: &HeaderMap, name: HeaderName) -> String {
    headers
        .get(name)
        .map_or_else(|| "-".to_owned(), |value| escape(&String::from_utf8_lossy(value.as_bytes())))
}

/// A line stays a line and a field a field, whatever the client sent.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '"' || c == '\\' || c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}
