//! What scenarios become, and what is said about wrong ones.

mod flows;
mod links;
mod refused;
mod topologies;

use std::collections::BTreeMap;
use std::fs;
use std::io;

use anabranch_congestion::aggregate::Scheme;
use anabranch_congestion::multfrc;
use anabranch_congestion::tfrc::{Filter, Parameters};
use anabranch_units::{Bytes, Duration, Rate, Ratio, Time};
use proptest::prelude::*;

use super::*;
use crate::model::{
    Act, Change, CoDel, Congestion, Discipline, DualPi2, Ecn, FqCoDel, Jitter, Kind, Limit, LossModel,
    Pattern, Pie, RateControl, Source, Spread, Tcp, TokenBucket, When,
};

/// The files that a test has.
struct Memory(BTreeMap<&'static str, &'static str>);

impl Files for Memory {
    fn read(&mut self, name: &str) -> io::Result<String> {
        self.0.get(name).map(|text| (*text).into()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn parsed(text: &str) -> Result<Model, Error> {
    parse_seeded(text, None)
}

fn parse_seeded(text: &str, seed: Option<u64>) -> Result<Model, Error> {
    let files =
        [("down.trace", "5\n10\n"), ("rates.csv", "0,6M\n2,0\n3,800k\n"), ("empty", ""), ("back", "2\n1\n")];
    parse("test.toml", text, seed, &mut Memory(files.into()))
}

/// The model of a text, which the engine takes as well.
fn model(text: &str) -> Model {
    let model = parsed(text).unwrap_or_else(|error| panic!("{error}"));
    crate::check::check(&model).unwrap_or_else(|error| panic!("{:?}: {error}", error.place));
    model
}

fn error(text: &str) -> String {
    match parsed(text) {
        Ok(_) => panic!("this was read:\n{text}"),
        Err(error) => error.to_string(),
    }
}

const RANDOM: &str = r#"
[run]
duration = "1s"
[topology]
kind = "random"
access_rates = ["400kbps", "1Mbps"]
[[flow]]
name = "client"
kind = "media"
count = 50
client = "access{random}"
servers = ["access{random}", "access{random}"]
rate = "400kbps"
size = ["10MB", "100MB"]
algorithm = { kind = "rome", connections = 2 }
"#;

const PATH: &str = r#"
[run]
duration = "10s"

[[node]]
name = "a"
[[node]]
name = "b"

[[link]]
from = "a"
to = "b"
rate = "6Mbps"
delay = "20ms"

[[flow]]
name = "file"
kind = "tcp"
from = "a"
to = "b"
"#;

/// The path with other text in the place of some of it.
fn path(from: &str, to: &str) -> String {
    assert!(PATH.contains(from), "{from}");
    PATH.replacen(from, to, 1)
}
