//! Whether what came is what should have come.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_units::Bytes;
use indicatif::ProgressBar;
use sha2::{Digest as _, Sha256};

use crate::arguments::Digest;
use crate::failure::Failure;
use crate::output::Output;

/// A SHA-256 that is compared at the end.
#[derive(Debug)]
pub(super) struct Check {
    wanted: Digest,
    state: Sha256,
}

impl Check {
    pub(super) fn new(wanted: Digest) -> Self {
        Self { wanted, state: Sha256::new() }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
    }

    /// The digest that was found, if it is another one.
    pub(super) fn finish(self) -> Result<(), Digest> {
        let found = Digest(self.state.finalize().into());
        if found == self.wanted { Ok(()) } else { Err(found) }
    }
}

/// What the digest of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// What was wanted.
    Right,
    /// This one instead.
    Found(Digest),
}

/// Reads a whole file and compares its digest.
///
/// # Errors
/// It cannot be read, or a signal came.
pub(super) async fn check_file(
    mut file: File,
    path: &Path,
    wanted: Digest,
    output: &Output,
) -> Result<Checked, Failure> {
    let cannot_read =
        |error| Failure::failed(format_args!("cannot read {} to check it: {error}", path.display()));
    let bar = output.progress();
    bar.set_length(file.metadata().map_err(cannot_read)?.len());
    let given_up = Arc::new(AtomicBool::new(false));
    let reader = {
        let (bar, given_up) = (bar.clone(), given_up.clone());
        tokio::task::spawn_blocking(move || digest_of(&mut file, Check::new(wanted), &bar, &given_up))
    };
    let result = tokio::select! {
        result = reader => result,
        signal = output.stop().signal() => {
            given_up.store(true, Ordering::Relaxed);
            return Err(Failure::stopped(signal, format_args!("{} is complete but not checked: the same \
                command checks it", path.display())));
        }
    };
    bar.finish_and_clear();
    match result {
        Ok(Ok(Ok(()))) => Ok(Checked::Right),
        Ok(Ok(Err(found))) => Ok(Checked::Found(found)),
        Ok(Err(error)) => Err(cannot_read(error)),
        Err(error) => Err(Failure::failed(error)),
    }
}

pub(super) fn mismatch(what: &str, wanted: Digest, found: Digest) -> Failure {
    Failure::failed(format_args!("{what} is not what was wanted: its digest is {found} instead of {wanted}"))
}

fn digest_of(
    file: &mut File,
    mut check: Check,
    bar: &ProgressBar,
    given_up: &AtomicBool,
) -> io::Result<Result<(), Digest>> {
    let mut buffer = vec![0; 1 << 20];
    file.rewind()?;
    while !given_up.load(Ordering::Relaxed) {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        check.update(&buffer[..read]);
        bar.inc(Bytes::of(read).get());
        bar.set_message(format!(
            "checking, {} of {}",
            Bytes::new(bar.position()),
            Bytes::new(bar.length().unwrap_or(0))
        ));
    }
    Ok(check.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_the_digest_of_nothing() {
        let wanted: Digest = "sha-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=".parse().unwrap();
        assert!(Check::new(wanted).finish().is_ok());
        let mut check = Check::new(wanted);
        check.update(b"x");
        assert!(check.finish().is_err());
    }
}
