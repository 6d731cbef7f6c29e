//! Figures 5.16 to 5.18 with the kernel's TCP: TTFWC as a congestion control of the kernel, beside its Reno.

use anabranch_units::Duration;

use crate::case::{Case, Measured};
use crate::real::{Observed, Real, Trial};
use crate::scheme::Scheme;
use crate::statistics::mean;

/// The simulated run's setting and figures, in `papers/ttfwc`.
const SETTING: &str = "10 Mbps";
const RATE: &str = "throughput of TTFWC";
const TCP_RATE: &str = "throughput of TCP";

/// Round trips without a queue, ms.
const TRIPS: [f64; 5] = [16.0, 32.0, 120.0, 240.0, 320.0];
/// How much farther away the farthest receiver is than at its round trip, ms.
const SPREAD_MS: f64 = 2.6;
const SECONDS: u64 = 60;
/// What counts: the last second of a run is not whole.
const COUNTED_S: std::ops::Range<f64> = 15.5..SECONDS as f64 - 0.5;
/// Three of TTFWC and three of Reno in turn.
const FLOWS: u64 = 6;
/// A sixth of the payload that the link carries.
const FAIR_BPS: f64 = 10e6 * 1448.0 / 1500.0 / 6.0;

/// A figure's parameter beside Reno.
pub(super) fn beside_reno(scheme: Scheme) -> Real {
    Real {
        differs: [
            "60 s in place of 200 s, of which the first 15 do not count",
            "TTFWC runs in the kernel (anabranch cc load ttfwc), iperf3 sends, and receivers acknowledge as the kernel does",
            "the path is emulated: 10 Mbps and a queue of 50 packets as in the thesis. TTFWC's flows and Reno's are in turn at the six distances, so that Reno has the farthest one",
        ]
        .map(Into::into)
        .into(),
        needs: &["ip", "ss", "unshare", "nginx", "iperf3", "ffmpeg"],
        trials: Box::new(move |seed| TRIPS.map(|trip| trial(scheme, trip, seed)).into()),
    }
}

/// The parameter, which ends a scheme's name.
fn tuning(scheme: Scheme) -> &'static str {
    scheme.name.rsplit(' ').next().unwrap_or_default()
}

fn trial(scheme: Scheme, trip_ms: f64, seed: u64) -> Trial {
    let flows: String = (0..FLOWS).map(|number| flow(number, seed)).collect();
    let controls: String = (0..FLOWS).map(control).collect();
    Trial {
        case: Case { setting: SETTING.into(), ..Case::new(scheme, trip_ms) },
        scenario: format!(
            r#"
[run]
duration = "{SECONDS}s"
seed = {seed}
[film]
rate = "800k"
duration = "2s"
[[node]]
name = "origin"
[[node]]
name = "client"
[[link]]
name = "main"
from = "origin"
to = "client"
rate = "10M"
delay = "{}ms"
queue = "50 packets"
[[server]]
node = "origin"
[[client]]
name = "wait"
command = ["sleep", "{SECONDS}"]
output = "none"
{flows}[kernel]
{controls}"#,
            trip_ms / 2.0
        ),
        files: Vec::new(),
        kernel: ["ttfwc", "--tuning", tuning(scheme)].map(Into::into).into(),
        duration: Duration::from_secs(SECONDS),
        reading: Box::new(read),
    }
}

/// A flow whose receiver is farther away by its number, behind the client; it begins within the first 5 s,
/// each seed in another order.
fn flow(number: u64, seed: u64) -> String {
    let name = name(number);
    // All of it is on one way.
    let delay_ms = 2.0 * SPREAD_MS * number as f64 / (FLOWS - 1) as f64;
    let start_s = (5 * number + seed) % FLOWS;
    format!(
        r#"[[node]]
name = "receiver{number}"
[[link]]
from = "client"
to = "receiver{number}"
rate = "1Gbps"
delay = "{delay_ms:.2}ms"
reverse = {{ delay = "0s" }}
[[flow]]
name = "{name}"
kind = "tcp"
from = "origin"
to = "receiver{number}"
start = "{start_s}s"
"#
    )
}

/// The control of a flow: a line of `[kernel]`.
fn control(number: u64) -> String {
    let control = if number.is_multiple_of(2) { "ttfwc" } else { "reno" };
    format!("{} = \"{control}\"\n", name(number))
}

fn name(number: u64) -> String {
    format!("flow-{number}")
}

fn read(observed: &Observed) -> Result<Measured, String> {
    // The mean of every second flow's share.
    let share = |first: u64| -> Result<f64, String> {
        let mut shares = Vec::new();
        for number in (first..FLOWS).step_by(2) {
            let rows = observed.traffic(&name(number))?;
            let counted: Vec<f64> = rows
                .iter()
                .filter(|row| COUNTED_S.contains(&row.time_s))
                .map(|row| row.payload_bps)
                .collect();
            shares.push(mean(&counted).unwrap_or(f64::NAN) / FAIR_BPS);
        }
        Ok(mean(&shares).unwrap_or(f64::NAN))
    };
    Ok(Measured::default().figure(RATE, share(0)?, "").figure(TCP_RATE, share(1)?, ""))
}
