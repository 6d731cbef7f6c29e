//! Servers that do not allow everything: their places for connections, and what paces their answers.

use std::collections::{BTreeMap, VecDeque};

use anabranch_units::{Bytes, Duration, Rate};

use super::half::HalfId;
use crate::model::{Model, MostConnections, NodeId, Server};

/// A pace's place among those of its network.
pub(in crate::network) type PaceId = u32;

/// A server writes as much at once as it may in this time, in whole segments.
const PIECE: Duration = Duration::from_millis(10);
/// And no more than this.
const LARGEST_PIECE: u64 = 64 * 1024;

/// All of them.
#[derive(Debug, Default)]
pub(in crate::network) struct Servers {
    by_node: BTreeMap<NodeId, (Server, u32)>,
    /// The connections to them, by the half that carries answers.
    pub(in crate::network) visits: BTreeMap<HalfId, Visit>,
    pub(in crate::network) paces: Vec<Pace>,
    /// The paces of clients, by server and client.
    clients: BTreeMap<(NodeId, NodeId), PaceId>,
}

/// A connection to such a server, and what it has to write on it.
#[derive(Debug)]
pub(in crate::network) struct Visit {
    server: NodeId,
    place: Place,
    /// What it goes through before it is written: the connection's own pace, and the client's.
    pub(in crate::network) own: Option<PaceId>,
    pub(in crate::network) client: Option<PaceId>,
    /// End of what the server's application has for it, and of what was written.
    pub(in crate::network) wanted: u64,
    pub(in crate::network) written: u64,
    piece: u64,
}

/// Whether a connection has one of the server's places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It has not asked yet.
    Unasked,
    Taken,
    /// It was let in without one, to hear that there is none.
    TurnedAway,
    Left,
}

/// What a server does when a connection is to be set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::network) enum Answer {
    Accept,
    Refuse,
    Nothing,
}

impl Servers {
    pub(in crate::network) fn new(model: &Model) -> Self {
        let limited = |(id, node): (NodeId, &crate::model::Node)| {
            (node.server != Server::default()).then_some((id, (node.server, 0)))
        };
        let by_node = model.nodes.iter().enumerate().filter_map(limited).collect();
        Self { by_node, ..Self::default() }
    }

    /// A connection from a client, whose answers are carried by this half in segments of this size.
    pub(in crate::network) fn expect(&mut self, half: HalfId, server: NodeId, client: NodeId, segment: u64) {
        let Some((allowed, _)) = self.by_node.get(&server) else { return };
        let Server { connection_cap, client_cap, .. } = *allowed;
        let own = connection_cap.map(|rate| self.add_pace(rate));
        let client = client_cap.map(|rate| match self.clients.get(&(server, client)) {
            Some(known) => *known,
            None => {
                let pace = self.add_pace(rate);
                self.clients.insert((server, client), pace);
                pace
            }
        });
        let slowest = connection_cap.into_iter().chain(client_cap).min().unwrap_or(Rate::ZERO);
        let piece = slowest.amount_in(PIECE).get().min(LARGEST_PIECE) / segment * segment;
        let piece = piece.max(segment);
        let place = Place::Unasked;
        self.visits.insert(half, Visit { server, place, own, client, wanted: 0, written: 0, piece });
    }

    fn add_pace(&mut self, rate: Rate) -> PaceId {
        self.paces.push(Pace { rate, free_at: 0, waiting: VecDeque::new(), is_called: false });
        self.paces.len() as PaceId - 1
    }

    /// A connection is to be set up, for the first time or once more.
    pub(in crate::network) fn asked(&mut self, half: HalfId) -> Answer {
        let Some(visit) = self.visits.get_mut(&half) else { return Answer::Accept };
        let Some((allowed, taken)) = self.by_node.get_mut(&visit.server) else { return Answer::Accept };
        match (visit.place, allowed.connections) {
            (Place::Taken | Place::TurnedAway, _) | (_, None) => Answer::Accept,
            // What was on its way when its client gave up.
            (Place::Left, _) => Answer::Nothing,
            (Place::Unasked, Some(MostConnections { most, .. })) if *taken < most => {
                *taken += 1;
                visit.place = Place::Taken;
                Answer::Accept
            }
            (Place::Unasked, Some(MostConnections { above, .. })) => match above {
                crate::model::Above::Refuse => Answer::Refuse,
                crate::model::Above::Drop => Answer::Nothing,
                crate::model::Above::Busy => {
                    visit.place = Place::TurnedAway;
                    Answer::Accept
                }
            },
        }
    }

    /// The client has left.
    pub(in crate::network) fn left(&mut self, half: HalfId) {
        let Some(visit) = self.visits.get_mut(&half) else { return };
        let had_a_place = visit.place == Place::Taken;
        visit.place = Place::Left;
        if had_a_place && let Some((_, taken)) = self.by_node.get_mut(&visit.server) {
            *taken -= 1;
        }
    }
}

impl Visit {
    pub(in crate::network) fn is_turned_away(&self) -> bool {
        self.place == Place::TurnedAway
    }

    pub(in crate::network) fn has_left(&self) -> bool {
        self.place == Place::Left
    }

    /// The pace that it goes through first.
    pub(in crate::network) fn first(&self) -> Option<PaceId> {
        self.own.or(self.client)
    }

    /// How much is written next.
    pub(in crate::network) fn next_piece(&self) -> u64 {
        (self.wanted - self.written).min(self.piece)
    }
}

/// Lets pieces pass in turn, at a rate. A rest is not made up for.
#[derive(Debug)]
pub(in crate::network) struct Pace {
    rate: Rate,
    free_at: u64,
    /// Those that have a piece to write. None is here twice.
    pub(in crate::network) waiting: VecDeque<HalfId>,
    pub(in crate::network) is_called: bool,
}

impl Pace {
    /// From when on the next piece may pass.
    pub(in crate::network) fn free_at(&self) -> u64 {
        self.free_at
    }

    pub(in crate::network) fn passes(&mut self, piece: u64, now: u64) {
        self.free_at = now.saturating_add(self.rate.time_for(Bytes::new(piece)).as_nanos());
    }
}
