//! Figures 5.16 to 5.18 with the kernel's TCP: TTFWC as a congestion control of the kernel, beside its Reno.

use anabranch_units::Duration;
use toml::Value;

use crate::case::{Case, Measured};
use crate::real::{self, Observed, Real, TestbedError, Trial};
use crate::scheme::Scheme;
use crate::statistics::mean;

/// The simulated run's setting and figures, in `papers/ttfwc`.
const SETTING: &str = "10 Mbps";
const RATE: &str = "throughput of TTFWC";
const TCP_RATE: &str = "throughput of TCP";

/// Round trips without a queue, ms.
const TRIPS: [f64; 5] = [16.0, 32.0, 120.0, 240.0, 320.0];
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
            "TTFWC runs in the kernel (anabranch cc load ttfwc), iperf3 sends, and receivers acknowledge as \
             the kernel does",
            "the path is emulated: 10 Mbps and a queue of 50 packets as in the thesis. TTFWC's flows and \
             Reno's are in turn at the six distances, so that Reno has the farthest one",
        ]
        .map(Into::into)
        .into(),
        needs: &["ip", "ss", "unshare", "nginx", "iperf3", "ffmpeg"],
        trials: Box::new(move |seed| TRIPS.into_iter().map(|trip| trial(scheme, trip, seed)).collect()),
    }
}

/// The parameter, which ends a scheme's name.
fn tuning(scheme: Scheme) -> &'static str {
    scheme.name.rsplit(' ').next().unwrap_or_default()
}

fn trial(scheme: Scheme, trip_ms: f64, seed: u64) -> Result<Trial, TestbedError> {
    let starts: Vec<(String, Value)> = (0..FLOWS)
        .map(|number| {
            let start_s = (5 * number + seed) % FLOWS;
            (format!("flow.{}.start", name(number)), format!("{start_s}s").into())
        })
        .collect();
    let changes =
        [("run.seed", real::seed(seed)), ("link.main.delay", format!("{}ms", trip_ms / 2.0).into())];
    let starts = starts.iter().map(|(key, start)| (key.as_str(), start.clone()));
    Ok(Trial {
        case: Case { setting: SETTING.into(), ..Case::new(scheme, trip_ms) },
        scenario: real::scenario("ttfwc/real.toml", changes.into_iter().chain(starts))?,
        files: Vec::new(),
        kernel: ["ttfwc", "--tuning", tuning(scheme)].map(Into::into).into(),
        duration: Duration::from_secs(SECONDS),
        reading: Box::new(read),
    })
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
