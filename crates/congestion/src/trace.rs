//! A record of what a window controller was told and what it answered, as JSON lines.
//!
//! The same trace drives every implementation of an algorithm: the one here, and one in a kernel. The first
//! line says which algorithm it was and how the flow began; each later line is an event with the windows
//! after it:
//!
//! ```json
//! {"trace":"anabranch-window-1","algorithm":"ttfwc:0.9","segment":1000,"initial_window":10000,"initial_ssthresh":null}
//! {"event":"ack","now":100000000,"acked":1000,"flight":10000,"rtt":100000000,"srtt":100000000,"is_cwnd_limited":true,"cwnd":11000,"ssthresh":null}
//! {"event":"loss","now":200000000,"flight":20000,"cwnd":10000,"ssthresh":10000}
//! {"event":"timeout","now":300000000,"flight":10000,"is_repeated":false,"cwnd":1000,"ssthresh":8000}
//! {"event":"idle","now":400000000,"cwnd":1000,"ssthresh":8000}
//! ```
//!
//! Amounts and windows are bytes, times and durations nanoseconds; an `rtt` of null was not measured, an
//! `ssthresh` of null is as large as can be.
//!
//! A paced controller is none for a trace: it hears of every packet and answers a rate, and the format has
//! neither. [`Recorder::new`] refuses one, and [`Trace::read`] what claims to be of one.
//!
//! serde and `serde_json` read and write it: they have no I/O of their own, and a format that another program
//! reads should be one that every language has a reader for.

mod event;
mod lines;

use std::fmt;

use anabranch_units::{Bytes, Time};
use serde::Serialize;

use crate::algorithm::Algorithm;
use crate::control::{Ack, Controller, Loss, Start, Timeout};
pub use event::{Event, Step, Windows};
use lines::{EventLine, HeaderLine};

/// What the first line calls the format.
const FORMAT: &str = "anabranch-window-1";
/// Most events in a trace that is read.
pub const MOST_EVENTS: usize = 10_000_000;

/// A flow from its beginning.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The algorithm's name, as [`Algorithm`] writes it.
    pub algorithm: String,
    /// How the flow began.
    pub start: Start,
    /// What happened, in the order of time.
    pub steps: Vec<Step>,
}

/// Text that is no trace: the line, counted from one, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotATrace {
    /// Where.
    pub line: usize,
    /// What.
    pub problem: String,
}

impl fmt::Display for NotATrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl std::error::Error for NotATrace {}

impl Trace {
    /// Reads JSON lines.
    ///
    /// # Errors
    /// When a line is none of the format, there are more than [`MOST_EVENTS`], or the control is paced.
    pub fn read(text: &str) -> Result<Self, NotATrace> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let wrong = |line: usize, problem: String| NotATrace { line: line + 1, problem };
        let Some((number, first)) = lines.next() else {
            return Err(wrong(0, "the trace is empty".to_owned()));
        };
        let header: HeaderLine =
            serde_json::from_str(first).map_err(|error| wrong(number, error.to_string()))?;
        if header.trace != FORMAT {
            return Err(wrong(number, format!("the format is '{}', not '{FORMAT}'", header.trace)));
        }
        if header.algorithm.parse().is_ok_and(|algorithm: Algorithm| algorithm.is_paced()) {
            return Err(wrong(number, format!("'{}': {IsPaced}", header.algorithm)));
        }
        let mut steps = Vec::new();
        for (number, line) in lines {
            if steps.len() == MOST_EVENTS {
                return Err(wrong(number, format!("more than {MOST_EVENTS} events")));
            }
            let line: EventLine =
                serde_json::from_str(line).map_err(|error| wrong(number, error.to_string()))?;
            steps.push(line.into());
        }
        let start = Start {
            segment: Bytes::new(header.segment),
            initial_window: Bytes::new(header.initial_window),
            initial_ssthresh: header.initial_ssthresh.map(Bytes::new),
            seed: 0,
        };
        Ok(Self { algorithm: header.algorithm, start, steps })
    }

    /// Writes JSON lines.
    pub fn write(&self) -> String {
        let header = HeaderLine {
            trace: FORMAT.to_owned(),
            algorithm: self.algorithm.clone(),
            segment: self.start.segment.get(),
            initial_window: self.start.initial_window.get(),
            initial_ssthresh: self.start.initial_ssthresh.map(Bytes::get),
        };
        let mut text = json(&header);
        for step in &self.steps {
            text += &json(&EventLine::from(step));
        }
        text
    }

    /// Tells all of it to a controller that begins, and answers its windows after each event.
    pub fn replay<'a>(&'a self, controller: &'a mut dyn Controller) -> impl Iterator<Item = Windows> + 'a {
        self.steps.iter().map(move |step| {
            step.event.tell(controller);
            Windows::of(controller)
        })
    }
}

/// A line of JSON.
fn json(line: &impl Serialize) -> String {
    // Only maps with keys that are no strings fail, and there are none.
    let mut text = serde_json::to_string(line).unwrap_or_default();
    text.push('\n');
    text
}

/// The controller is paced: what it hears and answers is not in the format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsPaced;

impl fmt::Display for IsPaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a paced control has no trace: a trace is of windows, without rates and single packets")
    }
}

impl std::error::Error for IsPaced {}

/// A controller that writes down what it is told.
#[derive(Debug)]
pub struct Recorder<C> {
    controller: C,
    trace: Trace,
}

impl<C: Controller> Recorder<C> {
    /// Around a controller that begins.
    ///
    /// # Errors
    /// For a controller that is paced.
    pub fn new(algorithm: impl Into<String>, start: Start, controller: C) -> Result<Self, IsPaced> {
        if controller.pacing().is_some() {
            return Err(IsPaced);
        }
        Ok(Self { controller, trace: Trace { algorithm: algorithm.into(), start, steps: Vec::new() } })
    }

    /// What was written down.
    pub fn into_trace(self) -> Trace {
        self.trace
    }

    fn tell(&mut self, event: Event) {
        event.tell(&mut self.controller);
        self.trace.steps.push(Step { event, windows: Windows::of(&self.controller) });
    }
}

impl<C: Controller> Controller for Recorder<C> {
    fn on_ack(&mut self, ack: &Ack) {
        self.tell(Event::Ack(*ack));
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.tell(Event::Loss(*loss));
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        self.tell(Event::Timeout(*timeout));
    }

    fn on_idle(&mut self, now: Time) {
        self.tell(Event::Idle(now));
    }

    fn cwnd(&self) -> Bytes {
        self.controller.cwnd()
    }

    fn ssthresh(&self) -> Bytes {
        self.controller.ssthresh()
    }
}
