//! Weights that a program gives its own connections, in place of what the rules of the group say.
//!
//! A program writes a socket's weight and group by its descriptor into a map that the kernel keeps with
//! the socket (`BPF_MAP_TYPE_SK_STORAGE`): nothing has to be taken out, no connection can be taken for
//! another one, and only who has the socket can give it a weight. The control reads it before the rules.

use std::os::fd::{AsRawFd, BorrowedFd};

use anabranch_congestion::vps::Weight;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};

use crate::error::Error;
use crate::in_use::groups_in_use;
use crate::pins::{GIVEN, PARAMETERS, RULES, loading, locked, pinned};
use crate::rules::{rules_of, write_rules};
use crate::weights::{GroupName, fixed};

/// What the kernel calls it.
const NAME: &str = "group";
/// A control that every kernel has.
const ANY_OTHER: &str = "reno";

/// The loaded control `group`, for a program that gives weights.
#[derive(Debug)]
pub struct Given {
    given: MapHandle,
    rules: MapHandle,
    parameters: MapHandle,
    /// What it is told by that it is still this one.
    loading: Option<(u64, u64)>,
}

/// A group that connections can be put into, as long as there are some in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupNumber(u32);

impl Given {
    /// The control as it is loaded now.
    ///
    /// # Errors
    /// It is not loaded, or not by this version, or this process may not use it.
    pub fn open() -> Result<Self, Error> {
        let loading = loading(NAME);
        let (given, rules, parameters) =
            (pinned(NAME, GIVEN)?, pinned(NAME, RULES)?, pinned(NAME, PARAMETERS)?);
        Ok(Self { given, rules, parameters, loading })
    }

    /// Whether this is still what connections get that choose it; otherwise it was unloaded, and maybe loaded
    /// again.
    pub fn is_current(&self) -> bool {
        self.loading.is_some() && self.loading == loading(NAME)
    }

    /// The group of this name. Where the rules have none, there is one from now on.
    ///
    /// # Errors
    /// There are too many groups, or the kernel will not.
    pub fn group(&self, name: GroupName) -> Result<GroupNumber, Error> {
        let find = || {
            let (rules, groups, set) = rules_of(&self.parameters, &self.rules)?;
            let number = groups.number(name).filter(|number| groups.is_asked_for(*number));
            Ok::<_, Error>((rules, groups, set, number))
        };
        if let (.., Some(number)) = find()? {
            return Ok(GroupNumber(number));
        }
        let _alone = locked(NAME)?;
        let (rules, groups, set, _) = find()?;
        let used = groups_in_use()?;
        let groups = rules.groups(&groups, Some(name), |number| used.contains(&number));
        let groups = groups.ok_or(Error::NoRoom)?;
        // Into the set that is in force: no connection goes by the names.
        write_rules(&self.rules, set, &rules.to_bytes(&groups))?;
        groups.number(name).map(GroupNumber).ok_or(Error::NoRoom)
    }

    /// Has a connection of this program's share in a group, by this weight.
    ///
    /// # Errors
    /// This process may not choose the control, or the kernel will not.
    pub fn join(&self, socket: BorrowedFd<'_>, group: GroupNumber, weight: Weight) -> Result<(), Error> {
        self.weigh(socket, group, weight)?;
        // One that has the control by its route or by default has not looked whether a weight is given.
        if tcp_congestion(socket).is_ok_and(|name| name == NAME) {
            set_tcp_congestion(socket, ANY_OTHER).map_err(refused)?;
        }
        set_tcp_congestion(socket, NAME).map_err(refused)
    }

    /// Changes the weight of one that shares; it holds from the next acknowledgement on.
    ///
    /// # Errors
    /// The kernel will not.
    pub fn weigh(&self, socket: BorrowedFd<'_>, group: GroupNumber, weight: Weight) -> Result<(), Error> {
        let [weight, group] = [fixed(weight), group.0].map(u32::to_ne_bytes);
        let key = socket.as_raw_fd().to_ne_bytes();
        let given = self.given.update(&key, &[weight, group].concat(), MapFlags::ANY);
        given.map_err(|error| Error::refused("give a connection its weight", &error))
    }
}

fn refused(error: Errno) -> Error {
    match error {
        Errno::PERM => Error::MayNotChoose(NAME),
        Errno::NOENT => Error::NotLoaded(NAME),
        error => Error::Refused { what: "choose group for a connection", problem: error.to_string() },
    }
}
