//! What is told about films while they are got: `--stats`, the progress line, `--verbose`, `/metrics`.

mod films;
mod line;
mod rung;
mod sink;
mod summary;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch_client::{Event, Film, FilmInfo, Notice};
use anabranch_http::shown;
use prometheus_client::registry::Registry;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::arguments::{FilmUrl, ReportArguments};
use crate::failure::Failure;
use crate::metrics;
use crate::output::Output;

use films::{Films, FilmsCollector};
use line::Line;
pub use line::style as progress_style;
pub use rung::RungTold;
pub use sink::Sink;

/// How often an interval is reported.
const INTERVAL: Duration = Duration::from_secs(1);
/// Of so many servers it is told that they know no ranges.
const MOST_SERVERS_TOLD: usize = 100;
/// How long the end of a run waits for the last notices of films that are being closed.
const LAST_NOTICES: Duration = Duration::from_millis(500);

/// Reports on the films of one run of a command. Every run ends with [`Self::finish`], a failed one as well.
#[derive(Debug)]
pub struct Reporter {
    shared: Arc<Shared>,
    registry: Arc<Registry>,
    intervals: JoinHandle<()>,
    stop: watch::Sender<bool>,
    _listener: Option<metrics::Listener>,
}

#[derive(Debug)]
struct Shared {
    films: Arc<Mutex<Films>>,
    /// One for every film, which ends with it.
    listeners: Mutex<JoinSet<()>>,
    /// Servers of which it was told that they know no ranges.
    without_ranges: Mutex<BTreeSet<String>>,
    sink: Option<Sink>,
    output: Output,
}

impl Shared {
    fn films(&self) -> MutexGuard<'_, Films> {
        self.films.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listeners(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody was told yet that the film's server knows no ranges.
    fn is_news(&self, info: &FilmInfo) -> bool {
        let mut told = self.without_ranges.lock().unwrap_or_else(PoisonError::into_inner);
        told.len() < MOST_SERVERS_TOLD && told.insert(info.location.origin().ascii_serialization())
    }

    fn write(&self, line: &Line<'_>) {
        if let Some(sink) = &self.sink {
            sink.write(line);
        }
    }
}

/// A film is in the reports as long as this lives; its sums stay.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    film: u32,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.films().remove(self.film);
    }
}

impl Reporter {
    /// Begins to report, within a tokio runtime.
    ///
    /// # Errors
    /// The file of `--stats` cannot be written, or the address of `--metrics` not be listened at.
    pub async fn start(
        command: &'static str,
        urls: &[FilmUrl],
        arguments: &ReportArguments,
        output: &Output,
    ) -> Result<Self, Failure> {
        let sink = arguments.stats.as_ref().map(|place| Sink::open(place, output)).transpose()?;
        let shared = Arc::new(Shared {
            films: Arc::new(Mutex::new(Films::new())),
            listeners: Mutex::default(),
            without_ranges: Mutex::default(),
            sink,
            output: output.clone(),
        });
        let mut registry = Registry::with_prefix("anabranch");
        registry.register_collector(Box::new(FilmsCollector(shared.films.clone())));
        let registry = Arc::new(registry);
        let listener = match arguments.metrics {
            Some(address) => Some(metrics::Listener::start(address, registry.clone(), output).await?),
            None => None,
        };
        let urls = urls.iter().map(|url| shown(&url.0)).collect();
        shared.write(&Line::Start { at_s: 0.0, version: env!("CARGO_PKG_VERSION"), command, urls });
        let (stop, stopped) = watch::channel(false);
        let intervals = tokio::spawn(report_intervals(shared.clone(), stopped));
        Ok(Self { shared, registry, intervals, stop, _listener: listener })
    }

    /// The metrics, to be offered at other places as well (see [`metrics::encode`]).
    pub fn registry(&self) -> Arc<Registry> {
        self.registry.clone()
    }

    /// A rung was chosen for a player that does not adapt.
    pub fn rung(&self, rung: &RungTold) {
        let at_s = self.shared.films().elapsed_s();
        self.shared.output.say(rung.in_words());
        self.shared.write(&Line::rung(at_s, rung));
    }

    /// Reports on this film from now on.
    pub fn watch(&self, film: &Film) -> Watch {
        // First, so that nothing is missed between.
        let mut receiver = film.notices();
        let (number, offset_s) = self.shared.films().add(film);
        let info = film.info();
        self.shared.write(&Line::film(self.shared.films().elapsed_s(), number, info));
        for (url, error) in &info.lost {
            self.shared.output.warn(format_args!("{url} is not used: {error}"));
        }
        for url in &info.differing {
            self.shared
                .output
                .warn(format_args!("{url} has another validator, but samples of its content agree"));
        }
        // Of nothing there are no ranges.
        if !info.accepts_ranges && info.size != Some(0) && self.shared.is_news(info) {
            self.shared.output.warn(format_args!(
                "{} knows no ranges: one connection has to bring everything in order",
                info.replicas[0]
            ));
        }
        let shared = self.shared.clone();
        let listen = async move {
            loop {
                match receiver.recv().await {
                    Ok(notice) => tell(&shared, number, offset_s, notice),
                    Err(RecvError::Lagged(missed)) => {
                        let at_s = shared.films().elapsed_s();
                        shared.write(&Line::Missed { at_s, film: number, notices: missed });
                    }
                    Err(RecvError::Closed) => break,
                }
            }
        };
        let mut listeners = self.shared.listeners();
        while listeners.try_join_next().is_some() {}
        listeners.spawn(listen);
        Watch { shared: self.shared.clone(), film: number }
    }

    /// Ends the reports with the summary, and passes on how the run ended. What is watched has to be dropped
    /// before.
    ///
    /// # Errors
    /// Those of `result`.
    pub async fn finish(self, result: Result<(), Failure>) -> Result<(), Failure> {
        self.stop.send_replace(true);
        let _ = self.intervals.await;
        let mut listeners = std::mem::take(&mut *self.shared.listeners());
        let _ = tokio::time::timeout(LAST_NOTICES, async { while listeners.join_next().await.is_some() {} })
            .await;
        let summary = self.shared.films().summary();
        let error = result.as_ref().err().map(Failure::message);
        let at_s = summary.seconds;
        if let Some(sink) = &self.shared.sink {
            sink.finish(&Line::Summary { at_s, summary, error }).await;
        }
        result
    }
}

/// Passes a notice on, at the time of the run instead of the film's.
fn tell(shared: &Shared, film: u32, offset_s: f64, notice: Notice) {
    let at_s = notice.at_s + offset_s;
    if shared.output.is_verbose() {
        shared.output.detail(line::human(at_s, &notice.event));
    } else {
        match &notice.event {
            Event::Waiting { error } => {
                shared.output.say(format_args!("no server can be reached now: {error}; waits"));
            }
            Event::ReplicaLost { url, error } => {
                shared.output.warn(format_args!("{url} is not used any more: {error}"));
            }
            _ => {}
        }
    }
    shared.write(&Line::Notice { film, notice: Notice { at_s, event: notice.event } });
}

/// A line and a look at the progress every second, and a last time at the end.
async fn report_intervals(shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    let bar = shared.output.progress();
    if bar.is_hidden() && shared.sink.is_none() {
        // Nobody looks.
        return;
    }
    bar.set_style(line::style());
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + INTERVAL, INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let is_last = tokio::select! {
            _ = ticks.tick() => false,
            _ = stopped.wait_for(|stopped| *stopped) => true,
        };
        if is_last {
            break;
        }
        let interval = shared.films().interval();
        bar.set_message(line::progress(&interval));
        shared.write(&Line::Interval(interval));
    }
    bar.finish_and_clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_of_films_is_documented() {
        crate::documented::metrics(Box::new(FilmsCollector(Arc::new(Mutex::new(Films::new())))));
    }
}
