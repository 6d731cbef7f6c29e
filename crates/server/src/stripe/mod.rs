//! Stripe groups: which connections send one file together (`docs/protocol.md`).

use std::io;

use anabranch_protocol::stripe::{PROTOCOL, TOKEN_HEADER};
use http::header::{self, HeaderValue};
use http::{Method, Request};
use tokio::sync::watch;

use super::metrics::increment;
use super::shared::Shared;

mod group;
mod member;
mod registry;

pub(super) use member::Member;
pub(super) use registry::{Groups, Seat};

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
