//! A live stream as HLS in a directory, for `anabranch serve` or any web server.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anabranch_contribution::PacketStream;
use anabranch_media::segments::{Cut, Part, Segmenter, Window};
use anabranch_units::Bytes;
use tokio::time::timeout;

use crate::arguments::HlsArguments;
use crate::failure::Failure;
use crate::output::Output;

/// The playlist.
const PLAYLIST: &str = "live.m3u8";
/// The files of segments: a number between these.
const SEGMENT: (&str, &str) = ("live-", ".ts");
/// What is written is called so until it is whole; web servers show no hidden files.
const UNFINISHED: &str = ".live.unfinished";
/// A segment is in memory until it is whole.
const LARGEST_SEGMENT: Bytes = Bytes::mib(64);
/// When nothing has come for so long what is there becomes a segment.
const PAUSE: Duration = Duration::from_secs(5);

/// A directory that segments go to.
pub(super) struct Directory {
    files: Files,
    segmenter: Segmenter,
}

/// What is in it.
struct Files {
    path: PathBuf,
    window: Window,
    /// Nobody else writes here as long as it is open.
    _lock: File,
    /// Segments that were added.
    added: u64,
}

impl Directory {
    /// Makes the directory, or goes on with the playlist that is in it.
    ///
    /// # Errors
    /// It cannot be written to, another program does so, or something else is in it.
    pub(super) async fn open(
        path: &Path,
        arguments: &HlsArguments,
        output: &Output,
    ) -> Result<Self, Failure> {
        let failure = |error: &dyn std::fmt::Display| {
            Failure::failed(format_args!("HLS in {}: {error}", path.display()))
        };
        let mut window = Window::new(SEGMENT, arguments.hls_window, arguments.hls_space);
        if let Some(target) = arguments.hls_part {
            window = window.with_parts(target);
        }
        let wanted = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || Files::open(wanted, window)).await;
        let files = opened.map_err(|error| failure(&error))?.map_err(|error| failure(&error))?;
        let most = LARGEST_SEGMENT.min(Bytes::new(arguments.hls_space.get() / 4));
        let mut segmenter = Segmenter::new(arguments.hls_segment, most, files.window.target());
        if let Some(target) = arguments.hls_part {
            segmenter = segmenter.with_parts(target);
        }
        output.say(format_args!("HLS comes to {}", path.join(PLAYLIST).display()));
        Ok(Self { files, segmenter })
    }

    /// Writes until the stream ends.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) async fn run(mut self, packets: &mut PacketStream) -> Result<(), Failure> {
        loop {
            let (cuts, is_last) = match timeout(PAUSE, packets.recv()).await {
                Ok(Some(packet)) => (self.segmenter.push(&packet, since_1970()), false),
                Ok(None) => (self.segmenter.finish(), true),
                Err(_) => (self.segmenter.finish(), false),
            };
            let (parts, target) = (self.segmenter.take_parts(), self.segmenter.target());
            if cuts.is_empty() && parts.is_empty() && !is_last {
                continue;
            }
            let mut files = self.files;
            let written = tokio::task::spawn_blocking(move || {
                files.write_all(&parts, &cuts, target)?;
                // Until a segment is whole there is nothing to list.
                if target.is_some() {
                    files.list(is_last)?;
                }
                Ok(files)
            });
            let failure = |error: io::Error| Failure::failed(format_args!("cannot write HLS: {error}"));
            self.files = written.await.map_err(|error| failure(error.into()))?.map_err(failure)?;
            if is_last {
                return Ok(());
            }
        }
    }
}

impl Files {
    fn open(path: PathBuf, mut window: Window) -> io::Result<Self> {
        fs::create_dir_all(&path)?;
        let lock = File::open(&path)?;
        // A file system without locks has none to respect.
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            return Err(io::Error::other("another program writes there"));
        }
        let size = |name: String| fs::metadata(path.join(name)).ok().map(|file| Bytes::new(file.len()));
        match fs::read(path.join(PLAYLIST)) {
            Ok(playlist) => {
                let names = window.clone();
                window.resume(&playlist, |number| size(names.file(number))).map_err(io::Error::other)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        for entry in fs::read_dir(&path)? {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else { continue };
            if window.is_part(name) || window.number(name).is_some_and(|number| !window.has(number)) {
                fs::remove_file(path.join(name))?;
            }
        }
        Ok(Self { path, window, _lock: lock, added: 0 })
    }

    /// Parts and segments, each after those before it; there is a target duration when a segment is whole.
    fn write_all(
        &mut self,
        parts: &[Part],
        cuts: &[Cut],
        target: Option<anabranch_units::Duration>,
    ) -> io::Result<()> {
        let mut parts = parts.iter().peekable();
        for cut in cuts {
            while let Some(part) = parts.next_if(|part| part.segment <= self.added) {
                self.add_part(part)?;
            }
            self.add(cut, target.unwrap_or_default())?;
        }
        parts.try_for_each(|part| self.add_part(part))
    }

    fn add_part(&mut self, part: &Part) -> io::Result<()> {
        self.write(&self.window.part_file(), &part.bytes)?;
        self.window.push_part(part);
        Ok(())
    }

    fn add(&mut self, cut: &Cut, target: anabranch_units::Duration) -> io::Result<()> {
        let name = self.window.file(self.window.next());
        self.write(&name, &cut.bytes)?;
        for gone in self.window.push(cut, target) {
            match fs::remove_file(self.path.join(gone)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.added += 1;
        Ok(())
    }

    fn list(&self, is_last: bool) -> io::Result<()> {
        self.write(PLAYLIST, &self.window.playlist(is_last))
    }

    /// Whoever opens it sees all of it, or what was there before.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let unfinished = self.path.join(UNFINISHED);
        File::create(&unfinished)?.write_all(bytes)?;
        fs::rename(unfinished, self.path.join(name))
    }
}

/// The time of day.
fn since_1970() -> anabranch_units::Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().into()
}
