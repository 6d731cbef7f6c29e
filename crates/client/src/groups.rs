//! The stripe groups of a film: their names, and on which paths there are any.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_film::control::PathId;

use super::membership::GroupName;

/// The stripe groups by path.
#[derive(Debug, Default)]
pub(super) struct Groups {
    names: BTreeMap<PathId, GroupName>,
    /// Paths on which striping does not work, whatever the server says.
    refused: BTreeSet<PathId>,
    /// Paths on which it has worked.
    worked: BTreeSet<PathId>,
}

impl Groups {
    /// The name of the group of this number on a path; `None`: there are to be none.
    pub(super) fn name(&mut self, path: PathId, number: u32) -> Option<GroupName> {
        if self.refused.contains(&path) {
            return None;
        }
        let known = self.names.get(&path).filter(|name| name.number == number).cloned();
        let mut name = known.or_else(|| GroupName::draw(number))?;
        name.has_worked = self.worked.contains(&path);
        self.names.insert(path, name.clone());
        Some(name)
    }

    /// Somebody has joined one on this path.
    pub(super) fn work(&mut self, path: PathId) {
        self.worked.insert(path);
    }

    /// Ranges are asked for on this path from now on; false: they were before.
    pub(super) fn refuse(&mut self, path: PathId) -> bool {
        self.refused.insert(path)
    }
}
