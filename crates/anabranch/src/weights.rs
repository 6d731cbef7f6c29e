//! `serve --weights`: a file that can change while it is in use, and who goes by it.

#[cfg(all(feature = "kernel", target_os = "linux"))]
mod in_kernel;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anabranch_server::{TcpSharing, Weights};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::failure::Failure;
use crate::output::{Output, counted};

/// How often it is looked whether the file is another one.
const LOOK: Duration = Duration::from_secs(1);

/// Reads the file for the first time.
///
/// # Errors
/// It cannot be read, or is written wrongly.
pub fn load(path: &Path, output: &Output) -> Result<watch::Sender<Arc<Weights>>, Failure> {
    let weights = Weights::load(path).map_err(Failure::failed)?;
    check(&weights, path, output);
    Ok(watch::Sender::new(Arc::new(weights)))
}

/// Weights count within a pool only.
fn check(weights: &Weights, path: &Path, output: &Output) {
    if weights.pools() == 0 {
        output.warn(format_args!(
            "{} declares no pool, so that no weight has an effect: every connection sends on its own; \
             clients that share a bottleneck are \
             declared with [[pool]], name = \"...\" and clients = [\"NETWORK\", ...] or \"all\"",
            path.display()
        ));
    }
}

/// Reads the file again on SIGHUP, and when it has changed and stayed so for a look: one that is still being
/// written says less than it will. Until what is answered is dropped. A file that is written wrongly changes
/// nothing: the weights of before stay.
///
/// # Errors
/// The system does not let us listen for the signal.
pub fn keep(
    path: PathBuf,
    weights: watch::Sender<Arc<Weights>>,
    output: Output,
) -> Result<JoinSet<()>, Failure> {
    let mut hangup = signal(SignalKind::hangup()).map_err(Failure::failed)?;
    let mut keeping = JoinSet::new();
    keeping.spawn(async move {
        let mut known = version(&path);
        let mut seen = known;
        loop {
            let is_asked = tokio::select! {
                _ = hangup.recv() => true,
                () = tokio::time::sleep(LOOK) => false,
            };
            let now = version(&path);
            let is_settled = std::mem::replace(&mut seen, now) == now;
            if !is_asked && (now == known || now.is_none() || !is_settled) {
                continue;
            }
            known = now;
            match Weights::load(&path) {
                Ok(read) => {
                    output.say(format_args!(
                        "weights: {} and {} from {}",
                        counted(read.rules(), "rule"),
                        counted(read.pools(), "pool"),
                        path.display()
                    ));
                    check(&read, &path, &output);
                    weights.send_replace(Arc::new(read));
                }
                Err(error) => output.warn(format_args!("{error}; the weights of before stay")),
            }
        }
    });
    Ok(keeping)
}

/// What has connections of TCP go by the weights; `None`, and it is told, where nothing can.
pub fn over_tcp(weights: watch::Receiver<Arc<Weights>>, output: &Output) -> Option<Arc<TcpSharing>> {
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    return Some(TcpSharing::new(weights, Box::new(in_kernel::InKernel::new(output.clone()))));
    #[cfg(not(all(feature = "kernel", target_os = "linux")))]
    {
        drop(weights);
        output.warn(
            "HTTP over TCP does not go by the weights: that takes a congestion control in the kernel, and \
             this program was built without the feature 'kernel'",
        );
        None
    }
}

/// What tells one version of a file from another; `None` while there is none.
fn version(path: &Path) -> Option<(u64, u64, i64, i64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
}
