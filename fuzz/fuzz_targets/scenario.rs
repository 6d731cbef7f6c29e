//! Any text as a scenario of the simulator, with any text as its traces: refused with its place, or a model
//! that can run.

#![no_main]

use std::io;

use libfuzzer_sys::fuzz_target;
use anabranch_sim::model::Kind;
use anabranch_sim::scenario::{Error, Files, parse};

/// The trace that every name stands for.
struct Trace<'a>(Option<&'a str>);

impl Files for Trace<'_> {
    fn read(&mut self, _name: &str) -> io::Result<String> {
        self.0.map(str::to_owned).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fuzz_target!(|text: &str| {
    // What comes after a NUL, which no TOML has, is the trace.
    let (text, trace) = text.split_once('\0').map_or((text, None), |(text, trace)| (text, Some(trace)));
    match parse("fuzzed", text, None, &mut Trace(trace)) {
        Ok(model) => {
            // Sizes are for machines; what a simulation of a thousand nodes takes is not of interest here.
            let small = model.nodes.len() <= 64 && model.links.len() <= 256 && model.flows.len() <= 64;
            let streams = model.flows.iter().any(|flow| matches!(flow.kind, Kind::Media(_)));
            if small && !streams {
                let simulation = anabranch_sim::Simulation::new(model);
                assert!(simulation.is_ok(), "read, but cannot run: {}", simulation.expect_err("an error"));
            }
        }
        Err(Error::Wrong(mistakes)) => {
            assert!(!mistakes.told.is_empty());
            for wrong in &mistakes.told {
                assert!(wrong.line >= 1 && wrong.line <= text.matches('\n').count() + 1);
                assert!(wrong.column <= text.len() + 1);
            }
            let _ = mistakes.to_string();
        }
        Err(error) => panic!("no file was to be read: {error}"),
    }
});
