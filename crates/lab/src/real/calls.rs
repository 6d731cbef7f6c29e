//! How often the kernel calls its congestion controls, and how long that takes. It counts both for BPF programs, such as
//! ours; for its own controls there are programs behind the same hook that call them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::TestbedError;
use crate::path_error::PathError;

/// What was counted in a run goes here, by the names of the programs.
pub(super) const CALLS: &str = "calls.json";
/// Whether the kernel counts.
const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// Calls of a program, and the time of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    /// How many.
    pub calls: u64,
    /// How long they took together, in nanoseconds; what the hook and the counting take is in it.
    pub time_ns: u64,
}

impl Calls {
    /// The mean of a call in nanoseconds; `None` without one.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.time_ns as f64 / self.calls as f64)
    }
}

/// A program as `bpftool` lists it. A name is that of one program, as controls are loaded one at a time.
#[derive(Deserialize)]
struct Program {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    run_time_ns: u64,
    #[serde(default)]
    run_cnt: u64,
}

/// What is registered, as `bpftool` lists it.
#[derive(Deserialize)]
struct Registered {
    id: u64,
}

/// The kernel counts, and has the controls of a file, as long as this lives.
pub(super) struct Counting {
    before: BTreeMap<String, Calls>,
    /// What it has registered.
    registered: Vec<u64>,
    was: String,
}

impl Counting {
    /// Compiles the BPF programs in a file, registers their controls, and begins to count.
    ///
    /// # Errors
    /// The file is not compiled, or the kernel refuses.
    pub(super) fn begin(source: &Path) -> Result<Self, TestbedError> {
        let object = source.with_extension("o");
        let headers = format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH);
        let compile = ["-O2", "-g", "-target", "bpf", &headers, "-c", "-o"];
        run(Command::new("clang").args(compile).args([&object, source]))?;
        let was = fs::read_to_string(SWITCH).map_err(PathError::reading(Path::new(SWITCH)))?;
        let known = registered()?;
        let outcome = run(bpftool().args(["struct_ops", "register"]).arg(&object));
        // Where one of several is refused the others are registered all the same. From here on it is undone.
        let new = registered()?.into_iter().filter(|id| !known.contains(id)).collect();
        let mut own = Self { before: BTreeMap::new(), registered: new, was };
        outcome?;
        switch(&own.was, "1")?;
        own.before = counted()?;
        Ok(own)
    }

    /// Writes what was counted since it began.
    ///
    /// # Errors
    /// The kernel does not tell, or the file cannot be written.
    pub(super) fn write(&self, directory: &Path) -> Result<(), TestbedError> {
        let mut calls = counted()?;
        for (name, now) in &mut calls {
            let before = self.before.get(name).copied().unwrap_or_default();
            now.calls = now.calls.saturating_sub(before.calls);
            now.time_ns = now.time_ns.saturating_sub(before.time_ns);
        }
        calls.retain(|_, calls| calls.calls > 0);
        let path: PathBuf = directory.join(CALLS);
        let text = serde_json::to_vec_pretty(&calls).map_err(io::Error::from);
        Ok(text.and_then(|text| fs::write(&path, text)).map_err(PathError::writing(&path))?)
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        // Nobody is left to be told; the next registration is.
        let _ = fs::write(SWITCH, &self.was);
        for id in &self.registered {
            let _ = run(bpftool().args(["struct_ops", "unregister", "id", &id.to_string()]));
        }
    }
}

fn switch(from: &str, to: &str) -> Result<(), TestbedError> {
    if from.trim() == to {
        return Ok(());
    }
    Ok(fs::write(SWITCH, to).map_err(PathError::writing(Path::new(SWITCH)))?)
}

/// The programs behind the kernel's hooks, and what was counted of each.
fn counted() -> Result<BTreeMap<String, Calls>, TestbedError> {
    let programs: Vec<Program> = listed(&["prog", "show"])?;
    let hooks = programs.into_iter().filter(|program| program.kind == "struct_ops");
    Ok(hooks.map(|one| (one.name, Calls { calls: one.run_cnt, time_ns: one.run_time_ns })).collect())
}

fn registered() -> Result<Vec<u64>, TestbedError> {
    let all: Vec<Registered> = listed(&["struct_ops", "show"])?;
    Ok(all.into_iter().map(|one| one.id).collect())
}

fn listed<T: DeserializeOwned>(what: &[&str]) -> Result<Vec<T>, TestbedError> {
    let text = run(bpftool().arg("-j").args(what))?;
    serde_json::from_str(&text)
        .map_err(|error| TestbedError::Failed { what: "bpftool".into(), said: error.to_string() })
}

fn bpftool() -> Command {
    Command::new("bpftool")
}

/// What a program prints.
fn run(command: &mut Command) -> Result<String, TestbedError> {
    let what = command.get_program().to_string_lossy().into_owned();
    let failed = |said: String| TestbedError::Failed { what: what.clone(), said };
    let output = command.stdin(Stdio::null()).output().map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).trim().into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_as_bpftool_lists_them() {
        let listed = r#"[{"id":7,"type":"struct_ops","name":"reno_avoid","run_time_ns":900,"run_cnt":3},
            {"id":8,"type":"struct_ops","name":"any_undo"},{"id":9,"type":"cgroup_skb"}]"#;
        let programs: Vec<Program> = serde_json::from_str(listed).unwrap();
        assert_eq!(
            (&*programs[0].name, programs[0].run_cnt, programs[0].run_time_ns),
            ("reno_avoid", 3, 900)
        );
        assert_eq!((&*programs[2].kind, &*programs[2].name), ("cgroup_skb", ""));
        assert_eq!(Calls { calls: 3, time_ns: 900 }.mean_ns(), Some(300.0));
        assert_eq!(Calls::default().mean_ns(), None);
    }
}
