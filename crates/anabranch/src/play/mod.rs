//! `anabranch play`: a film for any player, over as many connections as its rate needs.

mod player;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::sync::oneshot;
use transport::engine::{Film, Storage};

use crate::arguments::PlayArguments;
use crate::endpoint::{Endpoint, FilmResource, file_name};
use crate::failure::Failure;
use crate::output::Output;
use crate::settings::{Purpose, settings};

use player::PlayerCommand;

/// Where the film is offered when nothing else is said.
const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Opens the film and offers it to players until the player of `--player` ends, or without one until the film was read
/// to its end: its last byte was handed over (an index behind the media does not count), and then no request came for
/// two seconds.
///
/// # Errors
/// The film cannot be had, the address cannot be listened at, the player fails, or a signal ends it.
pub async fn run(arguments: PlayArguments, output: &Output) -> Result<(), Failure> {
    let settings = settings(&arguments.urls, &arguments.source, Purpose::Play)?;
    let address = arguments.listen.unwrap_or(ANY_PORT);
    let endpoint = Endpoint::bind(address)
        .await
        .map_err(|error| Failure::failed(format_args!("cannot listen at {address}: {error}")))?;
    let film = tokio::select! {
        film = Film::open(settings, Storage::Memory) => film.map_err(Failure::failed)?,
        signal = output.stop().signal() => return Err(Failure::stopped(signal, "interrupted")),
    };
    let url = format!("http://{}/{}", endpoint.reachable(), file_name(film.info()));
    let resource = Arc::new(FilmResource::new(film.clone()));
    let player = arguments.player.as_deref().map(|template| PlayerCommand::new(template, &url)).transpose()?;
    output.say(format_args!("the film is at {url}"));

    let (stop, stopped) = oneshot::channel::<()>();
    let serving = endpoint.serve(resource.clone(), async {
        // Dropping the sender stops as well.
        let _ = stopped.await;
    });
    let mut serving = tokio::spawn(serving);
    let ended = match player {
        Some(command) => {
            let mut player = command.start(false)?;
            let ended = tokio::select! {
                ended = player.ended() => ended,
                signal = output.stop().signal() => Err(Failure::stopped(signal, "interrupted")),
            };
            player.stop().await;
            // A player that could not get the film says so in its own words; ours tell why.
            resource.delivery().failure().map_or(ended, |error| Err(Failure::failed(error)))
        }
        None => tokio::select! {
            finished = resource.delivery().finished() => finished.map_err(Failure::failed),
            signal = output.stop().signal() => Err(Failure::stopped(signal, "interrupted")),
        },
    };
    drop(stop);
    if ended.is_ok() && arguments.player.is_none() {
        // A player that pauses close to the end still gets the rest.
        tokio::select! {
            _ = &mut serving => {}
            _ = output.stop().signal() => {}
        }
    }
    serving.abort();
    ended
}
