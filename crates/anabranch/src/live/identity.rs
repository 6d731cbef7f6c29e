//! Who a receiver is: it shows the same certificate each time it is started, so that the fingerprint that its
//! senders were given stays right.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anabranch_contribution::Identity;

use crate::arguments::{Kept, ReceiveArguments};
use crate::failure::Failure;
use crate::output::Output;

/// The file in the directory of this program's state.
const NAME: &str = "receiver.pem";
/// A certificate and a key are much shorter.
const LONGEST: u64 = 64 * 1024;
/// What only the owner may do.
const OTHERS: u32 = 0o077;

/// The identity that the options ask for.
///
/// # Errors
/// What a file holds cannot be used, or a file that was asked for cannot be made.
pub(super) fn identity(arguments: &ReceiveArguments, output: &Output) -> Result<Identity, Failure> {
    if let (Some(certificate), Some(key)) = (&arguments.cert, &arguments.key) {
        return Identity::load(certificate, key).map_err(Failure::failed);
    }
    let cannot = |path: &Path, error: io::Error| {
        Failure::failed(format_args!("cannot keep the receiver's identity in {}: {error}", path.display()))
    };
    let path = match &arguments.identity {
        Some(Kept::Nowhere) => return fresh(),
        Some(Kept::File(path)) => path.clone(),
        None => match state() {
            Some(directory) => {
                let path = directory.join(NAME);
                if let Err(error) = DirBuilder::new().recursive(true).mode(0o700).create(&directory) {
                    return unkept(&cannot(&path, error), output);
                }
                path
            }
            None => return unkept(&Failure::failed("neither XDG_STATE_HOME nor HOME is set"), output),
        },
    };
    let text = match read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match make(&path) {
            // A program of which nobody said where to keep it may have no place.
            Err(error) if arguments.identity.is_none() => return unkept(&cannot(&path, error), output),
            made => made,
        },
        read => read,
    };
    let text = text.map_err(|error| cannot(&path, error))?;
    Identity::from_pem(&text, &path).map_err(Failure::failed)
}

/// One for this run.
fn fresh() -> Result<Identity, Failure> {
    let text = Identity::make().map_err(Failure::failed)?;
    Identity::from_pem(text.as_bytes(), Path::new("the new certificate")).map_err(Failure::failed)
}

fn unkept(why: &Failure, output: &Output) -> Result<Identity, Failure> {
    output.warn(format_args!("{why}: the fingerprint is another one after the next start (--identity FILE)"));
    fresh()
}

/// Where this program keeps what it has to know the next time (XDG Base Directory Specification 0.8).
fn state() -> Option<PathBuf> {
    let given = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let base = given.or_else(|| Some(std::env::home_dir()?.join(".local/state")))?;
    base.is_absolute().then(|| base.join("anabranch"))
}

/// What the file holds. It has a private key: one that somebody else has put there, or can read, is not used.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|error| {
        let is_link = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
        if is_link { io::Error::other("it is a symbolic link, which is not followed") } else { error }
    })?;
    let metadata = file.metadata()?;
    let why = if !metadata.is_file() {
        "it is no file"
    } else if metadata.uid() != rustix::process::geteuid().as_raw() {
        "it belongs to somebody else"
    } else if metadata.mode() & OTHERS != 0 {
        "others can read it, which has a private key: use 'chmod 600'"
    } else if metadata.len() > LONGEST {
        "it is too long for a certificate and a key"
    } else {
        let mut text = Vec::new();
        file.take(LONGEST).read_to_end(&mut text)?;
        return Ok(text);
    };
    Err(io::Error::other(why))
}

/// Makes a certificate and its key, and the file, complete or not at all. When another receiver was faster,
/// both are what that one has made.
fn make(path: &Path) -> io::Result<Vec<u8>> {
    let text = Identity::make().map_err(io::Error::other)?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Only its owner can read it.
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(text.into_bytes()),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => read(path),
        Err(error) => Err(error.error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn it_is_made_once_and_for_its_owner_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(NAME);
        assert_eq!(read(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        let made = make(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!((read(&path).unwrap(), make(&path).unwrap()), (made.clone(), made));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_others_can_read_or_have_put_there_is_not_used() {
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join(NAME), directory.path().join("link"));
        make(&path).unwrap();
        symlink(&path, &link).unwrap();
        assert!(read(&link).unwrap_err().to_string().contains("symbolic link"));
        fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("chmod 600"));
        assert!(read(directory.path()).unwrap_err().to_string().contains("no file"));
        // Nor is anything made where a link points to.
        let dangling = directory.path().join("dangling");
        symlink(directory.path().join("elsewhere"), &dangling).unwrap();
        assert!(read(&dangling).is_err() && make(&dangling).is_err());
        assert!(!directory.path().join("elsewhere").exists());
    }
}
