//! The run itself, in namespaces that are this process's own.

mod kept;
mod live;
mod order;
mod results;
mod stage;
mod viewer;
mod watch;

use std::fs;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use anabranch_units::Rate;
use rustix::mount::{MountFlags, mount};

pub use self::order::Order;
use self::order::SCRATCH;
use self::stage::Stage;
use crate::Error;
use crate::emulator::Emulator;
use crate::report::Summary;
use crate::scenario::Scenario;
use crate::topology::{self, Topology};
use crate::{observe, ping};

/// Exit code when the caller is gone.
const ABANDONED: i32 = 130;

/// Carries out an [`Order`] in JSON. Ends the process when the caller is gone.
///
/// # Errors
/// As [`crate::isolate::run`].
pub fn carry_out(order: &str) -> Result<(), Error> {
    let order: Order = serde_json::from_str(order).map_err(|error| Error::Scenario(error.to_string()))?;
    thread::spawn(|| {
        // Nothing is ever written to the pipe: its end is the caller's.
        let _ = io::stdin().read(&mut [0]);
        std::process::exit(ABANDONED);
    });
    // A panic on any thread, also of the emulator, would leave a run that measures nothing.
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        std::process::exit(1);
    }));
    mount("tmpfs", "/run", "tmpfs", MountFlags::empty(), None)
        .map_err(|error| Error::Io { what: "a tmpfs of the run's own".into(), source: error.into() })?;
    fs::create_dir_all(SCRATCH).map_err(Error::io(SCRATCH))?;
    let replacement = order.film.clone().zip(order.film_bps.map(Rate::from_bps));
    let scenario = Scenario::load(&order.scenario)?.with_film(replacement.as_ref())?;
    let topology = topology::build(&scenario)?;
    let emulator = Emulator::start(&scenario, &topology)?;
    let mut stage = Stage::new(&order, &scenario, &emulator)?;
    stage.start_servers()?;
    let summary = perform(&mut stage, &topology)?;
    summary.save(&order.out)?;
    println!("{}", summary.line());
    if order.keep {
        println!("kept: nsenter --all --target {} (from the host's process list), then", std::process::id());
        println!("      nsenter --net=/run/netns/client; interrupt to end");
        loop {
            thread::park();
        }
    }
    // The emulator's threads never end by themselves.
    std::process::exit(0);
}
fn perform(stage: &mut Stage<'_>, topology: &Topology) -> Result<Summary, Error> {
    let scenario = stage.scenario;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        if scenario.client(Some(&stage.order.client))?.sender.is_some() {
            let record = live::carry(stage, topology)?;
            return results::summarise(stage, &record, &[], &[]);
        }
        let looks = scope.spawn(|| observe::connections(&topology.client, scenario.paths.len(), &done));
        let echoes = scope.spawn(|| match &scenario.ping {
            Some(ping) => {
                let to = topology::server_address(ping.path);
                let pinging = || ping::ping(to, ping.interval.into(), &done).map_err(Error::io("ping"));
                topology::within(&topology.client, pinging)?
            }
            None => Ok(Vec::new()),
        });
        let record = watch::watch(stage);
        done.store(true, Relaxed);
        let panicked = |_| Error::Emulator("an observer panicked".into());
        let looks = looks.join().map_err(panicked)?;
        let echoes = echoes.join().map_err(panicked)?;
        results::summarise(stage, &record?, &looks?, &echoes?)
    })
}
