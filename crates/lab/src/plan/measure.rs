//! Measures of a run: small sums over the samples of flows and links.

use anabranch_congestion::algorithm::Algorithm;
use anabranch_sim::model::{FlowId, Kind, LinkId, Model};
use anabranch_sim::report::{FlowSample, LinkSample};
use anabranch_units::{Bytes, Duration, Rate, Time};

use super::clip::{Clip, Shown};
use super::companies::{Bottleneck, Companies};
use super::packets::{self, Packet};
use super::quantity::Quantity;
use super::take::{Bins, Summary, Take};
use super::viewer::{Viewer, late, played};
use crate::simulate::Recording;
use crate::statistics::{jain_index, mean};

/// Who waits longer for the first picture stands still.
const PATIENCE: Duration = Duration::from_secs(10);

/// A quantity of flows and links of a model.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    pub(super) quantity: Quantity,
    pub(super) flows: Vec<FlowId>,
    pub(super) links: Vec<LinkId>,
    /// The flows that those are compared with.
    pub(super) others: Vec<FlowId>,
    /// What each of the flows weighs.
    pub(super) weights: Vec<f64>,
    /// What becomes of the flows' values, each by itself; none: it is of all flows at once.
    pub(super) each: Option<Take>,
    /// Bins of time, and what becomes of their values; none: it is of all the time at once.
    pub(super) bins: Option<(Bins, Summary)>,
    /// Which samples count; none: those that the run counts.
    pub(super) window: Option<Window>,
    /// Each flow's rate of the media.
    pub(super) rates: Vec<Option<Rate>>,
    /// The size of each flow's packets on the wire, where it is known.
    pub(super) sizes: Vec<Option<Bytes>>,
    /// Where each flow of the model has the slowest link of its way, and how fast that is; empty where nothing
    /// goes by it.
    pub(super) bottlenecks: Vec<Option<Bottleneck>>,
    /// What a packet takes to propagate over the links, one after the other, in seconds.
    pub(super) delay: f64,
    pub(super) details: Details,
}

/// What some quantities need to be told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Details {
    /// The player that is meant; none: that of the run.
    pub(super) player: Option<Viewer>,
    /// Only the time counts in which so many connections are open.
    pub(super) connections: Option<u32>,
    /// What becomes of the lengths of bursts.
    pub(super) of_bursts: Option<Take>,
    /// The film that packets carry.
    pub(super) clip: Option<Clip>,
}

/// Which samples count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Window {
    /// Those that end after one second and not after another.
    Between(f64, f64),
    /// Those after the first one in which all of the flows get something, for so many seconds; none: to the
    /// end.
    Begun(Option<f64>),
}

impl Bound {
    /// Its value in a run, in SI units; not finite where there is none.
    pub(super) fn of(&self, run: &Recording) -> f64 {
        if let Some(take) = self.each {
            let each = self.flows.iter().zip(&self.weights).zip(&self.rates).zip(&self.sizes);
            let each = each.map(|(((flow, weight), rate), size)| {
                let (flows, weights, rates, sizes) = (vec![*flow], vec![*weight], vec![*rate], vec![*size]);
                Self { flows, weights, rates, sizes, each: None, ..self.clone() }.of(run)
            });
            return take.of(&each.collect::<Vec<f64>>()).unwrap_or(f64::NAN);
        }
        if self.quantity.is_of_the_whole_run() {
            return self.of_totals(run);
        }
        if let Some((bins, summary)) = self.bins {
            return summary.of(&self.in_bins(run, bins));
        }
        let (from, to) = self.counted(run);
        self.between(run, from, to)
    }

    /// Its values in whole bins, with their ends from the first one's beginning.
    fn in_bins(&self, run: &Recording, Bins { seconds, step }: Bins) -> Vec<(f64, f64)> {
        let (from, to) = self.counted(run);
        let mut values = Vec::new();
        // Not a sum of steps, whose errors would grow.
        for number in 0.. {
            let start = step * f64::from(number);
            let end = start + seconds;
            if from + end > to + 1e-9 {
                break;
            }
            values.push((end, self.between(run, from + start, from + end)));
        }
        values
    }

    /// What counts of a run, in seconds; `start`: where it begins if nothing is said.
    fn span(&self, run: &Recording, start: Time) -> (f64, f64) {
        let end = run.ended.as_secs_f64();
        match self.window {
            None => (start.as_secs_f64(), end),
            Some(Window::Between(from, to)) => (from, to),
            Some(Window::Begun(seconds)) => {
                let begun = self.begun(run).as_secs_f64();
                (begun, seconds.map_or(end, |seconds| end.min(begun + seconds)))
            }
        }
    }

    fn counted(&self, run: &Recording) -> (f64, f64) {
        self.span(run, Time::ZERO + run.ended.since(Time::ZERO + run.totals.counted))
    }

    /// The end of the first sample in which all of the flows get something.
    fn begun(&self, run: &Recording) -> Time {
        let all = run.flows.chunk_by(|one, other| one.at == other.at).find(|samples| {
            let is_of = |flow: &FlowId| {
                samples.iter().any(|sample| sample.flow == *flow && self.amount(sample) > 0.0)
            };
            self.flows.iter().all(is_of)
        });
        all.and_then(|samples| samples.first()).map_or(Time::ZERO, |sample| sample.at)
    }

    /// What a flow gets.
    fn amount(&self, sample: &FlowSample) -> f64 {
        match self.quantity {
            Quantity::Throughput | Quantity::WeightedJainOfThroughput => sample.arrived_wire.as_f64(),
            _ => sample.delivered.as_f64(),
        }
    }

    /// The same number by the length of the bins.
    pub(super) fn over_scales(&self, run: &Recording, scales: &[f64], take: Take) -> Vec<(f64, f64)> {
        let of =
            |scale: f64| Summary::Take(take).of(&self.in_bins(run, Bins { seconds: scale, step: scale }));
        scales.iter().map(|scale| (*scale, of(*scale))).collect()
    }

    /// Its course: the values of intervals of so many seconds, at their ends.
    pub(super) fn course(&self, run: &Recording, bin: f64) -> Vec<(f64, f64)> {
        let (from, to) = self.span(run, Time::ZERO);
        if self.quantity == Quantity::ClipBuffer {
            return self.shown(run, from, to).map_or_else(Vec::new, |shown| every(&shown.buffer, bin));
        }
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
        let all_flows = within(&run.flows, |sample| sample.at, from, to)
            .iter()
            .filter(|sample| self.flows.contains(&sample.flow));
        let counts =
            |sample: &&FlowSample| self.details.connections.is_none_or(|count| sample.connections == count);
        let flows: Vec<&FlowSample> = all_flows.clone().filter(counts).collect();
        let links: Vec<&LinkSample> = within(&run.links, |sample| sample.at, from, to)
            .iter()
            .filter(|sample| self.links.contains(&sample.link))
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
            // What nothing limits has no size.
            Quantity::ReceiveWindow => at_a_time(|sample| match sample.receive_window {
                Bytes::MAX => f64::NAN,
                window => window.as_f64(),
            }),
            Quantity::VirtualConnections => at_a_time(|sample| sample.flows),
            Quantity::Buffer => {
                let buffers: Vec<f64> =
                    flows.iter().filter_map(|sample| Some(sample.buffer?.as_secs_f64())).collect();
                mean(&buffers).unwrap_or(f64::NAN)
            }
            Quantity::InOrder => {
                let of = |(flow, rate): (&FlowId, &Option<Rate>)| {
                    let last = flows.iter().rfind(|sample| sample.flow == *flow)?;
                    Some(rate.as_ref()?.time_for(last.in_order).as_secs_f64())
                };
                let each: Vec<f64> = self.flows.iter().zip(&self.rates).filter_map(of).collect();
                mean(&each).unwrap_or(f64::NAN)
            }
            Quantity::Late => {
                let each = self.flows.iter().zip(&self.rates);
                let late = each.map(|(flow, rate)| {
                    let own = flows.iter().filter(|sample| sample.flow == *flow);
                    late(own.copied(), self.start_up(run, *flow, *rate), *rate)
                });
                mean(&late.collect::<Vec<f64>>()).unwrap_or(f64::NAN)
            }
            Quantity::Jain | Quantity::WeightedJain | Quantity::WeightedJainOfThroughput => {
                let amount = |id: &FlowId| -> f64 {
                    let own = flows.iter().filter(|sample| sample.flow == *id);
                    own.map(|sample| self.amount(sample)).sum()
                };
                let is_weighted = self.quantity != Quantity::Jain;
                let weight = |weight: &f64| if is_weighted { *weight } else { 1.0 };
                let each = self.flows.iter().zip(&self.weights);
                let shares: Vec<f64> = each.map(|(id, own)| amount(id) / weight(own)).collect();
                jain_index(&shares).unwrap_or(f64::NAN)
            }
            Quantity::GoodputRatio => {
                let others = Self { flows: self.others.clone(), quantity: Quantity::Goodput, ..self.clone() };
                flow(|sample| sample.delivered.as_f64()) * 8.0 / seconds / others.between(run, from, to)
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
            Quantity::Delay => self.delay,
            Quantity::OfBottleneck => {
                let rate = |flow: &FlowId| Some(self.bottlenecks.get(*flow)?.as_ref()?.rate.as_f64());
                let rates: Option<Vec<f64>> = self.flows.iter().map(rate).collect();
                let delivered = flow(|sample| sample.delivered.as_f64()) * 8.0 / seconds;
                rates.map_or(f64::NAN, |rates| delivered / rates.into_iter().sum::<f64>())
            }
            Quantity::Companions | Quantity::Joined | Quantity::WithStrangers => {
                let all = within(&run.flows, |sample| sample.at, from, to);
                Companies::of(all, &self.bottlenecks).measure(self.quantity, &self.flows)
            }
            Quantity::TimeShare => flows.len() as f64 / all_flows.count() as f64,
            Quantity::LossBurst => self.bursts(run, from, to),
            Quantity::Frozen => self.shown(run, from, to).map_or(f64::NAN, |shown| shown.frozen),
            Quantity::Unrepaired => self.shown(run, from, to).map_or(f64::NAN, |shown| shown.unrepaired),
            _ => f64::NAN,
        }
    }

    /// The packets of the flow, one by one, and their size.
    fn packets(&self, run: &Recording) -> Option<(Vec<Packet>, Bytes)> {
        let (flow, size) = (*self.flows.first()?, (*self.sizes.first()?)?);
        Some((packets::of_flow(run, flow, size), size))
    }

    /// What becomes of the lengths of bursts of losses.
    fn bursts(&self, run: &Recording, from: f64, to: f64) -> f64 {
        let Some((packets, _)) = self.packets(run) else { return f64::NAN };
        let bursts = packets::bursts(packets::within(&packets, from, to));
        let counts = |with: &u32| self.details.connections.is_none_or(|count| *with == count);
        let lengths: Vec<f64> = bursts.filter(|(with, _)| counts(with)).map(|(_, length)| length).collect();
        self.details.of_bursts.and_then(|take| take.of(&lengths)).unwrap_or(f64::NAN)
    }

    /// How the film is shown that the packets carry.
    fn shown(&self, run: &Recording, from: f64, to: f64) -> Option<Shown> {
        let (packets, size) = self.packets(run)?;
        Some(self.details.clip?.show(packets::within(&packets, from, to), size, from, to))
    }

    /// When a film began to play in the run, or for the player that is meant.
    fn start_up(&self, run: &Recording, flow: FlowId, rate: Option<Rate>) -> Option<Duration> {
        match self.details.player {
            Some(viewer) => played(run, flow, viewer, rate).startup,
            None => run.totals.flows.get(flow)?.media?.viewed().0,
        }
    }

    fn of_totals(&self, run: &Recording) -> f64 {
        let flows: Vec<_> = self.flows.iter().filter_map(|flow| run.totals.flows.get(*flow)).collect();
        let media = || flows.iter().filter_map(|flow| flow.media);
        let live = || flows.iter().filter_map(|flow| flow.live);
        let chosen = || media().filter_map(|media| Some((media.seen?.rung?, media.seen?.switches)));
        let of_mean = |values: Vec<f64>| mean(&values).unwrap_or(f64::NAN);
        if let Some(viewer) = self.details.player {
            let each = self.flows.iter().zip(&self.rates);
            let reports = each.map(|(flow, rate)| played(run, *flow, viewer, *rate));
            let values = reports.map(|report| match self.quantity {
                Quantity::StartUp => report.startup.map_or(f64::NAN, Duration::as_secs_f64),
                Quantity::Stalls => f64::from(report.stalls),
                _ => report.stalled.as_secs_f64(),
            });
            return of_mean(values.collect());
        }
        match self.quantity {
            Quantity::MostConnections => of_mean(media().map(|media| media.connections_max.into()).collect()),
            Quantity::MeanConnections => of_mean(media().map(|media| media.connections_mean).collect()),
            Quantity::Requests => of_mean(media().map(|media| media.requests as f64).collect()),
            Quantity::Drops => {
                let sent: u64 = flows.iter().map(|flow| flow.sent).sum();
                flows.iter().map(|flow| flow.dropped as f64).sum::<f64>() / sent as f64
            }
            Quantity::LossEvents => flows.iter().map(|flow| flow.loss_events as f64).sum(),
            Quantity::Timeouts => flows.iter().map(|flow| flow.timeouts as f64).sum(),
            Quantity::Growths => flows.iter().map(|flow| flow.growths as f64).sum(),
            Quantity::RoundTrip => of_mean(flows.iter().map(|flow| flow.rtt_mean.as_secs_f64()).collect()),
            Quantity::Completed => {
                let moments: Option<Vec<f64>> =
                    flows.iter().map(|flow| Some(flow.completed?.as_secs_f64())).collect();
                moments.and_then(|moments| moments.into_iter().reduce(f64::max)).unwrap_or(f64::NAN)
            }
            Quantity::StartUp => {
                let moments: Option<Vec<f64>> =
                    media().map(|media| Some(media.viewed().0?.as_secs_f64())).collect();
                moments.map_or(f64::NAN, of_mean)
            }
            Quantity::Missing => {
                of_mean(live().map(|live| live.missing as f64 / live.packets as f64).collect())
            }
            Quantity::Latency => {
                let latencies: Option<Vec<f64>> =
                    live().map(|live| Some(live.latency_99?.as_secs_f64())).collect();
                latencies.map_or(f64::NAN, of_mean)
            }
            Quantity::Overrun => {
                let overruns: Option<Vec<f64>> =
                    live().map(|live| Some((live.latency_99? - live.latency_asked).as_secs_f64())).collect();
                overruns.map_or(f64::NAN, of_mean)
            }
            Quantity::Stalls => of_mean(media().map(|media| f64::from(media.viewed().1)).collect()),
            Quantity::Standing => {
                let standing = media().map(|media| match media.viewed() {
                    (Some(start_up), _, stalled) => stalled + (start_up - PATIENCE),
                    (None, ..) => media.lasted,
                });
                of_mean(standing.map(Duration::as_secs_f64).collect())
            }
            Quantity::Stalled => of_mean(media().map(|media| media.viewed().2.as_secs_f64()).collect()),
            // Who has played nothing has no rung.
            Quantity::Rung => of_mean(chosen().map(|(rung, _)| rung.as_f64()).collect()),
            Quantity::RungSwitches => of_mean(chosen().map(|(_, switches)| switches.into()).collect()),
            _ => f64::NAN,
        }
    }
}

/// The samples that end after one moment and not after another.
fn within<T>(samples: &[T], at: fn(&T) -> Time, from: f64, to: f64) -> &[T] {
    // Samples end at whole nanoseconds, and are in the order of time.
    let until = |moment: f64| samples.partition_point(|sample| at(sample).as_secs_f64() <= moment + 1e-9);
    let end = until(to);
    samples.get(until(from).min(end)..end).unwrap_or_default()
}

/// The points of a course that are at multiples of so many seconds.
fn every(course: &[(f64, f64)], seconds: f64) -> Vec<(f64, f64)> {
    let is_there = |at: f64| (at / seconds - (at / seconds).round()).abs() < 1e-6;
    course.iter().copied().filter(|(at, _)| is_there(*at)).collect()
}

/// What a flow weighs: its weight in its group, as how many flows it counts, or one.
pub(super) fn weight(model: &Model, flow: FlowId) -> f64 {
    let Some(Kind::Tcp { tcp, .. }) = model.flows.get(flow).map(|flow| &flow.kind) else { return 1.0 };
    match (&tcp.share, tcp.congestion) {
        (Some(share), _) => share.weight.get(),
        (None, Algorithm::MulTcp(flows)) => flows,
        (None, _) => 1.0,
    }
}

/// The rate of the access link of a flow's receiver: of the fastest that leads to it.
pub(super) fn access(model: &Model, flow: FlowId) -> Rate {
    let receiver = match model.flows.get(flow).map(|flow| &flow.kind) {
        Some(Kind::Tcp { to, .. } | Kind::Udp { to, .. } | Kind::Tfrc { to, .. }) => *to,
        Some(Kind::Media(media)) => media.client,
        Some(Kind::Live(live)) => live.to,
        None => return Rate::ZERO,
    };
    let links = model.links.iter().filter(|link| link.to == receiver);
    links.map(|link| link.rate).max().unwrap_or(Rate::ZERO)
}

#[cfg(test)]
mod tests;
