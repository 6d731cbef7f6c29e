//! What the packets that come over a connection of QUIC tell of those that did not.
//!
//! quinn tells a receiver nothing of the packets that its sender lost, and their numbers are encrypted. So
//! the [keys](super::keys) that decrypt what comes show every packet to [`Arrivals`].

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_units::Bytes;
use quinn_proto::crypto::ClientConfig;

use super::frames;
use super::keys::{Watch, shown_by_client};

/// A packet is lost when so many later ones have come (RFC 5348, section 5.1; RFC 9002, section 6.1.1).
const LATER: u8 = 3;
/// Answers whose ends are known; more are never under way on a connection.
const MOST_STREAMS: usize = 16;

/// Counts the packets of a connection that have come and those that are lost, after QUIC's handshake.
#[derive(Debug, Default)]
pub struct Arrivals(Mutex<State>);

/// What `inner` does, and `arrivals` is shown what comes after the handshake on the one connection that is
/// begun with it.
pub fn shown_to(arrivals: Arc<Arrivals>, inner: Arc<dyn ClientConfig>) -> Arc<dyn ClientConfig> {
    shown_by_client(arrivals, inner)
}

impl Watch for Arrivals {
    fn came(&self, number: u64, frames: &[u8]) {
        Self::came(self, number, frames);
    }
}

#[derive(Debug, Default)]
struct State {
    came: u64,
    lost: u64,
    /// The number of the next packet, if none is lost.
    next: u64,
    /// Numbers that are missing and not counted yet: those before each of the last few packets.
    gaps: VecDeque<Gap>,
    /// How far the answer on each stream has come, holes included.
    ends: BTreeMap<u64, u64>,
    /// Streams before this one are not looked at any more.
    oldest: u64,
}

#[derive(Debug)]
struct Gap {
    numbers: Range<u64>,
    /// How many of them came late.
    late: u64,
    /// How many later ones have come.
    later: u8,
    /// An answer has a hole since then.
    hole: bool,
}

impl Gap {
    /// What of it is lost.
    ///
    /// A single number may have been left out on purpose (RFC 9000, section 21.4), or belong to a packet that
    /// tries out whether the path carries its size (RFC 8899): then the answers go on without a hole. More in
    /// a row are lost in any case: where all that was on its way is, what comes next is what is sent again,
    /// and closes the hole before it can be seen.
    fn lost(&self) -> u64 {
        let missing = (self.numbers.end - self.numbers.start).saturating_sub(self.late);
        if missing > 1 || self.hole { missing } else { 0 }
    }
}

impl Arrivals {
    /// A packet has come with these frames.
    pub fn came(&self, number: u64, frames: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).came(number, frames);
    }

    /// Packets that have come so far, and that are lost.
    pub fn came_and_lost(&self) -> (u64, u64) {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (state.came, state.lost)
    }
}

impl State {
    fn came(&mut self, number: u64, frames: &[u8]) {
        self.came += 1;
        let hole = self.goes_on_behind_a_hole(frames);
        if number < self.next {
            if let Some(gap) = self.gaps.iter_mut().find(|gap| gap.numbers.contains(&number)) {
                gap.late += 1;
            }
            return;
        }
        if number > self.next {
            self.gaps.push_back(Gap { numbers: self.next..number, late: 0, later: 0, hole: false });
        }
        self.next = number.saturating_add(1);
        for gap in &mut self.gaps {
            gap.later += 1;
            gap.hole |= hole;
        }
        while let Some(gap) = self.gaps.pop_front_if(|gap| gap.later >= LATER) {
            self.lost = self.lost.saturating_add(gap.lost());
        }
    }

    /// Whether data of an answer comes before what is in front of it.
    fn goes_on_behind_a_hole(&mut self, frames: &[u8]) -> bool {
        let mut hole = false;
        frames::stream_data(frames, |stream, offset, length| {
            // Answers come on the streams that the client began (RFC 9000, section 2.1).
            if stream % 4 != 0 || stream < self.oldest {
                return;
            }
            let end = self.ends.entry(stream).or_default();
            hole |= offset > *end;
            *end = offset.saturating_add(Bytes::of(length).get()).max(*end);
            if self.ends.len() > MOST_STREAMS
                && let Some((oldest, _)) = self.ends.pop_first()
            {
                self.oldest = oldest + 4;
            }
        });
        hole
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A packet with data of a stream.
    fn data(stream: u8, offset: u16, length: u8) -> Vec<u8> {
        let offset = 0x8000_0000 | u32::from(offset);
        let head = [&[0x0e, stream][..], &offset.to_be_bytes(), &[length]].concat();
        [&head[..], &vec![0; length.into()]].concat()
    }

    const PADDING: &[u8] = &[0; 20];

    #[test]
    fn a_hole_in_an_answer_is_a_loss_and_a_number_that_is_left_out_is_none() {
        let arrivals = Arrivals::default();
        let lost = || arrivals.came_and_lost().1;
        // Number 3 is left out, 7 is lost.
        for (number, offset) in [0, 1, 2, 4, 5, 6].into_iter().zip((0..).step_by(50)) {
            arrivals.came(number, &data(0, offset, 50));
        }
        arrivals.came(8, &data(0, 350, 50));
        arrivals.came(9, &data(0, 400, 50));
        assert_eq!(lost(), 0, "it may still come");
        arrivals.came(10, &data(0, 300, 50));
        assert_eq!(arrivals.came_and_lost(), (9, 1));
        // A probe of 20 bytes that no path carries.
        arrivals.came(12, &data(4, 0, 50));
        (13..20).for_each(|number| arrivals.came(number, PADDING));
        assert_eq!(lost(), 1);
    }

    #[test]
    fn the_first_packet_of_an_answer_and_all_on_their_way_can_be_lost() {
        let arrivals = Arrivals::default();
        arrivals.came(0, &data(0, 0, 50));
        for (number, offset) in [(2, 50), (3, 100), (4, 150)] {
            arrivals.came(number, &data(4, offset, 50));
        }
        assert_eq!(arrivals.came_and_lost().1, 1);
        // Ten packets are gone, and sent again in order.
        (15..20).zip(4..).for_each(|(number, part)| arrivals.came(number, &data(4, part * 50, 50)));
        assert_eq!(arrivals.came_and_lost().1, 11);
    }

    #[test]
    fn packets_that_come_in_another_order_are_not_lost() {
        let arrivals = Arrivals::default();
        for number in [0, 2, 1, 5, 4, 3, 7, 8, 6, 6, 9, 10, 11, 12] {
            arrivals.came(number.into(), &data(0, number * 50, 50));
        }
        assert_eq!(arrivals.came_and_lost(), (14, 0));
    }

    proptest! {
        #[test]
        fn nothing_that_a_server_sends_is_too_much(
            packets in prop::collection::vec((any::<u64>(), prop::collection::vec(any::<u8>(), 0..60)), 0..200)
        ) {
            let mut state = State::default();
            for (number, frames) in packets {
                state.came(number >> 2, &frames);
                prop_assert!(state.gaps.len() < LATER.into() && state.ends.len() <= MOST_STREAMS);
                prop_assert!(state.lost <= state.next);
            }
        }
    }
}
