//! The stripe groups of a stream: their names, and what their connections hand to the session.

use std::sync::Arc;

use anabranch_film::control::{ConnectionId, PathId};
use anabranch_http::tcp::SocketControl;
use anabranch_protocol::ranges::RangeSet;
use anabranch_units::{Bytes, Duration};

use super::error::EngineError;
use super::membership::{Brought, GroupName};
use super::notice::Event;
use super::shared::Shared;

impl Shared {
    /// The group to join on a path; `None`: ranges are to be asked for.
    pub(super) fn group_name(&self, path: PathId) -> Option<GroupName> {
        let replica = self.replica(path);
        // Of a film that grows every group would begin with another version.
        let stripes = self.settings.stripe && replica.stripes && replica.growth.size().is_none();
        let mut core = self.lock();
        if !stripes || !self.ranges || self.size.is_none() || core.groups.refused.contains(&path) {
            return None;
        }
        let number = core.session.group_number(path);
        let known = core.groups.names.get(&path).filter(|name| name.number == number).cloned();
        let name = known.or_else(|| GroupName::draw(number))?;
        core.groups.names.insert(path, name.clone());
        Some(name)
    }

    /// Whether striping worked on a path before.
    pub(super) fn has_striped(&self, path: PathId) -> bool {
        self.lock().groups.worked.contains(&path)
    }

    /// Ranges are asked for on this path from now on.
    pub(super) fn stripes_no_more(&self, path: PathId, error: &str) {
        if self.lock().groups.refused.insert(path) {
            self.note(Event::NotStriped { url: self.url(path).to_owned(), error: error.to_owned() });
        }
    }

    /// A connection is in the group of its path; false: that group has ended meanwhile.
    pub(super) fn joined_group(
        self: &Arc<Self>,
        id: ConnectionId,
        path: PathId,
        number: u32,
        control: SocketControl,
        rtt: Duration,
    ) -> bool {
        let mut core = self.lock();
        let core = &mut *core;
        if core.session.group_number(path) != number {
            return false;
        }
        let Some(link) = core.links.get_mut(&id) else { return false };
        link.control = Some(control);
        core.groups.worked.insert(path);
        self.note(Event::Striped { connection: id.0, url: self.url(path).to_owned() });
        core.session.joined_group(id, rtt, self.now());
        self.carry_out(core);
        true
    }

    /// Frames have come over a connection of a group. Answers what is wrong with one of them.
    ///
    /// # Errors
    /// The payload cannot be written, or is not what came before.
    pub(super) fn brought(
        self: &Arc<Self>,
        id: ConnectionId,
        brought: Vec<Brought>,
    ) -> Result<Option<String>, EngineError> {
        let mut core = self.lock();
        let core = &mut *core;
        let mut wrong = None;
        core.session.heard(id, self.now());
        for frame in brought {
            // Closed meanwhile: nobody waits for it.
            if !core.links.contains_key(&id) {
                break;
            }
            let now = self.now();
            let result = match frame {
                Brought::Synced { mark, queued } => core.session.synced(id, mark, &queued, now),
                Brought::Block { sequence, offset, mut payload } => {
                    let range = offset..offset.saturating_add(Bytes::of(payload.len()).get());
                    let mut have = RangeSet::new();
                    core.session.have().iter_within(range.clone()).for_each(|there| {
                        have.insert(there);
                    });
                    match core.session.block_arrived(id, sequence, range, now) {
                        Ok(_) => {
                            core.store.take(offset, &mut payload, &have)?;
                            Ok(())
                        }
                        Err(error) => Err(error),
                    }
                }
            };
            if let Err(error) = result {
                wrong = Some(error.to_string());
                break;
            }
        }
        self.bound_memory(core);
        self.carry_out(core);
        self.progress.notify_waiters();
        Ok(wrong)
    }
}
