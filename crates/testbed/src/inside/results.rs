//! Makes a summary and CSV files of what was sampled.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration as StdDuration;

use anabranch_units::Duration;

use super::stage::{Stage, flows};
use super::watch::Record;
use crate::Error;
use crate::observe::Look;
use crate::ping::Echo;
use crate::report::{self, Flow, PingSummary, Summary, Table};
use crate::scenario::{Cross, Scenario};

/// Sums up a run, and writes its CSV files.
pub(super) fn summarise(
    stage: &Stage<'_>,
    record: &Record,
    looks: &[Look],
    echoes: &[Echo],
) -> Result<Summary, Error> {
    let (scenario, out) = (stage.scenario, &stage.order.out);
    let copies = scenario.client(Some(&stage.order.client))?.copies as u64;
    let film_bytes = stage.film_size()?.get() * copies;
    let received_bytes = record.progress.last().map_or(0, |(_, bytes)| bytes.get());
    save_progress(record, out)?;
    save_connections(scenario, record, looks, out)?;
    let flows = flow_results(scenario, record, out)?;
    let arrived: u64 = flows.iter().filter(|flow| flow.flow == "film").map(|flow| flow.payload_bytes).sum();
    let running = looks.iter().filter(|look| look.at <= record.start + record.elapsed.into());
    let totals: Vec<u32> = running.map(Look::total).collect();
    let mut congestion: Vec<String> =
        flows.iter().filter(|f| f.flow == "film").flat_map(|f| f.congestion.clone()).collect();
    congestion.sort();
    congestion.dedup();
    Ok(Summary {
        client: stage.order.client.clone(),
        command: record.command.clone(),
        seconds: record.elapsed.as_secs_f64(),
        exit_code: record.status.and_then(|status| status.code()),
        signal: record.status.and_then(|status| status.signal()),
        complete: film_bytes > 0 && received_bytes == film_bytes,
        right: record.right,
        film_bytes,
        received_bytes,
        playback: report::worst(&record.seen),
        viewers: record.seen.clone(),
        connections_max: totals.iter().copied().max().unwrap_or(0),
        connections_mean: f64::from(totals.iter().sum::<u32>()) / totals.len().max(1) as f64,
        beyond_bytes: arrived.saturating_sub(received_bytes),
        congestion,
        cross_bps: cross_bps(&scenario.cross, record.elapsed, &flows),
        flows,
        ping: ping_result(record, echoes, out)?,
        live: record.live.clone(),
    })
}

fn save_progress(record: &Record, out: &Path) -> Result<(), Error> {
    let mut table = Table::new("time_s,contiguous_bytes");
    for (at, bytes) in &record.progress {
        table.line(&[&format!("{:.3}", at.as_secs_f64()), &bytes.get()]);
    }
    table.save(out, "progress.csv")
}

fn save_connections(scenario: &Scenario, record: &Record, looks: &[Look], out: &Path) -> Result<(), Error> {
    let mut table = Table::new("time_s,path,established");
    for look in looks {
        let at = look.at.saturating_duration_since(record.start).as_secs_f64();
        for (path, count) in scenario.paths.iter().zip(&look.by_path) {
            table.line(&[&format!("{at:.3}"), &path.name, count]);
        }
    }
    table.save(out, "connections.csv")
}

/// Writes `traffic.csv` and sums up each flow.
fn flow_results(scenario: &Scenario, record: &Record, out: &Path) -> Result<Vec<Flow>, Error> {
    let mut table = Table::new("time_s,path,flow,payload_bps,network_bps,packets_sent,packets_arrived");
    let names = flows(scenario);
    for pair in record.traffic.windows(2) {
        let ((before, old), (now, new)) = (&pair[0], &pair[1]);
        let span = *now - *before;
        for (index, (path, flow, _)) in names.iter().enumerate() {
            let ((old_sent, old_arrived), (sent, arrived)) = (old[index], new[index]);
            table.line(&[
                &format!("{:.3}", now.as_secs_f64()),
                &scenario.paths[*path].name,
                flow,
                &format!("{:.0}", report::bps(arrived.payload - old_arrived.payload, span)),
                &format!("{:.0}", report::bps(arrived.bytes - old_arrived.bytes, span)),
                &(sent.packets - old_sent.packets),
                &(arrived.packets - old_arrived.packets),
            ]);
        }
    }
    table.save(out, "traffic.csv")?;
    let last = record.traffic.last().map(|(_, counts)| counts.as_slice()).unwrap_or_default();
    let results = names.into_iter().zip(last).map(|((path, flow, host), (sent, arrived))| {
        let cross = scenario.cross.iter().find(|cross| cross.name == flow);
        let from = cross.map_or(Duration::ZERO, |cross| cross.start);
        let until = cross.and_then(|cross| cross.stop).unwrap_or(Duration::MAX).min(record.elapsed);
        let server = scenario.paths[path].server;
        let senders = record.senders[server].keys().filter(|(seen, _)| *seen == host);
        Flow {
            path: scenario.paths[path].name.clone(),
            flow,
            congestion: senders.map(|(_, control)| control.clone()).collect(),
            payload_bytes: arrived.payload,
            mean_bps: report::bps(arrived.payload, until - from),
            packets_sent: sent.packets,
            packets_missing: sent.packets.saturating_sub(arrived.packets),
        }
    });
    Ok(results.collect())
}

/// Mean rate of all cross traffic, over the time in which any was meant to run.
fn cross_bps(groups: &[Cross], elapsed: Duration, flows: &[Flow]) -> f64 {
    let span = |cross: &Cross| (cross.start, cross.stop.unwrap_or(Duration::MAX).min(elapsed));
    let mut spans: Vec<_> = groups.iter().map(span).collect();
    spans.sort();
    let mut covered = Duration::ZERO;
    let mut until = Duration::ZERO;
    for (from, to) in spans {
        covered += to - from.max(until);
        until = until.max(to);
    }
    let cross = flows.iter().filter(|flow| flow.flow != "film");
    report::bps(cross.map(|flow| flow.payload_bytes).sum(), covered)
}

fn ping_result(record: &Record, echoes: &[Echo], out: &Path) -> Result<Option<PingSummary>, Error> {
    if echoes.is_empty() {
        return Ok(None);
    }
    let mut table = Table::new("time_s,rtt_ms");
    let millis = |rtt: StdDuration| rtt.as_secs_f64() * 1e3;
    for echo in echoes {
        let at = echo.sent.saturating_duration_since(record.start).as_secs_f64();
        let rtt = echo.rtt.map_or(String::new(), |rtt| format!("{:.3}", millis(rtt)));
        table.line(&[&format!("{at:.3}"), &rtt]);
    }
    table.save(out, "ping.csv")?;
    let answered: Vec<f64> = echoes.iter().filter_map(|echo| echo.rtt).map(millis).collect();
    Ok(Some(PingSummary {
        sent: echoes.len(),
        lost: echoes.len() - answered.len(),
        min_ms: answered.iter().copied().reduce(f64::min).unwrap_or(0.0),
        mean_ms: answered.iter().sum::<f64>() / answered.len().max(1) as f64,
        max_ms: answered.iter().copied().reduce(f64::max).unwrap_or(0.0),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Transport;

    #[test]
    fn cross_traffic_is_averaged_over_the_time_that_it_covers() {
        let cross = |name: &str, start, stop| Cross {
            name: name.into(),
            path: 0,
            flows: 1,
            delay: Duration::ZERO,
            transport: Transport::Tcp("cubic".into()),
            start,
            stop,
        };
        let at = Duration::from_secs;
        let mut both = [cross("a", at(10), Some(at(30))), cross("b", at(20), None)];
        let flow = |flow: &str| Flow { flow: flow.into(), payload_bytes: 1_000_000, ..Flow::default() };
        let flows = [flow("film"), flow("a"), flow("b")];
        // From 10 s to 50 s without a gap.
        assert_eq!(cross_bps(&both, Duration::from_secs(50), &flows), 400_000.0);
        // A run that ended before the second group started.
        assert_eq!(cross_bps(&both, Duration::from_secs(20), &flows), 1_600_000.0);
        both[1].start = Duration::from_secs(40);
        assert_eq!(cross_bps(&both, Duration::from_secs(60), &flows), 400_000.0);
    }
}
