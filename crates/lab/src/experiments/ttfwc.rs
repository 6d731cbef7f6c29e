//! Figures of chapter 5 with the kernel's TCP: TTFWC as a congestion control of the kernel, beside its Reno.

mod calls;

use std::ops::Range;

use anabranch_units::Duration;
use toml::Value;

use crate::case::{Case, Measured};
use crate::real::{self, Observed, Real, TestbedError, Traffic, Trial};
use crate::scheme::{CUBIC, RENO, Scheme, TTFWC_0_0, TTFWC_0_4, TTFWC_0_9};
use crate::statistics::{jain_index, mean, variation};
pub(super) use calls::{Procedure, procedure};

/// The simulated runs of 10 Mbps, in `papers/ttfwc`.
const SETTING: &str = "10 Mbps";
const RATE: &str = "throughput of TTFWC";
const TCP_RATE: &str = "throughput of TCP";

/// Round trips without a queue, ms.
const TRIPS: [f64; 5] = [16.0, 32.0, 120.0, 240.0, 320.0];
/// Those at which equal flows are held against each other.
const TRIPS_OF_EQUALS: [f64; 2] = [16.0, 240.0];
/// What does not count at the beginning, seconds.
const WARM_UP_S: f64 = 15.0;
/// Three of TTFWC and three of Reno in turn.
const FLOWS: u64 = 6;
/// The part of a packet that is payload.
const PAYLOAD: f64 = 1448.0 / 1500.0;
/// How many of each control there are in figures 5.6 to 5.8.
const COUNTS: [f64; 3] = [2.0, 4.0, 16.0];
/// The same in figure 5.9.
const EIGHT: u64 = 8;

const KERNEL: &str = "TTFWC runs in the kernel (anabranch cc load ttfwc), iperf3 sends packets of 1500 bytes, and \
                      receivers acknowledge as the kernel does";

/// What counts of a run; its last second is not whole.
fn counted(seconds: u64) -> Range<f64> {
    WARM_UP_S + 0.5..seconds as f64 - 0.5
}

/// Real runs that differ from the simulated ones by their duration, by the kernel, and by the path.
fn real(
    duration: &str,
    path: &str,
    trials: impl Fn(u64) -> Result<Vec<Trial>, TestbedError> + Send + Sync + 'static,
) -> Real {
    Real {
        differs: [duration, KERNEL, path].map(Into::into).into(),
        needs: &["ip", "ss", "unshare", "nginx", "iperf3", "ffmpeg"],
        trials: Box::new(trials),
    }
}

/// Figures 5.16 to 5.18: a parameter beside Reno, over round trips.
pub(super) fn beside_reno(scheme: Scheme) -> Real {
    const SECONDS: u64 = 60;
    real(
        "60 s in place of 200 s, of which the first 15 do not count",
        "the path is emulated: 10 Mbps and a queue of 50 packets as in the thesis. TTFWC's flows and \
             Reno's are in turn at the six distances, so that Reno has the farthest one",
        move |seed| {
            let read = |observed: &Observed| {
                let fair_bps = 10e6 * PAYLOAD / FLOWS as f64;
                let share = |first: u64| -> Result<f64, String> {
                    let rates = rates(observed, (first..FLOWS).step_by(2).map(name), SECONDS)?;
                    Ok(mean(&rates).unwrap_or(f64::NAN) / fair_bps)
                };
                Ok(Measured::default().figure(RATE, share(0)?, "").figure(TCP_RATE, share(1)?, ""))
            };
            TRIPS
                .into_iter()
                .map(|trip| round_trip(scheme, trip, &["ttfwc", "reno"], seed, SECONDS, read))
                .collect()
        },
    )
}

/// Figure 5.12: six flows of one control.
pub(super) fn equal() -> Real {
    const SECONDS: u64 = 45;
    real(
        "45 s in place of 200 s, of which the first 15 do not count: an index of so short a time is lower",
        "the path is emulated: 10 Mbps and a queue of 50 packets as in the thesis; round trips of 16 and \
             240 ms alone",
        |seed| {
            let read = |observed: &Observed| {
                let rates = rates(observed, (0..FLOWS).map(name), SECONDS)?;
                Ok(Measured::default().figure("fairness index", jain_index(&rates).unwrap_or(f64::NAN), ""))
            };
            let schemes = [TTFWC_0_0, TTFWC_0_4, TTFWC_0_9, RENO, CUBIC];
            let trials = schemes.into_iter().flat_map(|scheme| TRIPS_OF_EQUALS.map(|trip| (scheme, trip)));
            trials
                .map(|(scheme, trip)| round_trip(scheme, trip, &[control(scheme)], seed, SECONDS, read))
                .collect()
        },
    )
}

/// A run over the path of figures 5.12 and 5.16 to 5.18 whose flows have these controls in turn.
fn round_trip(
    scheme: Scheme,
    trip_ms: f64,
    controls: &[&str],
    seed: u64,
    seconds: u64,
    read: impl Fn(&Observed) -> Result<Measured, String> + Send + Sync + 'static,
) -> Result<Trial, TestbedError> {
    let mut changes = vec![
        ("run.seed".to_owned(), real::seed(seed)),
        ("link.main.delay".to_owned(), format!("{}ms", trip_ms / 2.0).into()),
    ];
    for (number, control) in (0..FLOWS).zip(controls.iter().cycle()) {
        let start_s = (5 * number + seed) % FLOWS;
        changes.push((format!("flow.{}.start", name(number)), format!("{start_s}s").into()));
        changes.push((format!("kernel.{}", name(number)), (*control).into()));
    }
    let case = Case { setting: SETTING.into(), ..Case::new(scheme, trip_ms) };
    trial(case, "ttfwc/round-trips-real.toml", changes, seconds, read)
}

/// Figures 5.6 to 5.8: a parameter beside as many of Reno.
pub(super) fn as_many(scheme: Scheme) -> Real {
    const SECONDS: u64 = 50;
    real(
        "50 s in place of 300 s, of which the first 15 do not count; two, four and sixteen of each alone",
        "the path is emulated: 15 Mbps, 44 ms, a queue of 55 packets, as many bytes as 80 of 1040. All \
             receivers are equally far away, and all flows begin at once",
        move |seed| COUNTS.into_iter().map(|count| as_many_trial(scheme, count, seed, SECONDS)).collect(),
    )
}

fn as_many_trial(scheme: Scheme, count: f64, seed: u64, seconds: u64) -> Result<Trial, TestbedError> {
    let count_value = Value::Integer(count as i64);
    let changes = [
        ("run.seed", real::seed(seed)),
        ("flow.one.count", count_value.clone()),
        ("flow.other.count", count_value),
    ];
    let changes = changes.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    trial(Case::new(scheme, count), "ttfwc/as-many-real.toml", changes, seconds, move |observed| {
        let fair_bps = 15e6 * PAYLOAD / 2.0;
        let within = counted(seconds);
        let share = |flow| Ok::<_, String>(observed.mean(flow, &within, |row| row.payload_bps)? / fair_bps);
        let both = |value: fn(&Traffic) -> f64| {
            Ok::<_, String>(observed.mean("one", &within, value)? + observed.mean("other", &within, value)?)
        };
        let lost = 1.0 - both(|row| row.packets_arrived)? / both(|row| row.packets_sent)?;
        Ok(Measured::default().figure(RATE, share("one")?, "").figure(TCP_RATE, share("other")?, "").figure(
            "loss rate",
            lost,
            "",
        ))
    })
}

/// Figure 5.9: how much each of eight flows varies beside eight of Reno.
pub(super) fn smoothness() -> Real {
    const SECONDS: u64 = 90;
    real(
        "90 s in place of 300 s, of which the first 15 do not count",
        "the path is emulated: 15 Mbps, 44 ms, a queue of 55 packets, as many bytes as 80 of 1040. All \
             receivers are equally far away",
        |seed| {
            let all = [TTFWC_0_0, TTFWC_0_4, TTFWC_0_9].into_iter();
            all.map(|scheme| {
                let changes = vec![("run.seed".to_owned(), real::seed(seed))];
                let case = Case::new(scheme, 0.0);
                trial(case, "ttfwc/fig5.9/real.toml", changes, SECONDS, |observed| {
                    let mut measured = Measured::default();
                    for (flows, who) in [("one", "TTFWC"), ("other", "TCP")] {
                        let (rate, varies) = each_of_eight(observed, flows, SECONDS)?;
                        measured = measured.figure(&format!("throughput of {who}"), rate, "Mbps").figure(
                            &format!("variation of {who}"),
                            varies,
                            "",
                        );
                    }
                    Ok(measured)
                })
            })
            .collect()
        },
    )
}

/// The mean rate in Mbps, and the mean of how each varies over its seconds.
fn each_of_eight(observed: &Observed, flows: &str, seconds: u64) -> Result<(f64, f64), String> {
    let within = counted(seconds);
    let (mut rates, mut varies) = (Vec::new(), Vec::new());
    for number in 1..=EIGHT {
        let rows = observed.traffic(&format!("{flows}{number}"))?;
        let rows = rows.iter().filter(|row| within.contains(&row.time_s));
        let course: Vec<f64> = rows.map(|row| row.payload_bps / 1e6).collect();
        rates.extend(mean(&course));
        varies.extend(variation(&course));
    }
    let of = |all: &[f64]| mean(all).unwrap_or(f64::NAN);
    Ok((of(&rates), of(&varies)))
}

fn trial(
    case: Case,
    scenario: &str,
    changes: Vec<(String, Value)>,
    seconds: u64,
    read: impl Fn(&Observed) -> Result<Measured, String> + Send + Sync + 'static,
) -> Result<Trial, TestbedError> {
    let wait: Vec<String> = vec!["sleep".into(), seconds.to_string()];
    let mut changes = changes;
    changes.push(("run.duration".into(), format!("{seconds}s").into()));
    changes.push(("client.wait.command".into(), wait.into()));
    let control = control(case.scheme);
    // The kernel has its own Reno and CUBIC.
    let kernel = if control == "ttfwc" { vec!["ttfwc", "--tuning", tuning(case.scheme)] } else { Vec::new() };
    Ok(Trial {
        scenario: real::scenario(scenario, changes.iter().map(|(key, value)| (key.as_str(), value.clone())))?,
        case,
        files: Vec::new(),
        kernel: kernel.into_iter().map(Into::into).collect(),
        programs: None,
        duration: Duration::from_secs(seconds),
        reading: Box::new(read),
    })
}

/// The kernel's name of a scheme's control.
fn control(scheme: Scheme) -> &'static str {
    match scheme {
        RENO => "reno",
        CUBIC => "cubic",
        _ => "ttfwc",
    }
}

/// The parameter, which ends a scheme's name.
fn tuning(scheme: Scheme) -> &'static str {
    scheme.name.rsplit(' ').next().unwrap_or_default()
}

fn name(number: u64) -> String {
    format!("flow-{number}")
}

/// What flows got in bit/s, in the time that counts.
fn rates(observed: &Observed, flows: impl Iterator<Item = String>, seconds: u64) -> Result<Vec<f64>, String> {
    let within = counted(seconds);
    flows.map(|flow| observed.mean(&flow, &within, |row| row.payload_bps)).collect()
}
