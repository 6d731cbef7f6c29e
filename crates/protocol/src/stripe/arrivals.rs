//! The receiver: what has come, and what was lost with a connection.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::ConnectionId;
use crate::ranges::RangeSet;

/// A frame that no correct sender sends. The connection it came on cannot be trusted any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnexpectedFrame {
    /// Frame on a connection that is not in the group.
    #[error("frame on a connection that is not in the group")]
    Connection,
    /// Block numbers rise on each connection.
    #[error("block {sequence} after block {before}")]
    Order {
        /// Number of this block.
        sequence: u64,
        /// Number of the block before, on this connection.
        before: u64,
    },
    /// Bytes that were never asked for, or more often than they were asked for.
    #[error("bytes that were not asked for")]
    Unwanted,
}

/// What a receiver knows of its group: which bytes are due, and which of them will not come.
///
/// A connection delivers in order, so an answer to SYNC stands behind every block that was cut before it.
/// When the answer has come over every live connection, a byte that was due at the SYNC, is not queued at the
/// sender and has not arrived went down with a connection and is asked for again.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// Last block number of each live connection.
    connections: BTreeMap<ConnectionId, Option<u64>>,
    /// Everything ever asked for.
    asked: RangeSet,
    /// How many bytes may still come: each is sent at most as often as it was asked for.
    outstanding: u64,
    /// Asked for and not here.
    due: RangeSet,
    sync: Option<Sync>,
    next_mark: u64,
}

#[derive(Debug)]
struct Sync {
    mark: u64,
    /// Due at the SYNC, not arrived, and not queued at the sender.
    suspects: RangeSet,
    /// Live connections on which the answer has not come.
    waiting: BTreeSet<ConnectionId>,
}

impl Arrivals {
    /// A group without connections.
    pub fn new() -> Self {
        Self::default()
    }

    /// A connection joined the group.
    pub fn connected(&mut self, connection: ConnectionId) {
        self.connections.insert(connection, None);
    }

    /// `range` was asked for, the first time or again.
    pub fn wanted(&mut self, range: Range<u64>) {
        self.asked.insert(range.clone());
        self.outstanding = self.outstanding.saturating_add(range.end - range.start);
        self.due.insert(range);
    }

    /// `range` is not needed any more; blocks of it that are on their way are still accepted.
    pub fn cancelled(&mut self, range: Range<u64>) {
        self.take(range);
    }

    /// What has been asked for and has neither arrived nor been cancelled.
    pub fn due(&self) -> &RangeSet {
        &self.due
    }

    /// A block came; answers how many of its bytes were due.
    ///
    /// # Errors
    /// No correct sender sends this block; nothing changed.
    pub fn arrived(
        &mut self,
        connection: ConnectionId,
        sequence: u64,
        range: Range<u64>,
    ) -> Result<u64, UnexpectedFrame> {
        let last = self.connections.get_mut(&connection).ok_or(UnexpectedFrame::Connection)?;
        if let Some(before) = last.filter(|before| *before >= sequence) {
            return Err(UnexpectedFrame::Order { sequence, before });
        }
        let outstanding = self.outstanding.checked_sub(range.end - range.start);
        let Some(outstanding) = outstanding.filter(|_| self.asked.contains(&range)) else {
            return Err(UnexpectedFrame::Unwanted);
        };
        self.outstanding = outstanding;
        *last = Some(sequence);
        Ok(self.take(range))
    }

    /// A connection is gone: [`Self::sync`] is due.
    pub fn closed(&mut self, connection: ConnectionId) -> Option<u64> {
        self.connections.remove(&connection)?;
        self.sync()
    }

    /// The mark of a SYNC to send on a live connection, behind all that was asked for there; `None` when
    /// nothing is due or nobody is left to ask. It replaces a SYNC before.
    ///
    /// What was asked for on a dead connection may never have reached the sender: it counts as due, and comes
    /// out as lost when the sender does not know it. A sender that has not noticed a death yet goes on
    /// cutting blocks for the dead connection, behind the SYNC: so ask again when bytes are due and nothing
    /// arrives for a while.
    pub fn sync(&mut self) -> Option<u64> {
        self.sync = None;
        if self.due.is_empty() || self.connections.is_empty() {
            return None;
        }
        let mark = self.next_mark;
        self.next_mark += 1;
        let waiting = self.connections.keys().copied().collect();
        self.sync = Some(Sync { mark, suspects: self.due.clone(), waiting });
        Some(mark)
    }

    /// The answer to a SYNC came; answers the ranges that are lost, when this was the last one missing. They
    /// stay due: the caller asks for them again, with [`Self::wanted`]. Answers to an older SYNC change
    /// nothing.
    ///
    /// # Errors
    /// The connection is not in the group.
    pub fn synced(
        &mut self,
        connection: ConnectionId,
        mark: u64,
        queued: &[Range<u64>],
    ) -> Result<Vec<Range<u64>>, UnexpectedFrame> {
        if !self.connections.contains_key(&connection) {
            return Err(UnexpectedFrame::Connection);
        }
        let Some(sync) = self.sync.as_mut().filter(|sync| sync.mark == mark) else { return Ok(Vec::new()) };
        sync.waiting.remove(&connection);
        for range in queued {
            sync.suspects.remove(range.clone());
        }
        if !sync.waiting.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.sync.take().map(|sync| sync.suspects.iter().collect()).unwrap_or_default())
    }

    fn take(&mut self, range: Range<u64>) -> u64 {
        if let Some(sync) = &mut self.sync {
            sync.suspects.remove(range.clone());
        }
        self.due.remove(range)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::stripe::{Block, QueueEnd, Striper};

    enum Sent {
        Block(Block),
        Synced(u64, Vec<Range<u64>>),
    }

    proptest! {
        /// Four connections with queues of their own speed, three of which die at any moment: exactly the
        /// bytes that went down with them are asked for again, and everything arrives.
        #[test]
        fn what_went_down_with_a_connection_is_asked_for_again(
            steps in prop::collection::vec((0_usize..4, 0_usize..4), 50..400), deaths in prop::collection::vec(0_usize..400, 3),
        ) {
            const SIZE: u64 = 1_000_000;
            let (mut striper, mut arrivals) = (Striper::new(SIZE), Arrivals::new());
            let mut wires: Vec<Option<VecDeque<Sent>>> = (0..4).map(|_| Some(VecDeque::new())).collect();
            for id in 0..4 {
                striper.connected(ConnectionId(id));
                arrivals.connected(ConnectionId(id));
            }
            striper.want(0..SIZE, QueueEnd::Back).unwrap();
            arrivals.wanted(0..SIZE);
            let (mut here, mut lost_with_them, mut asked_again) = (RangeSet::new(), RangeSet::new(), 0);
            let mut step = 0;
            while !arrivals.due().is_empty() {
                prop_assert!(step < 10_000, "stuck with {:?}", arrivals.due());
                let (ready, reader) = steps[step % steps.len()];
                for (dead, _) in deaths.iter().enumerate().filter(|(_, at)| **at == step) {
                    let Some(wire) = wires[dead].take() else { continue };
                    for sent in wire {
                        if let Sent::Block(block) = sent { lost_with_them.insert(block.range); }
                    }
                    let id = ConnectionId(u32::try_from(dead).unwrap());
                    striper.closed(id);
                    if let Some(mark) = arrivals.closed(id) {
                        for wire in wires.iter_mut().flatten() {
                            wire.push_back(Sent::Synced(mark, striper.queued().cloned().collect()));
                        }
                    }
                }
                let open = |id: ConnectionId| wires[id.0 as usize].as_ref().is_some_and(|wire| wire.len() < 8);
                if let Some((id, block)) = striper.next_block(|id| open(id) && id.0 as usize >= ready)
                    && let Some(wire) = &mut wires[id.0 as usize] {
                    wire.push_back(Sent::Block(block));
                }
                let id = ConnectionId(u32::try_from(reader).unwrap());
                match wires[reader].as_mut().and_then(VecDeque::pop_front) {
                    Some(Sent::Block(block)) => {
                        let new = arrivals.arrived(id, block.sequence, block.range.clone()).unwrap();
                        prop_assert_eq!(new, block.range.end - block.range.start, "nothing comes twice");
                        here.insert(block.range);
                    }
                    Some(Sent::Synced(mark, queued)) => {
                        for range in arrivals.synced(id, mark, &queued).unwrap() {
                            asked_again += range.end - range.start;
                            striper.want(range.clone(), QueueEnd::Front).unwrap();
                            arrivals.wanted(range);
                        }
                    }
                    None => {}
                }
                step += 1;
            }
            prop_assert_eq!(here.total(), SIZE);
            prop_assert!(asked_again >= lost_with_them.total());
        }
    }

    #[test]
    fn blocks_that_no_sender_sends_are_refused() {
        let (mut arrivals, one) = (Arrivals::new(), ConnectionId(1));
        assert_eq!(arrivals.arrived(one, 0, 0..1), Err(UnexpectedFrame::Connection));
        arrivals.connected(one);
        arrivals.wanted(0..10);
        assert_eq!(arrivals.arrived(one, 5, 5..11), Err(UnexpectedFrame::Unwanted));
        assert_eq!(arrivals.arrived(one, 5, 0..5), Ok(5));
        assert_eq!(arrivals.arrived(one, 5, 5..6), Err(UnexpectedFrame::Order { sequence: 5, before: 5 }));
        assert_eq!(arrivals.arrived(one, 6, 4..6), Ok(1), "twice is possible after a loss");
        assert_eq!(arrivals.closed(one), None, "nobody is left to ask");
    }
}
