//! What a sender needs.

use std::net::SocketAddr;

use anabranch_sockets::Interface;

use super::group::GroupSettings;
use crate::Trusted;

/// What a sender needs.
#[derive(Clone, Debug)]
pub struct SenderSettings {
    /// The receiver.
    pub to: SocketAddr,
    /// Its name, which its certificate has to have.
    pub name: String,
    /// Whom to trust.
    pub trusted: Trusted,
    /// What the receiver lets in.
    pub token: Vec<u8>,
    /// Decisions.
    pub live: anabranch_live::Settings,
    /// A link for each of these; none: the one that the system chooses.
    pub interfaces: Vec<Interface>,
    /// Which other senders of this machine it shares its uplinks with; `None`: with none.
    pub group: Option<GroupSettings>,
}
