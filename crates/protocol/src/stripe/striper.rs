//! The sender: a queue of wanted ranges, cut into blocks, and round robin over the connections.

use std::collections::VecDeque;
use std::ops::Range;

use super::{MAX_BLOCK_BYTES, MAX_QUEUED_RANGES};
use crate::ConnectionId;

/// Where a wanted range goes in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueEnd {
    /// Before everything that is queued.
    Front,
    /// Behind everything that is queued.
    Back,
}

/// One block to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its number in the group, from 0.
    pub sequence: u64,
    /// Its bytes of the file, 1 to [`MAX_BLOCK_BYTES`].
    pub range: Range<u64>,
}

/// Why a range was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WantError {
    /// Part of the range is not in the file.
    #[error("range beyond the end of the file")]
    BeyondEnd,
    /// The queue would have more than [`MAX_QUEUED_RANGES`] ranges.
    #[error("more than {MAX_QUEUED_RANGES} ranges are queued")]
    TooManyRanges,
}

/// Cuts what is wanted into blocks and deals them out.
///
/// The rule is MultiTCP's (section 7.3): the next block goes to the next connection in round robin, and when
/// that one is blocked to the first behind it that is not. What "blocked" means is the caller's business.
#[derive(Debug)]
pub struct Striper {
    size: u64,
    /// Disjoint and not empty.
    queue: VecDeque<Range<u64>>,
    connections: Vec<ConnectionId>,
    /// Index of the connection whose turn it is.
    turn: usize,
    sequence: u64,
}

impl Striper {
    /// A sender of a file of `size` bytes, with no connection and nothing wanted.
    pub fn new(size: u64) -> Self {
        Self { size, queue: VecDeque::new(), connections: Vec::new(), turn: 0, sequence: 0 }
    }

    /// A connection joined; its turn comes after all others had theirs.
    pub fn connected(&mut self, connection: ConnectionId) {
        self.connections.insert(self.turn, connection);
        self.turn = (self.turn + 1) % self.connections.len();
    }

    /// A connection is gone.
    pub fn closed(&mut self, connection: ConnectionId) {
        let Some(at) = self.connections.iter().position(|known| *known == connection) else { return };
        self.connections.remove(at);
        if at < self.turn {
            self.turn -= 1;
        }
        if self.turn == self.connections.len() {
            self.turn = 0;
        }
    }

    /// Queues `range`. Bytes that are queued already are sent once: at the front when this asks for the
    /// front, else where they were.
    ///
    /// # Errors
    /// Nothing of the range is queued.
    pub fn want(&mut self, range: Range<u64>, priority: QueueEnd) -> Result<(), WantError> {
        if range.end > self.size {
            return Err(WantError::BeyondEnd);
        }
        match priority {
            QueueEnd::Front => {
                let mut queue = without(&self.queue, &range);
                if !range.is_empty() {
                    queue.push_front(range);
                }
                self.replace(queue)
            }
            QueueEnd::Back => {
                let mut new = VecDeque::from([range]);
                new.retain(|range| !range.is_empty());
                for queued in &self.queue {
                    new = without(&new, queued);
                }
                if self.queue.len() + new.len() > MAX_QUEUED_RANGES {
                    return Err(WantError::TooManyRanges);
                }
                self.queue.append(&mut new);
                Ok(())
            }
        }
    }

    /// Takes `range` out of the queue.
    ///
    /// # Errors
    /// The rest would be too many ranges; nothing is taken out.
    pub fn cancel(&mut self, range: &Range<u64>) -> Result<(), WantError> {
        let queue = without(&self.queue, range);
        self.replace(queue)
    }

    /// What is not cut into blocks yet, in order.
    pub fn queued(&self) -> impl Iterator<Item = &Range<u64>> {
        self.queue.iter()
    }

    /// Whether nothing is left to send.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// The next block and its connection: the first in round robin for which `available` says yes. `None`
    /// when nothing is wanted (nobody is asked then) or every connection said no.
    pub fn next_block(
        &mut self,
        mut available: impl FnMut(ConnectionId) -> bool,
    ) -> Option<(ConnectionId, Block)> {
        let front = self.queue.front_mut()?;
        let count = self.connections.len();
        let at = (self.turn..self.turn + count)
            .map(|at| at % count)
            .find(|at| available(self.connections[*at]))?;
        self.turn = (at + 1) % count;
        let range = front.start..front.end.min(front.start + MAX_BLOCK_BYTES);
        front.start = range.end;
        if front.is_empty() {
            self.queue.pop_front();
        }
        let sequence = self.sequence;
        self.sequence += 1;
        Some((self.connections[at], Block { sequence, range }))
    }

    fn replace(&mut self, queue: VecDeque<Range<u64>>) -> Result<(), WantError> {
        if queue.len() > MAX_QUEUED_RANGES {
            return Err(WantError::TooManyRanges);
        }
        self.queue = queue;
        Ok(())
    }
}

/// The ranges of `queue` without the bytes of `hole`.
fn without(queue: &VecDeque<Range<u64>>, hole: &Range<u64>) -> VecDeque<Range<u64>> {
    queue
        .iter()
        .flat_map(|range| [range.start..range.end.min(hole.start), range.start.max(hole.end)..range.end])
        .filter(|range| !range.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const BLOCK: u64 = MAX_BLOCK_BYTES;

    /// The example of section 7.3: five connections, the first is blocked when it is its turn first.
    #[test]
    fn a_blocked_connection_is_passed_over_and_gets_its_next_turn() {
        let mut striper = Striper::new(100 * BLOCK);
        (1..=5).for_each(|id| striper.connected(ConnectionId(id)));
        striper.want(0..100 * BLOCK, QueueEnd::Back).unwrap();
        let first = striper.next_block(|connection| connection != ConnectionId(1)).unwrap();
        assert_eq!(first, (ConnectionId(2), Block { sequence: 0, range: 0..BLOCK }));
        let next: Vec<u32> = (0..5).map(|_| striper.next_block(|_| true).unwrap().0.0).collect();
        assert_eq!(next, [3, 4, 5, 1, 2]);
        assert_eq!(striper.next_block(|_| false), None);
    }

    #[test]
    fn joining_and_leaving_keep_the_order_of_turns() {
        let mut striper = Striper::new(100 * BLOCK);
        striper.want(0..100 * BLOCK, QueueEnd::Back).unwrap();
        assert_eq!(striper.next_block(|_| true), None);
        (1..=3).for_each(|id| striper.connected(ConnectionId(id)));
        let turns = |striper: &mut Striper, count: usize| -> Vec<u32> {
            (0..count).map(|_| striper.next_block(|_| true).unwrap().0.0).collect()
        };
        assert_eq!(turns(&mut striper, 2), [1, 2]);
        striper.connected(ConnectionId(4));
        assert_eq!(turns(&mut striper, 5), [3, 1, 2, 4, 3]);
        striper.closed(ConnectionId(1));
        assert_eq!(turns(&mut striper, 3), [2, 4, 3]);
        striper.closed(ConnectionId(3));
        assert_eq!(turns(&mut striper, 2), [2, 4]);
    }

    #[test]
    fn the_front_moves_what_is_queued_and_the_back_leaves_it() {
        let mut striper = Striper::new(1000);
        striper.want(0..500, QueueEnd::Back).unwrap();
        striper.want(400..600, QueueEnd::Back).unwrap();
        striper.want(100..200, QueueEnd::Front).unwrap();
        striper.cancel(&(550..560)).unwrap();
        assert_eq!(
            striper.queued().cloned().collect::<Vec<_>>(),
            [100..200, 0..100, 200..500, 500..550, 560..600]
        );
        assert_eq!(striper.want(900..1001, QueueEnd::Back), Err(WantError::BeyondEnd));
    }

    #[test]
    fn the_queue_is_bounded() {
        let mut striper = Striper::new(u64::MAX);
        for at in 0..1024 {
            striper.want(at * 10..at * 10 + 5, QueueEnd::Back).unwrap();
        }
        assert_eq!(striper.want(100_000..100_001, QueueEnd::Back), Err(WantError::TooManyRanges));
        assert_eq!(striper.want(100_000..100_001, QueueEnd::Front), Err(WantError::TooManyRanges));
        assert_eq!(striper.cancel(&(2..3)), Err(WantError::TooManyRanges));
        striper.want(0..20_000, QueueEnd::Front).unwrap();
        assert_eq!(striper.queued().count(), 1);
    }

    proptest! {
        #[test]
        fn every_wanted_byte_goes_once_and_in_order_on_each_connection(
            wants in prop::collection::vec((0_u64..200_000, 1_u64..60_000, any::<bool>(), any::<bool>(), 0_u64..6), 1..40),
            blocked in any::<u64>(),
        ) {
            let mut striper = Striper::new(300_000);
            (0..4).for_each(|id| striper.connected(ConnectionId(id)));
            // How often each byte was sent, and how often it had to be.
            let (mut sent, mut due) = (vec![0_u32; 300_000], vec![0_u32; 300_000]);
            let mut last = BTreeMap::new();
            let mut random = blocked;
            let mut take = |striper: &mut Striper, sent: &mut Vec<u32>| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let mask = random >> 60;
                let Some((connection, block)) = striper.next_block(|id| mask & (1 << id.0) != 0) else { return Ok(()) };
                prop_assert!(block.range.end - block.range.start <= MAX_BLOCK_BYTES && !block.range.is_empty());
                prop_assert!(last.insert(connection, block.sequence).is_none_or(|before| before < block.sequence));
                block.range.for_each(|at| sent[at as usize] += 1);
                Ok(())
            };
            for (start, length, front, cancel, blocks) in wants {
                let range = start..start + length;
                let queued: Vec<_> = striper.queued().cloned().collect();
                let was_queued = |at: u64| queued.iter().any(|range| range.contains(&at));
                if cancel {
                    striper.cancel(&range).unwrap();
                    range.filter(|at| was_queued(*at)).for_each(|at| due[at as usize] -= 1);
                } else {
                    striper.want(range.clone(), if front { QueueEnd::Front } else { QueueEnd::Back }).unwrap();
                    range.filter(|at| !was_queued(*at)).for_each(|at| due[at as usize] += 1);
                }
                for _ in 0..blocks {
                    take(&mut striper, &mut sent)?;
                }
            }
            while !striper.is_idle() {
                take(&mut striper, &mut sent)?;
            }
            prop_assert_eq!(sent, due);
        }
    }
}
