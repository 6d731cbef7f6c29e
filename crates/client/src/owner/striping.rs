//! What connections of stripe groups ask and bring.

use anabranch_film::control::{ConnectionId, PathId};
use anabranch_units::{Bytes, Time};

use super::Owner;
use crate::command::End;
use crate::membership::{Brought, GroupName};
use crate::notice::Event;

impl Owner {
    /// The group to join on a path; `None`: ranges are to be asked for.
    pub(super) fn group_name(&mut self, path: PathId) -> Option<GroupName> {
        let replica = self.shared.replica(path);
        // Of a film that grows every group would begin with another version.
        let stripes = self.shared.settings.stripe && replica.stripes && replica.growth.size().is_none();
        // A group is joined for all that the server has.
        let is_part = self.shared.settings.part.is_some();
        if !stripes || is_part || !self.shared.ranges || self.shared.size.is_none() {
            return None;
        }
        self.groups.name(path, self.session.group_number(path))
    }

    /// Ranges are asked for on this path from now on.
    pub(super) fn stripes_no_more(&mut self, path: PathId, error: String) {
        if self.groups.refuse(path) {
            self.shared.note(Event::NotStriped { url: self.shared.url(path).to_owned(), error });
        }
    }

    /// Frames have come over a connection of a group.
    pub(super) fn brought(
        &mut self,
        id: ConnectionId,
        path: PathId,
        frames: Vec<Brought>,
        broken: Option<String>,
        now: Time,
    ) {
        // Closed meanwhile: nobody waits for it.
        if !self.connections.has(id) {
            return;
        }
        self.session.heard(id, now);
        self.has_news = true;
        let wrong = frames.into_iter().find_map(|frame| self.take_frame(id, frame, now));
        if let Some(error) = wrong.or(broken) {
            let error = format!("the server breaks the striping protocol: {error}");
            self.stripes_no_more(path, error.clone());
            self.ended(id, path, End::Failed(error), now);
        }
    }

    /// Answers what is wrong with a frame.
    fn take_frame(&mut self, id: ConnectionId, frame: Brought, now: Time) -> Option<String> {
        let result = match frame {
            Brought::Synced { mark, queued } => self.session.synced(id, mark, &queued, now),
            Brought::Block { sequence, offset, payload } => {
                let range = offset..offset.saturating_add(Bytes::of(payload.len()).get());
                self.session.block_arrived(id, sequence, range, now).map(|_| {
                    if let Err(error) = self.shared.store.take(offset, payload.freeze()) {
                        self.fail(error);
                    }
                })
            }
        };
        result.err().map(|error| error.to_string())
    }
}
