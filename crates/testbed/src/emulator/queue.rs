//! Where packets wait: the emulator's queues, and those of our own, as one.

use anabranch_scenario::model::{CoDel, Discipline};
use rattan_core::cells::bandwidth::BwType;
use rattan_core::cells::bandwidth::queue::{
    CoDelQueue, CoDelQueueConfig, DropTailQueue, DropTailQueueConfig, PacketQueue,
};
use rattan_core::cells::{Packet, StdPacket};

use super::fq_codel::FlowQueues;
use super::pie::PieQueue;

/// The size of a full packet, below which CoDel drops nothing.
const FULL: u32 = 1500;

/// A queue of one discipline.
#[derive(Debug)]
pub enum Queue {
    /// Drops what finds it full.
    DropTail(DropTailQueue<StdPacket>),
    /// Controlled delay.
    CoDel(CoDelQueue<StdPacket>),
    /// Proportional integral controller enhanced.
    Pie(Box<PieQueue<StdPacket>>),
    /// Queues of flows, each with CoDel.
    FqCoDel(FlowQueues<StdPacket>),
}

impl Queue {
    /// A queue that so many packets wait in, apart from the one in transmission. There is none for RED and
    /// DualPI2.
    pub fn new(discipline: Discipline, packets: u32, seed: u64) -> Option<Self> {
        let limit = usize::try_from(packets).unwrap_or(usize::MAX);
        let codel = |codel: CoDel| {
            let (interval, target) = (codel.interval.into(), codel.target.into());
            CoDelQueueConfig::new(limit, None, interval, target, FULL, BwType::NetworkLayer)
        };
        Some(match discipline {
            Discipline::DropTail => Self::DropTail(DropTailQueue::new(DropTailQueueConfig::new(
                limit,
                None,
                BwType::NetworkLayer,
            ))),
            Discipline::CoDel(parameters) => Self::CoDel(CoDelQueue::new(codel(parameters))),
            Discipline::Pie(parameters) => Self::Pie(Box::new(PieQueue::new(parameters, limit, seed))),
            Discipline::FqCoDel(flows) => {
                Self::FqCoDel(FlowQueues::new(codel(flows.codel), flows.quantum, limit))
            }
            Discipline::Red(_) | Discipline::DualPi2(_) => return None,
        })
    }
}

macro_rules! each {
    ($queue:expr, $inner:ident => $result:expr) => {
        match $queue {
            Queue::DropTail($inner) => $result,
            Queue::CoDel($inner) => $result,
            Queue::Pie($inner) => $result,
            Queue::FqCoDel($inner) => $result,
        }
    };
}

impl PacketQueue<StdPacket> for Queue {
    type Config = ();

    fn configure(&mut self, (): ()) {}

    fn enqueue(&mut self, packet: StdPacket) {
        each!(self, queue => queue.enqueue(packet));
    }

    fn dequeue(&mut self) -> Option<StdPacket> {
        each!(self, queue => queue.dequeue())
    }

    fn is_empty(&self) -> bool {
        each!(self, queue => queue.is_empty())
    }

    fn is_zero_buffer(&self) -> bool {
        each!(self, queue => queue.is_zero_buffer())
    }

    fn get_packet_size(&self, packet: &StdPacket) -> usize {
        packet.l3_length()
    }

    fn get_front_size(&self) -> Option<usize> {
        each!(self, queue => queue.get_front_size())
    }

    fn length(&self) -> usize {
        each!(self, queue => queue.length())
    }
}
