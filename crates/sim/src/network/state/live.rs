//! Datagrams of live streams: what each of them carries while it is under way.

use std::collections::BTreeMap;

use anabranch_congestion::shares::Standing;
use anabranch_units::{Bytes, Time};

use crate::model::{FlowId, NodeId};

/// What goes over an uplink and back.
#[derive(Debug)]
pub(crate) struct LiveWay {
    pub(crate) flow: FlowId,
    /// Which of the flow's uplinks it is.
    pub(crate) uplink: u32,
    /// The paths to the receiver and back.
    pub(in crate::network) paths: (u32, u32),
    /// Datagrams of the sender, and the bytes of those that arrived.
    pub(crate) sent: u64,
    pub(crate) arrived: Bytes,
    pub(crate) dropped: u64,
    pub(crate) lost: u64,
    /// The number of the next datagram in either direction.
    pub(in crate::network) next: u64,
    /// By number: how many packets carry it, since a link may duplicate one, and what it is.
    pub(in crate::network) under_way: BTreeMap<u64, (u32, LiveDatagram)>,
}

/// A datagram of one of a stream's connections.
#[derive(Clone, Debug)]
pub(crate) struct LiveDatagram {
    pub(crate) connection: u32,
    pub(crate) body: LiveBody,
}

/// What it says.
#[derive(Clone, Debug)]
pub(crate) enum LiveBody {
    /// The sender wants a connection, at this time.
    Hello(Time),
    /// The receiver has it; the time is that of the hello.
    Welcome(Time),
    /// The connection is not needed any more.
    Farewell,
    /// From the sender: media, parity, a probe.
    Data(Vec<u8>),
    /// From the receiver.
    Report(Vec<u8>),
}

impl LiveBody {
    /// Whether it goes to the receiver.
    pub(crate) fn is_from_sender(&self) -> bool {
        match self {
            Self::Hello(_) | Self::Farewell | Self::Data(_) => true,
            Self::Welcome(_) | Self::Report(_) => false,
        }
    }
}

impl LiveWay {
    pub(crate) fn new(flow: FlowId, uplink: u32, paths: (u32, u32)) -> Self {
        Self {
            flow,
            uplink,
            paths,
            sent: 0,
            arrived: Bytes::ZERO,
            dropped: 0,
            lost: 0,
            next: 0,
            under_way: BTreeMap::new(),
        }
    }

    /// The path of the sender's datagrams, or that of the receiver's.
    pub(in crate::network) fn path(&self, is_from_sender: bool) -> u32 {
        if is_from_sender { self.paths.0 } else { self.paths.1 }
    }

    /// Whether a datagram that is under way is the sender's.
    pub(in crate::network) fn is_from_sender(&self, number: u64) -> bool {
        self.under_way.get(&number).is_some_and(|(_, datagram)| datagram.body.is_from_sender())
    }

    /// One of the packets that carry a datagram is not under way any more.
    pub(in crate::network) fn take(&mut self, number: u64) -> Option<LiveDatagram> {
        let (packets, datagram) = self.under_way.get_mut(&number)?;
        *packets -= 1;
        if *packets > 0 {
            return Some(datagram.clone());
        }
        self.under_way.remove(&number).map(|(_, datagram)| datagram)
    }

    /// A link has made a second packet of one that carries it.
    pub(in crate::network) fn doubled(&mut self, number: u64) {
        if let Some((packets, _)) = self.under_way.get_mut(&number) {
            *packets += 1;
        }
    }
}

/// What the senders of one machine told each other last: they share its uplinks, which are nodes here.
#[derive(Debug, Default)]
pub(crate) struct Told(BTreeMap<(String, NodeId), BTreeMap<FlowId, (Standing, Time)>>);

impl Told {
    /// A member of a group tells how it stands on an uplink.
    pub(crate) fn tell(
        &mut self,
        group: &str,
        uplink: NodeId,
        member: FlowId,
        standing: Standing,
        now: Time,
    ) {
        self.0.entry((group.to_owned(), uplink)).or_default().insert(member, (standing, now));
    }

    /// What the other members told from `since` on.
    pub(crate) fn others(
        &self,
        group: &str,
        uplink: NodeId,
        member: FlowId,
        since: Option<Time>,
    ) -> Vec<(FlowId, Standing)> {
        let told = self.0.get(&(group.to_owned(), uplink)).into_iter().flatten();
        told.filter(|(other, (_, at))| **other != member && Some(*at) >= since)
            .map(|(other, (standing, _))| (*other, *standing))
            .collect()
    }
}
