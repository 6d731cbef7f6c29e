//! A run in namespaces of its own, which the kernel takes back however it ends.
//!
//! [`run`] starts the testbed's own program under `unshare` in new network, mount and process-id namespaces
//! (and a user namespace, where the caller is not root), with a pipe as its standard input that nothing is
//! ever written to. When the caller is gone, for whatever reason, the pipe ends and so does the program; it
//! is the first process of its process-id namespace, so the kernel kills all others in it, and with the last
//! of them go the network namespaces, their interfaces, and the private mounts with all scratch files.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anabranch_units::Rate;

use crate::film::{self, MadeFilm};
use crate::report::Summary;
use crate::scenario::Scenario;
use crate::{Error, inside};

/// How to carry out a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The testbed's program; a library user has to say where it is.
    pub program: PathBuf,
    /// The program that stands for `{anabranch}`.
    pub anabranch: PathBuf,
    /// Where the results go.
    pub out: PathBuf,
    /// A film that is there, and its rate, in the place of the scenario's.
    pub film: Option<(PathBuf, Rate)>,
    /// Leave everything running at the end, until interrupted, and keep the film.
    pub keep: bool,
}

impl Options {
    /// Options for a caller that is the testbed's program itself.
    ///
    /// # Errors
    /// When the program's own path is not known.
    pub fn here(out: &Path) -> Result<Self, Error> {
        let program = env::current_exe().map_err(Error::io("the program's own path"))?;
        let beside = program.with_file_name("anabranch");
        let anabranch = if beside.exists() { beside } else { "anabranch".into() };
        Ok(Self { program, anabranch, out: out.into(), film: None, keep: false })
    }
}

/// Whether this user may make the namespaces that a run needs.
///
/// # Errors
/// [`Error::NotAllowed`] when not.
pub fn allowed() -> Result<(), Error> {
    let output = unshare().arg("true").output().map_err(|error| Error::Program {
        program: "unshare".into(),
        cause: format!("{error} (Debian package: util-linux)"),
    })?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Error::NotAllowed(String::from_utf8_lossy(&output.stderr).trim().into())),
    }
}

fn unshare() -> Command {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]);
    // Where an ordinary user's PATH does not have the system's programs.
    let path = env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command.stdin(Stdio::piped());
    command
}

/// Carries one client through a scenario.
///
/// # Errors
/// When the scenario is wrong, namespaces are not allowed, or a program fails. A client that fails is a
/// result.
pub fn run(file: &Path, client: Option<&str>, options: &Options) -> Result<Summary, Error> {
    let scenario = Scenario::load(file)?.with_film(options.film.as_ref())?;
    let film = film::make(&scenario, &options.out)?;
    let summary = run_with_film(file, &scenario, client, film.as_ref(), options)?;
    if !options.keep {
        film.map_or(Ok(()), MadeFilm::remove)?;
    }
    Ok(summary)
}

/// As [`run`], with a film that is there.
pub(crate) fn run_with_film(
    file: &Path,
    scenario: &Scenario,
    client: Option<&str>,
    film: Option<&MadeFilm>,
    options: &Options,
) -> Result<Summary, Error> {
    let client = scenario.client(client)?;
    allowed()?;
    let order = inside::Order {
        scenario: absolute(file)?,
        client: client.name.clone(),
        film: film.map(|film| absolute(&film.file)).transpose()?,
        film_bps: options.film.as_ref().map(|(_, rate)| rate.as_bps()),
        anabranch: options.anabranch.clone(),
        out: absolute(&options.out)?,
        keep: options.keep,
    };
    let text = serde_json::to_string(&order).map_err(|error| Error::Scenario(error.to_string()))?;
    // The child keeps its end of the pipe until `child` goes: dropping it is what ends the run.
    let mut child =
        unshare().arg(&options.program).args(["inside", &text]).spawn().map_err(Error::io("unshare"))?;
    let _pipe = child.stdin.take();
    let status = child.wait().map_err(Error::io("the run"))?;
    match status.success() {
        true => Summary::load(&options.out),
        false => Err(Error::Program {
            program: "the run".into(),
            cause: format!("{status} (what it said is above and in {})", options.out.display()),
        }),
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    let path = path.canonicalize().map_err(Error::io(path.display().to_string()))?;
    match path.starts_with("/run") {
        true => Err(Error::Scenario(format!("{}: a run cannot see files under /run", path.display()))),
        false => Ok(path),
    }
}

/// The part of the program that runs in the namespaces: carries out the order that [`run`] wrote.
///
/// # Errors
/// As [`run`].
pub fn inside(order: &str) -> Result<(), Error> {
    inside::carry_out(order)
}
