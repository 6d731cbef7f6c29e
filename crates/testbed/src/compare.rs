//! Several clients through the same scenario, one after the other, and a table of what they did.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::Error;
use crate::film::{self, MadeFilm};
use crate::isolate::{self, Options};
use crate::report::{Summary, Table};
use crate::scenario::Scenario;

/// Runs these clients, all of the scenario's without a name. Each has its own folder in `options.out`, which
/// also gets `table.md` and `table.csv`.
///
/// # Errors
/// As [`isolate::run`].
pub fn compare(file: &Path, clients: &[String], options: &Options) -> Result<Vec<Summary>, Error> {
    let scenario = Scenario::load(file)?.with_film(options.film.as_ref())?;
    let all: Vec<String> = scenario.clients.iter().map(|client| client.name.clone()).collect();
    let clients = if clients.is_empty() { &all } else { clients };
    clients.iter().try_for_each(|name| scenario.client(Some(name)).map(|_| ()))?;
    let film = film::make(&scenario, &options.out)?;
    let mut summaries = Vec::new();
    for name in clients {
        let options = Options { out: options.out.join(name), ..options.clone() };
        fs::create_dir_all(&options.out).map_err(Error::io(options.out.display().to_string()))?;
        summaries.push(isolate::run_with_film(file, &scenario, Some(name), film.as_ref(), &options)?);
    }
    if !options.keep {
        film.map_or(Ok(()), MadeFilm::remove)?;
    }
    fs::write(options.out.join("table.md"), markdown(&summaries)).map_err(Error::io("table.md"))?;
    csv(&summaries).save(&options.out, "table.csv")?;
    Ok(summaries)
}

/// The table as people read it.
pub fn markdown(summaries: &[Summary]) -> String {
    let mut text = String::from(
        "| client | start-up (s) | stalls | stalled (s) | connections (max, mean) | cross traffic (Mbps) | \
         beyond the film (kB) | film complete |\n\
         |---|---:|---:|---:|---:|---:|---:|---|\n",
    );
    for summary in summaries {
        let complete = match (summary.right, summary.complete) {
            (false, _) => "wrong bytes".into(),
            (true, true) => "yes".into(),
            (true, false) => format!("{:.0} %", share(summary) * 100.0),
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.1} | {}, {:.1} | {:.2} | {:.0} | {complete} |",
            summary.client,
            summary.playback.startup_s.map_or("never".into(), |startup| format!("{startup:.1}")),
            summary.playback.stalls,
            summary.playback.stall_s,
            summary.connections_max,
            summary.connections_mean,
            summary.cross_bps / 1e6,
            summary.beyond_bytes as f64 / 1e3,
        );
    }
    text
}

fn csv(summaries: &[Summary]) -> Table {
    let mut table = Table::new(
        "client,startup_s,stalls,stall_s,connections_max,connections_mean,cross_bps,beyond_bytes,received_share,right",
    );
    for summary in summaries {
        table.line(&[
            &summary.client,
            &summary.playback.startup_s.map_or(String::new(), |startup| format!("{startup:.3}")),
            &summary.playback.stalls,
            &format!("{:.3}", summary.playback.stall_s),
            &summary.connections_max,
            &format!("{:.2}", summary.connections_mean),
            &format!("{:.0}", summary.cross_bps),
            &summary.beyond_bytes,
            &format!("{:.4}", share(summary)),
            &summary.right,
        ]);
    }
    table
}

fn share(summary: &Summary) -> f64 {
    summary.received_bytes as f64 / summary.film_bytes.max(1) as f64
}
