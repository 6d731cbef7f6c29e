//! Groups of TCP senders, and who is in them.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_congestion::joint::JointWindow;
use anabranch_congestion::vps::{Group, MemberId, Weight};
use rustc_hash::FxHashMap;

use super::half::HalfId;
use crate::model::Form;

/// The groups, and whose members the halves are.
#[derive(Debug, Default)]
pub(in crate::network) struct Groups {
    pub(in crate::network) groups: Vec<Shared>,
    pub(in crate::network) joint: Vec<JointWindow>,
    /// By the name a place in one of them.
    pub(in crate::network) by_name: BTreeMap<String, usize>,
    pub(in crate::network) places: FxHashMap<HalfId, Membership>,
}

/// A group, and the half of each member.
#[derive(Debug)]
pub(in crate::network) struct Shared {
    pub(in crate::network) group: Group,
    pub(in crate::network) halves: FxHashMap<MemberId, HalfId>,
    pub(in crate::network) watches: bool,
}

/// A half's place in a group.
#[derive(Debug)]
pub(in crate::network) struct Membership {
    pub(in crate::network) group: usize,
    pub(in crate::network) weight: Weight,
    pub(in crate::network) form: Form,
    pub(in crate::network) member: Option<MemberId>,
    /// With windows: its place in the joint one, and the beginnings of the segments that are on their way.
    pub(in crate::network) seat: Option<usize>,
    pub(in crate::network) outstanding: BTreeSet<u64>,
    /// Whether its window held it back when it sent last.
    pub(in crate::network) is_limited: bool,
    /// It leaves when everything that was written has arrived.
    pub(in crate::network) leaves_when_done: bool,
    pub(in crate::network) has_left: bool,
}
