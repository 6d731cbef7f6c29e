//! Any text as a scenario of the simulator, with any text as its traces: refused with its place, or a model
//! that can run; what is small and slow runs for a moment.

#![no_main]

use std::io;

use anabranch_sim::Simulation;
use anabranch_sim::model::{Flow, Kind, Model, Pattern, Source};
use anabranch_sim::scenario::{Error, Files, parse};
use anabranch_units::{Bytes, Duration, Rate, Time};
use libfuzzer_sys::fuzz_target;

/// The trace that every name stands for.
struct Trace<'a>(Option<&'a str>);

impl Files for Trace<'_> {
    fn read(&mut self, _name: &str) -> io::Result<String> {
        self.0.map(str::to_owned).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// A moment of a network of this rate is simulated in no time.
const SLOW: Rate = Rate::from_mbps(50);

/// Whether a simulated moment of it takes no more than a moment.
fn is_slow(model: &Model) -> bool {
    let links = model.links.iter().all(|link| {
        let rates = link.changes.iter().filter_map(|change| change.rate).chain([link.rate]);
        rates.max().is_some_and(|rate| rate <= SLOW) && link.opportunities.is_none()
    });
    let flow = |flow: &Flow| match &flow.kind {
        Kind::Tcp { tcp, source, .. } => {
            let is_slow = !matches!(source, Source::Constant(rate) if *rate > SLOW);
            is_slow && tcp.segment >= Bytes::new(500) && tcp.initial_window.get() <= 100
        }
        Kind::Udp { size, pattern, .. } => {
            let (Pattern::Constant { rate, .. }
            | Pattern::OnOff { rate, .. }
            | Pattern::Exponential { rate, .. }) = pattern;
            *rate <= SLOW && *size >= Bytes::new(100)
        }
        Kind::Tfrc { size, .. } => *size >= Bytes::new(100),
        Kind::Media(media) => {
            media.tcp.segment >= Bytes::new(500)
                && media.tcp.initial_window.get() <= 100
                && media.servers.len() * media.connections_per_server <= 64
        }
        Kind::Live(live) => live.rate <= SLOW,
    };
    links && model.flows.len() <= 8 && model.flows.iter().all(flow) && !model.run.sampling.is_zero()
}

fuzz_target!(|text: &str| {
    // What comes after a NUL, which no TOML has, is the trace.
    let (text, trace) = text.split_once('\0').map_or((text, None), |(text, trace)| (text, Some(trace)));
    match parse("fuzzed", text, None, &mut Trace(trace)) {
        Ok(model) => {
            // Sizes are for machines; what a simulation of a thousand nodes takes is not of interest here.
            let small = model.nodes.len() <= 64 && model.links.len() <= 256 && model.flows.len() <= 64;
            let is_slow = is_slow(&model);
            let streams = model.flows.iter().any(|flow| matches!(flow.kind, Kind::Media(_)));
            if small && (is_slow || !streams) {
                let mut simulation =
                    Simulation::new(model).unwrap_or_else(|error| panic!("read, but cannot run: {error}"));
                if is_slow {
                    let end = simulation.end().min(Time::ZERO + Duration::from_millis(300));
                    simulation.run_until(end, &mut ());
                    let links = simulation.totals().links;
                    assert!(links.iter().all(|link| link.packets + link.dropped <= link.offered));
                }
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
