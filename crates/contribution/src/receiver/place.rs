//! Where a sender can be, and the one that is there.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anabranch_live::ConnectionId;
use anabranch_protocol::live::hello::SESSION_BYTES;
use quinn::{Connection, SendStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::settings::PacketStream;

/// Packets that wait for whoever takes the stream.
const PACKETS: usize = 8192;
/// A sender that is gone for so long has to make room for another.
const RETURN: Duration = Duration::from_secs(10);

/// One that is not heard for so long makes room for one from the same address, which is most likely the same one,
/// started again.
const SILENCE: Duration = Duration::from_secs(1);

/// One sender and its stream.
pub(super) struct LiveSession {
    pub(super) name: [u8; SESSION_BYTES],
    pub(super) core: anabranch_live::Receiver,
    pub(super) connections: BTreeMap<ConnectionId, (Connection, SendStream)>,
    /// Where its sender connected from last, and when it was heard.
    pub(super) from: IpAddr,
    pub(super) heard: anabranch_units::Time,
    /// Since when there is no connection.
    pub(super) gone: Option<anabranch_units::Time>,
    /// Its sender does not come back.
    pub(super) has_left: bool,
    pub(super) latency: anabranch_units::Duration,
    pub(super) tasks: JoinSet<()>,
}

/// Where a sender can be.
pub(super) struct Place {
    pub(super) session: Option<LiveSession>,
    output: mpsc::Sender<Arc<[u8]>>,
    /// Packets that nobody took in time.
    pub(super) untaken: u64,
}

impl Place {
    pub(super) fn new() -> (Self, PacketStream) {
        let (output, packets) = mpsc::channel(PACKETS);
        (Self { session: None, output, untaken: 0 }, packets)
    }

    /// Hands on and reports what is due. Answers whether the stream has ended.
    pub(super) fn work(&mut self, now: anabranch_units::Time) -> bool {
        let Some(session) = &mut self.session else { return false };
        while let Some((id, datagram)) = session.core.transmit(now) {
            if let Some((connection, _)) = session.connections.get(&id)
                && let Err(error) = connection.send_datagram(datagram.into())
            {
                tracing::debug!(%error, "a report was not sent");
            }
        }
        while let Some(packet) = session.core.deliver(now) {
            if self.output.try_send(packet).is_err() {
                self.untaken += 1;
            }
        }
        session.core.has_ended(now)
    }

    /// Whether its sender is not heard any more, and one from this address may have its place.
    pub(super) fn is_left_to(&self, from: IpAddr, now: anabranch_units::Time) -> bool {
        let silence = anabranch_units::Duration::from(SILENCE);
        self.session
            .as_ref()
            .is_some_and(|session| session.from == from && now.since(session.heard) >= silence)
    }

    /// Whether another sender may have this place.
    pub(super) fn is_free(&self, now: anabranch_units::Time) -> bool {
        self.session.as_ref().is_none_or(|session| {
            let is_gone =
                session.gone.is_some_and(|gone| now.since(gone) > anabranch_units::Duration::from(RETURN));
            is_gone || session.has_left
        })
    }
}
