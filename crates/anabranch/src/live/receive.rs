//! `anabranch receive`.

use serde::Serialize;
use stream::live::ReceiverStatus;
use transport::live::{Identity, Receiver, ReceiverEvent, ReceiverSettings};

use super::output::Sink;
use super::report::{Figures, Reporter};
use super::token;
use crate::arguments::ReceiveArguments;
use crate::failure::Failure;
use crate::output::Output;

/// Receives until the stream has ended, or with `--keep` until a signal comes.
///
/// # Errors
/// The address cannot be listened at, the output not be written, or a signal ends it.
pub async fn run(arguments: ReceiveArguments, output: &Output) -> Result<(), Failure> {
    let identity = match (&arguments.cert, &arguments.key) {
        (Some(certificate), Some(key)) => Identity::load(certificate, key).map_err(Failure::failed)?,
        _ => Identity::make().map_err(Failure::failed)?,
    };
    let fingerprint = identity.fingerprint();
    let settings = ReceiverSettings {
        listen: arguments.listen,
        identity,
        token: token(&arguments.token)?,
        latency: arguments.latency,
        keep: arguments.keep,
    };
    let sink = Sink::open(&arguments.output).await?;
    let mut receiver = Receiver::start(settings).map_err(Failure::failed)?;
    let mut reporter = Reporter::start("receive", receiver.status.clone(), &arguments.report, output).await?;
    output.say(format_args!("listens at {}, fingerprint {fingerprint}", receiver.local_addr()));
    let ended = receive(&mut receiver, sink, &mut reporter, output).await;
    receiver.close().await;
    reporter.finish(ended).await
}

async fn receive(
    receiver: &mut Receiver,
    sink: Sink,
    reporter: &mut Reporter<(ReceiverStatus, u64)>,
    output: &Output,
) -> Result<(), Failure> {
    let Receiver { packets, events, .. } = receiver;
    let mut writing = std::pin::pin!(sink.run(packets));
    loop {
        tokio::select! {
            ended = &mut writing => return ended,
            event = events.recv() => match event {
                Some(ReceiverEvent::Sender { from, latency }) => {
                    reporter.notice(&format!("{from} sends, handed on {latency} later"));
                }
                Some(ReceiverEvent::Lost(from, why)) => reporter.notice(&format!("{from} is gone: {why}")),
                Some(ReceiverEvent::Refused(from, why)) => {
                    reporter.notice(&format!("{from} was refused: {why}"));
                }
                Some(ReceiverEvent::Ended) => reporter.notice("the stream has ended"),
                Some(_) => {}
                // The driver has ended: the rest is written.
                None => return writing.await,
            },
            () = reporter.tick() => reporter.interval(),
            signal = output.stop().signal() => return Err(Failure::stopped(signal, "interrupted")),
        }
    }
}

#[derive(Serialize)]
struct Json {
    bytes: u64,
    packets: u64,
    lost: u64,
    recovered_by_fec: u64,
    recovered_by_retransmission: u64,
    late: u64,
    duplicate: u64,
    dropped: u64,
    repeated_datagrams: u64,
    clock_jumps: u64,
    waiting: usize,
    latency_s: f64,
    loss_event_rate: f64,
}

impl Figures for (ReceiverStatus, u64) {
    fn json(&self) -> impl Serialize + Send {
        let (status, untaken) = self;
        let counts = status.counts;
        Json {
            bytes: counts.bytes,
            packets: counts.delivered,
            lost: counts.lost,
            recovered_by_fec: counts.recovered_by_fec,
            recovered_by_retransmission: counts.recovered_by_retransmission,
            late: counts.late,
            duplicate: counts.duplicate,
            dropped: *untaken + counts.too_far,
            repeated_datagrams: status.repeated,
            clock_jumps: counts.clock_jumps,
            waiting: status.waiting,
            latency_s: status.latency.as_secs_f64(),
            loss_event_rate: status.loss_event_rate,
        }
    }

    fn bytes(&self) -> u64 {
        self.0.counts.bytes
    }

    fn words(&self) -> String {
        let counts = self.0.counts;
        format!(
            "{} packets lost, {} recovered by parity, {} sent again, {} late",
            counts.lost, counts.recovered_by_fec, counts.recovered_by_retransmission, counts.late
        )
    }

    fn counters(&self) -> Vec<(&'static str, &'static str, u64)> {
        let counts = self.0.counts;
        vec![
            ("receive_bytes", "Bytes of the stream that were handed on", counts.bytes),
            ("receive_packets", "Media packets handed on", counts.delivered),
            ("receive_lost", "Media packets that did not come in time", counts.lost),
            ("receive_recovered_by_fec", "Media packets calculated from parity", counts.recovered_by_fec),
            (
                "receive_recovered_by_retransmission",
                "Media packets sent again in time",
                counts.recovered_by_retransmission,
            ),
            ("receive_late", "Media packets that came too late", counts.late),
            ("receive_untaken", "Media packets that the output did not take in time", self.1),
        ]
    }

    fn gauges(&self) -> Vec<(&'static str, &'static str, f64)> {
        vec![
            ("receive_latency_seconds", "Latency budget", self.0.latency.as_secs_f64()),
            ("receive_loss_event_rate", "Largest loss event rate of the connections", self.0.loss_event_rate),
        ]
    }
}
