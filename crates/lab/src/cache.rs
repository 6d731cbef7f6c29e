//! Finished runs, kept in files so that an interrupted `lab run` goes on where it was.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::experiment::{Job, Measured};

/// A directory of finished runs, each under a digest of everything that it depends on: this program, and its description.
pub(crate) struct Cache {
    directory: PathBuf,
    program: String,
}

impl Cache {
    /// The runs in a directory, which need not be there yet.
    pub(crate) fn new(directory: &Path) -> Self {
        // Where the program cannot read itself, its version stands for it.
        let program = digest_of_this_program().unwrap_or_else(|_| env!("CARGO_PKG_VERSION").into());
        Self { directory: directory.into(), program }
    }

    /// Where they are.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The name of a run.
    pub(crate) fn key(&self, experiment: &str, seed: u64, job: &Job) -> String {
        let Job { case, models, decisions, measure: _ } = job;
        let described =
            format!("{}\n{experiment}\n{seed}\n{case:?}\n{models:?}\n{decisions:?}", self.program);
        format!("{experiment}-{seed}-{}", &hex(&Sha256::digest(described))[..32])
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
