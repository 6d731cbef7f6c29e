//! The receive windows of a session (w_i of MultiTCP section 6.3), and AdjustWindow (section 6.4).

use std::cmp::Reverse;

use anabranch_congestion::response::window_for;
use anabranch_units::{Bytes, Duration, Packets, Rate};

use crate::control::{ConnectionId, Order};
use crate::orders::set_window;

/// No window is smaller: a connection without a window does not move, and section 6.4 warns of w_i = 0.
const LEAST: u64 = 1;

/// The windows of all connections, in whole packets and never more than one apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Windows(Vec<(ConnectionId, u64)>);

impl Windows {
    /// How many connections have a window.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Sum of the windows (W_s).
    pub(super) fn sum(&self) -> Packets {
        self.0.iter().map(|(_, window)| Packets::new(*window)).sum()
    }

    /// The connections.
    pub(super) fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        self.0.iter().map(|(connection, _)| *connection)
    }

    /// Takes up a connection; its window is for [`Self::spread`] to set.
    pub(super) fn insert(&mut self, connection: ConnectionId) {
        if !self.connections().any(|known| known == connection) {
            self.0.push((connection, LEAST));
        }
    }

    /// Forgets a connection.
    pub(super) fn remove(&mut self, connection: ConnectionId) {
        self.0.retain(|(known, _)| *known != connection);
    }

    /// Step 2 of section 6.3: an equal part of `total` for each of `count` connections, at least one packet.
    ///
    /// Parts are whole, so some are one packet larger; their sum is `total`, or `count` when that is more. Of
    /// `count` connections those that are not there yet leave their part unused.
    pub(super) fn spread(&mut self, total: Packets, count: usize) {
        let count = whole(count.max(self.len()).max(1));
        let total = total.get().max(count.saturating_mul(LEAST));
        let (part, larger) = (total / count, total % count);
        for ((_, window), index) in self.0.iter_mut().zip(0u64..) {
            *window = part + u64::from(index < larger);
        }
    }

    /// AdjustWindow(T_d, T_m) of section 6.4.
    ///
    /// The printed loop changes one window by one packet at a time, in order of size and around again, D_s
    /// times. Here the full rounds are taken at once: D_s comes from measurements and has no bound.
    pub(super) fn adjust(&mut self, wanted: Rate, measured: Rate, rtt: Duration, packet_size: Bytes) {
        let grow = wanted > measured;
        let difference = if grow { wanted - measured } else { measured - wanted };
        let steps = Packets::from_f64_ceil(window_for(difference, rtt, packet_size)).get();
        let count = whole(self.len().max(1));
        let (rounds, rest) = (steps / count, steps % count);
        if grow {
            self.0.sort_by_key(|(connection, window)| (*window, *connection));
        } else {
            self.0.sort_by_key(|(connection, window)| (Reverse(*window), *connection));
        }
        for ((_, window), index) in self.0.iter_mut().zip(0u64..) {
            let change = rounds + u64::from(index < rest);
            *window =
                if grow { window.saturating_add(change) } else { window.saturating_sub(change).max(LEAST) };
        }
        self.0.sort_by_key(|(connection, _)| *connection);
    }

    /// The orders that turn the windows `before` into these: one for each connection whose window is another
    /// or new.
    pub(super) fn orders_since(&self, before: &Self, why: &'static str) -> Vec<Order> {
        let changed = self.0.iter().filter(|entry| !before.0.contains(entry));
        changed.map(|(connection, window)| set_window(*connection, Packets::new(*window), why)).collect()
    }
}

/// A count as a number of packets.
fn whole(count: usize) -> u64 {
    Bytes::of(count).get()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACKET: Bytes = Bytes::new(1000);
    const RTT: Duration = Duration::from_millis(80);

    fn windows(sizes: &[u64]) -> Windows {
        Windows((0u32..).map(ConnectionId).zip(sizes.iter().copied()).collect())
    }

    fn sizes(windows: &Windows) -> Vec<u64> {
        windows.0.iter().map(|(_, window)| *window).collect()
    }

    /// The printed loop, literally.
    fn printed(sizes: &[u64], grow: bool, mut steps: u64) -> Vec<u64> {
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by_key(|i| if grow { sizes[*i] } else { u64::MAX - sizes[*i] });
        let mut result = sizes.to_vec();
        let mut i = 0;
        while steps > 0 {
            let window = &mut result[order[i]];
            *window = if grow { *window + 1 } else { (*window - 1).max(1) };
            steps -= 1;
            i = (i + 1) % sizes.len();
        }
        result
    }

    #[test]
    fn initial_windows_add_up_to_the_whole() {
        let mut of_five = windows(&[1; 5]);
        of_five.spread(Packets::new(8), 5);
        assert_eq!(sizes(&of_five), [2, 2, 2, 1, 1]);
        of_five.spread(Packets::new(3), 5);
        assert_eq!(sizes(&of_five), [1; 5]);
        let mut first_two_of_five = windows(&[1; 2]);
        first_two_of_five.spread(Packets::new(8), 5);
        assert_eq!(sizes(&first_two_of_five), [2, 2]);
    }

    #[test]
    fn adjusting_by_hand() {
        // 100 kbps missing at 80 ms and 1000 bytes is one packet; it goes to the smallest window.
        let mut some = windows(&[2, 2, 1]);
        some.adjust(Rate::from_kbps(800), Rate::from_kbps(700), RTT, PACKET);
        assert_eq!(sizes(&some), [2, 2, 2]);
        // 401 kbps missing: 5 packets over three connections.
        some.adjust(Rate::from_kbps(801), Rate::from_kbps(400), RTT, PACKET);
        assert_eq!(sizes(&some), [4, 4, 3]);
        // 200 kbps too much: two packets off the largest.
        some.adjust(Rate::from_kbps(800), Rate::from_kbps(1000), RTT, PACKET);
        assert_eq!(sizes(&some), [3, 3, 3]);
        some.adjust(Rate::ZERO, Rate::MAX, Duration::MAX, PACKET);
        assert_eq!(sizes(&some), [1, 1, 1]);
        some.adjust(Rate::from_kbps(800), Rate::from_kbps(800), RTT, PACKET);
        assert_eq!(sizes(&some), [1, 1, 1]);
    }

    proptest! {
        #[test]
        fn adjusting_is_the_printed_loop(
            base in 1u64..20, larger in prop::collection::vec(0u64..2, 1..9), wanted in 0u64..4000, measured in 0u64..4000,
        ) {
            let before: Vec<u64> = larger.iter().map(|one| base + one).collect();
            let (wanted, measured) = (Rate::from_kbps(wanted), Rate::from_kbps(measured));
            let mut adjusted = windows(&before);
            adjusted.adjust(wanted, measured, RTT, PACKET);
            // One packet is 100 kbps here.
            let steps = wanted.as_bps().abs_diff(measured.as_bps()).div_ceil(100_000);
            prop_assert_eq!(sizes(&adjusted), printed(&before, wanted > measured, steps));
        }
    }
}
