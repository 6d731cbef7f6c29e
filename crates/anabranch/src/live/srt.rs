//! Streams that come or go by SRT.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anabranch_contribution::PacketStream;
use anabranch_srt::{Address, Error, Event, MOST_MESSAGE, Mode, Peer, Peers};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::failure::Failure;
use crate::output::{Output, counted};

/// The passphrase when the URL has none.
const PASSPHRASE_VARIABLE: &str = "ANABRANCH_SRT_PASSPHRASE";
/// Viewers that a listener lets in at a time.
const MOST_VIEWERS: usize = 16;
/// Packets that came by SRT and wait to be cut for the network: a fifth of a second of 50 Mbps.
const WAITING: usize = 1024;
/// So often whoever waits for a packet looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);
/// A viewer has so long for the last packets, besides its latency.
const LAST: Duration = Duration::from_secs(1);

/// Begins to look for peers.
///
/// # Errors
/// There is no SRT here, the address cannot be listened at, or the passphrase is none.
pub(super) fn peers(address: &Address, most: usize) -> Result<Peers, Failure> {
    let mut address = address.clone();
    if let Ok(passphrase) = std::env::var(PASSPHRASE_VARIABLE) {
        address = address
            .or_passphrase(&passphrase)
            .map_err(|error| Failure::usage(format_args!("{PASSPHRASE_VARIABLE}: {error}")))?;
    }
    Peers::start(address, most).map_err(Failure::failed)
}

/// Whether SRT did not end.
static IS_STUCK: AtomicBool = AtomicBool::new(false);

/// Closes what is open, so that the peers hear of it.
pub(super) async fn end() {
    let ended = tokio::task::spawn_blocking(anabranch_srt::end).await;
    IS_STUCK.store(!ended.unwrap_or(false), Ordering::Relaxed);
}

/// Whether [`end`] was not needed, or did its work.
pub(super) fn has_ended() -> bool {
    !IS_STUCK.load(Ordering::Relaxed)
}

/// What comes from one peer after the other.
pub(super) struct Packets {
    packets: mpsc::Receiver<Box<[u8]>>,
    following: JoinHandle<()>,
}

impl Packets {
    /// Of these peers, one at a time.
    pub(super) fn of(peers: Peers, output: Output) -> Self {
        let (sender, packets) = mpsc::channel(WAITING);
        Self { packets, following: tokio::spawn(follow(peers, sender, output)) }
    }

    /// Waits for the next packet, without losing one when it is given up.
    ///
    /// # Errors
    /// SRT has ended by itself.
    pub(super) async fn receive(&mut self) -> Result<Box<[u8]>, Failure> {
        self.packets.recv().await.ok_or_else(|| Failure::failed("SRT has ended by itself"))
    }

    /// One that has come already.
    pub(super) fn receive_now(&mut self) -> Option<Box<[u8]>> {
        self.packets.try_recv().ok()
    }
}

impl Drop for Packets {
    fn drop(&mut self) {
        self.following.abort();
    }
}

/// Reads from whoever is there.
async fn follow(mut peers: Peers, packets: mpsc::Sender<Box<[u8]>>, output: Output) {
    output.say(format_args!("waits for a stream at {peers}"));
    let mut reading: Option<(String, JoinHandle<()>)> = None;
    loop {
        tokio::select! {
            event = peers.next() => match event {
                Some(Event::Connected(peer)) => {
                    let name = peer.to_string();
                    output.say(format_args!("{name} sends by SRT"));
                    let packets = packets.clone();
                    reading = Some((name, tokio::task::spawn_blocking(move || read(peer, &packets))));
                }
                Some(event) => tell(&event, &output),
                None => return,
            },
            name = ended(&mut reading) => {
                reading = None;
                output.say(format_args!("{name} sends no more; waits for it or another at {peers}"));
            }
        }
    }
}

/// Waits until a peer is gone: who it was. Never while there is none.
async fn ended(reading: &mut Option<(String, JoinHandle<()>)>) -> String {
    match reading {
        Some((name, task)) => {
            // However it ended.
            let _ = task.await;
            name.clone()
        }
        None => std::future::pending().await,
    }
}

/// Until the peer is gone, or nobody wants its packets.
fn read(mut peer: Peer, packets: &mpsc::Sender<Box<[u8]>>) {
    while !packets.is_closed() {
        match peer.receive(LOOK) {
            Ok(Some(packet)) => {
                if packets.blocking_send(packet.into()).is_err() {
                    return;
                }
            }
            Ok(None) => {}
            Err(_) => return,
        }
    }
}

fn tell(event: &Event, output: &Output) {
    match event {
        Event::Refused(peer, why) => output.warn(format_args!("{peer} was not let in: {why}")),
        Event::Failed(error @ Error::Nobody(_)) => output.say(format_args!("{error}; tries on")),
        Event::Failed(error) => output.warn(format_args!("{error}; tries on")),
        Event::Connected(_) => {}
    }
}

/// Those who get a stream by SRT: one that is called, or who has called.
pub(super) struct Viewers {
    peers: Peers,
    viewers: Vec<Viewer>,
    output: Output,
}

struct Viewer {
    peer: Peer,
    /// Packets for which there was no room.
    dropped: u64,
}

impl Viewers {
    /// Begins to look for them.
    ///
    /// # Errors
    /// As of [`peers`].
    pub(super) fn open(address: &Address, output: &Output) -> Result<Self, Failure> {
        let most = match address.mode() {
            Mode::Caller => 1,
            Mode::Listener => MOST_VIEWERS,
        };
        let peers = peers(address, most)?;
        output.say(format_args!("the stream goes to {peers}"));
        Ok(Self { peers, viewers: Vec::new(), output: output.clone() })
    }

    /// Gives them the stream until it ends, and then time to take the last of it.
    ///
    /// # Errors
    /// SRT has ended by itself.
    pub(super) async fn run(mut self, packets: &mut PacketStream) -> Result<(), Failure> {
        loop {
            tokio::select! {
                packet = packets.recv() => match packet {
                    Some(packet) => self.send(&packet),
                    None => break,
                },
                event = self.peers.next() => match event {
                    Some(Event::Connected(peer)) => {
                        self.output.say(format_args!("{peer} gets the stream by SRT"));
                        self.viewers.push(Viewer { peer, dropped: 0 });
                    }
                    Some(event) => tell(&event, &self.output),
                    None => return Err(Failure::failed("SRT has ended by itself")),
                },
                // One that goes while nothing is sent is found out as well.
                () = sleep(LAST), if !self.viewers.is_empty() => self.leave_out_the_gone(),
            }
        }
        self.finish().await;
        Ok(())
    }

    /// A viewer that cannot take a packet goes without, so that nobody waits for it.
    fn send(&mut self, packet: &[u8]) {
        for viewer in &mut self.viewers {
            for message in packet.chunks(MOST_MESSAGE) {
                // One that is gone is left out below.
                if let Ok(false) = viewer.peer.send(message) {
                    if viewer.dropped == 0 {
                        let peer = &viewer.peer;
                        self.output
                            .warn(format_args!("{peer} takes less than the stream: packets are dropped"));
                    }
                    viewer.dropped += 1;
                }
            }
        }
        self.leave_out_the_gone();
    }

    fn leave_out_the_gone(&mut self) {
        let output = &self.output;
        self.viewers.retain(|Viewer { peer, dropped }| {
            let is_gone = peer.is_gone();
            if is_gone {
                let dropped = counted(*dropped, "packet");
                output.say(format_args!("{peer} is gone; {dropped} were dropped for it"));
            }
            !is_gone
        });
    }

    /// SRT throws away what a viewer has not got, and a viewer what is not due, when a connection is closed.
    async fn finish(&self) {
        let latency = self.viewers.iter().map(|viewer| viewer.peer.latency_there()).max().unwrap_or_default();
        let until = Instant::now() + latency + LAST;
        let is_missing = |viewer: &Viewer| !viewer.peer.is_gone() && !viewer.peer.has_everything();
        while Instant::now() < until && self.viewers.iter().any(is_missing) {
            sleep(LOOK / 10).await;
        }
        sleep(latency + LOOK).await;
    }
}
