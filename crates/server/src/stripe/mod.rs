//! Stripe groups: which connections send one file together (`docs/protocol.md`).

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_protocol::stripe::{MAX_CONNECTIONS, PROTOCOL, TOKEN_HEADER};
use http::header::{self, HeaderValue};
use http::{Method, Request, StatusCode};
use tokio::sync::{mpsc, watch};

use super::Shared;
use super::files::Opened;
use super::metrics::increment;
use super::source::Source;

mod group;
mod member;

pub(super) use member::Member;

/// The token, when a request asks for striping: a GET that offers the protocol and has the header.
pub(super) fn requested<B>(request: &Request<B>) -> Option<HeaderValue> {
    let headers = request.headers();
    let lists = |name, item: &str| {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .any(|list| list.split(',').any(|listed| listed.trim().eq_ignore_ascii_case(item)))
    };
    let asked = *request.method() == Method::GET
        && lists(header::UPGRADE, PROTOCOL)
        && lists(header::CONNECTION, "upgrade");
    headers.get(TOKEN_HEADER).filter(|_| asked).cloned()
}

/// The groups of a server by token. There are never more than connections, as each has at least one.
#[derive(Debug, Default)]
pub(super) struct Groups {
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
pub(super) enum Seat {
    /// The first: it opens the group and keeps it going, also after its own connection is gone.
    First(Registered, Source, u64),
    /// Another.
    Further(mpsc::Sender<Member>),
}

/// A group's entry, which goes when this does.
#[derive(Debug)]
pub(super) struct Registered {
    groups: Arc<Groups>,
    token: u128,
    joining: mpsc::Receiver<Member>,
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
    pub(super) fn enter(self: &Arc<Self>, token: &HeaderValue, opened: Opened) -> Result<Seat, StatusCode> {
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

impl Seat {
    /// Takes the seat. A first connection's task runs the group to its end; the others' tasks end here.
    pub(super) async fn sit(
        self,
        member: Member,
        shared: &Shared,
        stop: watch::Receiver<bool>,
    ) -> io::Result<()> {
        increment(&shared.metrics.stripe_connections);
        match self {
            Self::First(registered, source, size) => {
                increment(&shared.metrics.stripe_groups);
                group::run(registered, source, size, member, shared, stop).await
            }
            // A group that is full or has ended in this moment closes the connection; the client sees that.
            Self::Further(members) => members
                .try_send(member)
                .map_err(|_| io::Error::other("the stripe group takes no more connections")),
        }
    }
}
