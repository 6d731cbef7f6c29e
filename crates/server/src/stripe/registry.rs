//! The groups that there are, and places in them.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_protocol::stripe::MAX_CONNECTIONS;
use http::StatusCode;
use http::header::HeaderValue;
use tokio::sync::mpsc;

use super::Member;
use crate::files::Opened;
use crate::source::Source;

/// The groups of a server by token. There are never more than connections, as each has at least one.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    by_token: Mutex<HashMap<u128, Open>>,
}

#[derive(Debug)]
struct Open {
    path: PathBuf,
    etag: String,
    members: mpsc::Sender<Member>,
}

/// A place in a group, taken when the connection has changed over.
#[derive(Debug)]
pub(crate) enum Seat {
    /// The first: it opens the group and keeps it going, also after its own connection is gone.
    First(Registered, Source, u64),
    /// Another.
    Further(mpsc::Sender<Member>),
}

/// A group's entry, which goes when this does.
#[derive(Debug)]
pub(crate) struct Registered {
    groups: Arc<Groups>,
    token: u128,
    pub(super) joining: mpsc::Receiver<Member>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.groups.by_token.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

impl Groups {
    /// A seat in the group of `token` for this file; the group is opened when there is none.
    ///
    /// # Errors
    /// 400: not a token. 409: the group has another file, or another version of it.
    pub(crate) fn enter(self: &Arc<Self>, token: &HeaderValue, opened: Opened) -> Result<Seat, StatusCode> {
        let token = token
            .to_str()
            .ok()
            .filter(|token| token.len() == 32 && token.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let token =
            token.and_then(|token| u128::from_str_radix(token, 16).ok()).ok_or(StatusCode::BAD_REQUEST)?;
        let Opened { source, path, size, validators } = opened;
        match self.by_token.lock().unwrap_or_else(PoisonError::into_inner).entry(token) {
            Slot::Occupied(slot) => {
                let open = slot.get();
                let same = open.path == path && open.etag == validators.etag;
                if same { Ok(Seat::Further(open.members.clone())) } else { Err(StatusCode::CONFLICT) }
            }
            Slot::Vacant(slot) => {
                let (members, joining) = mpsc::channel(MAX_CONNECTIONS);
                slot.insert(Open { path, etag: validators.etag, members });
                Ok(Seat::First(Registered { groups: self.clone(), token, joining }, source, size))
            }
        }
    }
}
