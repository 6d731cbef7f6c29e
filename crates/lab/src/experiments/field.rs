//! The field with real programs: some paths and a crowd of its grids, in the testbed, where `auto` and fixed
//! numbers of connections play the same film behind nginx and the kernel's senders.

use anabranch_units::{Bytes, Duration};
use toml::Value;

use crate::case::{Case, Measured};
use crate::papers::Papers;
use crate::plan;
use crate::real::{self, Observed, Real, TestbedError, Trial};
use crate::scheme::{AUTO, N1, N3, N5, Scheme};
use crate::statistics::mean;

const SCHEMES: [Scheme; 4] = [AUTO, N1, N3, N5];
/// What crosses is there for so long before the film.
const BEFORE: Duration = Duration::from_secs(10);
/// A first picture that takes longer is a stall, as in the plan's figure.
const PATIENCE_S: f64 = 10.0;
const SECONDS: u64 = 80;
/// Of the 25 s that are fetched ahead the player holds so much, as `real.toml` says, and the program the rest.
const AHEAD_OF_PLAYER: (u64, u64) = (20, 25);
/// What the plans count as a packet in a queue of bytes.
const PACKET: Bytes = Bytes::new(1500);

/// A grid with real programs.
struct Grid {
    /// The folder of its plan in `papers/field`.
    name: &'static str,
    /// The numbers of the paths that are run.
    paths: &'static [f64],
    /// The flow of the scenario that stands for the films, and how many there are.
    film: &'static str,
    films: usize,
    /// What the plan calls what others have.
    others: &'static str,
    differs: &'static [&'static str],
}

/// A path beside BBR flows, behind a policer, with capped connections, with SYNs dropped above four of them, with a
/// queue of five products and of three, with jitter, reordering, losses, a longer route, and outages.
const FILM: Grid = Grid {
    name: "film",
    paths: &[47.0, 266.0, 231.0, 284.0, 77.0, 124.0, 160.0, 81.0, 275.0, 105.0, 29.0],
    film: "flow.film.",
    films: 1,
    others: "cross",
    differs: &["beside BBR flows the film's server has BBR as well"],
};

const CROWD: Grid = Grid {
    name: "crowd",
    paths: &[87.0],
    film: "flow.film-first.",
    films: 4,
    others: "TCP",
    differs: &["all films begin at the same moment"],
};

/// One film on some of the paths.
pub(super) fn film() -> Real {
    real(&FILM)
}

/// A crowd of four.
pub(super) fn crowd() -> Real {
    real(&CROWD)
}

fn real(grid: &'static Grid) -> Real {
    let common = [
        "nginx, the kernel's CUBIC, Reno and BBR with SACK, iperf3 as cross traffic; the path is emulated, and \
         what crosses comes from the film's server. A queue of so many bytes is one of packets of 1500",
        "all schemes are 'anabranch play' with a player that holds 5 s, and 20 s before it; the player waits \
         for two seconds of film, and again after a stall",
    ];
    Real {
        differs: common.iter().chain(grid.differs).map(|text| (*text).into()).collect(),
        needs: &["ip", "ss", "unshare", "nginx", "iperf3", "ffmpeg", "curl"],
        trials: Box::new(move |seed| trials(grid, seed)),
    }
}

fn trials(grid: &'static Grid, seed: u64) -> Result<Vec<Trial>, TestbedError> {
    let all = plan::changes(&Papers::BuiltIn, "field", grid.name);
    let all =
        all.map_err(|error| TestbedError::Scenario { file: "field".into(), error: error.to_string() })?;
    let is_run = |case: &Case| grid.paths.contains(&case.point) && SCHEMES.contains(&case.scheme);
    all.into_iter()
        .filter(|(case, _)| is_run(case))
        .map(|(case, changes)| trial(grid, case, &changes, seed))
        .collect()
}

fn trial(
    grid: &'static Grid,
    case: Case,
    changes: &[(String, Value)],
    seed: u64,
) -> Result<Trial, TestbedError> {
    let mut changed =
        vec![("run.seed", real::seed(seed)), ("client.viewer.copies", real::seed(grid.films as u64))];
    let mut memory = 0;
    for (key, value) in changes {
        match (key.strip_prefix(grid.film), key.as_str()) {
            (Some("rate"), _) => changed.push(("film.rate", value.clone())),
            (Some("content.look_ahead"), _) => {
                memory = number(value, "B") as u64 * AHEAD_OF_PLAYER.0 / AHEAD_OF_PLAYER.1;
            }
            // What else the film's flow says is the scheme's, and the command's.
            (Some(_), _) => {}
            (None, key) if key.starts_with("flow.film") => {}
            (None, "link.path.queue") => {
                let packets = (number(value, "B") / PACKET.as_f64()).floor();
                changed.push(("link.path.queue", format!("{packets} packets").into()));
            }
            // The server is a millisecond before the path.
            (None, "link.path.delay") => {
                changed.push(("link.path.delay", format!("{}ms", number(value, "ms") + 1.0).into()));
            }
            (None, key) => {
                if key == "flow.cross.tcp" && value.get("congestion") == Some(&"bbr".into()) {
                    changed.push(("server.1.congestion", "bbr".into()));
                }
                changed.push((key, value.clone()));
            }
        }
    }
    changed.push(("client.viewer.command", command(case.scheme, memory).into()));
    Ok(Trial {
        scenario: real::scenario(&format!("field/{}/real.toml", grid.name), changed)?,
        case,
        files: Vec::new(),
        kernel: Vec::new(),
        programs: None,
        duration: Duration::from_secs(SECONDS),
        reading: Box::new(move |observed| read(observed, grid)),
    })
}

/// The number of a quantity in this unit.
fn number(value: &Value, unit: &str) -> f64 {
    let text = value.as_str().and_then(|text| text.strip_suffix(unit));
    text.and_then(|number| number.parse().ok()).unwrap_or(f64::NAN)
}

/// What stands for a scheme.
fn command(scheme: Scheme, memory: u64) -> Vec<String> {
    let algorithm = match scheme {
        N1 => "fixed --connections 1",
        N3 => "fixed --connections 3",
        N5 => "fixed --connections 5",
        other => {
            debug_assert_eq!(other, AUTO);
            "auto"
        }
    };
    let play = format!(
        "sleep {}; exec {{anabranch}} play --quiet --no-stripe --rate {{rate}} --memory {memory} --player 'curl -sS {{}}' \
         --algorithm {algorithm} {{url1}}",
        BEFORE.as_secs_f64()
    );
    ["sh".into(), "-c".into(), play].into()
}

/// The figures by the names that the plans give them.
fn read(observed: &Observed, grid: &Grid) -> Result<Measured, String> {
    let summary = observed.summary()?;
    let before = BEFORE.as_secs_f64();
    let standing: Vec<f64> = summary
        .viewers
        .iter()
        .map(|viewing| match viewing.startup_s {
            Some(start_up) => viewing.stall_s + (start_up - before - PATIENCE_S).max(0.0),
            None => SECONDS as f64 - before,
        })
        .collect();
    let start_ups: Option<Vec<f64>> =
        summary.viewers.iter().map(|viewing| Some(viewing.startup_s? - before)).collect();
    let connections = observed.connections()?;
    let connections = connections.iter().filter(|look| look.time_s > before);
    let connections: Vec<f64> = connections.map(|look| look.established / grid.films as f64).collect();
    // Not every path has others; a single one has a number in its name.
    let others = observed.traffic("cross").or_else(|_| observed.traffic("cross1")).unwrap_or_default();
    let others = others.iter().filter(|row| row.time_s > before + 0.5);
    let others: Vec<f64> = others.map(|row| row.payload_bps / 1e3).collect();
    let of = |values: &[f64]| mean(values).unwrap_or(f64::NAN);
    Ok(Measured::default()
        .figure("stalled", of(&standing), "s")
        .figure("start-up", start_ups.map_or(f64::NAN, |start_ups| of(&start_ups)), "s")
        .figure("connections", of(&connections), "")
        .figure(grid.others, of(&others), "kbps"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_has_its_path_its_film_and_what_is_fetched_ahead() {
        for (grid, runs) in [(&FILM, 44), (&CROWD, 4)] {
            let trials = trials(grid, 1).unwrap();
            assert_eq!(trials.len(), runs, "{}", grid.name);
            for trial in trials {
                let case = &trial.case;
                let scenario: toml::Table = trial.scenario.parse().unwrap();
                let of = |table: &str, key: &str| match &scenario[table] {
                    Value::Array(all) => all[0][key].clone(),
                    one => one[key].clone(),
                };
                assert!(of("link", "queue").as_str().unwrap().ends_with(" packets"), "{case}");
                assert!(of("link", "delay").as_str().unwrap().ends_with("ms"), "{case}");
                assert_eq!(of("client", "copies").as_integer(), Some(grid.films as i64), "{case}");
                // Four fifths of 25 s.
                let rate = number(&of("film", "rate"), "Mbps");
                let command = of("client", "command")[2].as_str().unwrap().to_owned();
                let memory = command.split("--memory ").nth(1).unwrap().split(' ').next().unwrap();
                let seconds = memory.parse::<f64>().unwrap() * 8e-6 / rate;
                assert!((19.9..20.1).contains(&seconds), "{case}: {seconds} s of {rate} Mbps");
            }
        }
    }
}
