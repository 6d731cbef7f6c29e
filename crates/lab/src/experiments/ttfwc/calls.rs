//! Tables 5.1 and 5.2: what the calls of a control take in the kernel.

use std::collections::BTreeMap;

use super::{FLOWS, control, name, trial};
use crate::case::{Case, Measured};
use crate::real::{self, Calls, Observed, Real, TestbedError, Trial};
use crate::scheme::{CUBIC, RENO, TTFWC_0_0, TTFWC_0_4, TTFWC_0_9};

const SECONDS: u64 = 60;
/// CUBIC and Reno behind the hook that ours have, and a control that keeps its window: what the hook takes by
/// itself.
const REFERENCE: &str = "reference.bpf.c";
/// The simulated run that stands beside the window that is kept.
const KEPT: &str = "windows of 36 packets";

/// A procedure of a congestion control that the kernel calls.
#[derive(Clone, Copy)]
pub(crate) enum Procedure {
    /// At acknowledgements: congestion avoidance, table 5.1.
    Avoidance,
    /// At loss events: the threshold, table 5.2.
    Threshold,
}

/// Six flows of each control, whose calls are counted.
pub(crate) fn procedure(procedure: Procedure) -> Real {
    Real {
        differs: [
            "TTFWC runs in the kernel (anabranch cc load ttfwc); the kernel's CUBIC and Reno are called from BPF \
             programs behind the same hook (papers/ttfwc/reference.bpf.c), so that the kernel counts their calls and \
             their time (bpf_stats). What the hook and the counting take is in every time; with windows of 36 packets \
             there is next to nothing else: the window is kept there whatever is lost, where the simulated one is \
             Reno's",
            "the path is emulated: 100 Mbps, a round trip of 16 ms and a queue of 50 packets. iperf3 sends packets of \
             1500 bytes, and receivers acknowledge as the kernel does",
        ]
        .map(Into::into)
        .into(),
        needs: &["ip", "ss", "unshare", "nginx", "iperf3", "ffmpeg", "bpftool", "clang"],
        trials: Box::new(move |seed| {
            let schemes = [TTFWC_0_0, TTFWC_0_4, TTFWC_0_9, CUBIC, RENO];
            let mut cases: Vec<(Case, &str)> = Vec::new();
            for scheme in schemes {
                let hook = match scheme {
                    CUBIC => "hook_cubic",
                    RENO => "hook_reno",
                    _ => control(scheme),
                };
                cases.push((Case::new(scheme, 0.0), hook));
            }
            cases.push((Case { setting: KEPT.into(), ..Case::new(RENO, 0.0) }, "hook_window"));
            cases.into_iter().map(|(case, hook)| counted(procedure, case, hook, seed)).collect()
        }),
    }
}

/// Six flows over the path of figures 5.11 to 5.18, at 100 Mbps.
fn counted(procedure: Procedure, case: Case, hook: &'static str, seed: u64) -> Result<Trial, TestbedError> {
    let mut changes = vec![
        ("run.seed".to_owned(), real::seed(seed)),
        ("link.main.rate".to_owned(), "100M".into()),
        ("link.main.delay".to_owned(), "8ms".into()),
    ];
    for number in 0..FLOWS {
        let start_s = (5 * number + seed) % FLOWS;
        changes.push((format!("flow.{}.start", name(number)), format!("{start_s}s").into()));
        changes.push((format!("kernel.{}", name(number)), hook.into()));
    }
    let trial = trial(case, "ttfwc/round-trips-real.toml", changes, SECONDS, move |observed| {
        read(procedure, programs(hook), observed)
    })?;
    let files = real::files("ttfwc", &[REFERENCE])?;
    Ok(Trial { files, programs: Some(REFERENCE), ..trial })
}

/// What the names of a control's programs begin with.
fn programs(hook: &str) -> &str {
    hook.strip_prefix("hook_").unwrap_or("control")
}

fn read(procedure: Procedure, programs: &str, observed: &Observed) -> Result<Measured, String> {
    let calls = observed.calls()?;
    let mut packets = 0.0;
    for number in 0..FLOWS {
        packets += observed.traffic(&name(number))?.iter().map(|row| row.packets_sent).sum::<f64>();
    }
    let of = |name: &str| {
        let all = [format!("{programs}_{name}"), format!("{programs}_cong_{name}")];
        all.iter().find_map(|name| calls.get(name)).copied().unwrap_or_default()
    };
    let (avoidance, threshold) = (of("avoid"), of("ssthresh"));
    let time = |calls: Calls| calls.mean_ns().unwrap_or(f64::NAN);
    let per_packet = |calls: Calls| calls.calls as f64 / packets;
    let measured = Measured::default().figure("calls at acknowledgements", per_packet(avoidance), "");
    Ok(match procedure {
        Procedure::Avoidance => measured.figure("time at an acknowledgement", time(avoidance), "ns").figure(
            "number of calls",
            avoidance.calls as f64,
            "",
        ),
        Procedure::Threshold => measured
            .figure("calls at loss events", 1000.0 * per_packet(threshold), "")
            .figure("time at a loss event", time(threshold), "ns")
            .figure("number of calls", threshold.calls as f64, "")
            .figure("time of all procedures", all_of(&calls) / packets, "ns"),
    })
}

/// The time of all procedures together, in nanoseconds: one control alone is called in a run.
fn all_of(calls: &BTreeMap<String, Calls>) -> f64 {
    calls.values().map(|calls| calls.time_ns as f64).sum()
}
