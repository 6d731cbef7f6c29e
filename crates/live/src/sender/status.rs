//! How a sender is doing.

use anabranch_units::{Bytes, Duration, Rate, Ratio};

use super::super::fec::Code;
use super::super::fec::choice::Losses;
use super::super::{ConnectionId, UplinkId};

/// How a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConnectionStatus {
    /// Which.
    pub id: ConnectionId,
    /// Its link.
    pub link: UplinkId,
    /// The smoothed round-trip time; that of the handshake until a report has come.
    pub rtt: Duration,
    /// What the control of its rate allows, with headers.
    pub allowed_rate: Rate,
    /// How many connections it stands for (n).
    pub flows: f64,
    /// How much of what its own control allows it has, where it shares with other senders: more than one
    /// where they leave it something.
    pub share: f64,
    /// p, as the receiver reported it last.
    pub loss_event_rate: f64,
    /// Datagrams sent.
    pub sent: u64,
    /// Of them, those that were lost.
    pub lost: u64,
    /// Whether nothing is heard from it.
    pub is_silent: bool,
}

/// How a sender is doing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SenderStatus {
    /// Datagrams sent, on connections that are gone as well.
    pub sent: u64,
    /// Of them, those that were lost.
    pub lost: u64,
    /// Bytes of the stream that came into the sender.
    pub taken: Bytes,
    /// Of them, null packets that were left out on the way.
    pub left_out: Bytes,
    /// Media packets sent for the first time.
    pub media: u64,
    /// Media packets sent again.
    pub again: u64,
    /// Parity packets sent.
    pub parity: u64,
    /// Media packets dropped since the network was too slow, and their bytes.
    pub dropped: (u64, Bytes),
    /// Bytes that wait to be sent for the first time.
    pub waiting: Bytes,
    /// What the stream's rate may be at the moment: headers and parity are taken off.
    pub available_rate: Rate,
    /// What an encoder that follows should make: what the path was found to carry, less as long as more waits than a
    /// part of the latency. It may be more than `available_rate`, which grows with what waits. Zero: nothing is
    /// known, or nothing gets through.
    pub fitting_rate: Rate,
    /// How datagrams were lost of late, in the order in which they left.
    pub losses: Losses,
    /// The code of the parity at the moment.
    pub code: Option<Code>,
    /// How many other senders it shares its uplinks with.
    pub shares_with: usize,
    /// The connections.
    pub connections: Vec<ConnectionStatus>,
}

impl SenderStatus {
    /// Part of the datagrams that were lost.
    pub fn loss_rate(&self) -> f64 {
        Ratio::from_f64(Bytes::new(self.lost).as_f64() / Bytes::new(self.sent.max(1)).as_f64()).as_f64()
    }

    /// The shortest round-trip time of the connections.
    pub fn rtt(&self) -> Option<Duration> {
        self.connections.iter().map(|connection| connection.rtt).min()
    }
}
