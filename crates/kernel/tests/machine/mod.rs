//! The machine has one set of congestion controls: one test has it at a time, and nothing of a test stays,
//! however that test ends.

use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// What the process has in its environment that a test runs in.
const ALONE: &str = "ANABRANCH_TEST_ALONE";

/// Runs the test of this name once more, in a process that has a BPF file system of its own: what it loads is
/// gone with it, even if it is killed, and what others have loaded is not in its way. Answers whether the
/// caller is that process; if not, it has nothing left to do.
///
/// Tests wait for each other, those of other processes included.
pub fn is_alone(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    // Where this is missing or not permitted no control can be loaded either, and tests say so by themselves.
    let Ok(lock) = File::open("/sys/kernel/btf/vmlinux") else { return true };
    let may = Command::new("unshare").args(["--mount", "true"]).stderr(Stdio::null()).status();
    if !may.unwrap().success() {
        return true;
    }
    lock.lock().unwrap();
    if !free_names() {
        return false;
    }
    let script = "mount -t bpf -o mode=0700 bpf /sys/fs/bpf || \
                  { echo 'SKIPPED: no BPF file system can be mounted (root?)'; exit 0; }
        exec \"$0\" \"$@\"";
    let status = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(ALONE, "1")
        .status();
    assert!(status.unwrap().success(), "{test}: see above");
    false
}

/// Whether nobody on this machine uses one of the controls. Those of a test that has just ended go a moment
/// later.
fn free_names() -> bool {
    let taken = || {
        let all =
            fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
        ["tfwc", "ttfwc", "multcp", "group"]
            .into_iter()
            .find(|name| all.split_whitespace().any(|word| word == *name))
    };
    for _ in 0..100 {
        if taken().is_none() {
            return true;
        }
        thread::sleep(Duration::from_millis(100));
    }
    let name = taken().unwrap_or_default();
    anabranch_testkit::skipped(format_args!(
        "this machine has {name} loaded; if nobody needs it: anabranch cc unload {name}"
    ));
    false
}
