//! `anabranch receive`.

use std::process::Stdio;

use anabranch_contribution::{Receiver, ReceiverEvent, ReceiverSettings};
use anabranch_live::ReceiverStatus;
use serde::Serialize;
use tokio::task::JoinSet;

use super::hls::Directory;
use super::identity::identity;
use super::output::{Sink, directories, places};
use super::report::{Figures, Reporter};
use super::token::token;
use crate::arguments::{Endpoint, Place, ReceiveArguments};
use crate::failure::Failure;
use crate::output::{Output, counted, spare_the_terminal};
use crate::player::{Player, PlayerCommand};

/// Receives until the stream has ended, or with `--keep` until a signal comes.
///
/// # Errors
/// The address cannot be listened at, the output not be written, or a signal ends it.
pub(super) async fn run(arguments: ReceiveArguments, output: &Output) -> Result<(), Failure> {
    let identity = identity(&arguments, output)?;
    let fingerprint = identity.fingerprint();
    let token = token(&arguments.token)?;
    let lets_anybody_in = token.is_empty() && !arguments.listen.ip().is_loopback();
    let settings = ReceiverSettings {
        listen: arguments.listen,
        identity,
        token,
        latency: arguments.latency,
        keep: arguments.keep,
        senders: arguments.senders,
    };
    let (sinks, mut player) = sinks(&arguments, output).await?;
    let mut receiver = Receiver::start(settings).map_err(Failure::failed)?;
    let mut reporter = Reporter::start("receive", receiver.status.clone(), &arguments.report, output).await?;
    output.say(format_args!("listens at {}, fingerprint {fingerprint}", receiver.local_addr()));
    if lets_anybody_in {
        output.warn(
            "everybody who can reach this address can send here: give both ends a secret (--token-file, or \
             ANABRANCH_TOKEN), or listen at 127.0.0.1",
        );
    }
    let ended = receive(&mut receiver, sinks, player.as_mut(), &mut reporter, output).await;
    if let Some(player) = player {
        player.stop().await;
    }
    receiver.close().await;
    reporter.finish(ended).await
}

/// A place for the stream of each sender, and the player, which is started.
async fn sinks(
    arguments: &ReceiveArguments,
    output: &Output,
) -> Result<(Vec<Sink>, Option<Player>), Failure> {
    let (mut sinks, mut player) = (Vec::new(), None);
    if let Some(template) = &arguments.player {
        if arguments.senders > 1 {
            return Err(Failure::usage("--player plays one stream: it does not go with --senders"));
        }
        let command = PlayerCommand::new(template, "-")?;
        let mut started = command.start(arguments.report.stats == Some(Place::Standard), Stdio::piped())?;
        let input = started.take_input().ok_or_else(|| Failure::failed("the player takes no input"))?;
        sinks.push(Sink::Player(input));
        player = Some(started);
    } else if arguments.output.is_some() || arguments.hls.directory.is_none() {
        let to = arguments.output.as_ref().unwrap_or(&Endpoint::Standard);
        if *to == Endpoint::Standard {
            spare_the_terminal()?;
        }
        for place in places(to, arguments.senders)? {
            sinks.push(Sink::open(&place, output).await?);
        }
    }
    let Some(hls) = &arguments.hls.directory else { return Ok((sinks, player)) };
    let mut others = sinks.into_iter();
    let mut sinks = Vec::new();
    for path in directories(hls, arguments.senders)? {
        let directory = Sink::Hls(Box::new(Directory::open(&path, &arguments.hls, output).await?));
        sinks.push(match others.next() {
            Some(other) => Sink::Both(Box::new([other, directory])),
            None => directory,
        });
    }
    Ok((sinks, player))
}

async fn receive(
    receiver: &mut Receiver,
    sinks: Vec<Sink>,
    mut player: Option<&mut Player>,
    reporter: &mut Reporter<(ReceiverStatus, u64)>,
    output: &Output,
) -> Result<(), Failure> {
    let mut writing = JoinSet::new();
    for (sink, mut packets) in sinks.into_iter().zip(receiver.outputs.drain(..)) {
        writing.spawn(async move { sink.run(&mut packets).await });
    }
    let has_places = writing.len() > 1;
    let name = |place: usize| if has_places { format!(" ({})", place + 1) } else { String::new() };
    let mut is_told = true;
    loop {
        tokio::select! {
            written = writing.join_next() => match written {
                Some(Ok(Ok(()))) => {}
                Some(Ok(Err(failure))) => return Err(failure),
                Some(Err(_)) => return Err(Failure::failed("writing has ended by itself")),
                None => break,
            },
            ended = player_ended(&mut player) => return ended,
            event = receiver.events.recv(), if is_told => match event {
                Some(ReceiverEvent::Sender { from, latency, place }) => {
                    reporter.notice(&format!("{from} sends, handed on {latency} later{}", name(place)));
                }
                Some(ReceiverEvent::Lost(from, why)) => reporter.notice(&format!("{from} is gone: {why}")),
                Some(ReceiverEvent::Refused(from, why)) => {
                    reporter.notice(&format!("{from} was refused: {why}"));
                }
                Some(ReceiverEvent::Ended(place)) => {
                    reporter.notice(&format!("the stream has ended{}", name(place)));
                }
                Some(_) => {}
                // The driver has ended: the rest is written.
                None => is_told = false,
            },
            () = reporter.tick() => reporter.interval(),
            signal = output.stop().signal() => return Err(Failure::stopped(signal, "interrupted")),
        }
    }
    if player.is_none() {
        return Ok(());
    }
    // It plays what it has.
    tokio::select! {
        ended = player_ended(&mut player) => ended,
        signal = output.stop().signal() => Err(Failure::stopped(signal, "interrupted")),
    }
}

/// Never without a player.
async fn player_ended(player: &mut Option<&mut Player>) -> Result<(), Failure> {
    match player {
        Some(player) => player.ended().await,
        None => std::future::pending().await,
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
            "{} lost, {} recovered by parity, {} sent again, {} late",
            counted(counts.lost, "packet"),
            counts.recovered_by_fec,
            counts.recovered_by_retransmission,
            counts.late
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
