//! `anabranch demo`: what several connections are good for, shown on this machine with nothing to prepare.
//!
//! Three servers of this program have a small film, each on a path that is too slow for it and fast enough
//! together with any other. The film is played twice in real time: over one connection to one server, and
//! with `auto` over all three, one of which is killed half-way. The player is a model of one that reads from
//! the same local endpoint as any other and checks every byte.

mod replica;
mod viewer;

use std::io::{self, Write};

use anabranch_client::{RateControl, Settings};
use anabranch_film::session::Pace;
use anabranch_film::{auto, multitcp};
use anabranch_units::{Bytes, Duration, Rate, Ratio};
use indicatif::ProgressStyle;
use url::Url;

use crate::arguments::DemoArguments;
use crate::failure::Failure;
use crate::output::Output;

use replica::{NAME, Replica};
use viewer::{Original, Viewing, watch};

/// ffmpeg's test picture and a tone, H.264 and AAC at a constant rate; how it is made is in
/// `assets/README.md`.
const FILM: Original =
    Original { bytes: include_bytes!("../../assets/demo.mp4"), duration: Duration::from_secs(14) };
/// What a server gives, as a part of the film's rate: one is too slow, two are enough.
const SHARE: Ratio = Ratio::new(6, 10);
/// How many there are.
const REPLICAS: usize = 3;

/// Runs the demonstration.
///
/// # Errors
/// A byte was wrong, the second play stalled, or something that this machine should have is not there.
pub async fn run(_arguments: DemoArguments, output: &Output) -> Result<(), Failure> {
    tokio::select! {
        result = show(output) => result,
        signal = output.stop().signal() => Err(Failure::stopped(signal, "")),
    }
}

async fn show(output: &Output) -> Result<(), Failure> {
    let directory = tempfile::tempdir().map_err(Failure::failed)?;
    std::fs::write(directory.path().join(NAME), FILM.bytes).map_err(Failure::failed)?;
    let rate = FILM.rate() * SHARE;
    let start = || Replica::start(directory.path(), rate);
    let replicas = std::iter::repeat_with(start).take(REPLICAS).collect::<Result<Vec<_>, _>>()?;
    tell(format_args!(
        "A film of {} that needs {} is on {REPLICAS} servers of {rate} each: one is too slow for it, two \
         are enough.\n",
        FILM.duration,
        FILM.rate()
    ))?;
    let progress = output.progress();
    if let Ok(style) = ProgressStyle::with_template("  {spinner} {msg}") {
        progress.set_style(style);
    }

    tell("1. Over one connection to one server, as players do it ...")?;
    let single = multitcp::Parameters { connections: 1, ..multitcp::Parameters::TABLE_8_1 };
    let settings = settings(&replicas[..1], RateControl::Basic(single));
    let alone = watch(settings, &FILM, &progress, || ()).await?;
    tell(format_args!("   {}\n", in_words(&alone)))?;

    tell("2. With anabranch over all servers; half-way the first one is killed ...")?;
    let settings = settings_for_auto(&replicas);
    let together = watch(settings, &FILM, &progress, || replicas[0].kill()).await?;
    progress.finish_and_clear();
    tell(format_args!("   {}\n", in_words(&together)))?;

    tell(table(&alone, &together))?;
    if !alone.intact || !together.intact {
        return Err(Failure::failed("bytes were wrong or missing"));
    }
    if together.playback.stalls > 0 {
        return Err(Failure::failed(
            "the play over all servers stalled; was this machine busy with something else?",
        ));
    }
    if alone.playback.stalls == 0 {
        tell("Every byte was right, but one connection was enough this time: the comparison shows nothing.")
    } else {
        tell("Every byte was right, and over several connections the film did not stall.")
    }
}

fn settings(replicas: &[Replica], algorithm: RateControl) -> Settings {
    let urls: Vec<Url> = replicas.iter().map(|replica| replica.url().clone()).collect();
    // Without striping: these servers stand for any server there is.
    Settings { algorithm, pace: Pace::Media(None), stripe: false, ..Settings::new(urls) }
}

fn settings_for_auto(replicas: &[Replica]) -> Settings {
    settings(replicas, RateControl::Auto(auto::Parameters::default()))
}

fn startup(viewing: &Viewing) -> String {
    viewing.playback.startup.map_or_else(|| "never".to_owned(), |startup| startup.to_string())
}

fn in_words(viewing: &Viewing) -> String {
    let stalls = match viewing.playback.stalls {
        0 => "it never stalled".to_owned(),
        1 => format!("it stalled once, for {}", viewing.playback.stalled),
        count => format!("it stalled {count} times, {} in all", viewing.playback.stalled),
    };
    format!("it began to play after {}, and {stalls}", startup(viewing))
}

fn table(alone: &Viewing, together: &Viewing) -> String {
    let mut table = String::new();
    let mut row = |name: &str, of: &dyn Fn(&Viewing) -> String| {
        table += &format!("   {name:<34}{:>14}{:>14}\n", of(alone), of(together));
    };
    row("", &|viewing| if std::ptr::eq(viewing, alone) { "one" } else { "auto" }.to_owned());
    row("start-up", &startup);
    row("stalls", &|viewing| viewing.playback.stalls.to_string());
    row("time stalled", &|viewing| format!("{:.1} s", viewing.playback.stalled.as_secs_f64()));
    row("mean rate", &|viewing| Rate::of(FILM.size(), viewing.took).to_string());
    row("connections, most", &|viewing| viewing.status.session.totals.connections_most.to_string());
    row("connections, on average", &|viewing| format!("{:.1}", viewing.status.session.connections_mean));
    for index in 0..REPLICAS {
        let killed = if index == 0 { " (killed in auto)" } else { "" };
        row(&format!("from server {}{killed}", index + 1), &|viewing| {
            viewing
                .status
                .replicas
                .get(index)
                .map_or_else(|| "-".into(), |replica| Bytes::new(replica.bytes).to_string())
        });
    }
    row("every byte right", &|viewing| if viewing.intact { "yes" } else { "NO" }.to_owned());
    table
}

fn tell(text: impl std::fmt::Display) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|error| Failure::output(&error))
}
