//! The paths: for each, a chain of `rattan-core` cells in either direction.
//!
//! Towards the client: meter, policer, queue with its discipline, bandwidth, delay, loss, wire, meter. With a
//! shaper the queue is the shaper's. Towards the server the same without meters. There are no cells for what
//! a link does not have. Before a server with a bound on its connections is a door.
//!
//! The client's own traffic and the cross traffic of a path go through the same chain; what is for cross
//! traffic's receivers that are farther away takes a delay of its own at its end.

mod bucket;
mod builder;
pub(crate) mod cell;
mod door;
mod fq_codel;
mod pie;
mod queue;
mod reset;
mod segment;
mod since;
mod wire;

use std::sync::Arc;
use std::time::Duration as StdDuration;

use ipnet::{IpNet, Ipv4Net};
use rattan_core::cells::bandwidth::BwCellConfig;
use rattan_core::cells::delay::DelayCellConfig;
use rattan_core::cells::loss::LossCellConfig;
use rattan_core::cells::router::{RouterCell, RoutingEntry, SimpleRoutingTable};
use rattan_core::cells::{ControlInterface, StdPacket};
use rattan_core::core::RattanCore;
use rattan_env::veth::VethCell;
use tokio::runtime;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::meter::{Count, Meter};
use crate::scenario::{Change, Path, Scenario, Way};
use crate::topology::{self, Topology};
use builder::{Builder, Cells, bandwidth};
use door::ServerPlaces;

/// The niceness of the emulator's threads: its packets must be on time even when the programs keep all cores
/// busy.
const NICENESS: i32 = -15;

/// All paths of a run. It stops with the process.
pub struct Emulator {
    cells: Builder,
    paths: Vec<Controls>,
}

/// The handles of one path's cells.
struct Controls {
    to_client: Cells,
    to_server: Cells,
    sent: Arc<Meter>,
    arrived: Arc<Meter>,
}

impl Emulator {
    /// Builds the chains and starts them. To be called in the namespace of the emulator's ends.
    ///
    /// # Errors
    /// When the emulator cannot open its packet sockets.
    pub fn start(scenario: &Scenario, topology: &Topology) -> Result<Self, Error> {
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .on_thread_start(|| {
                // Linux takes this for the calling thread alone. Without the right to it the threads are as
                // nice as others.
                let _ = rustix::process::setpriority_process(None, NICENESS);
            })
            .build()
            .map_err(Error::io("the emulator's threads"))?;
        let runtime = Arc::new(runtime);
        let core = RattanCore::new(Arc::clone(&runtime), CancellationToken::new(), CancellationToken::new());
        let mut emulator = Self { cells: Builder::new(core, runtime), paths: Vec::new() };
        let bounds = scenario.servers.iter().map(|server| server.allows.connections);
        let doors: Vec<_> = bounds.map(|bound| bound.and_then(ServerPlaces::new)).collect();
        for (index, (path, (to_client, to_server))) in scenario.paths.iter().zip(&topology.pairs).enumerate()
        {
            // Each direction draws its own losses.
            let seed = |number: usize| scenario.seed.wrapping_add(number as u64);
            let seeds = (seed(index), seed(scenario.paths.len() + index));
            let door = doors[path.server].as_ref();
            emulator.build_path(index, path, &to_client.right, &to_server.right, seeds, door)?;
            emulator.join_client(index, scenario)?;
        }
        emulator.cells.core.spawn_rattan().map_err(Error::emulator)?;
        emulator.cells.core.start_rattan().map_err(Error::emulator)?;
        Ok(emulator)
    }

    fn build_path(
        &mut self,
        index: usize,
        path: &Path,
        client: &Arc<VethCell>,
        server: &Arc<VethCell>,
        seeds: (u64, u64),
        door: Option<&door::Shared>,
    ) -> Result<(), Error> {
        let (client_end, server_end) = (format!("end1x{index}"), format!("end2x{index}"));
        self.cells.end(index, 1, client)?;
        self.cells.end(index, 2, server)?;
        let (sent_name, arrived_name) = (format!("sent{index}"), format!("arrived{index}"));
        let sent = self.cells.meter(&sent_name)?;
        let to_client = self.cells.direction(&format!("down{index}"), &path.to_client, seeds.0)?;
        let arrived = self.cells.meter(&arrived_name)?;
        let to_server = self.cells.direction(&format!("up{index}"), &path.to_server, seeds.1)?;
        let (coming, going) = self.cells.door(index, door, &sent_name)?;
        self.cells.chain(
            [&server_end]
                .into_iter()
                .chain(&going)
                .chain([&sent_name])
                .chain(&to_client.names)
                .chain([&arrived_name]),
        );
        self.cells
            .chain([&client_end].into_iter().chain(&to_server.names).chain(&coming).chain([&server_end]));
        self.paths.push(Controls { to_client, to_server, sent, arrived });
        Ok(())
    }

    /// Leads what arrived to the client's end: at once, or after the delay of the receiver that it is for.
    fn join_client(&mut self, path: usize, scenario: &Scenario) -> Result<(), Error> {
        let (arrived, end) = (format!("arrived{path}"), format!("end1x{path}"));
        let farther: Vec<_> = scenario
            .cross
            .iter()
            .enumerate()
            .filter(|(_, cross)| cross.path == path && !cross.delay.is_zero())
            .collect();
        if farther.is_empty() {
            self.cells.core.link_cell(arrived, end);
            return Ok(());
        }
        let mut exits = vec![self.cells.core.get_receiver(&end).map_err(Error::emulator)?];
        let mut routes = vec![RoutingEntry::new(IpNet::V4(Ipv4Net::default()), Some(0))];
        for (group, cross) in farther {
            let name = format!("farther{path}x{group}");
            self.cells.delay(&name, cross.delay.into())?;
            let address = Ipv4Net::from(topology::cross_address(path, group));
            routes.push(RoutingEntry::new(address.into(), Some(exits.len())));
            exits.push(self.cells.core.get_receiver(&name).map_err(Error::emulator)?);
            self.cells.core.link_cell(name, end.clone());
        }
        let split = format!("split{path}");
        self.cells
            .core
            .build_cell(split.clone(), |_: &_| {
                RouterCell::<StdPacket, SimpleRoutingTable>::new(exits, routes)
            })
            .map_err(Error::emulator)?;
        self.cells.core.link_cell(arrived, split);
        Ok(())
    }

    /// Makes a direction of a path what a change of it says.
    ///
    /// # Errors
    /// When the path's cells are gone.
    pub fn change(&self, path: usize, way: Way, change: &Change) -> Result<(), Error> {
        let controls = &self.paths[path];
        let cells = match way {
            Way::ToClient => &controls.to_client,
            Way::ToServer => &controls.to_server,
        };
        if let Some(rate) = change.rate {
            let config = BwCellConfig::new(bandwidth(rate), None, None);
            cells.link.set_config(config).map_err(Error::emulator)?;
        }
        if let Some(delay) = change.delay {
            cells
                .delay
                .set_config(DelayCellConfig::new(StdDuration::from(delay)))
                .map_err(Error::emulator)?;
        }
        if let (Some(loss), Some(pattern)) = (&cells.loss, &change.loss) {
            loss.set_config(LossCellConfig::new(pattern.0.clone())).map_err(Error::emulator)?;
        }
        Ok(())
    }

    /// What entered a path towards the client's address that ends in `host`, and what came out at its end.
    pub fn counts(&self, path: usize, host: u8) -> (Count, Count) {
        let controls = &self.paths[path];
        (controls.sent.count(host), controls.arrived.count(host))
    }
}
