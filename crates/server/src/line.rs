//! The answers on a connection of HTTP/3 stand in line: which goes on is the business of
//! [`anabranch_congestion::turns`].
//!
//! QUIC keeps what is written to it until it is acknowledged and sends it in the order of writing, so the
//! order is decided here: a piece is written when it is its answer's turn, and no more is kept than keeps the
//! path busy ([`InFlight::send_window`]).

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_congestion::turns::{AnswerId, Priority, Turns};
use anabranch_congestion::vps::Weight;
use anabranch_units::Bytes;
use http::HeaderMap;
use quinn::Connection;
use sfv::{BareItem, Dictionary, ListEntry, Parser};
use tokio::sync::Notify;
use tokio::time::{Duration, timeout};

use anabranch_quic::{InFlight, Membership};

/// How often it is looked whether the one whose turn it is is held up by its client.
const LOOK: Duration = Duration::from_millis(50);
/// A longer `Priority` says nothing.
const LONGEST_PRIORITY: usize = 256;

/// The answers of a connection.
pub(super) struct Line {
    connection: Connection,
    in_flight: InFlight,
    /// Its place in the group of all connections, where they have weights.
    membership: Option<Membership>,
    inner: Mutex<Inner>,
    /// It is another one's turn.
    moved: Notify,
}

#[derive(Default)]
struct Inner {
    turns: Turns,
    /// Answers of which a piece is being written.
    writing: BTreeSet<AnswerId>,
    turn: Option<AnswerId>,
    weight: Option<Weight>,
}

impl Line {
    pub(super) fn new(
        connection: Connection,
        in_flight: InFlight,
        membership: Option<Membership>,
    ) -> Arc<Self> {
        Arc::new(Self { connection, in_flight, membership, inner: Mutex::default(), moved: Notify::new() })
    }

    /// An answer comes in; it leaves when what is returned is dropped.
    pub(super) fn begin(self: &Arc<Self>, priority: Priority, weight: Weight) -> Place {
        let id = self.change(|inner| inner.turns.begin(priority, weight));
        Place { line: self.clone(), id }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, what: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.lock();
        let result = what(&mut inner);
        let weight = inner.turns.weight();
        if weight != inner.weight {
            inner.weight = weight;
            if let Some(membership) = &self.membership {
                membership.count(weight);
            }
        }
        let turn = inner.turns.turn();
        if turn != inner.turn {
            inner.turn = turn;
            self.moved.notify_waiters();
        }
        result
    }

    /// Where nothing is on its way and a piece cannot be written, its client has closed that stream's window,
    /// and the others go on; or that of the connection, and they find out.
    fn pass_over_the_stuck(&self) {
        if !self.in_flight.is_nothing() {
            return;
        }
        self.change(|inner| {
            while let Some(turn) = inner.turns.turn().filter(|turn| inner.writing.contains(turn)) {
                inner.turns.set_stuck(turn, true);
            }
        });
    }
}

/// An answer's place in the line.
pub(super) struct Place {
    line: Arc<Line>,
    id: AnswerId,
}

impl Place {
    pub(super) fn set_weight(&self, weight: Weight) {
        self.line.change(|inner| inner.turns.set_weight(self.id, weight));
    }

    /// Waits for something else than the network; others go on meanwhile. Cancel-safe when `what` is.
    pub(super) async fn paused_for<T>(&self, what: impl Future<Output = T>) -> T {
        let mut what = pin!(what);
        let mut pauses = false;
        let result = poll_fn(|cx| {
            let polled = what.as_mut().poll(cx);
            if polled.is_pending() && !pauses {
                pauses = true;
                self.line.change(|inner| inner.turns.set_pauses(self.id, true));
            }
            polled
        })
        .await;
        if pauses {
            self.line.change(|inner| inner.turns.set_pauses(self.id, false));
        }
        result
    }

    /// Waits for the turn, for example to read what is written then: who waits needs no memory. Cancel-safe.
    pub(super) async fn turn(&self) {
        let line = &self.line;
        loop {
            let mut moved = pin!(line.moved.notified());
            moved.as_mut().enable();
            if line.lock().turn == Some(self.id) {
                return;
            }
            if timeout(LOOK, moved).await.is_err() {
                line.pass_over_the_stuck();
            }
        }
    }

    /// Waits for the turn to write so much. It is written while what is returned lives. Cancel-safe.
    pub(super) async fn turn_to_write(&self, bytes: Bytes) -> Writing<'_> {
        self.turn().await;
        let line = &self.line;
        if let Some(window) = line.in_flight.new_send_window() {
            line.connection.set_send_window(window);
        }
        line.change(|inner| {
            inner.turns.send(self.id, bytes);
            inner.writing.insert(self.id);
        });
        Writing(self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.line.change(|inner| inner.turns.end(self.id));
    }
}

/// A piece is being written.
pub(super) struct Writing<'a>(&'a Place);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let Place { line, id } = self.0;
        line.change(|inner| {
            inner.writing.remove(id);
            inner.turns.set_stuck(*id, false);
        });
    }
}

/// What a request says of its answer (RFC 9218, section 5); what is written wrongly is ignored.
pub(super) fn priority(headers: &HeaderMap) -> Priority {
    let lines: Vec<&[u8]> = headers.get_all("priority").iter().map(|value| value.as_bytes()).collect();
    let text = lines.join(&b", "[..]);
    let dictionary = if text.len() <= LONGEST_PRIORITY { Parser::new(&text).parse().ok() } else { None };
    let dictionary: Dictionary = dictionary.unwrap_or_default();
    let item = |key| match dictionary.get(key) {
        Some(ListEntry::Item(item)) => Some(&item.bare_item),
        _ => None,
    };
    let urgency = match item("u") {
        Some(BareItem::Integer(urgency)) => u8::try_from(i64::from(*urgency)).ok(),
        _ => None,
    };
    let is_incremental = matches!(item("i"), Some(BareItem::Boolean(true)));
    let of_urgency = |urgency| Priority::new(urgency, is_incremental);
    urgency.and_then(of_urgency).or_else(|| of_urgency(Priority::USUAL_URGENCY)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Priority, priority};
    use http::HeaderMap;

    proptest! {
        #[test]
        fn any_priority_is_read_or_ignored(lines in prop::collection::vec("([ui]=?[0-9?\\-\"():;,. \
            ]{0,4}|[ -~]{0,40})", 0..4)) {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("priority", line.parse().unwrap());
            }
            priority(&headers);
        }
    }

    #[test]
    fn the_priority_is_what_the_header_says_and_the_usual_one_where_it_says_nothing() {
        let of = |lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("priority", line.parse().unwrap());
            }
            priority(&headers)
        };
        let new = |urgency, is_incremental| Priority::new(urgency, is_incremental).unwrap();
        assert_eq!(of(&[]), new(3, false));
        assert_eq!(of(&["u=1, i"]), new(1, true));
        assert_eq!(of(&["i", "u=7;x=y"]), new(7, true));
        assert_eq!(of(&["i=?0,u=0, later=(a b)"]), new(0, false));
        for wrong in ["u=8, i", "u=-1,i", "u=\"1\",i", "u=1.0, i"] {
            assert_eq!(of(&[wrong]), new(3, true), "{wrong}");
        }
        for garbage in ["u=1;;", "=", "u=1 i", &"u=1, ".repeat(100)] {
            assert_eq!(of(&[garbage]), new(3, false), "{garbage}");
        }
    }
}
