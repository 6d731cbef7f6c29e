//! Live streams: what is sent, from where, and how its sender is set.

use anabranch_congestion::vps::Weight;
use anabranch_live::Settings;
use anabranch_units::{Duration, Rate};

use super::ids::NodeId;

/// A live stream over datagrams, with the two ends of `anabranch send` and `receive`.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// The nodes from which it is sent, an uplink each: the interfaces of one sender.
    pub from: Vec<NodeId>,
    /// Who receives it.
    pub to: NodeId,
    /// The mean rate of what comes into the sender.
    pub rate: Rate,
    /// Where it comes in pictures, of which some are larger; `None`: in packets at even intervals.
    pub key_frames: Option<KeyFrames>,
    /// How the sender does it.
    pub settings: Settings,
    /// Whom it shares its uplinks with; `None`: with nobody.
    pub share: Option<LiveShare>,
}

/// A live sender's place in a group: senders of one machine that share what they are allowed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveShare {
    /// The group's name.
    pub group: String,
    /// The sender's weight in it.
    pub weight: Weight,
}

/// Pictures of which some are larger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyFrames {
    /// From one of the larger ones to the next.
    pub every: Duration,
    /// How many times as large as another picture they are.
    pub times: f64,
}
