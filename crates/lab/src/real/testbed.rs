//! The testbed's program: where it is, whether it can run here, and a run of it.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::Trial;
use super::calls::Counting;
use super::error::TestbedError;
use crate::path_error::PathError;

const PROGRAM: &str = "anabranch-testbed";
/// What the testbed says goes here.
const LOG: &str = "testbed.log";
const SCENARIO: &str = "scenario.toml";
/// How often it is looked whether a run has ended, or is to end.
const LOOK: Duration = Duration::from_millis(100);

/// The testbed's program and ours.
#[derive(Clone, Debug)]
pub struct Testbed {
    program: PathBuf,
    anabranch: PathBuf,
}

impl Testbed {
    /// The testbed that is meant: `chosen`, else the one beside this program, else the one on the `PATH`.
    ///
    /// # Errors
    /// It is not known where this program is.
    pub fn find(chosen: Option<PathBuf>) -> Result<Self, TestbedError> {
        let anabranch = env::current_exe()
            .map_err(|error| TestbedError::Missing { program: "anabranch".into(), error })?;
        let beside = anabranch.with_file_name(PROGRAM);
        let found = || if beside.exists() { beside } else { PROGRAM.into() };
        Ok(Self { program: chosen.unwrap_or_else(found), anabranch })
    }

    /// The testbed's program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Whether runs that need these programs are possible here.
    ///
    /// # Errors
    /// Why not, and what to do.
    pub fn check<'a>(&self, needs: impl IntoIterator<Item = &'a &'static str>) -> Result<(), TestbedError> {
        let output = Command::new(&self.program)
            .arg("check")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| TestbedError::Missing { program: self.program.clone(), error })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.trim().trim_start_matches("anabranch-testbed: ");
            return Err(TestbedError::NotPossible(said.into()));
        }
        match needs.into_iter().find(|name| !is_installed(name)) {
            Some(name) => Err(TestbedError::Program(name, package(name))),
            None => Ok(()),
        }
    }

    /// Makes a run in `directory`; `None` when it was to stop before its end.
    ///
    /// # Errors
    /// It fails, or its files cannot be written.
    pub(super) fn run(
        &self,
        trial: &Trial,
        directory: &Path,
        stop: &AtomicBool,
    ) -> Result<Option<()>, TestbedError> {
        let failed = PathError::writing(directory);
        // What an earlier run has left would be taken for this one's.
        match fs::remove_dir_all(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error).into()),
            _ => fs::create_dir_all(directory).map_err(&failed)?,
        }
        let here = directory.canonicalize().map_err(&failed)?;
        let scenario = trial.scenario.replace("{here}", &here.to_string_lossy());
        // Servers get it as well, which the testbed tells clients alone.
        let scenario = scenario.replace("{anabranch}", &self.anabranch.to_string_lossy());
        let files = trial.files.iter().map(|(name, text)| (*name, text)).chain([(SCENARIO, &scenario)]);
        for (name, text) in files {
            let path = here.join(name);
            fs::write(&path, text).map_err(PathError::writing(&path))?;
        }
        let loaded = Loaded::new(&self.anabranch, &trial.kernel)?;
        let counting = trial.programs.map(|file| Counting::begin(&here.join(file))).transpose()?;
        let scenario = here.join(SCENARIO);
        let done = self.watched("run", &scenario, &self.anabranch, &[], &here, stop)?;
        counting.as_ref().map(|counting| counting.write(&here)).transpose()?;
        // The connections are gone with the testbed.
        drop((counting, loaded));
        Ok(done)
    }

    /// Carries clients (all where none is named) through a scenario, with their results in `directory`;
    /// `None` when it was to stop before its end. `anabranch` is the program of ours that is meant.
    ///
    /// # Errors
    /// It fails, or its files cannot be written.
    pub fn compare(
        &self,
        scenario: &Path,
        anabranch: &Path,
        clients: &[String],
        directory: &Path,
        stop: &AtomicBool,
    ) -> Result<Option<()>, TestbedError> {
        let failed = PathError::writing(directory);
        match fs::remove_dir_all(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error).into()),
            _ => fs::create_dir_all(directory).map_err(&failed)?,
        }
        let only =
            if clients.is_empty() { Vec::new() } else { vec![format!("--clients={}", clients.join(","))] };
        self.watched("compare", scenario, anabranch, &only, directory, stop)
    }

    /// Has the program do this to a scenario, and waits until it has.
    fn watched(
        &self,
        verb: &str,
        scenario: &Path,
        anabranch: &Path,
        more: &[String],
        directory: &Path,
        stop: &AtomicBool,
    ) -> Result<Option<()>, TestbedError> {
        let log = directory.join(LOG);
        let file = File::create(&log).map_err(PathError::writing(&log))?;
        let again = file.try_clone().map_err(PathError::writing(&log))?;
        let mut child = Command::new(&self.program)
            .arg(verb)
            .arg(scenario)
            .args(more)
            .arg("--anabranch")
            .arg(anabranch)
            .arg("--out")
            .arg(directory)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(again)
            .spawn()
            .map_err(|error| TestbedError::Missing { program: self.program.clone(), error })?;
        let status = loop {
            let failed =
                |error: io::Error| TestbedError::Failed { what: PROGRAM.into(), said: error.to_string() };
            if let Some(status) = child.try_wait().map_err(failed)? {
                break status;
            }
            if stop.load(Ordering::Relaxed) {
                // With the testbed goes everything that it has started.
                let _ = child.kill();
                let _ = child.wait();
                return Ok(None);
            }
            thread::sleep(LOOK);
        };
        if status.success() {
            return Ok(Some(()));
        }
        // Ctrl-C goes to the testbed as well, and may be told here a moment later.
        thread::sleep(5 * LOOK);
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let said = fs::read_to_string(&log).unwrap_or_default();
        let said: Vec<&str> = said.lines().rev().take(3).collect();
        let said = said.into_iter().rev().collect::<Vec<_>>().join("; ");
        Err(TestbedError::Failed {
            what: PROGRAM.into(),
            said: format!("{said} ({status}; {})", log.display()),
        })
    }
}

/// A congestion control that the kernel has as long as this lives.
struct Loaded<'a> {
    anabranch: &'a Path,
    name: Option<&'a String>,
}

impl<'a> Loaded<'a> {
    fn new(anabranch: &'a Path, control: &'a [String]) -> Result<Self, TestbedError> {
        let name = control.first();
        if name.is_some() {
            let what = format!("anabranch cc load {}", control.join(" "));
            let failed = |said: String| TestbedError::Failed { what: what.clone(), said };
            let output = cc(anabranch, "load", control).map_err(|error| failed(error.to_string()))?;
            if !output.status.success() {
                return Err(failed(String::from_utf8_lossy(&output.stderr).trim().into()));
            }
        }
        Ok(Self { anabranch, name })
    }
}

impl Drop for Loaded<'_> {
    fn drop(&mut self) {
        if let Some(name) = self.name {
            // Nobody is left to be told that it did not go; the next load is.
            let _ = cc(self.anabranch, "unload", [name]);
        }
    }
}

fn cc(
    anabranch: &Path,
    verb: &str,
    rest: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> io::Result<std::process::Output> {
    Command::new(anabranch).args(["cc", verb]).args(rest).stdin(Stdio::null()).output()
}

/// Whether a program is on the `PATH`, or where the testbed looks besides.
pub(crate) fn is_installed(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places = env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    places.any(|place| place.join(name).is_file())
}

/// The Debian package of a program.
fn package(program: &'static str) -> &'static str {
    match program {
        "ip" | "ss" => "iproute2",
        "nginx" => "nginx-light",
        "nsenter" | "unshare" => "util-linux",
        "sha256sum" | "timeout" => "coreutils",
        name => name,
    }
}
