//! The paths: for each, a chain of `rattan-core` cells in either direction.
//!
//! Towards the client: meter, bandwidth with DropTail queue, delay, loss, meter. Towards the server: meter,
//! bandwidth, delay. The client's own traffic and the cross traffic of a path go through the same chain; what
//! is for cross traffic's receivers that are farther away takes a delay of its own at its end.

use std::sync::Arc;
use std::time::Duration as StdDuration;

use anabranch_units::Rate;
use ipnet::{IpNet, Ipv4Net};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rattan_core::cells::bandwidth::queue::{DropTailQueue, DropTailQueueConfig};
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
use crate::meter::{Count, Meter, MeterCell};
use crate::scenario::{Event, Path, Scenario};
use crate::topology::{self, Topology};

type Link = BwCell<StdPacket, DropTailQueue<StdPacket>>;
type LinkControl = BwCellControlInterface<StdPacket, DropTailQueue<StdPacket>>;

/// The niceness of the emulator's threads: its packets must be on time even when the programs keep all cores
/// busy.
const NICENESS: i32 = -15;

/// All paths of a run. It stops with the process.
pub struct Emulator {
    core: RattanCore<AfPacketDriver>,
    runtime: Arc<Runtime>,
    paths: Vec<Controls>,
}

/// The handles of one path's cells.
struct Controls {
    down: Arc<LinkControl>,
    delays: [Arc<DelayCellControlInterface>; 2],
    loss: Arc<LossCellControlInterface>,
    sent: Arc<Meter>,
    arrived: Arc<Meter>,
    requests: Arc<Meter>,
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
            let seed = scenario.run.seed.wrapping_add(index as u64);
            emulator.build_path(index, path, &to_client.right, &to_server.right, seed)?;
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
        seed: u64,
    ) -> Result<(), Error> {
        let half = StdDuration::from(path.rtt / 2);
        self.end(index, 1, client)?;
        self.end(index, 2, server)?;
        let sent = self.meter(&format!("sent{index}"))?;
        let down = self.link(&format!("down{index}"), path.rate, path.queue)?;
        let down_delay = self.delay(&format!("downdelay{index}"), half)?;
        let loss = self
            .core
            .build_cell(format!("loss{index}"), |_: &_| {
                LossCell::new(path.loss_pattern(path.loss), StdRng::seed_from_u64(seed))
            })
            .map_err(Error::emulator)?;
        let arrived = self.meter(&format!("arrived{index}"))?;
        let requests = self.meter(&format!("requests{index}"))?;
        self.link(&format!("up{index}"), path.rate_up.unwrap_or(path.rate), path.queue)?;
        let up_delay = self.delay(&format!("updelay{index}"), half)?;
        for chain in [
            &["end2x", "sent", "down", "downdelay", "loss", "arrived"][..],
            &["end1x", "requests", "up", "updelay", "end2x"][..],
        ] {
            for link in chain.windows(2) {
                self.core.link_cell(format!("{}{index}", link[0]), format!("{}{index}", link[1]));
            }
        }
        self.paths.push(Controls { down, delays: [down_delay, up_delay], loss, sent, arrived, requests });
        Ok(())
    }

    /// Leads what arrived to the client's end: at once, or after the delay of the receiver that it is for.
    fn join_client(&mut self, path: usize, scenario: &Scenario) -> Result<(), Error> {
        let (arrived, end) = (format!("arrived{path}"), format!("end1x{path}"));
        let farther: Vec<_> = scenario
            .cross
            .iter()
            .enumerate()
            .filter(|(_, cross)| scenario.path_index(cross.path.as_ref()) == path && !cross.delay.is_zero())
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
        let (cell, meter) = MeterCell::new();
        self.core.build_cell(name.into(), |_: &_| Ok(cell)).map_err(Error::emulator)?;
        Ok(meter)
    }

    fn link(&mut self, name: &str, rate: Rate, queue: usize) -> Result<Arc<LinkControl>, Error> {
        let handle = self.runtime.handle().clone();
        self.core
            .build_cell(name.into(), move |_: &_| {
                let _context = handle.enter();
                let queue = DropTailQueue::new(DropTailQueueConfig::new(queue, None, BwType::NetworkLayer));
                Link::new(Bandwidth::from_bps(rate.as_bps()), queue, BwType::NetworkLayer)
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

    /// Makes a path what an event of the timetable says.
    ///
    /// # Errors
    /// When the path's cells are gone.
    pub fn change(&self, path: usize, model: &Path, event: &Event) -> Result<(), Error> {
        let controls = &self.paths[path];
        if let Some(open) = event.up {
            // At the end as well: what is in the queue when a path breaks is lost.
            for meter in [&controls.sent, &controls.arrived, &controls.requests] {
                meter.set_open(open);
            }
        }
        if let Some(rate) = event.rate {
            let bandwidth = Bandwidth::from_bps(rate.as_bps());
            controls.down.set_config(BwCellConfig::new(bandwidth, None, None)).map_err(Error::emulator)?;
        }
        if let Some(rtt) = event.rtt {
            for delay in &controls.delays {
                delay
                    .set_config(DelayCellConfig::new(StdDuration::from(rtt / 2)))
                    .map_err(Error::emulator)?;
            }
        }
        if let Some(loss) = event.loss {
            controls
                .loss
                .set_config(LossCellConfig::new(model.loss_pattern(loss)))
                .map_err(Error::emulator)?;
        }
        Ok(())
    }

    /// What entered a path towards the client's address that ends in `host`, and what came out at its end.
    pub fn counts(&self, path: usize, host: u8) -> (Count, Count) {
        let controls = &self.paths[path];
        (controls.sent.count(host), controls.arrived.count(host))
    }
}
