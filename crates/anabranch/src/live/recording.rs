//! The files that streams are kept in. What is in a file already stays there: a receiver that is started
//! again writes another one.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

/// Most recordings of one name.
const MOST: u32 = 9999;

/// Opens the file of this name when nothing is in it, or else the first of the same name with a number behind
/// it, from 2 on. Answers with the name as well. A recording that is open is locked, so that two programs
/// never write one file. A device or a pipe is what it is.
///
/// # Errors
/// The file cannot be made, or all numbers are taken.
pub(super) fn open(path: &Path) -> io::Result<(File, PathBuf)> {
    for number in 1..=MOST {
        let path = numbered(path, number);
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
        if !file.metadata()?.is_file() {
            return match file.is_terminal() {
                true => Err(io::Error::other("it is a terminal, which media would garble")),
                false => Ok((file, path)),
            };
        }
        // A file system without locks has none to respect.
        let is_taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        if !is_taken && file.metadata()?.len() == 0 {
            return Ok((file, path));
        }
    }
    Err(io::Error::other(format!("{MOST} recordings of that name are there already")))
}

/// `film.ts`, `film-2.ts`, `film-3.ts`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    if number < 2 {
        return path.into();
    }
    let mut name = OsString::from(path.file_stem().unwrap_or_default());
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    #[test]
    fn what_is_in_a_file_stays_there() {
        let directory = tempfile::tempdir().unwrap();
        let name = |name: &str| directory.path().join(name);
        fs::write(name("film.ts"), "a recording").unwrap();
        let (mut second, path) = open(&name("film.ts")).unwrap();
        assert_eq!(path, name("film-2.ts"));
        // While it is open nobody else gets it, though nothing is in it yet.
        assert_eq!(open(&name("film.ts")).unwrap().1, name("film-3.ts"));
        second.write_all(b"another").unwrap();
        drop(second);
        assert_eq!(open(&name("film.ts")).unwrap().1, name("film-3.ts"));
        assert_eq!(fs::read(name("film.ts")).unwrap(), b"a recording");
        assert_eq!(fs::read(name("film-2.ts")).unwrap(), b"another");
    }

    #[test]
    fn an_empty_file_is_used_and_a_device_is_no_recording() {
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().join("film");
        assert_eq!(open(&name).unwrap().1, name);
        assert_eq!(open(&name).unwrap().1, name);
        fs::write(&name, "something").unwrap();
        assert_eq!(open(&name).unwrap().1, directory.path().join("film-2"));
        assert_eq!(open(Path::new("/dev/null")).unwrap().1, Path::new("/dev/null"));
        assert!(open(directory.path()).is_err());
    }
}
