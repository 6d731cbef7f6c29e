//! R6: the course of one congestion window, with and without forced losses.

use anabranch_sim::model::{DelayedAck, LossModel, Recovery};
use anabranch_units::{Duration, Packets};

use super::job::job;
use super::network::{Network, tcp};
use super::reference::Window;
use crate::case::Measured;
use crate::experiment::Job;

/// The run of the trace `label`, compared with ns-2's `windows`.
pub(super) fn run(label: &'static str, windows: Vec<Window>, recovery: Recovery) -> Job {
    let mut network = Network::new(1, 60, 0, Duration::from_millis(100));
    let (sender, receiver) = (network.node(), network.node());
    let link = network.duplex(sender, receiver, 10.0, 50.0, 100);
    network.model.links[link].loss = match label.split_once("_drop") {
        // By the order of arrival behind the queue; the set-up's packet is number 0.
        Some((_, places)) => {
            LossModel::Listed(places.split('_').filter_map(|place| place.parse().ok()).collect())
        }
        None => LossModel::None,
    };
    let mut tcp = tcp(recovery);
    if label.starts_with("ss64") {
        tcp.initial_ssthresh = Some(Packets::new(64));
    }
    if label.ends_with("delack") {
        tcp.delayed_ack = Some(DelayedAck { every: 2, delay: Duration::from_millis(100) });
    }
    network.greedy(sender, receiver, &tcp, (0.0, 0.0));
    job(label, recovery, network, &[], move |recording| {
        let pairs = recording.flow(0).zip(&windows);
        let near = pairs.filter(|(sample, window)| {
            debug_assert!((sample.at.as_secs_f64() - window.time).abs() < 1e-6, "the samples are ns-2's");
            (sample.cwnd.as_f64() / 1000.0 - window.cwnd).abs() <= 1.0
        });
        let flow = &recording.totals.flows[0];
        Measured::default()
            .figure("samples_within_a_segment", near.count() as f64 / windows.len() as f64, "")
            .figure("cuts", flow.loss_events as f64, "")
            .figure("timeouts", flow.timeouts as f64, "")
    })
}
