//! Where the members of a group meet: a directory that nobody else can write to.

use std::fmt;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What only the owner may do.
const OTHERS: u32 = 0o077;
/// Longest name of a group.
const LONGEST: usize = 32;

/// The name of a group: 1 to 32 letters, digits, `-`, `_` and `.`, of which the first is no dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupName(String);

/// What is no name of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a group's name is 1 to 32 letters, digits, '-', '_' and '.', and does not begin with a dot")]
pub struct GroupNameError;

impl FromStr for GroupName {
    type Err = GroupNameError;

    fn from_str(name: &str) -> Result<Self, GroupNameError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name =
            (1..=LONGEST).contains(&name.len()) && name.chars().all(is_plain) && !name.starts_with('.');
        if is_name { Ok(Self(name.to_owned())) } else { Err(GroupNameError) }
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The directory of a group, which is made where it is not there.
///
/// # Errors
/// What is in the way, and what to do.
pub(super) fn directory(given: Option<&Path>, name: &GroupName) -> Result<PathBuf, String> {
    let base = given.map_or_else(base, Path::to_owned);
    let cannot = |path: &Path, why: String| {
        format!("{} {why}; give another directory with XDG_RUNTIME_DIR", path.display())
    };
    let directory = base.join("groups").join(&name.0);
    make(&base).and_then(|()| make(&directory)).map_err(|(path, why)| cannot(&path, why))?;
    Ok(directory)
}

/// Makes a directory with mode 0700 where it is not there.
///
/// # Errors
/// It cannot be made, is none, or is not the user's own alone.
fn make(directory: &Path) -> Result<(), (PathBuf, String)> {
    let told = |error: io::Error| (directory.to_owned(), format!("cannot be made: {error}"));
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(told)?;
    // A link that somebody else has put there is none of ours.
    let found = std::fs::symlink_metadata(directory).map_err(told)?;
    let is_own = found.is_dir() && found.uid() == user() && found.mode() & OTHERS == 0;
    let why = || (directory.to_owned(), "is not a directory of this user alone (mode 0700)".to_owned());
    if is_own { Ok(()) } else { Err(why()) }
}

/// Where programs keep sockets (XDG Base Directory Specification 0.8), or what stands for it.
fn base() -> PathBuf {
    let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    match given {
        Some(given) => given.join("anabranch"),
        None => std::env::temp_dir().join(format!("anabranch-{}", user())),
    }
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn names() {
        for name in ["cameras", "a", "Studio-2_b.c", &"x".repeat(32)] {
            assert_eq!(name.parse::<GroupName>().unwrap().to_string(), name);
        }
        for name in ["", ".", "..", ".hidden", "a/b", "a b", "ä", "a\0", &"x".repeat(33)] {
            assert_eq!(name.parse::<GroupName>(), Err(GroupNameError), "{name}");
        }
    }

    #[test]
    fn only_a_directory_of_the_user_alone_is_used() {
        let place = tempfile::tempdir().unwrap();
        let name = "cameras".parse().unwrap();
        let base = place.path().join("base");
        let made = directory(Some(&base), &name).unwrap();
        assert_eq!(made, base.join("groups/cameras"));
        for path in [&base, &made] {
            assert_eq!(std::fs::metadata(path).unwrap().mode() & 0o777, 0o700);
        }
        assert_eq!(directory(Some(&base), &name), Ok(made));
        let refused = |path: &Path| {
            let told = directory(Some(path), &name).unwrap_err();
            assert!(told.contains("of this user alone") && told.contains("XDG_RUNTIME_DIR"), "{told}");
        };
        let link = place.path().join("link");
        symlink(&base, &link).unwrap();
        refused(&link);
        std::fs::set_permissions(&base, std::fs::Permissions::from_mode(0o755)).unwrap();
        refused(&base);
        let file = place.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(directory(Some(&file), &name).unwrap_err().contains("cannot be made"));
    }
}
