//! Whether the path has packets enough for one more connection.
//!
//! Every connection beyond what a path can feed makes losses, for itself and for everybody: with windows of
//! `w` packets the loss event rate is about 1.5 / w^2 (Mathis et al., 1997), and below four packets in flight
//! the three duplicate acknowledgements of a fast retransmission (RFC 5681, section 3.2) cannot come, so that
//! each loss costs a timeout. Films that grow together on one link come there first.

use anabranch_units::{Bytes, Rate};

use super::{Auto, ROOM_AFTER};
use crate::control::Sample;

/// With fewer losses windows are large enough (at this one they have five and a half packets), or small for
/// another reason: a server's cap, or too little to ask for.
const FEW_LOSSES: f64 = 0.05;

impl Auto {
    /// How many connections the packets of a round trip are enough for at this rate; `None` where nothing
    /// tells of losses that too many would make.
    pub(super) fn most_fed(&self, sample: &Sample<'_>, rate: Rate) -> Option<usize> {
        let count = Bytes::of(sample.connections.len()).as_f64();
        let loss = sample.connections.iter().map(|connection| connection.loss).sum::<f64>() / count;
        // Without connections there is no mean.
        let is_delayed = self.delay_seen.is_some_and(|seen| sample.now.since(seen) <= ROOM_AFTER);
        // Where nothing waits nobody is crowded: the losses are the link's.
        if loss.is_nan() || loss < FEW_LOSSES || !is_delayed {
            return None;
        }
        let in_flight = rate.amount_in(sample.mean_rtt()).in_packets(sample.packet_size(Bytes::new(1)));
        let fed = in_flight.as_f64() / self.parameters.least_share.as_f64();
        if self.is_lasting && fed >= count {
            // Beside others each more gets about as much as each has: the trial tells, and it ends soon.
            return Some((sample.connections.len() * 2).min(self.parameters.most));
        }
        (1..=self.parameters.most).take_while(|count| Bytes::of(*count).as_f64() <= fed).last().or(Some(1))
    }
}
