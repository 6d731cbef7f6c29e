//! What ns-2 gave: means and spreads over its seeds, and traces of congestion windows.

use std::collections::BTreeMap;

/// `summary.csv`: one line for every configuration and metric.
const SUMMARY: &str = include_str!("../../reference/ns2/summary.csv");
/// The same of further runs of ns-2, which `bench/phases.py` makes.
const FURTHER: &str = include_str!("../../reference/further.csv");
/// `r6_cwnd.csv`: one line for every trace and tenth of a second.
const WINDOWS: &str = include_str!("../../reference/ns2/r6_cwnd.csv");

/// A metric of a configuration over ns-2's seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Summary {
    pub mean: f64,
    /// Sample standard deviation.
    pub sd: f64,
}

/// Metrics by name.
pub(super) type Metrics = BTreeMap<String, Summary>;

/// The configurations of one file, in the order of its lines, with their metrics.
pub(super) fn configurations(file: &str) -> Vec<(String, Metrics)> {
    let mut found: Vec<(String, Metrics)> = Vec::new();
    for line in SUMMARY.lines().skip(1).chain(FURTHER.lines().skip(1)) {
        let fields: Vec<&str> = line.split(',').collect();
        let [name, configuration, metric, _seeds, mean, sd, ..] = fields[..] else { continue };
        let (Ok(mean), Ok(sd)) = (mean.parse(), sd.parse()) else { continue };
        if name != file {
            continue;
        }
        if found.last().is_none_or(|(last, _)| last != configuration) {
            found.push((configuration.to_owned(), Metrics::new()));
        }
        if let Some((_, metrics)) = found.last_mut() {
            metrics.insert(metric.to_owned(), Summary { mean, sd });
        }
    }
    found
}

/// A setting of a configuration such as `nflows=8 mix=tcp`.
pub(super) fn setting<'a>(configuration: &'a str, name: &str) -> &'a str {
    let value = |pair: &'a str| pair.split_once('=').filter(|(key, _)| *key == name).map(|(_, value)| value);
    configuration.split(' ').find_map(value).unwrap_or_default()
}

/// A setting that is a number; zero where there is none.
pub(super) fn number(configuration: &str, name: &str) -> f64 {
    setting(configuration, name).parse().unwrap_or_default()
}

/// A line of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Window {
    /// Seconds.
    pub time: f64,
    /// Congestion window in packets.
    pub cwnd: f64,
    /// Window reductions until then.
    pub cuts: f64,
    /// Time-outs until then.
    pub timeouts: f64,
}

/// The traces of congestion windows by name.
pub(super) fn windows() -> BTreeMap<&'static str, Vec<Window>> {
    let mut traces: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in WINDOWS.lines().skip(1) {
        let Some((label, rest)) = line.split_once(',') else { continue };
        let numbers: Vec<f64> = rest.split(',').filter_map(|field| field.parse().ok()).collect();
        if let [time, cwnd, _ssthresh, _ack, _maxseq, _queue, cuts, timeouts] = numbers[..] {
            traces.entry(label).or_default().push(Window { time, cwnd, cuts, timeouts });
        }
    }
    traces
}
