//! What the machine has to have: its kernel, its BPF file system, and root's rights.

use std::path::Path;

use rustix::mount::{MountFlags, mount};

use crate::error::Error;

/// The first kernel that ties a control to a link: Linux 6.4.
const LEAST_KERNEL: (u32, u32) = (6, 4);

/// Where the kernel shows BPF objects that outlive their loader.
const BPF_FS: &str = "/sys/fs/bpf";
const BPF_FS_MAGIC: i128 = 0xcafe_4a11;

/// Whether the running kernel has what the programs need.
pub(crate) fn check_kernel() -> Result<(), Error> {
    if !is_root() {
        return Err(Error::NotRoot);
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(Error::NoBtf);
    }
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    match version(&release) {
        Some(version) if version < LEAST_KERNEL => Err(Error::TooOld(release)),
        // Whatever calls itself something else may be new enough.
        _ => Ok(()),
    }
}

/// The first two numbers of a kernel's release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Mounts the BPF file system where it is not. For root alone, as systemd does: by default every user could
/// put files there.
pub(crate) fn mount_bpf_fs() -> Result<(), Error> {
    let path = Path::new(BPF_FS);
    if is_bpf_fs(path) {
        return Ok(());
    }
    mount("bpf", path, "bpf", MountFlags::empty(), Some(c"mode=0700"))
        .map_err(|error| Error::NoBpfFs { path: path.to_owned(), source: error.into() })
}

/// Whether a path is in a BPF file system.
pub(crate) fn is_bpf_fs(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| i128::from(found.f_type) == BPF_FS_MAGIC)
}

/// Whether this process is root's.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn releases_are_read() {
        assert_eq!(version("6.18.44-fc-v445"), Some((6, 18)));
        assert_eq!(version("5.10.0-32-amd64"), Some((5, 10)));
        assert_eq!(version("6.4"), Some((6, 4)));
        assert_eq!(version("rolling"), None);
    }
}
