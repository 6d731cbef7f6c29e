//! The access log, in the combined format that log tools know.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::SystemTime;

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

/// Lines that wait for the disk; more are dropped and counted, so that a slow disk never holds up a stream.
const WAITING_LINES: usize = 4096;

/// The way to the thread that writes.
#[derive(Clone, Debug)]
pub(super) struct Log {
    lines: SyncSender<String>,
    metrics: Arc<Metrics>,
}

impl Log {
    /// Opens the log. The thread ends when every clone of the log is gone.
    pub(super) fn open(target: &AccessLog, metrics: Arc<Metrics>) -> io::Result<(Self, JoinHandle<()>)> {
        let out: Box<dyn Write + Send> = match target {
            AccessLog::Stdout => Box::new(io::stdout()),
            AccessLog::File(path) => Box::new(OpenOptions::new().create(true).append(true).open(path)?),
        };
        let (sender, receiver) = sync_channel(WAITING_LINES);
        let writer =
            std::thread::Builder::new().name("access-log".into()).spawn(move || write(out, &receiver))?;
        Ok((Self { lines: sender, metrics }, writer))
    }
}

fn write(out: impl Write, lines: &Receiver<String>) {
    let mut out = io::BufWriter::new(out);
    while let Ok(line) = lines.recv() {
        // Everything that waits goes out in one write.
        let written =
            std::iter::once(line).chain(lines.try_iter()).try_for_each(|line| out.write_all(line.as_bytes()));
        if let Err(error) = written.and_then(|()| out.flush()) {
            tracing::warn!(%error, "cannot write the access log");
        }
    }
}

/// One response's line, written when it is dropped: by then all is known.
#[derive(Debug)]
pub(super) struct Entry {
    log: Option<Log>,
    before: String,
    after: String,
    pub(super) status: StatusCode,
    /// Bytes of the body that were sent.
    pub(super) sent: u64,
}

impl Entry {
    pub(super) fn new<B>(log: Option<&Log>, client: IpAddr, request: &Request<B>) -> Self {
        let (mut before, mut after) = (String::new(), String::new());
        if log.is_some() {
            let target = request.uri().path_and_query().map_or("-", |target| target.as_str());
            before = format!(
                "{client} - - [{}] \"{} {} {:?}\"",
                now(),
                escape(request.method().as_str()),
                escape(target),
                request.version()
            );
            let headers = request.headers();
            after =
                format!("\"{}\" \"{}\"", field(headers, header::REFERER), field(headers, header::USER_AGENT));
        }
        Self { log: log.cloned(), before, after, status: StatusCode::OK, sent: 0 }
    }

    /// One that writes nothing.
    pub(super) fn silent() -> Self {
        Self { log: None, before: String::new(), after: String::new(), status: StatusCode::OK, sent: 0 }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let Some(log) = &self.log else { return };
        let line = format!("{} {} {} {}\n", self.before, self.status.as_u16(), self.sent, self.after);
        if log.lines.try_send(line).is_err() {
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
