//! What is told about a live stream: `--stats`, the progress line, `/metrics`.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_units::Rate;
use indicatif::ProgressBar;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;
use serde::Serialize;
use tokio::sync::watch;

use crate::arguments::ReportArguments;
use crate::failure::Failure;
use crate::metrics::{Families, Listener};
use crate::output::Output;
use crate::report::{Sink, progress_style};

/// How often an interval is reported.
const INTERVAL: Duration = Duration::from_secs(1);

/// What a command tells each second: JSON, a line for a person, numbers.
pub(super) trait Figures: Clone + Send + Sync + 'static {
    /// What JSON has.
    fn json(&self) -> impl Serialize + Send;
    /// Bytes of the stream so far.
    fn bytes(&self) -> u64;
    /// Besides its rate.
    fn words(&self) -> String;
    /// The same at the end, when no connection is left.
    fn last_words(&self) -> String {
        self.words()
    }
    /// Counters: name, help, value.
    fn counters(&self) -> Vec<(&'static str, &'static str, u64)>;
    /// Values that go up and down.
    fn gauges(&self) -> Vec<(&'static str, &'static str, f64)>;
}

/// A line of `--stats`.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Line<'a, T> {
    Start {
        at_s: f64,
        version: &'static str,
        command: &'static str,
    },
    Interval {
        at_s: f64,
        rate_bps: u64,
        #[serde(flatten)]
        figures: T,
    },
    Notice {
        at_s: f64,
        notice: &'a str,
    },
    Summary {
        at_s: f64,
        seconds: f64,
        mean_rate_bps: u64,
        #[serde(flatten)]
        figures: T,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    },
}

struct Numbers<F>(watch::Receiver<F>);

impl<F> fmt::Debug for Numbers<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Numbers")
    }
}

impl<F: Figures> Collector for Numbers<F> {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let figures = self.0.borrow().clone();
        let mut families = Families(encoder);
        for (name, help, value) in figures.counters() {
            families.counter(name, help, [(Vec::new(), value)])?;
        }
        for (name, help, value) in figures.gauges() {
            families.gauge(name, help, [(Vec::new(), value)])?;
        }
        Ok(())
    }
}

/// Reports on one run.
pub(super) struct Reporter<F> {
    began: Instant,
    figures: watch::Receiver<F>,
    sink: Option<Sink>,
    bar: ProgressBar,
    output: Output,
    /// When the last interval ended, and bytes until then.
    last: (Instant, u64),
    _listener: Option<Listener>,
}

impl<F: Figures> Reporter<F> {
    /// # Errors
    /// The file of `--stats` cannot be written, or the address of `--metrics` not be listened at.
    pub(super) async fn start(
        command: &'static str,
        figures: watch::Receiver<F>,
        arguments: &ReportArguments,
        output: &Output,
    ) -> Result<Self, Failure> {
        let sink = arguments.stats.as_ref().map(|place| Sink::open(place, output)).transpose()?;
        let listener = match arguments.metrics {
            Some(address) => {
                let mut registry = Registry::with_prefix("anabranch");
                registry.register_collector(Box::new(Numbers(figures.clone())));
                Some(Listener::start(address, Arc::new(registry), output).await?)
            }
            None => None,
        };
        let bar = output.progress();
        bar.set_style(progress_style());
        let began = Instant::now();
        let reporter =
            Self { began, figures, sink, bar, output: output.clone(), last: (began, 0), _listener: listener };
        reporter.write(&Line::Start::<()> { at_s: 0.0, version: env!("CARGO_PKG_VERSION"), command });
        Ok(reporter)
    }

    /// Ready after every interval. Cancel-safe.
    pub(super) async fn tick(&self) {
        tokio::time::sleep_until((self.last.0 + INTERVAL).into()).await;
    }

    /// Tells of an interval.
    pub(super) fn interval(&mut self) {
        let figures = self.figures.borrow().clone();
        let (now, bytes) = (Instant::now(), figures.bytes());
        let rate = rate(bytes.saturating_sub(self.last.1), now - self.last.0);
        self.last = (now, bytes);
        self.bar.set_message(format!("{rate}, {}", figures.words()));
        let at_s = self.began.elapsed().as_secs_f64();
        self.write(&Line::Interval { at_s, rate_bps: rate.as_bps(), figures: figures.json() });
    }

    /// Something happened.
    pub(super) fn notice(&self, notice: &str) {
        self.output.say(notice);
        self.write(&Line::Notice::<()> { at_s: self.began.elapsed().as_secs_f64(), notice });
    }

    /// Ends the reports, and passes on how the run ended.
    ///
    /// # Errors
    /// Those of `result`.
    pub(super) async fn finish(self, result: Result<(), Failure>) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        let figures = self.figures.borrow().clone();
        let elapsed = self.began.elapsed();
        self.output.say(format_args!(
            "{} in {:.1} s, {}",
            anabranch_units::Bytes::new(figures.bytes()),
            elapsed.as_secs_f64(),
            figures.last_words()
        ));
        let error = result.as_ref().err().map(Failure::message);
        if let Some(sink) = &self.sink {
            let line = Line::Summary {
                at_s: elapsed.as_secs_f64(),
                seconds: elapsed.as_secs_f64(),
                mean_rate_bps: rate(figures.bytes(), elapsed).as_bps(),
                figures: figures.json(),
                error,
            };
            sink.finish(&line).await;
        }
        result
    }

    fn write<T: Serialize>(&self, line: &Line<'_, T>) {
        if let Some(sink) = &self.sink {
            sink.write(line);
        }
    }
}

fn rate(bytes: u64, span: Duration) -> Rate {
    Rate::of(anabranch_units::Bytes::new(bytes), span.into())
}

#[cfg(test)]
mod tests {
    use anabranch_live::{ReceiverStatus, SenderStatus};

    use super::*;
    use crate::documented;

    fn all_is_documented<F: Figures + Default>(part: &str) {
        let figures = F::default();
        let line = Line::Interval { at_s: 0.0, rate_bps: 0, figures: figures.json() };
        documented::keys(part, &line);
        let (at_s, seconds, mean_rate_bps, error) = (0.0, 0.0, 0, Some("gone"));
        documented::keys(
            part,
            &Line::Summary { at_s, seconds, mean_rate_bps, figures: figures.json(), error },
        );
        documented::metrics(Box::new(Numbers(watch::channel(F::default()).1)));
    }

    #[test]
    fn every_key_and_metric_is_documented() {
        const PART: &str = "### Of `send` and `receive`";
        documented::keys(PART, &Line::Start::<()> { at_s: 0.0, version: "1", command: "send" });
        documented::keys(PART, &Line::Notice::<()> { at_s: 0.0, notice: "connected" });
        all_is_documented::<SenderStatus>(PART);
        all_is_documented::<(ReceiverStatus, u64)>(PART);
    }
}
