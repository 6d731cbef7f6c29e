//! What a loaded control has pinned, and whether it is really that. The BPF file system may be open to every
//! user of the machine, and root may move files: nothing here is believed that is not root's alone and of the
//! right kind.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{Link, MapCore, MapHandle, MapType};

use crate::error::Error;
use crate::machine::{is_bpf_fs, is_root};
use crate::setting::{PARAMETERS_SIZE, Setting};
use crate::weights::RULES_SIZE;

/// Where the loaded controls are, a directory each.
pub const DIRECTORY: &str = "/sys/fs/bpf/anabranch";
/// In a control's directory: the registration, the parameters, the list of flows, and of the group the
/// rules and what programs give their own connections.
pub(crate) const LINK: &str = "link";
pub(crate) const PARAMETERS: &str = "parameters";
pub(crate) const RULES: &str = "rules";
pub(crate) const GIVEN: &str = "given";
pub(crate) const FLOWS: &str = "flows";
/// Bytes of `struct given` (bpf/weights.h).
const GIVEN_SIZE: usize = 8;
/// A longer list of flows is none: that many sockets no kernel has.
const LONGEST_LIST: u64 = 1 << 30;

/// What there is of a control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    /// Its loading was ended, or goes on.
    Half,
    Whole,
}

/// Where a control's files are.
pub(crate) fn directory(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

/// Looks for a control.
///
/// # Errors
/// What is there is not what was left there, or cannot be looked at.
pub(crate) fn look(name: &'static str) -> Result<Found, Error> {
    let home = directory(name);
    if !is_own(Path::new(DIRECTORY))? || !is_own(&home)? {
        return Ok(Found::Nothing);
    }
    let expected: &[&str] = match name {
        _ if name == Setting::Group.name() => &[LINK, FLOWS, PARAMETERS, RULES, GIVEN],
        _ => &[LINK, FLOWS, PARAMETERS],
    };
    for entry in fs::read_dir(&home).map_err(io_error(&home))? {
        let entry = entry.map_err(io_error(&home))?.file_name();
        if !expected.iter().any(|known| entry == *known) {
            return Err(foreign(&home, format!("has something that does not belong there: {entry:?}")));
        }
    }
    let mut missing = 0;
    for file in expected {
        let path = home.join(file);
        match fs::symlink_metadata(&path) {
            Ok(found) if !found.is_file() => return Err(foreign(&path, "is no BPF object")),
            Ok(_) => check_kind(&path, file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => missing += 1,
            Err(error) => return Err(io_error(&path)(error)),
        }
    }
    Ok(if missing == 0 { Found::Whole } else { Found::Half })
}

/// Whether a directory is there. It must be root's, and nobody else may be able to change it.
fn is_own(path: &Path) -> Result<bool, Error> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(io_error(path)(error)),
    };
    if found.is_symlink() {
        return Err(foreign(path, "is a symbolic link"));
    }
    if !found.is_dir() {
        return Err(foreign(path, "is no directory"));
    }
    if found.uid() != 0 {
        return Err(foreign(
            path,
            format!("belongs to the user with the number {}, not to root", found.uid()),
        ));
    }
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(foreign(path, format!("can be changed by others than root (its mode is {mode:03o})")));
    }
    if !is_bpf_fs(path) {
        return Err(foreign(path, "is not in a BPF file system"));
    }
    Ok(true)
}

/// Whether a file is the kind of object that it should be, of whatever version.
fn check_kind(path: &Path, file: &str) -> Result<(), Error> {
    // What it has to say of an object of another kind is told in words below.
    libbpf_rs::set_print(None);
    let is_right = match file {
        PARAMETERS | RULES | GIVEN => open(path)?.name() == file,
        _ => {
            let link = Link::open(path).and_then(|link| link.info()).map_err(|error| closed(path, &error))?;
            match link.info {
                LinkTypeInfo::StructOps(_) => file == LINK,
                LinkTypeInfo::Iter(_) => file == FLOWS,
                _ => false,
            }
        }
    };
    if is_right { Ok(()) } else { Err(foreign(path, "is a BPF object of another kind")) }
}

fn open(path: &Path) -> Result<MapHandle, Error> {
    MapHandle::from_pinned_path(path).map_err(|error| closed(path, &error))
}

/// A map of a loaded control, of the shape that this version gives it.
pub(crate) fn pinned(name: &'static str, file: &str) -> Result<MapHandle, Error> {
    match look(name)? {
        Found::Nothing => return Err(Error::NotLoaded(name)),
        Found::Half => return Err(Error::Half(name)),
        Found::Whole => {}
    }
    let (kind, value_size, entries) = match file {
        RULES => (MapType::Array, RULES_SIZE, 2),
        GIVEN => (MapType::SkStorage, GIVEN_SIZE, 0),
        _ => (MapType::Array, PARAMETERS_SIZE, 1),
    };
    let map = open(&directory(name).join(file))?;
    let is_right = map.map_type() == kind
        && map.key_size() == 4
        && map.value_size() as usize == value_size
        && map.max_entries() == entries;
    if is_right { Ok(map) } else { Err(Error::OtherVersion(name)) }
}

/// What the list of flows says.
pub(crate) fn list_of_flows(name: &'static str) -> Result<String, Error> {
    match look(name)? {
        Found::Nothing => return Err(Error::NotLoaded(name)),
        Found::Half => return Err(Error::Half(name)),
        Found::Whole => {}
    }
    let path = directory(name).join(FLOWS);
    let mut text = String::new();
    let file = File::open(&path).map_err(io_error(&path))?;
    file.take(LONGEST_LIST).read_to_string(&mut text).map_err(io_error(&path))?;
    Ok(text)
}

/// Nobody else changes the groups of a control while what is answered lives.
pub(crate) fn locked(name: &'static str) -> Result<File, Error> {
    let home = directory(name);
    let lock = match File::open(&home) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Error::NotLoaded(name)),
        opened => opened.map_err(io_error(&home))?,
    };
    lock.lock().map_err(io_error(&home))?;
    Ok(lock)
}

/// What tells one loading of a control from another; `None` while it is not loaded.
pub(crate) fn loading(name: &str) -> Option<(u64, u64)> {
    let pinned = fs::symlink_metadata(directory(name).join(PARAMETERS)).ok()?;
    Some((pinned.dev(), pinned.ino()))
}

/// Removes what there is of a control; the registration goes first.
pub(crate) fn remove(name: &'static str) -> Result<(), Error> {
    let home = directory(name);
    for entry in [LINK, FLOWS, PARAMETERS, RULES, GIVEN] {
        let path = home.join(entry);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_error(&path)(error)),
            _ => {}
        }
    }
    fs::remove_dir(&home).map_err(io_error(&home))
}

fn foreign(path: &Path, problem: impl Into<String>) -> Error {
    Error::Foreign { path: path.to_owned(), problem: problem.into() }
}

/// A pinned file that does not open as the object that it should be.
fn closed(path: &Path, error: &libbpf_rs::Error) -> Error {
    if error.kind() == libbpf_rs::ErrorKind::PermissionDenied && !is_root() {
        return Error::NotRoot;
    }
    foreign(path, "is not the BPF object that it should be")
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| {
        if source.kind() == io::ErrorKind::PermissionDenied && !is_root() {
            return Error::NotRoot;
        }
        Error::Io { path: path.to_owned(), source }
    }
}
