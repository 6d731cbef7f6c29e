//! Cells of our own: what packets go through one after the other, each cell with work of its own.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use rattan_core::cells::{Cell, ControlInterface, Egress, Ingress, Packet, StdPacket};
use rattan_core::error::Error;
use rattan_core::metal::timer::Timer;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// What a cell does. Packets know when they come: their timestamp is that moment, and where they are held
/// back it becomes the moment at which they leave.
pub trait Work: Send + 'static {
    /// A packet comes.
    fn take(&mut self, packet: StdPacket);

    /// When the next packet leaves, if there is one.
    fn next(&self) -> Option<Instant>;

    /// Its time has come.
    fn give(&mut self) -> Option<StdPacket>;
}

/// What lets packets pass at once, or not at all.
pub trait Look: Send + 'static {
    /// Whether a packet passes.
    fn passes(&mut self, packet: &StdPacket) -> bool;
}

/// The cell around some work.
pub struct WorkCell<W> {
    ingress: Arc<Entrance>,
    egress: Exit<W>,
    control: Arc<NoControl>,
}

impl<W: Work> WorkCell<W> {
    /// To be called in the emulator's runtime.
    pub fn new(work: W) -> Result<Self, Error> {
        // Like the emulator's own cells: what bounds the packets on a path is its queue, not this channel.
        let (sender, receiver) = mpsc::unbounded_channel();
        let timer = Timer::new()?;
        Ok(Self {
            ingress: Arc::new(Entrance { sender }),
            egress: Exit { receiver, came: None, timer, work },
            control: Arc::new(NoControl),
        })
    }
}

/// Where packets enter.
pub struct Entrance {
    sender: mpsc::UnboundedSender<StdPacket>,
}

impl Ingress<StdPacket> for Entrance {
    fn enqueue(&self, packet: StdPacket) -> Result<(), Error> {
        let closed = |_| Error::ChannelError("the cell is gone".into());
        self.sender.send(packet).map_err(closed)
    }
}

/// Where packets leave.
pub struct Exit<W> {
    receiver: mpsc::UnboundedReceiver<StdPacket>,
    /// A packet that has come and has not begun to wait.
    came: Option<StdPacket>,
    timer: Timer,
    work: W,
}

impl<W> Exit<W> {
    /// The next packet, if it came by this moment.
    fn came_by(&mut self, moment: Instant) -> Option<StdPacket> {
        if self.came.is_none() {
            self.came = self.receiver.try_recv().ok();
        }
        self.came.take_if(|packet| packet.get_timestamp() <= moment)
    }
}

#[async_trait]
impl<W: Work> Egress<StdPacket> for Exit<W> {
    async fn dequeue(&mut self) -> Option<StdPacket> {
        loop {
            let due = self.work.next();
            // On a machine that is late, what came before a packet was due has found it there: else queues
            // would drain before they fill.
            if let Some(packet) = self.came_by(due.unwrap_or_else(Instant::now)) {
                self.work.take(packet);
                continue;
            }
            let Some(due) = due else {
                let next = match self.came.take() {
                    Some(packet) => packet,
                    None => self.receiver.recv().await?,
                };
                self.work.take(next);
                continue;
            };
            if due <= Instant::now() {
                match self.work.give() {
                    Some(packet) => return Some(packet),
                    None => continue,
                }
            }
            tokio::select! {
                biased;
                packet = self.receiver.recv(), if self.came.is_none() => self.work.take(packet?),
                _ = self.timer.sleep_until(due) => {}
            }
        }
    }
}

/// The cells are controlled by nobody; the emulator wants this as well.
pub struct NoControl;

impl ControlInterface for NoControl {
    type Config = ();

    fn set_config(&self, (): ()) -> Result<(), Error> {
        Ok(())
    }
}

impl<W: Work> Cell<StdPacket> for WorkCell<W> {
    type IngressType = Entrance;
    type EgressType = Exit<W>;
    type ControlInterfaceType = NoControl;

    fn sender(&self) -> Arc<Entrance> {
        Arc::clone(&self.ingress)
    }

    fn receiver(&mut self) -> &mut Exit<W> {
        &mut self.egress
    }

    fn into_receiver(self) -> Exit<W> {
        self.egress
    }

    fn control_interface(&self) -> Arc<NoControl> {
        Arc::clone(&self.control)
    }
}

/// The work of a cell that only looks.
pub struct Looking<L> {
    look: L,
    passing: VecDeque<StdPacket>,
}

impl<L: Look> Looking<L> {
    /// The work around it.
    pub fn new(look: L) -> Self {
        Self { look, passing: VecDeque::new() }
    }
}

impl<L: Look> Work for Looking<L> {
    fn take(&mut self, packet: StdPacket) {
        if self.look.passes(&packet) {
            self.passing.push_back(packet);
        }
    }

    fn next(&self) -> Option<Instant> {
        self.passing.front().map(Packet::get_timestamp)
    }

    fn give(&mut self) -> Option<StdPacket> {
        self.passing.pop_front()
    }
}
