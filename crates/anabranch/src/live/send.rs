//! `anabranch send`.

use std::net::SocketAddr;
use std::sync::Arc;

use anabranch_congestion::vps::Weight;
use anabranch_contribution::{GroupSettings, SendError, Sender, SenderEvent, SenderSettings, Trusted};
use anabranch_live::{Fec, Scheme, SenderStatus, Settings};
use anabranch_sockets::tls::TlsClient;
use serde::Serialize;
use tokio::net::lookup_host;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::input::{Input, Source};
use super::rate::Teller;
use super::report::{Figures, Reporter};
use super::token::token;
use crate::arguments::{FecArgument, SchemeName, SendArguments, Switch};
use crate::failure::Failure;
use crate::output::{Output, counted};

/// Sends until the input ends, or a signal comes.
///
/// # Errors
/// There is no receiver or it refuses, the input cannot be read, or a signal ends it.
pub(super) async fn run(arguments: SendArguments, output: &Output) -> Result<(), Failure> {
    // What is wrong here is told before anybody else is asked.
    let source = Source::open(&arguments.input, arguments.rate).await?;
    let settings = settings(&arguments).await?;
    let to = settings.to;
    let mut sender = Sender::start(settings).map_err(Failure::failed)?;
    let _teller = match &arguments.tell_rate {
        Some(at) => Some(Teller::start(at, sender.status.clone(), output).await?),
        None => None,
    };
    let mut reporter = Reporter::start("send", sender.status.clone(), &arguments.report, output).await?;
    let is_address = arguments.to == to.to_string();
    let at = if is_address { String::new() } else { format!(" ({to})") };
    reporter.notice(&format!("connects to {}{at}", arguments.to));
    // Kept until the input has ended: a sender that has none of these left tells the receiver that the stream
    // is complete.
    let mut unfinished = Some(sender.take_input());
    let ended = send(&mut sender, &mut unfinished, source, &mut reporter, &arguments, output).await;
    // Only an end before the stream's is news to the receiver.
    sender.close().await;
    drop(unfinished);
    reporter.finish(ended).await
}

async fn send(
    sender: &mut Sender,
    unfinished: &mut Option<mpsc::Sender<Arc<[u8]>>>,
    source: Source,
    reporter: &mut Reporter<SenderStatus>,
    arguments: &SendArguments,
    output: &Output,
) -> Result<(), Failure> {
    let payload = sender.payload.clone();
    let mut ready = sender.ready.clone();
    let Some(payloads) = unfinished.clone() else { return Ok(()) };
    let is_live = arguments.input.is_live();
    let input =
        Input { payloads, most: move || *payload.borrow(), rate: arguments.rate, output: output.clone() };
    // A task of its own: what comes does not ask for whatever else is waited for here.
    let mut reading = JoinSet::new();
    reading.spawn(async move {
        // A live input goes on whether or not there is a receiver; a file waits.
        if !is_live && ready.wait_for(|ready| *ready).await.is_err() {
            return Ok(());
        }
        input.run(source).await
    });
    let mut dropped = 0;
    loop {
        tokio::select! {
            Some(ended) = reading.join_next() => {
                ended.unwrap_or_else(|_| Err(Failure::failed("reading has ended by itself")))?;
                *unfinished = None;
            }
            ended = sender.ended.join_next() => {
                return match ended {
                    Some(Ok(ended)) => ended.map_err(Failure::failed),
                    _ => Err(Failure::failed("the sender has ended by itself")),
                };
            }
            event = sender.events.recv() => match event {
                Some(event) => reporter.notice(&told(event, &arguments.to)),
                // It ends, as the other branch will tell.
                None => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
            },
            () = reporter.tick() => {
                reporter.interval();
                let status = sender.status.borrow().clone();
                if status.dropped.0 > dropped {
                    let packets = counted(status.dropped.0 - dropped, "packet");
                    reporter.notice(&if status.connections.is_empty() {
                        format!("warning: no connection to {}: dropped {packets}", arguments.to)
                    } else {
                        let fits = status.fitting_rate;
                        format!("warning: the network is slower than the input: dropped {packets}; \
                                 {fits} would fit")
                    });
                    dropped = status.dropped.0;
                }
            }
            signal = output.stop().signal() => return Err(Failure::stopped(signal, "interrupted")),
        }
    }
}

/// An event in words.
fn told(event: SenderEvent, to: &str) -> String {
    let by = |link: Option<String>| link.map_or(String::new(), |link| format!(" by {link}"));
    match event {
        SenderEvent::Connected { link } => format!("connected to {to}{}", by(link)),
        SenderEvent::Lost { link, why } => {
            format!("connection to {to}{} lost: {why}; connects again", by(link))
        }
        SenderEvent::Waits { link, why: SendError::NotTrusted(_, reason) } => format!(
            "warning: another receiver answers at {to}{}: {reason}; if it is the right one start again with \
             its --fingerprint or --cacert; tries on",
            by(link)
        ),
        SenderEvent::Waits { why: why @ SendError::Interface(_), .. } => {
            format!("warning: {why}; waits for it")
        }
        SenderEvent::Waits { link, why } => format!("warning: {why}{}; tries on", by(link)),
        // One that this version does not know.
        _ => "something has happened to a connection".into(),
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
    if arguments.as_published && arguments.scheme == SchemeName::Auto {
        return Err(Failure::usage(
            "--as-published: 'auto' is ours; the published ones are --scheme tfrc, multfrc and aio-tfrc",
        ));
    }
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
        is_published: arguments.as_published,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']').to_owned();
    let token = token(&arguments.token)?;
    let group = arguments.group.clone().map(|name| GroupSettings {
        name,
        weight: arguments.weight.unwrap_or(Weight::ONE),
        directory: None,
    });
    Ok(SenderSettings { to, name, trusted, token, live, interfaces: arguments.interface.clone(), group })
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
    fitting_rate_bps: u64,
    loss_rate: f64,
    /// Of the last few thousand datagrams: the part that was lost, and how many one after the other.
    recent_loss_rate: f64,
    loss_burst_packets: f64,
    /// Parity as `--fec` has it, N,K.
    fec: Option<String>,
    rtt_s: Option<f64>,
    /// Other senders of its group.
    group_others: usize,
    connections: Vec<ConnectionJson>,
}

#[derive(Serialize)]
struct ConnectionJson {
    connection: u32,
    link: u32,
    rtt_s: f64,
    allowed_rate_bps: u64,
    share: f64,
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
            rtt_s: connection.rtt.as_secs_f64(),
            allowed_rate_bps: connection.allowed_rate.as_bps(),
            share: connection.share,
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
            fitting_rate_bps: self.fitting_rate.as_bps(),
            loss_rate: self.loss_rate(),
            recent_loss_rate: self.losses.rate,
            loss_burst_packets: self.losses.burst,
            fec: self.code.map(|code| code.to_string()),
            rtt_s: self.rtt().map(anabranch_units::Duration::as_secs_f64),
            group_others: self.shares_with,
            connections: connections.collect(),
        }
    }

    fn bytes(&self) -> u64 {
        self.taken.get() - self.dropped.1.get().min(self.taken.get())
    }

    fn words(&self) -> String {
        format!("{}, {}", counted(self.connections.len(), "connection"), self.last_words())
    }

    fn last_words(&self) -> String {
        if self.sent == 0 {
            return "nothing was sent".into();
        }
        format!(
            "{:.1} % lost, {} sent again, {} dropped",
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
            ("send_fitting_rate_bps", "What an encoder that follows should make", self.fitting_rate.as_f64()),
            ("send_loss_rate", "Part of the datagrams that were lost", self.loss_rate()),
            (
                "send_rtt_seconds",
                "Shortest round-trip time of the connections",
                self.rtt().map_or(0.0, anabranch_units::Duration::as_secs_f64),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_a_connection_is_documented() {
        let connection = ConnectionJson {
            connection: 0,
            link: 0,
            rtt_s: 0.1,
            allowed_rate_bps: 0,
            share: 1.0,
            loss_event_rate: 0.0,
            sent: 0,
            lost: 0,
            silent: false,
        };
        crate::documented::keys("### Of `send` and `receive`", &connection);
    }
}
