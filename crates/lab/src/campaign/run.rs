//! A campaign is run: its driver, or the testbed with its scenario.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use super::document::Driver;
use super::error::CampaignError;
use super::raw::Row;
use super::raw::read_rows;
use super::series::Series;
use super::{Campaign, Machine, Tables};
use crate::path_error::PathError;
use crate::real::Testbed;

const RAW: &str = "raw.jsonl";
/// What the directory of a run of some clients ends with.
const PART: &str = "-part";
const MACHINE: &str = "machine.json";
/// Where the testbed leaves what is too much to keep.
const RUNS: &str = "runs";
/// How often it is looked whether it is to stop.
const LOOK: Duration = Duration::from_millis(200);

/// What a run is made with.
pub struct BenchOptions<'a> {
    /// Ours, the one that is measured.
    pub program: &'a Path,
    /// The testbed.
    pub testbed: &'a Testbed,
    /// How often a driver measures everything.
    pub rounds: u32,
    /// Of a scenario these clients alone; empty: all.
    pub clients: &'a [String],
    /// The directory of all results.
    pub out: &'a Path,
    /// Ends it soon.
    pub stop: &'a AtomicBool,
}

/// Runs a campaign; its results are in the directory that comes back, below [`BenchOptions::out`].
///
/// # Errors
/// Programs are missing, the driver fails, or something cannot be written.
pub fn run(campaign: &Campaign, options: &BenchOptions<'_>) -> Result<PathBuf, CampaignError> {
    let missing: Vec<String> =
        campaign.document.needs.iter().filter(|name| !crate::real::is_installed(name)).cloned().collect();
    if !missing.is_empty() {
        return Err(CampaignError::Missing { campaign: campaign.name.clone(), missing });
    }
    let machine = Machine::now(&campaign.directory, options.program, &campaign.document.needs);
    // What is of some clients only is not taken for the whole.
    let part = if options.clients.is_empty() { "" } else { PART };
    let directory = options.out.join(machine.run() + part).join(&campaign.name);
    fs::create_dir_all(&directory).map_err(PathError::writing(&directory))?;
    let rows = match &campaign.document.driver {
        Driver::Command(command) => driven(campaign, command, options)?,
        Driver::Scenario { file, series } => emulated(campaign, file, series, &directory, options)?,
    };
    let lines: String = rows.iter().map(json).collect();
    keep(&directory.join(RAW), &lines)?;
    keep(&directory.join(MACHINE), &json(&machine))?;
    Ok(directory)
}

impl Tables {
    /// Makes the tables from what a run has left in its directory, and writes them there.
    ///
    /// # Errors
    /// Its results cannot be read, or the tables not be written.
    pub fn of_run(campaign: &Campaign, directory: &Path) -> Result<Self, CampaignError> {
        let rows = read_rows(&directory.join(RAW))?;
        let path = directory.join(MACHINE);
        let text = fs::read_to_string(&path).map_err(PathError::reading(&path))?;
        let wrong = |error: serde_json::Error| CampaignError::Raw {
            path: path.clone(),
            line: error.line(),
            error: error.to_string(),
        };
        let tables = Self::new(campaign, &rows, serde_json::from_str(&text).map_err(wrong)?);
        keep(&directory.join("table.md"), &tables.markdown())?;
        keep(&directory.join("table.csv"), &tables.csv())?;
        if let Some(plot) = tables.plot() {
            keep(&directory.join("plot.svg"), &plot)?;
        }
        Ok(tables)
    }
}

/// The directory of a campaign's newest results below `out`, of all clients; of two of one day that which was
/// written last.
///
/// # Errors
/// The directory cannot be read.
pub fn newest(out: &Path, name: &str) -> Result<Option<PathBuf>, CampaignError> {
    let entries = match fs::read_dir(out) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        entries => entries.map_err(PathError::reading(out))?,
    };
    let dated = entries.filter_map(|entry| {
        let run = entry.ok()?.file_name().into_string().ok().filter(|run| !run.ends_with(PART))?;
        let directory = out.join(&run).join(name);
        let at = fs::metadata(directory.join(RAW)).ok()?.modified().ok()?;
        Some((run.get(.."2026-11-24".len())?.to_owned(), at, directory))
    });
    Ok(dated.max().map(|(_, _, directory)| directory))
}

fn keep(path: &Path, text: &str) -> Result<(), CampaignError> {
    Ok(fs::write(path, text).map_err(PathError::writing(path))?)
}

fn json(value: &impl serde::Serialize) -> String {
    // Texts and numbers by name always are JSON.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

/// What a driver prints. It runs where the campaign's file is.
fn driven(
    campaign: &Campaign,
    command: &[String],
    options: &BenchOptions<'_>,
) -> Result<Vec<Row>, CampaignError> {
    let absolute = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.into()).display().to_string();
    let (program, testbed) = (absolute(options.program), absolute(options.testbed.program()));
    let rounds = options.rounds.to_string();
    let fill = |argument: &String| {
        let argument = argument.replace("{anabranch}", &program).replace("{testbed}", &testbed);
        argument.replace("{rounds}", &rounds)
    };
    let arguments: Vec<String> = command.iter().map(fill).collect();
    let what = arguments.join(" ");
    let failed = |said: String| CampaignError::Driver { what: what.clone(), said };
    let mut child = Command::new(&arguments[0])
        .args(&arguments[1..])
        .current_dir(if campaign.directory.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &campaign.directory
        })
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let rows = printed(&mut child, options.stop).map_err(|error| match error {
        Some(error) => failed(error),
        None => CampaignError::Stopped,
    });
    if rows.is_err() {
        end(&mut child);
    }
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    let rows = rows?;
    if !status.success() {
        return Err(failed(format!("it ended with {status}")));
    }
    if rows.is_empty() {
        return Err(failed("it printed no results".into()));
    }
    Ok(rows)
}

/// Ends a driver: it has heard the same signal, and takes down what it started; what hangs is killed.
fn end(child: &mut Child) {
    for _ in 0..25 {
        if child.try_wait().is_ok_and(|status| status.is_some()) {
            return;
        }
        thread::sleep(LOOK);
    }
    let _ = child.kill();
}

/// The results that a program prints; `None` when it is to stop.
fn printed(child: &mut Child, stop: &AtomicBool) -> Result<Vec<Row>, Option<String>> {
    let Some(output) = child.stdout.take() else { return Ok(Vec::new()) };
    let (line, lines) = channel();
    thread::spawn(move || {
        for text in BufReader::new(output).lines() {
            if line.send(text).is_err() {
                return;
            }
        }
    });
    let mut rows = Vec::new();
    loop {
        match lines.recv_timeout(LOOK) {
            Ok(text) => {
                let text = text.map_err(|error| Some(error.to_string()))?;
                rows.push(
                    Row::parse(&text).map_err(|error| Some(format!("'{text}' is no result: {error}")))?,
                );
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(rows),
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => return Err(None),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// What clients of a scenario leave behind.
fn emulated(
    campaign: &Campaign,
    file: &str,
    series: &[Series],
    directory: &Path,
    options: &BenchOptions<'_>,
) -> Result<Vec<Row>, CampaignError> {
    options.testbed.check([])?;
    let (runs, scenario) = (directory.join(RUNS), campaign.directory.join(file));
    let there = clients(&scenario)?;
    let only: Vec<String> = options.clients.iter().filter(|name| there.contains(name)).cloned().collect();
    if only.is_empty() && !options.clients.is_empty() {
        let said = format!("it has none of these clients, but {}", there.join(", "));
        return Err(CampaignError::Driver { what: scenario.display().to_string(), said });
    }
    let stopped = options.testbed.compare(&scenario, options.program, &only, &runs, options.stop)?;
    if stopped.is_none() {
        return Err(CampaignError::Stopped);
    }
    let mut rows = Vec::new();
    for client in there {
        let own = runs.join(&client);
        let path = own.join("summary.json");
        if !path.exists() {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(PathError::reading(&path))?;
        let mut row =
            Row::parse(&text).map_err(|error| CampaignError::Raw { path: path.clone(), line: 1, error })?;
        row.set("client", client);
        for one in series {
            if let Some(number) = one.measure(&own, &row)? {
                row.set(&one.name, number);
            }
        }
        rows.push(row);
    }
    Ok(rows)
}

/// The clients of a scenario in their order.
fn clients(scenario: &Path) -> Result<Vec<String>, CampaignError> {
    let text = fs::read_to_string(scenario).map_err(PathError::reading(scenario))?;
    let document: toml::Table = text.parse().unwrap_or_default();
    let all = document.get("client").and_then(toml::Value::as_array).map_or(&[][..], Vec::as_slice);
    Ok(all.iter().filter_map(|client| Some(client.get("name")?.as_str()?.to_owned())).collect())
}
