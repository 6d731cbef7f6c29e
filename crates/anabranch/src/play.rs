//! `anabranch play`: a film for any player, over as many connections as its rate needs.

mod offer;

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anabranch_client::{Settings, Status, Storage};
use anabranch_units::Bytes;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::arguments::{Place, PlayArguments};
use crate::endpoint::{Endpoint, Guard};
use crate::failure::Failure;
use crate::opening::open;
use crate::output::{Output, counted};
use crate::player::PlayerCommand;
use crate::report::Reporter;
use crate::settings::{Purpose, settings};

use offer::Offer;

/// Where the film is offered when nothing else is said.
const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// How long a player may take for the rest of its last response: it may pause there.
const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Opens the film and offers it to players until the player of `--player` ends, or without one until the film
/// was read to its end: its last byte was handed over (an index behind the media does not count), and then no
/// request came for two seconds. Of a playlist nobody knows the end: it is offered until a signal comes.
///
/// # Errors
/// The film cannot be had, the address cannot be listened at, the player fails, or a signal ends it.
pub async fn run(arguments: PlayArguments, output: &Output) -> Result<(), Failure> {
    let settings = settings(&arguments.urls, &arguments.source, Purpose::Play)?;
    let address = arguments.listen.unwrap_or(ANY_PORT);
    let endpoint = Endpoint::bind(address).map_err(Failure::failed)?;
    let reporter = Arc::new(Reporter::start("play", &arguments.urls, &arguments.report, output).await?);
    let ended = play(endpoint, settings, &arguments, &reporter, output).await;
    // Everything that held it is gone with the endpoint.
    match Arc::into_inner(reporter) {
        Some(reporter) => reporter.finish(ended).await,
        None => ended,
    }
}

async fn play(
    endpoint: Endpoint,
    settings: Settings,
    arguments: &PlayArguments,
    reporter: &Arc<Reporter>,
    output: &Output,
) -> Result<(), Failure> {
    let stop = output.stop();
    let film = tokio::select! {
        film = open(settings.clone(), |_| Ok(Storage::Memory), output) => film.map_err(Failure::failed)?,
        signal = stop.signal() => return Err(Failure::stopped(signal, "interrupted")),
    };
    let offer =
        Offer::new(film, settings, endpoint.address(), arguments.rung, reporter).map_err(Failure::usage)?;
    let url = format!("http://{}/{}", endpoint.reachable(), offer.name());
    let player =
        arguments.player.as_deref().map(|template| PlayerCommand::new(template, &url)).transpose()?;
    let what = if offer.film().is_some() { "film" } else { "playlist" };
    output.say(format_args!("the {what} is at {url}"));
    if offer.film().is_none() && arguments.urls.len() > 1 {
        output.warn("a playlist is played from one server: the other URLs are not used");
    }
    if !endpoint.address().ip().is_loopback() {
        output.warn(format_args!("everybody who can reach this address can play the {what}"));
    }
    // What it warns of comes after what there is.
    let _watch = offer.film().map(|film| reporter.watch(film.film()));

    let guard = Guard::new(endpoint.address(), &arguments.access);
    let offer = Arc::new(offer);
    // Dropping the senders says so.
    let (done, is_done) = oneshot::channel::<()>();
    let (cut, is_cut) = oneshot::channel::<()>();
    let is_done = async { drop(is_done.await) };
    let is_cut = async { drop(is_cut.await) };
    let mut serving = tokio::spawn(endpoint.serve(guard, offer.clone(), is_done, is_cut));
    let playing = async {
        let Some(command) = player else {
            let Some(film) = offer.film() else { return std::future::pending().await };
            film.delivery().finished().await.map_err(Failure::failed)?;
            drop(done);
            // What the player has not taken yet of its last response, it still gets.
            let _ = timeout(A_DAY, &mut serving).await;
            return Ok(());
        };
        let mut player = command.start(arguments.report.stats == Some(Place::Standard), Stdio::inherit())?;
        let ended = tokio::select! {
            ended = player.ended() => ended,
            signal = stop.signal() => Err(Failure::stopped(signal, "interrupted")),
        };
        player.stop().await;
        // A player that could not get the film says so in its own words; ours tell why.
        let failure = offer.film().and_then(|film| film.delivery().failure());
        failure.map_or(ended, |error| Err(Failure::failed(error)))
    };
    let is_player_started = arguments.player.is_some();
    let ended = tokio::select! {
        ended = playing => ended,
        () = offer.keep() => Ok(()),
        // A player is asked to end first.
        signal = stop.signal(), if !is_player_started => Err(Failure::stopped(signal, "interrupted")),
    };
    drop(cut);
    if !serving.is_finished() {
        let _ = serving.await;
    }
    offer.end().await;
    if let Some(film) = offer.film() {
        output.say(in_words(&film.film().status()));
    }
    ended
}

/// How it went, on one line.
fn in_words(status: &Status) -> String {
    let playback = &status.session.playback;
    let stalls = match playback.stalls {
        0 => "no stall".to_owned(),
        1 => format!("1 stall of {}", playback.stalled),
        count => format!("{count} stalls, {} in all", playback.stalled),
    };
    // Without a rate nobody knows when a player starts and stops.
    let play = playback.startup.map(|after| format!("; play began after {after}, {stalls}"));
    format!(
        "{} in {} over {} at most, {:.1} on average{}",
        Bytes::new(status.session.totals.received),
        status.elapsed,
        counted(status.session.totals.connections_most, "connection"),
        status.session.connections_mean,
        play.unwrap_or_default(),
    )
}
