//! What an unfinished file knows of itself: `FILE.anabranch` beside it.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anabranch_client::FilmInfo;
use anabranch_protocol::ranges::RangeSet;
use serde::{Deserialize, Serialize};

/// More is not a state of ours.
const LARGEST: u64 = 16 << 20;
const VERSION: u32 = 1;

/// How far a file is, and of which film.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    version: u32,
    size: Option<u64>,
    etag: Option<String>,
    last_modified: Option<String>,
    /// First byte and the byte behind the last one of what is in the file.
    ranges: Vec<(u64, u64)>,
    /// Where it comes from, without what could be secret. Only to be read by people.
    urls: Vec<String>,
    /// Whether the file's bytes were on the disk when this was written, and not only on their way.
    synced: bool,
    /// Which start of the system this was written in, where it can be told.
    boot: Option<String>,
}

/// How the film of a state compares with the one that the server has now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// It has the same strong entity tag.
    Same,
    /// Only its content can tell; if something speaks against it, this.
    InDoubt(Option<String>),
    /// It is another one, as this shows.
    Another(String),
}

/// Where the state of the file at `path` is kept.
pub(super) fn path_for(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".anabranch");
    name.into()
}

impl State {
    /// The state of a film that has nothing yet.
    pub(super) fn new(info: &FilmInfo) -> Self {
        Self {
            version: VERSION,
            size: info.size,
            etag: info.etag.clone(),
            last_modified: info.last_modified.clone(),
            ranges: Vec::new(),
            urls: info.replicas.clone(),
            synced: false,
            boot: boot(),
        }
    }

    /// Reads a state; `None` when there is none.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        let damaged = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let metadata = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        if !metadata.is_file() {
            return Err(damaged("it is no file"));
        }
        if metadata.len() > LARGEST {
            return Err(damaged("it is too large"));
        }
        let state: Self = serde_json::from_slice(&fs::read(path)?)?;
        if state.version != VERSION {
            return Err(damaged("another version of anabranch wrote it"));
        }
        let ends =
            state.ranges.iter().all(|(start, end)| start < end && *end <= state.size.unwrap_or(u64::MAX));
        let order = state.ranges.windows(2).all(|pair| pair[0].1 < pair[1].0);
        if ends && order { Ok(Some(state)) } else { Err(damaged("its ranges make no sense")) }
    }

    /// Writes the state, so that at every moment either the old or the new one is there. Nobody else may read
    /// it, and no link that somebody planted is followed.
    ///
    /// # Errors
    /// The system cannot write it; the old one is still there.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let mut temporary = OsString::from(path);
        temporary.push(".new");
        let temporary = PathBuf::from(temporary);
        let write = || {
            match fs::remove_file(&temporary) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file =
                fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
            file.write_all(&serde_json::to_vec(self)?)?;
            if self.synced {
                file.sync_data()?;
            }
            fs::rename(&temporary, path)
        };
        write().inspect_err(|_| {
            // What could not be written to its end is worth nothing.
            let _ = fs::remove_file(&temporary);
        })
    }

    /// The same with other ranges.
    pub(super) fn with(&self, have: &RangeSet, synced: bool) -> Self {
        let ranges = have.iter().map(|Range { start, end }| (start, end)).collect();
        Self { ranges, synced, boot: boot(), ..self.clone() }
    }

    /// How the film of this state compares with that of `new`.
    pub(super) fn compare(&self, new: &Self) -> Comparison {
        if self.size != new.size {
            let shown =
                |size: Option<u64>| size.map_or("an unknown size".into(), |size| format!("{size} bytes"));
            let how = format!("it had {} and has {} now", shown(self.size), shown(new.size));
            let has_grown = self.size.zip(new.size).is_some_and(|(then, now)| then < now);
            return if has_grown { Comparison::InDoubt(Some(how)) } else { Comparison::Another(how) };
        }
        let (what, then, now) = match (&self.etag, &new.etag) {
            (Some(then), Some(now)) if then == now && !then.starts_with("W/") => return Comparison::Same,
            (Some(then), Some(now)) if then != now => ("entity tag", Some(then), Some(now)),
            _ => ("date", self.last_modified.as_ref(), new.last_modified.as_ref()),
        };
        Comparison::InDoubt((then != now).then(|| {
            let shown = |value: Option<&String>| value.map_or("none".to_owned(), Clone::clone);
            format!("its {what} was {} and is {} now", shown(then), shown(now))
        }))
    }

    /// What is in the file, as far as it has that length; nothing when the system went down on the way.
    pub(super) fn have(&self, length: u64) -> RangeSet {
        let mut have = RangeSet::new();
        if self.synced || self.boot == boot() {
            for (start, end) in &self.ranges {
                have.insert(*start..(*end).min(length));
            }
        }
        have
    }
}

/// A name for this start of the system.
fn boot() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").ok().map(|id| id.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        State {
            version: VERSION,
            size: Some(100),
            etag: Some("\"a\"".into()),
            last_modified: None,
            ranges: vec![(0, 10), (20, 30)],
            urls: vec!["http://a/film".into()],
            synced: false,
            boot: boot(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = path_for(&directory.path().join("film.mp4"));
        assert_eq!(State::read(&path).unwrap(), None);
        state().write(&path).unwrap();
        assert_eq!(State::read(&path).unwrap(), Some(state()));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn nonsense_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        for nonsense in [
            State { ranges: vec![(0, 101)], ..state() },
            State { ranges: vec![(5, 5)], ..state() },
            State { ranges: vec![(5, 3)], ..state() },
            State { ranges: vec![(20, 30), (0, 10)], ..state() },
            State { ranges: vec![(0, 20), (10, 30)], ..state() },
            State { version: 2, ..state() },
        ] {
            nonsense.write(&path).unwrap();
            assert!(State::read(&path).is_err(), "{nonsense:?}");
        }
        for text in ["", "{", "{}", "[1]", "\0\0\0"] {
            fs::write(&path, text).unwrap();
            assert!(State::read(&path).is_err(), "{text}");
        }
    }

    #[test]
    fn other_films_and_doubtful_ones_are_noticed() {
        assert_eq!(state().compare(&state()), Comparison::Same);
        for (size, hint) in [(Some(99), "100 bytes"), (None, "unknown")] {
            let Comparison::Another(how) = state().compare(&State { size, ..state() }) else {
                panic!("{hint}")
            };
            assert!(how.contains(hint), "{how}");
        }
        // A recording that goes on.
        let Comparison::InDoubt(Some(how)) = state().compare(&State { size: Some(101), ..state() }) else {
            panic!("it may have grown")
        };
        assert!(how.contains("100 bytes and has 101"), "{how}");
        let tagged = |tag: &str| State { etag: Some(tag.into()), ..state() };
        let dated = |date: Option<&str>| State { etag: None, last_modified: date.map(Into::into), ..state() };
        for (then, now, hint) in [
            (tagged("\"a\""), tagged("\"b\""), "entity tag"),
            (dated(Some("x")), dated(Some("y")), "date"),
            (dated(Some("x")), dated(None), "none"),
        ] {
            let Comparison::InDoubt(Some(how)) = then.compare(&now) else { panic!("{hint}") };
            assert!(how.contains(hint), "{how}");
        }
        // A date and a weak tag can be those of two versions, and nothing at all those of any.
        for state in [dated(Some("x")), dated(None), tagged("W/\"a\"")] {
            assert_eq!(state.compare(&state), Comparison::InDoubt(None));
        }
    }

    #[test]
    fn nobody_else_reads_the_state_and_no_link_is_followed() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().unwrap();
        let path = path_for(&directory.path().join("film.mp4"));
        let victim = directory.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, directory.path().join("film.mp4.anabranch.new")).unwrap();
        symlink(&victim, &path).unwrap();
        state().write(&path).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        let written = fs::symlink_metadata(&path).unwrap();
        assert!(written.is_file());
        assert_eq!(written.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn bytes_that_may_never_have_reached_the_disk_do_not_count() {
        assert_eq!(state().have(100).total(), 20);
        assert_eq!(state().have(25).total(), 15, "the file was cut");
        let before = State { boot: Some("another start".into()), ..state() };
        assert_eq!(before.have(100).total(), 0);
        assert_eq!(State { synced: true, ..before }.have(100).total(), 20);
    }
}
