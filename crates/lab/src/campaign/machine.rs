//! Where and with what results were measured.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// A machine, a program and a day.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Of the measurement's begin, in UTC.
    pub date: String,
    /// Of the program, with `-dirty` where the files differ from it.
    pub commit: String,
    /// What the program says that it is.
    pub program: String,
    /// The kernel.
    pub kernel: String,
    /// Number and model of the processors.
    pub processors: String,
    /// The system's load before it began.
    pub load: String,
    /// What each program that is needed says that it is.
    pub peers: Vec<String>,
}

impl Machine {
    /// This one, now; of the programs in `needs` the versions.
    pub(super) fn now(campaigns: &Path, program: &Path, needs: &[String]) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let processors = read("/proc/cpuinfo");
        let models: Vec<&str> = processors
            .lines()
            .filter_map(|line| line.strip_prefix("model name")?.split_once(':'))
            .map(|(_, model)| model.trim())
            .collect();
        let commit =
            said(Command::new("git").arg("-C").arg(campaigns).args(["describe", "--always", "--dirty"]));
        Self {
            date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
            commit: commit.unwrap_or_else(|| "unknown".into()),
            program: said(Command::new(program).arg("--version")).unwrap_or_default(),
            kernel: read("/proc/sys/kernel/osrelease").trim().into(),
            processors: format!("{} x {}", models.len(), models.first().unwrap_or(&"?")),
            load: read("/proc/loadavg").split(' ').take(3).collect::<Vec<_>>().join(" "),
            peers: needs.iter().filter_map(|name| version(name)).collect(),
        }
    }

    /// The name of its directory.
    pub(super) fn run(&self) -> String {
        format!("{}-{}", self.date, self.commit)
    }

    /// A line that stands below a table.
    pub(super) fn line(&self) -> String {
        let Self { date, commit, kernel, processors, load, peers, .. } = self;
        let peers = if peers.is_empty() { String::new() } else { format!("; {}", peers.join(", ")) };
        format!("{date}, {commit}, Linux {kernel}, {processors}, load before it {load}{peers}.")
    }
}

/// The first line of what a program says on either output.
fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    let both = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&both);
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}

/// A program's name with the first number in what it says of itself that has a point.
fn version(name: &str) -> Option<String> {
    let argument = match name {
        "nginx" | "ip" | "ss" => "-V",
        _ => "--version",
    };
    let said = said(Command::new(name).arg(argument))?;
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    let number = said
        .split(|c| !is_part(c))
        .find(|part| part.contains('.') && part.starts_with(|c: char| c.is_ascii_digit()))?;
    Some(format!("{name} {}", number.trim_end_matches('.')))
}
