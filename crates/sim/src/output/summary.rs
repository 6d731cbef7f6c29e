//! The totals of a run, as `summary.json` has them.

use anabranch_units::{Bytes, Duration, Rate, Time};
use serde::Serialize;

use super::capacity::capacity;
use super::decimal::Decimal;
use crate::model::{Kind, Link, Model};
use crate::report::{FlowTotals, LinkTotals, LiveTotals, MediaTotals, Totals};

/// What a run came to, from the end of its warm-up on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The simulator's version.
    pub version: &'static str,
    /// The scenario's name.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// Length of the run as it was wanted, in seconds.
    pub duration_s: f64,
    /// What of it was simulated, in seconds; less when it was interrupted.
    pub simulated_s: f64,
    /// What of that the totals below count, in seconds.
    pub counted_s: f64,
    /// Events of the whole run.
    pub events: u64,
    /// Data packets that all flows sent in the whole run.
    pub data_packets: u64,
    /// The flows, in the scenario's order.
    pub flows: Vec<FlowSummary>,
    /// The links, in the scenario's order.
    pub links: Vec<LinkSummary>,
}

/// What a flow came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowSummary {
    /// Its name.
    pub name: String,
    /// `tcp`, `udp` or `media`.
    pub kind: &'static str,
    /// Payload that the receiver got, in order for TCP, over the counted time.
    pub goodput_bps: u64,
    /// The same in bytes.
    pub delivered_bytes: u64,
    /// Bytes of data packets that arrived, headers included, over the counted time.
    pub throughput_bps: u64,
    /// Data packets sent, retransmissions included.
    pub sent_packets: u64,
    /// Data packets that queues dropped.
    pub dropped_packets: u64,
    /// Data packets that were lost on wires.
    pub lost_packets: u64,
    /// Data packets that arrived marked, where the flow knows marks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marked_packets: Option<u64>,
    /// Dropped and lost of all that were sent; nothing when none was.
    pub loss_rate: Option<f64>,
    /// Retransmitted packets.
    pub retransmitted_packets: u64,
    /// Window reductions: recoveries, time-outs and answers to marks.
    pub loss_events: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Mean of the measured round trips, in seconds.
    pub rtt_mean_s: Option<f64>,
    /// When a file had arrived as a whole, in seconds since the beginning of the run.
    pub completed_s: Option<f64>,
    /// What a media stream adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media: Option<MediaSummary>,
    /// What a live stream adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveSummary>,
}

/// What a live stream came to: of the packets that came into the sender after the warm-up, and whose time was
/// over at the end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveSummary {
    /// Packets of the stream.
    pub packets: u64,
    /// Of them, those that never came out of the receiver.
    pub missing_packets: u64,
    /// From the input of the sender to the output of the receiver, in seconds: the median.
    pub latency_median_s: Option<f64>,
    /// The same: 99 of 100 took no longer.
    pub latency_99_s: Option<f64>,
    /// In the whole run: what the sender gave up before it left.
    pub given_up_packets: u64,
    /// In the whole run: packets that were sent again.
    pub again_packets: u64,
    /// In the whole run: packets of parity.
    pub parity_packets: u64,
    /// In the whole run: most connections at a time.
    pub connections_max: u32,
}

/// What a media stream came to; the warm-up counts here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MediaSummary {
    /// How long until play began, in seconds.
    pub startup_s: Option<f64>,
    /// Stalls after that.
    pub stalls: u32,
    /// How long they took, in seconds.
    pub stall_s: f64,
    /// Most connections at a time.
    pub connections_max: u32,
    /// Mean number of connections.
    pub connections_mean: f64,
    /// Bytes that came twice.
    pub duplicate_bytes: u64,
    /// Bytes that were asked for again.
    pub rerequested_bytes: u64,
    /// What the viewer of a player with a buffer of its own saw; the figures above are what the receiver
    /// thinks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<SeenSummary>,
}

/// What a viewer saw.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeenSummary {
    /// How long until play began, in seconds.
    pub startup_s: Option<f64>,
    /// Stalls after that.
    pub stalls: u32,
    /// How long they took, in seconds.
    pub stall_s: f64,
    /// How much was played.
    pub played_bytes: u64,
    /// The mean rate of what was played, in bit/s, where the player chooses rungs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rung_bps: Option<u64>,
    /// How often the rung changed in what was played.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rung_switches: Option<u32>,
}

/// What a link came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkSummary {
    /// Its name.
    pub name: String,
    /// Transmitted bits of those that could have been.
    pub utilisation: Option<f64>,
    /// Bytes transmitted.
    pub transmitted_bytes: u64,
    /// Packets transmitted.
    pub packets: u64,
    /// Mean number of packets that waited.
    pub queue_mean_packets: Option<f64>,
    /// Most packets in the queue, the one in transmission included, in the whole run.
    pub queue_max_packets: u32,
    /// Packets that came to the queue.
    pub offered_packets: u64,
    /// Packets that the queue dropped.
    pub dropped_packets: u64,
    /// Packets that the queue marked, where its discipline marks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marked_packets: Option<u64>,
    /// Dropped of all that came; nothing when none came.
    pub drop_rate: Option<f64>,
    /// Packets that were lost on the wire.
    pub lost_packets: u64,
}

impl Summary {
    /// The totals of a run of `model` that was simulated until `now`.
    pub fn new(scenario: &str, model: &Model, now: Time, totals: &Totals) -> Self {
        let counted = totals.counted;
        let seconds = |span| Decimal::seconds(span).number();
        let flows = model.flows.iter().zip(&totals.flows);
        let links = model.links.iter().zip(&totals.links);
        Self {
            version: env!("CARGO_PKG_VERSION"),
            scenario: scenario.into(),
            seed: model.run.seed,
            duration_s: seconds(model.run.duration),
            simulated_s: seconds(now.since(Time::ZERO)),
            counted_s: seconds(counted),
            events: totals.events,
            data_packets: totals.data_packets,
            flows: flows
                .map(|(flow, totals)| FlowSummary::new(&flow.name, &flow.kind, totals, counted))
                .collect(),
            links: links.map(|(link, totals)| LinkSummary::new(link, totals, now, counted)).collect(),
        }
    }
}

impl FlowSummary {
    fn new(name: &str, kind: &Kind, totals: &FlowTotals, counted: Duration) -> Self {
        Self {
            name: name.into(),
            kind: match kind {
                Kind::Tcp { .. } => "tcp",
                Kind::Udp { .. } => "udp",
                Kind::Tfrc { .. } => "tfrc",
                Kind::Media(_) => "media",
                Kind::Live(_) => "live",
            },
            goodput_bps: Rate::of(totals.delivered, counted).as_bps(),
            delivered_bytes: totals.delivered.get(),
            throughput_bps: Rate::of(totals.arrived_wire, counted).as_bps(),
            sent_packets: totals.sent,
            dropped_packets: totals.dropped,
            lost_packets: totals.lost,
            marked_packets: knows_marks(kind).then_some(totals.marked),
            loss_rate: ratio(totals.dropped + totals.lost, totals.sent),
            retransmitted_packets: totals.retransmitted,
            loss_events: totals.loss_events,
            timeouts: totals.timeouts,
            rtt_mean_s: Some(totals.rtt_mean)
                .filter(|rtt| !rtt.is_zero())
                .map(|rtt| Decimal::seconds(rtt).number()),
            completed_s: totals.completed.map(|at| Decimal::seconds(at.since(Time::ZERO)).number()),
            media: totals.media.as_ref().map(MediaSummary::new),
            live: totals.live.as_ref().map(LiveSummary::new),
        }
    }
}

impl MediaSummary {
    fn new(totals: &MediaTotals) -> Self {
        Self {
            startup_s: totals.startup.map(|startup| Decimal::seconds(startup).number()),
            stalls: totals.stalls,
            stall_s: Decimal::seconds(totals.stalled).number(),
            connections_max: totals.connections_max,
            // Rounded by a multiplication and a division, which are the same everywhere.
            connections_mean: (totals.connections_mean * 1e6).round() / 1e6,
            duplicate_bytes: totals.duplicate.get(),
            rerequested_bytes: totals.rerequested.get(),
            seen: totals.seen.map(|seen| SeenSummary {
                startup_s: seen.startup.map(|startup| Decimal::seconds(startup).number()),
                stalls: seen.stalls,
                stall_s: Decimal::seconds(seen.stalled).number(),
                played_bytes: seen.played.get(),
                rung_bps: seen.rung.map(Rate::as_bps),
                rung_switches: seen.rung.map(|_| seen.switches),
            }),
        }
    }
}

impl LiveSummary {
    fn new(totals: &LiveTotals) -> Self {
        let seconds = |latency: Option<Duration>| latency.map(|latency| Decimal::seconds(latency).number());
        Self {
            packets: totals.packets,
            missing_packets: totals.missing,
            latency_median_s: seconds(totals.latency_median),
            latency_99_s: seconds(totals.latency_99),
            given_up_packets: totals.given_up,
            again_packets: totals.again,
            parity_packets: totals.parity,
            connections_max: totals.connections_max,
        }
    }
}

impl LinkSummary {
    fn new(link: &Link, totals: &LinkTotals, now: Time, counted: Duration) -> Self {
        Self {
            name: link.name.clone(),
            utilisation: utilisation(link, totals.transmitted, now - counted, now).map(Decimal::number),
            transmitted_bytes: totals.transmitted.get(),
            packets: totals.packets,
            queue_mean_packets: mean_queue(totals.waited, counted).map(Decimal::number),
            queue_max_packets: totals.queue_max,
            offered_packets: totals.offered,
            dropped_packets: totals.dropped,
            marked_packets: link.queue.discipline.marks().then_some(totals.marked),
            drop_rate: ratio(totals.dropped, totals.offered),
            lost_packets: totals.lost,
        }
    }
}

/// Whether a flow's packets can be marked.
fn knows_marks(kind: &Kind) -> bool {
    match kind {
        Kind::Tcp { tcp, .. } => tcp.ecn.is_some(),
        Kind::Media(media) => media.tcp.ecn.is_some(),
        Kind::Udp { .. } | Kind::Tfrc { .. } | Kind::Live(_) => false,
    }
}

/// Transmitted bits of those that could have been; `None` when none could.
pub(super) fn utilisation(link: &Link, transmitted: Bytes, from: Time, to: Time) -> Option<Decimal> {
    Decimal::of(u128::from(transmitted.get()) * 8_000_000_000, capacity(link, from, to))
}

/// The mean number of waiting packets (Little's law).
pub(super) fn mean_queue(waited: Duration, counted: Duration) -> Option<Decimal> {
    Decimal::of(waited.as_nanos().into(), counted.as_nanos().into())
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    Decimal::of(part.into(), whole.into()).map(Decimal::number)
}
