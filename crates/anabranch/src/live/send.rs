//! `anabranch send`.

use std::net::SocketAddr;
use std::sync::Arc;

use serde::Serialize;
use stream::live::{Fec, Scheme, SenderStatus, Settings};
use tokio::net::lookup_host;
use tokio::sync::mpsc;
use transport::live::{Sender, SenderEvent, SenderSettings, Trusted};
use transport::tls::TlsClient;

use super::input::Input;
use super::report::{Figures, Reporter};
use super::token;
use crate::arguments::{Endpoint, FecArgument, SchemeName, SendArguments, Switch};
use crate::failure::Failure;
use crate::output::Output;

/// Sends until the input ends, or a signal comes.
///
/// # Errors
/// There is no receiver or it refuses, the input cannot be read, or a signal ends it.
pub async fn run(arguments: SendArguments, output: &Output) -> Result<(), Failure> {
    let settings = settings(&arguments).await?;
    let mut sender = Sender::start(settings).map_err(Failure::failed)?;
    let mut reporter = Reporter::start("send", sender.status.clone(), &arguments.report, output).await?;
    // Kept until the input has ended: a sender that has none of these left tells the receiver that the stream is complete.
    let mut unfinished = Some(sender.take_input());
    let ended = send(&mut sender, &mut unfinished, &mut reporter, &arguments, output).await;
    // Only an end before the stream's is news to the receiver.
    sender.close().await;
    drop(unfinished);
    reporter.finish(ended).await
}

async fn send(
    sender: &mut Sender,
    unfinished: &mut Option<mpsc::Sender<Arc<[u8]>>>,
    reporter: &mut Reporter<SenderStatus>,
    arguments: &SendArguments,
    output: &Output,
) -> Result<(), Failure> {
    let payload = sender.payload.clone();
    let mut ready = sender.ready.clone();
    let Some(payloads) = unfinished.clone() else { return Ok(()) };
    let input = Input { payloads, most: move || *payload.borrow(), rate: arguments.rate, output };
    let mut reading = std::pin::pin!(async {
        // A live input goes on whether or not there is a receiver; a file waits.
        if !matches!(arguments.input, Endpoint::Udp(_)) && ready.wait_for(|ready| *ready).await.is_err() {
            return Ok(());
        }
        input.run(&arguments.input).await
    });
    let mut is_read = false;
    let mut dropped = 0;
    loop {
        tokio::select! {
            ended = &mut reading, if !is_read => {
                ended?;
                is_read = true;
                *unfinished = None;
            }
            ended = sender.ended.join_next() => {
                return match ended {
                    Some(Ok(ended)) => ended.map_err(Failure::failed),
                    _ => Err(Failure::failed("the sender has ended by itself")),
                };
            }
            event = sender.events.recv() => match event {
                Some(SenderEvent::Connected) => reporter.notice(&format!("connected to {}", arguments.to)),
                Some(SenderEvent::Lost(why)) => {
                    reporter.notice(&format!("a connection to {} was lost: {why}; connects again", arguments.to));
                }
                // It ends, as the other branch will tell.
                _ => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
            },
            () = reporter.tick() => {
                reporter.interval();
                let status = sender.status.borrow().clone();
                if status.dropped.0 > dropped {
                    let available = status.available_rate;
                    reporter.notice(&format!(
                        "warning: the network is slower than the input: {} packets were dropped; {available} would fit",
                        status.dropped.0 - dropped,
                    ));
                    dropped = status.dropped.0;
                }
            }
            signal = output.stop().signal() => return Err(Failure::stopped(signal, "interrupted")),
        }
    }
}

async fn settings(arguments: &SendArguments) -> Result<SenderSettings, Failure> {
    let (name, _) = arguments.to.rsplit_once(':').ok_or_else(|| {
        Failure::usage(format_args!("--to {}: a receiver is written HOST:PORT", arguments.to))
    })?;
    let found = lookup_host(&arguments.to)
        .await
        .map_err(|error| Failure::failed(format_args!("cannot find {}: {error}", arguments.to)))?;
    let mut found: Vec<SocketAddr> = found.collect();
    // What every network has comes first.
    found.sort_by_key(SocketAddr::is_ipv6);
    let to =
        *found.first().ok_or_else(|| Failure::failed(format_args!("{} has no address", arguments.to)))?;
    let trusted = match arguments.fingerprint {
        Some(fingerprint) => Trusted::Certificate(fingerprint),
        None => Trusted::Authorities(TlsClient::new(&arguments.cacert).map_err(Failure::failed)?),
    };
    let live = Settings {
        latency: arguments.latency,
        retransmit: arguments.retransmit == Switch::On,
        fec: match arguments.fec {
            FecArgument::Off => Fec::Off,
            FecArgument::Auto => Fec::Auto,
            FecArgument::Code(code) => Fec::Fixed(code),
        },
        leave_out_stuffing: !arguments.keep_stuffing,
        scheme: match arguments.scheme {
            SchemeName::Tfrc => Scheme::TFRC,
            SchemeName::Multfrc => Scheme::MULTFRC,
            SchemeName::AioTfrc => Scheme::AIO_TFRC,
            SchemeName::Auto => Scheme::AUTO,
        },
    };
    let name = name.trim_start_matches('[').trim_end_matches(']').to_owned();
    let token = token(&arguments.token)?;
    Ok(SenderSettings { to, name, trusted, token, live, interfaces: arguments.interface.clone() })
}

#[derive(Serialize)]
struct Json {
    bytes: u64,
    packets: u64,
    retransmitted: u64,
    parity: u64,
    dropped: u64,
    dropped_bytes: u64,
    /// Of `bytes`, null packets that were left out on the way.
    stuffing_bytes: u64,
    waiting_bytes: u64,
    available_rate_bps: u64,
    loss_rate: f64,
    /// Of the last few thousand datagrams: the part that was lost, and how many one after the other.
    recent_loss_rate: f64,
    loss_burst_packets: f64,
    /// Parity as `--fec` has it, N,K.
    fec: Option<String>,
    rtt_s: Option<f64>,
    connections: Vec<ConnectionJson>,
}

#[derive(Serialize)]
struct ConnectionJson {
    connection: u32,
    link: u32,
    rtt_s: Option<f64>,
    allowed_rate_bps: u64,
    loss_event_rate: f64,
    sent: u64,
    lost: u64,
    silent: bool,
}

impl Figures for SenderStatus {
    fn json(&self) -> impl Serialize + Send {
        let connections = self.connections.iter().map(|connection| ConnectionJson {
            connection: connection.id.0,
            link: connection.link.0,
            rtt_s: connection.rtt.map(units::Duration::as_secs_f64),
            allowed_rate_bps: connection.allowed_rate.as_bps(),
            loss_event_rate: connection.loss_event_rate,
            sent: connection.sent,
            lost: connection.lost,
            silent: connection.is_silent,
        });
        Json {
            bytes: self.bytes(),
            packets: self.media,
            retransmitted: self.again,
            parity: self.parity,
            dropped: self.dropped.0,
            dropped_bytes: self.dropped.1.get(),
            stuffing_bytes: self.left_out.get(),
            waiting_bytes: self.waiting.get(),
            available_rate_bps: self.available_rate.as_bps(),
            loss_rate: self.loss_rate(),
            recent_loss_rate: self.losses.rate,
            loss_burst_packets: self.losses.burst,
            fec: self.code.map(|code| code.to_string()),
            rtt_s: self.rtt().map(units::Duration::as_secs_f64),
            connections: connections.collect(),
        }
    }

    fn bytes(&self) -> u64 {
        self.taken.get() - self.dropped.1.get().min(self.taken.get())
    }

    fn words(&self) -> String {
        let count = self.connections.len();
        format!(
            "{count} connection{}, {:.1} % lost, {} sent again, {} dropped",
            if count == 1 { "" } else { "s" },
            100.0 * self.loss_rate(),
            self.again,
            self.dropped.0,
        )
    }

    fn counters(&self) -> Vec<(&'static str, &'static str, u64)> {
        vec![
            ("send_bytes", "Bytes of the stream that were taken", self.taken.get()),
            ("send_packets", "Media packets sent for the first time", self.media),
            ("send_retransmitted", "Media packets sent again", self.again),
            ("send_parity", "Parity packets sent", self.parity),
            ("send_dropped", "Media packets dropped since the network was too slow", self.dropped.0),
        ]
    }

    fn gauges(&self) -> Vec<(&'static str, &'static str, f64)> {
        vec![
            ("send_available_rate_bps", "What the stream's rate may be", self.available_rate.as_f64()),
            ("send_loss_rate", "Part of the datagrams that were lost", self.loss_rate()),
            (
                "send_rtt_seconds",
                "Shortest round-trip time of the connections",
                self.rtt().map_or(0.0, units::Duration::as_secs_f64),
            ),
        ]
    }
}
