//! The paths: for each, a chain of `rattan-core` cells in either direction.
//!
//! Towards the client: meter, policer, queue with its discipline, bandwidth, delay, loss, wire, meter. With a
//! shaper the queue is the shaper's. Towards the server the same without meters. There are no cells for what a
//! link does not have. The client's own traffic and the cross traffic of a path go through the same chain; what
//! is for cross traffic's receivers that are farther away takes a delay of its own at its end.

mod bucket;
pub(crate) mod cell;
mod fq_codel;
mod pie;
mod queue;
mod wire;

use std::sync::Arc;
use std::time::Duration as StdDuration;

use anabranch_scenario::model::Discipline;
use anabranch_units::Rate;
use ipnet::{IpNet, Ipv4Net};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rattan_core::cells::bandwidth::{BwCell, BwCellConfig, BwCellControlInterface, BwType};
use rattan_core::cells::delay::{DelayCell, DelayCellConfig, DelayCellControlInterface};
use rattan_core::cells::external::{VirtualEthernet, VirtualEthernetId};
use rattan_core::cells::loss::{LossCell, LossCellConfig, LossCellControlInterface};
use rattan_core::cells::router::{RouterCell, RoutingEntry, SimpleRoutingTable};
use rattan_core::cells::{ControlInterface, StdPacket};
use rattan_core::core::RattanCore;
use rattan_core::metal::io::af_packet::AfPacketDriver;
use rattan_core::netem_trace::Bandwidth;
use rattan_env::veth::VethCell;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::meter::{Count, Meter};
use crate::scenario::{Change, Direction, LossPattern, Path, Scenario, Way};
use crate::topology::{self, Topology};
use bucket::{Policer, Shaper};
use cell::{Looking, Work, WorkCell};
use queue::Queue;
use wire::Wire;

type Link = BwCell<StdPacket, Queue>;
type LinkControl = BwCellControlInterface<StdPacket, Queue>;

/// The niceness of the emulator's threads: its packets must be on time even when the programs keep all cores
/// busy.
const NICENESS: i32 = -15;

/// All paths of a run. It stops with the process.
pub struct Emulator {
    core: RattanCore<AfPacketDriver>,
    runtime: Arc<Runtime>,
    paths: Vec<Controls>,
}

/// The rate of a link that is down: a packet takes hours. Of nothing at all the emulator cannot say how much
/// of a packet has left.
const DOWN: Bandwidth = Bandwidth::from_bps(1);

/// The handles of one path's cells.
struct Controls {
    to_client: Cells,
    to_server: Cells,
    sent: Arc<Meter>,
    arrived: Arc<Meter>,
}

/// The handles of one direction's cells, and their names in the order of the chain.
struct Cells {
    link: Arc<LinkControl>,
    delay: Arc<DelayCellControlInterface>,
    loss: Option<Arc<LossCellControlInterface>>,
    names: Vec<String>,
}

impl Emulator {
    /// Builds the chains and starts them. To be called in the namespace of the emulator's ends.
    ///
    /// # Errors
    /// When the emulator cannot open its packet sockets.
    pub fn start(scenario: &Scenario, topology: &Topology) -> Result<Self, Error> {
        let runtime = Builder::new_multi_thread()
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
        let mut emulator = Self { core, runtime, paths: Vec::new() };
        for (index, (path, (to_client, to_server))) in scenario.paths.iter().zip(&topology.pairs).enumerate()
        {
            // Each direction draws its own losses.
            let seed = |number: usize| scenario.seed.wrapping_add(number as u64);
            let seeds = (seed(index), seed(scenario.paths.len() + index));
            emulator.build_path(index, path, &to_client.right, &to_server.right, seeds)?;
            emulator.join_client(index, scenario)?;
        }
        emulator.core.spawn_rattan().map_err(Error::emulator)?;
        emulator.core.start_rattan().map_err(Error::emulator)?;
        Ok(emulator)
    }

    fn build_path(
        &mut self,
        index: usize,
        path: &Path,
        client: &Arc<VethCell>,
        server: &Arc<VethCell>,
        seeds: (u64, u64),
    ) -> Result<(), Error> {
        let (client_end, server_end) = (format!("end1x{index}"), format!("end2x{index}"));
        self.end(index, 1, client)?;
        self.end(index, 2, server)?;
        let (sent_name, arrived_name) = (format!("sent{index}"), format!("arrived{index}"));
        let sent = self.meter(&sent_name)?;
        let to_client = self.direction(&format!("down{index}"), &path.to_client, seeds.0)?;
        let arrived = self.meter(&arrived_name)?;
        let to_server = self.direction(&format!("up{index}"), &path.to_server, seeds.1)?;
        self.chain([&server_end, &sent_name].into_iter().chain(&to_client.names).chain([&arrived_name]));
        self.chain([&client_end].into_iter().chain(&to_server.names).chain([&server_end]));
        self.paths.push(Controls { to_client, to_server, sent, arrived });
        Ok(())
    }

    /// Links cells, each to the next.
    fn chain<'a>(&mut self, names: impl Iterator<Item = &'a String>) {
        let names: Vec<_> = names.collect();
        for pair in names.windows(2) {
            self.core.link_cell(pair[0].clone(), pair[1].clone());
        }
    }

    /// The cells of a direction.
    fn direction(&mut self, name: &str, direction: &Direction, seed: u64) -> Result<Cells, Error> {
        let mut names = Vec::new();
        let mut named = |part: &str| {
            names.push(format!("{name}{part}"));
            format!("{name}{part}")
        };
        if let Some(policer) = &direction.policer {
            self.work(named("policer"), Looking::new(Policer::new(policer)))?;
        }
        // The packet in transmission is not in the cell's queue, and counts in a scenario.
        let waiting = direction.queue.saturating_sub(1);
        let queue = |discipline| {
            let missing = || Error::Emulator("a queue that the emulator does not have".into());
            Queue::new(discipline, waiting, seed).ok_or_else(missing)
        };
        let mut link_queue = queue(direction.discipline)?;
        if let Some(shaper) = &direction.shaper {
            // What the shaper lets pass at once waits for the link without being dropped early.
            let own = std::mem::replace(&mut link_queue, queue(Discipline::DropTail)?);
            self.work(named("shaper"), Shaper::new(shaper, own))?;
        }
        let link = self.link(&named("link"), direction.rate, link_queue)?;
        let delay = self.delay(&named("delay"), direction.delay.into())?;
        let changes = direction.changes.iter().filter_map(|change| change.loss.as_ref());
        let is_lossless = changes.chain([&direction.loss]).all(LossPattern::is_none);
        let loss = match is_lossless {
            true => None,
            false => {
                let pattern = direction.loss.0.clone();
                let cell = self.core.build_cell(named("loss"), move |_: &_| {
                    LossCell::new(pattern, StdRng::seed_from_u64(seed))
                });
                Some(cell.map_err(Error::emulator)?)
            }
        };
        if direction.jitter.is_some() || direction.duplicate > 0.0 {
            self.work(named("wire"), Wire::new(direction.jitter, direction.duplicate, seed))?;
        }
        Ok(Cells { link, delay, loss, names })
    }

    /// A cell of our own.
    fn work(&mut self, name: String, work: impl Work) -> Result<(), Error> {
        let handle = self.runtime.handle().clone();
        self.core
            .build_cell(name, move |_: &_| {
                let _context = handle.enter();
                WorkCell::new(work)
            })
            .map_err(Error::emulator)?;
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
            self.core.link_cell(arrived, end);
            return Ok(());
        }
        let mut exits = vec![self.core.get_receiver(&end).map_err(Error::emulator)?];
        let mut routes = vec![RoutingEntry::new(IpNet::V4(Ipv4Net::default()), Some(0))];
        for (group, cross) in farther {
            let name = format!("farther{path}x{group}");
            self.delay(&name, cross.delay.into())?;
            let address = Ipv4Net::from(topology::cross_address(path, group));
            routes.push(RoutingEntry::new(address.into(), Some(exits.len())));
            exits.push(self.core.get_receiver(&name).map_err(Error::emulator)?);
            self.core.link_cell(name, end.clone());
        }
        let split = format!("split{path}");
        self.core
            .build_cell(split.clone(), |_: &_| {
                RouterCell::<StdPacket, SimpleRoutingTable>::new(exits, routes)
            })
            .map_err(Error::emulator)?;
        self.core.link_cell(arrived, split);
        Ok(())
    }

    fn end(&mut self, path: usize, side: u8, cell: &Arc<VethCell>) -> Result<(), Error> {
        let mut id = VirtualEthernetId::new();
        id.set_ns_id(side);
        id.set_veth_id(u8::try_from(path).unwrap_or(u8::MAX));
        let handle = self.runtime.handle().clone();
        self.core
            .build_cell(format!("end{side}x{path}"), move |_: &_| {
                let _context = handle.enter();
                VirtualEthernet::<AfPacketDriver>::new(Arc::clone(cell), id)
            })
            .map_err(Error::emulator)?;
        Ok(())
    }

    fn meter(&mut self, name: &str) -> Result<Arc<Meter>, Error> {
        let meter = Arc::new(Meter::default());
        self.work(name.into(), Looking::new(Arc::clone(&meter)))?;
        Ok(meter)
    }

    fn link(&mut self, name: &str, rate: Rate, queue: Queue) -> Result<Arc<LinkControl>, Error> {
        let handle = self.runtime.handle().clone();
        self.core
            .build_cell(name.into(), move |_: &_| {
                let _context = handle.enter();
                Link::new(bandwidth(rate), queue, BwType::NetworkLayer)
            })
            .map_err(Error::emulator)
    }

    fn delay(&mut self, name: &str, delay: StdDuration) -> Result<Arc<DelayCellControlInterface>, Error> {
        let handle = self.runtime.handle().clone();
        self.core
            .build_cell(name.into(), move |_: &_| {
                let _context = handle.enter();
                DelayCell::new(delay)
            })
            .map_err(Error::emulator)
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

/// A rate as the emulator has it.
fn bandwidth(rate: Rate) -> Bandwidth {
    if rate.is_zero() { DOWN } else { Bandwidth::from_bps(rate.as_bps()) }
}
