//! The cells of paths, one by one: the emulator's own, and ours.

use std::sync::Arc;
use std::time::Duration as StdDuration;

use anabranch_scenario::model::Discipline;
use anabranch_units::Rate;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rattan_core::cells::StdPacket;
use rattan_core::cells::bandwidth::{BwCell, BwCellControlInterface, BwType};
use rattan_core::cells::delay::{DelayCell, DelayCellControlInterface};
use rattan_core::cells::external::{VirtualEthernet, VirtualEthernetId};
use rattan_core::cells::loss::{LossCell, LossCellControlInterface};
use rattan_core::core::RattanCore;
use rattan_core::metal::io::af_packet::AfPacketDriver;
use rattan_core::netem_trace::Bandwidth;
use rattan_env::veth::VethCell;
use tokio::runtime::Runtime;

use super::bucket::{Policer, Shaper};
use super::cell::{Looking, Work, WorkCell};
use super::door::{self, Coming, Going};
use super::queue::Queue;
use super::wire::Wire;
use crate::Error;
use crate::meter::Meter;
use crate::scenario::{Direction, LossPattern};

type Link = BwCell<StdPacket, Queue>;
type LinkControl = BwCellControlInterface<StdPacket, Queue>;

/// The rate of a link that is down: a packet takes hours. Of nothing at all the emulator cannot say how much
/// of a packet has left.
const DOWN: Bandwidth = Bandwidth::from_bps(1);

/// The handles of one direction's cells, and their names in the order of the chain.
pub(super) struct Cells {
    pub(super) link: Arc<LinkControl>,
    pub(super) delay: Arc<DelayCellControlInterface>,
    pub(super) loss: Option<Arc<LossCellControlInterface>>,
    pub(super) names: Vec<String>,
}

/// Builds cells in the emulator.
pub(super) struct Builder {
    pub(super) core: RattanCore<AfPacketDriver>,
    runtime: Arc<Runtime>,
}

impl Builder {
    pub(super) fn new(core: RattanCore<AfPacketDriver>, runtime: Arc<Runtime>) -> Self {
        Self { core, runtime }
    }

    /// Links cells, each to the next.
    pub(super) fn chain<'a>(&mut self, names: impl Iterator<Item = &'a String>) {
        let names: Vec<_> = names.collect();
        for pair in names.windows(2) {
            self.core.link_cell(pair[0].clone(), pair[1].clone());
        }
    }

    /// The cells of a direction.
    pub(super) fn direction(&mut self, name: &str, direction: &Direction, seed: u64) -> Result<Cells, Error> {
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
    pub(super) fn work(&mut self, name: String, work: impl Work) -> Result<(), Error> {
        let handle = self.runtime.handle().clone();
        self.core
            .build_cell(name, move |_: &_| {
                let _context = handle.enter();
                WorkCell::new(work)
            })
            .map_err(Error::emulator)?;
        Ok(())
    }

    /// The names of the cells for what comes to a server with a door and for what leaves it. Where a refusal
    /// enters the way back, `back` is the cell.
    pub(super) fn door(
        &mut self,
        path: usize,
        door: Option<&door::Shared>,
        back: &String,
    ) -> Result<(Option<String>, Option<String>), Error> {
        let Some(door) = door else { return Ok((None, None)) };
        let (coming, going) = (format!("coming{path}"), format!("going{path}"));
        let back = self.core.get_receiver(back).map_err(Error::emulator)?;
        self.work(coming.clone(), Looking::new(Coming::new(Arc::clone(door), back)))?;
        self.work(going.clone(), Looking::new(Going(Arc::clone(door))))?;
        Ok((Some(coming), Some(going)))
    }

    pub(super) fn end(&mut self, path: usize, side: u8, cell: &Arc<VethCell>) -> Result<(), Error> {
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

    pub(super) fn meter(&mut self, name: &str) -> Result<Arc<Meter>, Error> {
        let meter = Arc::new(Meter::default());
        self.work(name.into(), Looking::new(Arc::clone(&meter)))?;
        Ok(meter)
    }

    pub(super) fn link(&mut self, name: &str, rate: Rate, queue: Queue) -> Result<Arc<LinkControl>, Error> {
        let handle = self.runtime.handle().clone();
        self.core
            .build_cell(name.into(), move |_: &_| {
                let _context = handle.enter();
                Link::new(bandwidth(rate), queue, BwType::NetworkLayer)
            })
            .map_err(Error::emulator)
    }

    pub(super) fn delay(
        &mut self,
        name: &str,
        delay: StdDuration,
    ) -> Result<Arc<DelayCellControlInterface>, Error> {
        let handle = self.runtime.handle().clone();
        self.core
            .build_cell(name.into(), move |_: &_| {
                let _context = handle.enter();
                DelayCell::new(delay)
            })
            .map_err(Error::emulator)
    }
}

/// A rate as the emulator has it.
pub(super) fn bandwidth(rate: Rate) -> Bandwidth {
    if rate.is_zero() { DOWN } else { Bandwidth::from_bps(rate.as_bps()) }
}
