//! Finished runs, kept in files so that an interrupted `lab run` goes on where it was.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::case::Measured;
use crate::experiment::Job;

/// A directory of finished runs, each under a digest of everything that it depends on: this program, and its
/// description.
///
/// A program's runs are in a directory of their own. No other program can use them, so those of others are
/// removed: what is kept is never more than one program has made.
pub(crate) struct Cache {
    directory: PathBuf,
}

impl Cache {
    /// The runs of this program in a directory, which need not be there yet; those of other programs are
    /// removed.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        let own = directory.join(this_program());
        remove(directory, Some(&own))?;
        Ok(Self { directory: own })
    }

    /// Where they are.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The name of a run.
    pub(crate) fn key(&self, experiment: &str, seed: u64, job: &Job) -> String {
        let Job { case, models, decisions, measure: _ } = job;
        let described = format!("{experiment}\n{seed}\n{case:?}\n{models:?}\n{decisions:?}");
        format!("{experiment}-{seed}-{}", digest(&described))
    }

    /// The run of this name, if it was finished. A file that cannot be read is none: the run is made again.
    pub(crate) fn load(&self, key: &str) -> Option<Measured> {
        serde_json::from_slice(&fs::read(self.path(key)).ok()?).ok()
    }

    /// Keeps a run. It appears as a whole or not at all.
    pub(crate) fn store(&self, key: &str, measured: &Measured) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let path = self.path(key);
        let unfinished = path.with_extension("new");
        fs::write(&unfinished, serde_json::to_vec(measured)?)?;
        fs::rename(unfinished, path)
    }

    fn path(&self, key: &str) -> PathBuf {
        self.directory.join(format!("{key}.json"))
    }
}

/// Forgets every run that is kept in a directory.
///
/// # Errors
/// Something in it cannot be removed.
pub fn forget_runs(directory: &Path) -> io::Result<()> {
    remove(directory, None)
}

/// What tells texts apart, as the name of a file.
pub(crate) fn digest(text: &str) -> String {
    hex(&Sha256::digest(text)[..16])
}

/// Removes finished runs from a directory, but those in the directory `but`: directories with a digest for
/// their name, and runs outside of such a directory, where earlier versions kept them. Anything else stays.
fn remove(directory: &Path, but: Option<&Path>) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_digest = name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if path.is_dir() {
            if is_digest && Some(path.as_path()) != but {
                gone(fs::remove_dir_all(&path))?;
            }
        } else if name.ends_with(".json") || name.ends_with(".new") {
            gone(fs::remove_file(&path))?;
        }
    }
    Ok(())
}

/// Whether something is not there any more. Another machine may have removed it meanwhile.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// What tells this program from any other; where it cannot read itself, its version.
pub(crate) fn this_program() -> String {
    digest(&digest_of_this_program().unwrap_or_else(|_| format!("version {}", env!("CARGO_PKG_VERSION"))))
}

fn digest_of_this_program() -> io::Result<String> {
    let mut file = File::open(std::env::current_exe()?)?;
    let mut digest = Sha256::new();
    let mut block = vec![0; 1 << 16];
    loop {
        match file.read(&mut block)? {
            0 => return Ok(hex(&digest.finalize())),
            length => digest.update(&block[..length]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
