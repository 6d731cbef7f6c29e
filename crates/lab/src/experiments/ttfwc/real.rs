//! Figures 5.16 to 5.18 with the kernel's TCP: TTFWC as a congestion control of the kernel, beside its Reno.

use units::Duration;

use super::beside_tcp::{RATE, TCP_RATE};
use super::round_trips::{SLOW, TRIPS, tp};
use crate::experiment::{Case, Measured};
use crate::real::{Observed, Real, Trial};
use crate::scheme::Scheme;
use crate::statistics::mean;

const SECONDS: u64 = 60;
/// What counts: the last second of a run is not whole.
const COUNTED_S: std::ops::Range<f64> = 10.5..SECONDS as f64 - 0.5;
const FLOWS: f64 = 3.0;
/// A sixth of the payload that the link carries.
const FAIR_BPS: f64 = 10e6 * 1448.0 / 1500.0 / 6.0;

/// A figure's parameter beside Reno.
pub(super) fn beside_reno(scheme: Scheme) -> Real {
    Real {
        differs: [
            "60 s in place of 200 s, of which the first 10 do not count",
            "TTFWC runs in the kernel (anabranch cc load ttfwc), iperf3 sends, and receivers acknowledge as the kernel does",
            "the path is emulated: 10 Mbps and a queue of 50 packets as in the thesis. All flows have the same round trip, and begin at once",
        ]
        .map(Into::into)
        .into(),
        needs: &["ip", "ss", "unshare", "nginx", "iperf3", "ffmpeg"],
        trials: Box::new(move |seed| TRIPS.map(|trip| trial(scheme, trip, seed)).into()),
    }
}

fn trial(scheme: Scheme, trip_ms: f64, seed: u64) -> Trial {
    Trial {
        case: Case { setting: SLOW.into(), ..Case::new(scheme, trip_ms) },
        scenario: format!(
            r#"
[run]
duration = "{SECONDS}s"
seed = {seed}
[film]
rate = "800k"
duration = "2s"
[[path]]
name = "main"
rate = "10M"
rtt = "{trip_ms}ms"
queue = 50
[[server]]
name = "origin"
[[cross]]
name = "ttfwc"
congestion = "ttfwc"
flows = {FLOWS}
start = "0s"
[[cross]]
name = "reno"
congestion = "reno"
flows = {FLOWS}
start = "0s"
[[client]]
name = "wait"
command = ["sleep", "{SECONDS}"]
output = "none"
"#
        ),
        files: Vec::new(),
        kernel: ["ttfwc", "--tuning", tp(scheme)].map(Into::into).into(),
        duration: Duration::from_secs(SECONDS),
        reading: Box::new(read),
    }
}

fn read(observed: &Observed) -> Result<Measured, String> {
    let share = |flows: &str| -> Result<f64, String> {
        let rows = observed.traffic(flows)?;
        let counted: Vec<f64> =
            rows.iter().filter(|row| COUNTED_S.contains(&row.time_s)).map(|row| row.payload_bps).collect();
        Ok(mean(&counted).unwrap_or(f64::NAN) / FLOWS / FAIR_BPS)
    };
    Ok(Measured::default().figure(RATE, share("ttfwc")?, "").figure(TCP_RATE, share("reno")?, ""))
}
