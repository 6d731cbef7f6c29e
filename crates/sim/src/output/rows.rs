//! `flows.csv`, `links.csv` and `events.jsonl`.

use std::fmt::{Display, Write as _};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anabranch_units::{Bytes, Duration, Rate, Time};
use serde::Serialize;

use super::decimal::Decimal;
use super::failure::{Failure, create};
use super::summary::{Summary, mean_queue, utilisation};
use crate::model::{Link, Model};
use crate::report::{Decision, FlowSample, LinkSample};

/// The columns of `flows.csv`.
const FLOW_COLUMNS: [&str; 14] = [
    "time_s",
    "flow",
    "goodput_bps",
    "delivered_bytes",
    "sent_packets",
    "lost_packets",
    "retransmitted_packets",
    "cwnd_bytes",
    "ssthresh_bytes",
    "receive_window_bytes",
    "srtt_s",
    "connections",
    "buffer_s",
    "flows",
];

/// The columns of `links.csv`.
const LINK_COLUMNS: [&str; 8] = [
    "time_s",
    "link",
    "utilisation",
    "transmitted_bytes",
    "packets",
    "dropped_packets",
    "lost_packets",
    "queue_mean_packets",
];

/// The files of a directory that are written while a simulation runs.
#[derive(Debug)]
pub(super) struct Rows {
    flows: Table,
    links: Table,
    events: BufWriter<File>,
    flow_names: Vec<String>,
    model_links: Vec<Link>,
    sampling: Duration,
}

/// A CSV file.
#[derive(Debug)]
struct Table {
    writer: csv::Writer<File>,
    field: String,
}

/// A line of `events.jsonl`.
#[derive(Serialize)]
struct Event<'a> {
    at_s: f64,
    flow: &'a str,
    event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    connection: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<u64>,
    why: &'a str,
}

impl Table {
    fn new(file: File, columns: &[&str]) -> csv::Result<Self> {
        let mut writer = csv::Writer::from_writer(file);
        writer.write_record(columns)?;
        Ok(Self { writer, field: String::new() })
    }

    fn field(&mut self, value: impl Display) -> csv::Result<()> {
        self.field.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.field, "{value}");
        self.writer.write_field(&self.field)
    }

    /// An empty field where there is nothing to be said.
    fn optional(&mut self, value: Option<impl Display>) -> csv::Result<()> {
        match value {
            Some(value) => self.field(value),
            None => self.writer.write_field(""),
        }
    }

    fn end(&mut self) -> csv::Result<()> {
        self.writer.write_record(None::<&[u8]>)
    }
}

impl Rows {
    /// Makes the directory where it is not there, and begins the files, also over those of an earlier run.
    pub(super) fn create(directory: &Path, model: &Model) -> Result<Self, Failure> {
        std::fs::create_dir_all(directory).map_err(|error| Failure::new(directory, error))?;
        let table = |name: &str, columns: &[&str]| {
            let path = directory.join(name);
            Table::new(create(&path)?, columns).map_err(|error| Failure::new(&path, error.into()))
        };
        Ok(Self {
            flows: table("flows.csv", &FLOW_COLUMNS)?,
            links: table("links.csv", &LINK_COLUMNS)?,
            events: BufWriter::new(create(&directory.join("events.jsonl"))?),
            flow_names: model.flows.iter().map(|flow| flow.name.clone()).collect(),
            model_links: model.links.clone(),
            sampling: model.run.sampling,
        })
    }

    pub(super) fn flow(&mut self, sample: &FlowSample) -> io::Result<()> {
        let limited = |bytes: Bytes| Some(bytes.get()).filter(|_| bytes < Bytes::MAX);
        let known = |span: Duration| Some(Decimal::seconds(span)).filter(|_| !span.is_zero());
        let row = &mut self.flows;
        row.field(seconds(sample.at))?;
        row.field(&self.flow_names[sample.flow])?;
        row.field(Rate::of(sample.delivered, self.sampling).as_bps())?;
        row.field(sample.delivered.get())?;
        row.field(sample.sent)?;
        row.field(sample.lost)?;
        row.field(sample.retransmitted)?;
        row.field(sample.cwnd.get())?;
        row.optional(limited(sample.ssthresh))?;
        row.optional(limited(sample.receive_window))?;
        row.optional(known(sample.srtt))?;
        row.field(sample.connections)?;
        row.optional(sample.buffer.map(Decimal::seconds))?;
        row.optional(Some(Decimal::rounded(sample.flows)).filter(|_| sample.flows > 0.0))?;
        Ok(row.end()?)
    }

    pub(super) fn link(&mut self, sample: &LinkSample) -> io::Result<()> {
        let link = &self.model_links[sample.link];
        let row = &mut self.links;
        row.field(seconds(sample.at))?;
        row.field(&link.name)?;
        row.optional(utilisation(link, sample.transmitted, sample.at - self.sampling, sample.at))?;
        row.field(sample.transmitted.get())?;
        row.field(sample.packets)?;
        row.field(sample.dropped)?;
        row.field(sample.lost)?;
        row.optional(mean_queue(sample.waited, self.sampling))?;
        Ok(row.end()?)
    }

    pub(super) fn decision(&mut self, decision: &Decision) -> io::Result<()> {
        let event = Event {
            at_s: seconds(decision.at).number(),
            flow: &self.flow_names[decision.flow],
            event: decision.what,
            connection: decision.connection,
            value: decision.value,
            why: &decision.why,
        };
        serde_json::to_writer(&mut self.events, &event)?;
        self.events.write_all(b"\n")
    }

    /// Writes what still waits to be written.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.flows.writer.flush()?;
        self.links.writer.flush()?;
        self.events.flush()
    }
}

/// Writes `summary.json`.
pub(super) fn write_summary(directory: &Path, summary: &Summary) -> Result<(), Failure> {
    let path = directory.join("summary.json");
    let mut file = BufWriter::new(create(&path)?);
    serde_json::to_writer_pretty(&mut file, summary)
        .map_err(io::Error::from)
        .and_then(|()| file.write_all(b"\n"))
        .and_then(|()| file.flush())
        .map_err(|error| Failure::new(&path, error))
}

fn seconds(at: Time) -> Decimal {
    Decimal::seconds(at.since(Time::ZERO))
}
