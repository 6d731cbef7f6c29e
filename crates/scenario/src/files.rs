//! Where the files come from that a scenario names.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// The largest scenario, and the largest trace, that is read.
pub const LARGEST_FILE: u64 = 32 << 20;

/// Where the files come from that a scenario names.
pub trait Files {
    /// The text of the file `name`, which is relative to the scenario.
    ///
    /// # Errors
    /// There is no such file, or it is no text, or larger than [`LARGEST_FILE`].
    fn read(&mut self, name: &str) -> io::Result<String>;
}

/// The files in a directory: that of the scenario.
#[derive(Clone, Copy, Debug)]
pub struct Beside<'a>(pub &'a Path);

impl Files for Beside<'_> {
    fn read(&mut self, name: &str) -> io::Result<String> {
        read_text(&self.0.join(name))
    }
}

/// A regular file's text, of at most [`LARGEST_FILE`].
///
/// # Errors
/// It cannot be read, is no regular file or no text, or is larger.
pub fn read_text(path: &Path) -> io::Result<String> {
    let too_large = || {
        io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {} MiB", LARGEST_FILE >> 20))
    };
    // Anything else may never end, or wait for somebody who writes it.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut text = String::new();
    let read = fs::File::open(path)?.take(LARGEST_FILE + 1).read_to_string(&mut text)?;
    if read as u64 > LARGEST_FILE { Err(too_large()) } else { Ok(text) }
}
