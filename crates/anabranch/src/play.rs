//! `anabranch play`: a film for any player, over as many connections as its rate needs.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use prometheus_client::registry::Registry;
use tokio::sync::oneshot;
use transport::engine::{Film, Settings, Status, Storage};
use units::Bytes;

use crate::arguments::{Place, PlayArguments};
use crate::endpoint::{Answer, Body, Endpoint, FilmResource, file_name, text_response};
use crate::failure::Failure;
use crate::metrics;
use crate::output::Output;
use crate::player::PlayerCommand;
use crate::report::Reporter;
use crate::settings::{Purpose, settings};

/// Where the film is offered when nothing else is said.
const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// How long a player may take for the rest of its last response: it may pause there.
const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);

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
    let reporter = Reporter::start("play", &arguments.urls, &arguments.report, output).await?;
    let ended = play(endpoint, settings, &arguments, &reporter, output).await;
    reporter.finish(ended).await
}

async fn play(
    endpoint: Endpoint,
    settings: Settings,
    arguments: &PlayArguments,
    reporter: &Reporter,
    output: &Output,
) -> Result<(), Failure> {
    let stop = output.stop();
    let film = tokio::select! {
        film = Film::open(settings, Storage::Memory) => film.map_err(Failure::failed)?,
        signal = stop.signal() => return Err(Failure::stopped(signal, "interrupted")),
    };
    let _watch = reporter.watch(&film);
    let url = format!("http://{}/{}", endpoint.reachable(), file_name(film.info()));
    let player =
        arguments.player.as_deref().map(|template| PlayerCommand::new(template, &url)).transpose()?;
    output.say(format_args!("the film is at {url}"));

    let answers = Arc::new(Answers { film: FilmResource::new(film.clone()), registry: reporter.registry() });
    let (done, is_done) = oneshot::channel::<()>();
    let is_done = async {
        // Dropping the sender says so as well.
        let _ = is_done.await;
    };
    let mut serving = tokio::spawn(endpoint.serve(answers.clone(), is_done, A_DAY));
    let delivery = answers.film.delivery();
    let ended = match player {
        Some(command) => {
            let mut player =
                command.start(arguments.report.stats == Some(Place::Standard), Stdio::inherit())?;
            let ended = tokio::select! {
                ended = player.ended() => ended,
                signal = stop.signal() => Err(Failure::stopped(signal, "interrupted")),
            };
            player.stop().await;
            // A player that could not get the film says so in its own words; ours tell why.
            delivery.failure().map_or(ended, |error| Err(Failure::failed(error)))
        }
        None => {
            let finished = async {
                delivery.finished().await.map_err(Failure::failed)?;
                drop(done);
                // What the player has not taken yet of its last response, it still gets.
                let _ = (&mut serving).await;
                Ok(())
            };
            tokio::select! {
                ended = finished => ended,
                signal = stop.signal() => Err(Failure::stopped(signal, "interrupted")),
            }
        }
    };
    serving.abort();
    output.say(in_words(&film.status()));
    ended
}

/// The film at every path but one.
struct Answers {
    film: FilmResource,
    registry: Arc<Registry>,
}

impl Answer for Answers {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if request.uri().path() == "/metrics" {
            text_response(metrics::MEDIA_TYPE, metrics::encode(&self.registry))
        } else {
            self.film.answer(&request)
        }
    }

    /// Every page may read the film: players in browsers do.
    fn admits(&self, _origin: &HeaderValue) -> bool {
        true
    }
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
        "{} in {} over {} connections at most, {:.1} on average{}",
        Bytes::new(status.session.totals.received),
        status.elapsed,
        status.session.totals.connections_most,
        status.session.connections_mean,
        play.unwrap_or_default(),
    )
}
