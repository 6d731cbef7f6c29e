//! What can be measured in a run: small sums over the samples of flows and links, by name.

use anabranch_sim::model::{FlowId, LinkId};
use anabranch_sim::report::{FlowSample, LinkSample};
use anabranch_units::Time;

use crate::simulate::Recording;
use crate::statistics::{jain_index, mean};

/// What a number is a number of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dimension {
    Rate,
    Time,
    Size,
    Pure,
}

impl Dimension {
    /// The units in which it can be told, and how much each is in SI units (bits a second, seconds, bytes).
    pub(super) const fn units(self) -> &'static [(&'static str, f64)] {
        match self {
            Self::Rate => &[("bps", 1.0), ("kbps", 1e3), ("Mbps", 1e6)],
            Self::Time => &[("s", 1.0), ("ms", 1e-3)],
            Self::Size => &[("B", 1.0), ("kB", 1e3), ("MB", 1e6)],
            Self::Pure => &[("", 1.0), ("%", 1e-2)],
        }
    }
}

/// Everything that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Goodput,
    Throughput,
    Sent,
    Loss,
    Retransmitted,
    Cwnd,
    Srtt,
    Connections,
    VirtualConnections,
    Buffer,
    Jain,
    Carried,
    Wait,
    Queue,
    Dropped,
    LossEvents,
    Timeouts,
    RoundTrip,
    Completed,
    StartUp,
    Stalls,
    Stalled,
}

impl Quantity {
    /// The names in a plan.
    pub(super) const NAMES: [(&'static str, Self); 22] = [
        ("goodput", Self::Goodput),
        ("throughput", Self::Throughput),
        ("sent", Self::Sent),
        ("loss", Self::Loss),
        ("retransmitted", Self::Retransmitted),
        ("cwnd", Self::Cwnd),
        ("srtt", Self::Srtt),
        ("connections", Self::Connections),
        ("virtual_connections", Self::VirtualConnections),
        ("buffer", Self::Buffer),
        ("jain_index", Self::Jain),
        ("carried", Self::Carried),
        ("wait", Self::Wait),
        ("queue", Self::Queue),
        ("dropped", Self::Dropped),
        ("loss_events", Self::LossEvents),
        ("timeouts", Self::Timeouts),
        ("round_trip", Self::RoundTrip),
        ("completed", Self::Completed),
        ("start_up", Self::StartUp),
        ("stalls", Self::Stalls),
        ("stalled", Self::Stalled),
    ];

    pub(super) const fn dimension(self) -> Dimension {
        match self {
            Self::Goodput | Self::Throughput | Self::Carried => Dimension::Rate,
            Self::Srtt
            | Self::Buffer
            | Self::Wait
            | Self::RoundTrip
            | Self::Completed
            | Self::StartUp
            | Self::Stalled => Dimension::Time,
            Self::Cwnd => Dimension::Size,
            _ => Dimension::Pure,
        }
    }

    /// Whether it is one of links, not of flows.
    pub(super) const fn is_of_links(self) -> bool {
        matches!(self, Self::Carried | Self::Wait | Self::Queue | Self::Dropped)
    }

    /// Whether it is known at the end of a run only.
    pub(super) const fn is_of_the_whole_run(self) -> bool {
        matches!(
            self,
            Self::LossEvents
                | Self::Timeouts
                | Self::RoundTrip
                | Self::Completed
                | Self::StartUp
                | Self::Stalls
                | Self::Stalled
        )
    }
}

/// A quantity of flows and links of a model.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    pub(super) quantity: Quantity,
    pub(super) flows: Vec<FlowId>,
    pub(super) links: Vec<LinkId>,
    /// A sample counts that ends after this moment and not after the other; neither: what the run counts.
    pub(super) window: Option<(f64, f64)>,
}

impl Bound {
    /// Its value in a run, in SI units; not finite where there is none.
    pub(super) fn of(&self, run: &Recording) -> f64 {
        if self.quantity.is_of_the_whole_run() {
            return self.of_totals(run);
        }
        let warm_up = run.ended.since(Time::ZERO + run.totals.counted);
        let (from, to) = self.window.unwrap_or((warm_up.as_secs_f64(), run.ended.as_secs_f64()));
        self.between(run, from, to)
    }

    /// Its course: the values of intervals of so many seconds, at their ends.
    pub(super) fn course(&self, run: &Recording, bin: f64) -> Vec<(f64, f64)> {
        let (from, to) = self.window.unwrap_or((0.0, run.ended.as_secs_f64()));
        let mut points = Vec::new();
        let mut start = from;
        // Not a sum of bins, whose errors would grow.
        while start < to {
            let end = from + bin * (points.len() + 1) as f64;
            points.push((end, self.between(run, start, end.min(to))));
            start = end;
        }
        points
    }

    fn between(&self, run: &Recording, from: f64, to: f64) -> f64 {
        // Samples end at whole nanoseconds.
        let within = |at: Time| at.as_secs_f64() > from + 1e-9 && at.as_secs_f64() <= to + 1e-9;
        let flows: Vec<&FlowSample> = (run.flows.iter())
            .filter(|sample| within(sample.at) && self.flows.contains(&sample.flow))
            .collect();
        let links: Vec<&LinkSample> = (run.links.iter())
            .filter(|sample| within(sample.at) && self.links.contains(&sample.link))
            .collect();
        let seconds = to - from;
        let flow = |value: fn(&FlowSample) -> f64| flows.iter().map(|sample| value(sample)).sum::<f64>();
        let link = |value: fn(&LinkSample) -> f64| links.iter().map(|sample| value(sample)).sum::<f64>();
        let sent = || flow(|sample| sample.sent as f64);
        // Of one flow at a time, over all flows.
        let at_a_time =
            |value: fn(&FlowSample) -> f64| flow(value) / flows.len() as f64 * self.flows.len() as f64;
        match self.quantity {
            Quantity::Goodput => flow(|sample| sample.delivered.as_f64()) * 8.0 / seconds,
            Quantity::Throughput => flow(|sample| sample.arrived_wire.as_f64()) * 8.0 / seconds,
            Quantity::Sent => sent(),
            Quantity::Loss if self.links.is_empty() => flow(|sample| sample.lost as f64) / sent(),
            Quantity::Loss => link(|sample| (sample.dropped + sample.lost) as f64) / sent(),
            Quantity::Retransmitted => flow(|sample| sample.retransmitted as f64) / sent(),
            Quantity::Cwnd => at_a_time(|sample| sample.cwnd.as_f64()),
            Quantity::Srtt => flow(|sample| sample.srtt.as_secs_f64()) / flows.len() as f64,
            Quantity::Connections => at_a_time(|sample| f64::from(sample.connections)),
            Quantity::VirtualConnections => at_a_time(|sample| sample.flows),
            Quantity::Buffer => {
                let buffers: Vec<f64> =
                    flows.iter().filter_map(|sample| Some(sample.buffer?.as_secs_f64())).collect();
                mean(&buffers).unwrap_or(f64::NAN)
            }
            Quantity::Jain => {
                let share = |id: &FlowId| {
                    let own = flows.iter().filter(|sample| sample.flow == *id);
                    own.map(|sample| sample.delivered.as_f64()).sum()
                };
                jain_index(&self.flows.iter().map(share).collect::<Vec<f64>>()).unwrap_or(f64::NAN)
            }
            Quantity::Carried => link(|sample| sample.transmitted.as_f64()) * 8.0 / seconds,
            Quantity::Wait => {
                link(|sample| sample.waited.as_secs_f64()) / link(|sample| sample.packets as f64)
            }
            // Little's law.
            Quantity::Queue => link(|sample| sample.waited.as_secs_f64()) / seconds,
            Quantity::Dropped => {
                let dropped = link(|sample| sample.dropped as f64);
                dropped / (dropped + link(|sample| sample.packets as f64))
            }
            _ => f64::NAN,
        }
    }

    fn of_totals(&self, run: &Recording) -> f64 {
        let flows: Vec<_> = self.flows.iter().filter_map(|flow| run.totals.flows.get(*flow)).collect();
        let media = || flows.iter().filter_map(|flow| flow.media);
        let of_mean = |values: Vec<f64>| mean(&values).unwrap_or(f64::NAN);
        match self.quantity {
            Quantity::LossEvents => flows.iter().map(|flow| flow.loss_events as f64).sum(),
            Quantity::Timeouts => flows.iter().map(|flow| flow.timeouts as f64).sum(),
            Quantity::RoundTrip => of_mean(flows.iter().map(|flow| flow.rtt_mean.as_secs_f64()).collect()),
            Quantity::Completed => {
                let moments: Option<Vec<f64>> =
                    flows.iter().map(|flow| Some(flow.completed?.as_secs_f64())).collect();
                moments.and_then(|moments| moments.into_iter().reduce(f64::max)).unwrap_or(f64::NAN)
            }
            Quantity::StartUp => {
                let moments: Option<Vec<f64>> =
                    media().map(|media| Some(media.startup?.as_secs_f64())).collect();
                moments.map_or(f64::NAN, of_mean)
            }
            Quantity::Stalls => of_mean(media().map(|media| f64::from(media.stalls)).collect()),
            Quantity::Stalled => of_mean(media().map(|media| media.stalled.as_secs_f64()).collect()),
            _ => f64::NAN,
        }
    }
}
