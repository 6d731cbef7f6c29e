//! Who comes, and whether there is room.

use std::net::IpAddr;
use std::sync::Arc;

use anabranch_quic::Unproven;
use tokio::sync::watch;

use super::arrivals::Arrival;
use super::io_guard::Activity;
use super::limits::{Limits, Permit};

/// A connection that was let in, or is only told that there are too many.
pub(super) struct Visit {
    pub(super) client: IpAddr,
    pub(super) admission: Admission,
    /// True when the server ends.
    pub(super) stop: watch::Receiver<bool>,
}

/// What a connection counts for.
pub(super) enum Admission {
    /// The client that it comes from.
    Taken(Permit),
    /// Nothing yet: its handshake has to show that it comes from there.
    Unproven(Unproven),
}

impl Admission {
    /// `None` when even a refusal is too much.
    pub(super) fn of(client: IpAddr, arrival: &mut Arrival, limits: &Arc<Limits>) -> Option<Self> {
        match arrival {
            Arrival::Tcp(_) => limits.admit(client, Activity::waiting()).map(Self::Taken),
            Arrival::Quic(_, unproven) => match unproven.take() {
                Some(unproven) => Some(Self::Unproven(unproven)),
                None => limits.admit(client, Activity::default()).map(Self::Taken),
            },
        }
    }

    /// The address is proven. `None` when even a refusal is too much.
    pub(super) fn proven(self, client: IpAddr, limits: &Arc<Limits>) -> Option<Permit> {
        match self {
            Self::Taken(permit) => Some(permit),
            Self::Unproven(unproven) => {
                unproven.prove();
                limits.admit(client, Activity::default())
            }
        }
    }
}
