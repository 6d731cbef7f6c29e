//! Figure 7 (i) over QUIC: `anabranch send` and `receive` over a link that loses packets.

use anabranch_units::Duration;

use crate::case::{Case, Measured};
use crate::real::{self, Observed, Real, TestbedError, Traffic, Trial};
use crate::scheme::{AUTO, MULTFRC, Scheme};
use crate::statistics::mean;

// Figures, as `papers/multfrc/fig7i` names them.
const THROUGHPUT: &str = "throughput";
const LOSS: &str = "loss";
const RTT: &str = "round trip";
const CONNECTIONS: &str = "connections";
const UTILIZATION: &str = "utilization";
const LOSS_RATIO: &str = "loss / p_w";
const RTT_RATIO: &str = "round trip / least";

const LOSSES: [f64; 5] = [0.0, 0.02, 0.04, 0.06, 0.08];
const SECONDS: u64 = 90;
/// What counts: until the media ends.
const COUNTED_S: std::ops::Range<f64> = 30.5..SECONDS as f64 - 0.5;
const LINK_KBPS: f64 = 1000.0;
const TRIP_MS: f64 = 160.0;
/// A datagram with seven packets of a transport stream takes about so long on the link.
const PACKET_MS: f64 = 11.0;

pub(super) fn figure_7i() -> Real {
    Real {
        differs: [
            "90 s in place of 9,000 s, of which the first 30 do not count",
            "QUIC datagrams of live media ('anabranch send' and 'receive') with about 1,380 bytes in place \
             of 1000; the queue has 36 packets, as many bytes as 50. The \
             stream has 1.3 Mbps, more than the link; what is too late at the sender is dropped there. There \
             are retransmissions, and no parity",
            "the path is emulated; the round trip is the sender's estimate, and the least is 160 ms and the \
             time of a packet on the link. How many \
             connections auto stands for is not told",
        ]
        .map(Into::into)
        .into(),
        needs: &["ip", "ss", "unshare", "ffmpeg", "openssl", "sha256sum"],
        trials: Box::new(|seed| {
            let all = [(MULTFRC, "multfrc"), (AUTO, "auto")].into_iter();
            all.flat_map(|(look, name)| LOSSES.map(|loss| trial(look, name, loss, seed))).collect()
        }),
    }
}

fn trial(look: Scheme, name: &str, loss: f64, seed: u64) -> Result<Trial, TestbedError> {
    let mut sender = vec!["sh", "{here}/send.sh", "{anabranch}", "{latency}ms", "{address1}"];
    sender.push(name);
    let changes = [
        ("run.seed", real::seed(seed)),
        ("link.main.loss", loss.into()),
        ("client.stream.sender", sender.into()),
    ];
    Ok(Trial {
        case: Case::new(look, loss),
        scenario: real::scenario("multfrc/fig7i/real.toml", changes)?,
        files: real::files("multfrc/fig7i", &["receive.sh", "send.sh"])?,
        kernel: Vec::new(),
        duration: Duration::from_secs(SECONDS + 10),
        reading: Box::new(move |observed| read(observed, look, loss)),
    })
}

fn read(observed: &Observed, look: Scheme, loss: f64) -> Result<Measured, String> {
    let traffic = observed.traffic("film")?;
    let counted: Vec<&Traffic> = traffic.iter().filter(|row| COUNTED_S.contains(&row.time_s)).collect();
    let sum = |value: fn(&Traffic) -> f64| counted.iter().map(|row| value(row)).sum::<f64>();
    let throughput = sum(|row| row.network_bps) / counted.len() as f64 / 1e3;
    let lost = 1.0 - sum(|row| row.packets_arrived) / sum(|row| row.packets_sent);
    let lines = observed.lines("send.jsonl")?;
    let intervals: Vec<&serde_json::Value> = lines
        .iter()
        .filter(|line| line["event"] == "interval")
        .filter(|line| line["at_s"].as_f64().is_some_and(|at| COUNTED_S.contains(&at)))
        .collect();
    let trips: Vec<f64> =
        intervals.iter().filter_map(|line| line["rtt_s"].as_f64()).map(|seconds| seconds * 1e3).collect();
    let trip = mean(&trips).unwrap_or(f64::NAN);
    let mut measured = Measured::default()
        .figure(THROUGHPUT, throughput, "kbps")
        .figure(UTILIZATION, throughput / (LINK_KBPS * (1.0 - loss)), "")
        .figure(LOSS, lost, "")
        .figure(RTT, trip, "ms")
        .figure(RTT_RATIO, trip / (TRIP_MS + PACKET_MS), "");
    if look == MULTFRC {
        let connections =
            intervals.iter().filter_map(|line| Some(line["connections"].as_array()?.len() as f64));
        let connections: Vec<f64> = connections.collect();
        measured = measured.figure(CONNECTIONS, mean(&connections).unwrap_or(f64::NAN), "");
    }
    Ok(if loss > 0.0 { measured.figure(LOSS_RATIO, lost / loss, "") } else { measured })
}
