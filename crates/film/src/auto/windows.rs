//! The receive windows of connections (rule 2).

use anabranch_units::{Bytes, Packets, Rate, Ratio};

use super::Auto;
use crate::control::{ConnectionSample, Order, Sample, What, Window};

/// A window of fewer packets cannot recover a loss by duplicate acknowledgements.
const SMALLEST_WINDOW: Packets = Packets::new(6);
/// One of several connections may carry so many times what all of them may: more would only make a queue
/// overflow at the end of its slow start.
const MOST_OF_ALL: f64 = 2.0;

impl Auto {
    /// Rule 2.
    pub(super) fn set_windows(
        &mut self,
        sample: &Sample<'_>,
        allowed: Option<Rate>,
        missed: bool,
        orders: &mut Vec<Order>,
    ) {
        let total: Bytes = sample.connections.iter().map(|connection| connection.delivered).sum();
        let count = sample.connections.len().max(1);
        for connection in sample.connections {
            self.set_window(connection, allowed, total, count, missed, orders);
        }
    }

    /// Orders the window of one of `count` connections that delivered `total` together, when it changes by more than a tenth.
    pub(super) fn set_window(
        &mut self,
        connection: &ConnectionSample,
        allowed: Option<Rate>,
        total: Bytes,
        count: usize,
        missed: bool,
        orders: &mut Vec<Order>,
    ) {
        let window = match allowed {
            None => Window::Unlimited,
            Some(allowed) => Window::Packets(self.window(connection, allowed, total, count, missed)),
        };
        // Small changes are not worth a system call nor a shrinking window.
        let now = self.windows.get(&connection.connection).copied();
        if now.is_none_or(|now| differs(now, window)) {
            self.windows.insert(connection.connection, window);
            let why = if missed { "the rate is missed: open" } else { "its share of the rate" };
            orders.push(Order { what: What::SetWindow(connection.connection, window), why });
        }
    }

    /// That window: its share of what all may take, or more while the rate is missed.
    pub(super) fn window(
        &self,
        connection: &ConnectionSample,
        allowed: Rate,
        total: Bytes,
        count: usize,
        missed: bool,
    ) -> Packets {
        let pipe = allowed.amount_in(connection.srtt);
        let equal = 1.0 / Bytes::of(count).as_f64();
        let bytes = if missed || total.is_zero() {
            let most = if count > 1 { MOST_OF_ALL } else { f64::INFINITY };
            pipe * Ratio::from_f64((equal * self.parameters.window_spread.as_f64()).min(most))
        } else {
            // Half of an equal share is kept open for a connection that delivers less: it may recover.
            let share = (connection.delivered.as_f64() / total.as_f64()).max(0.5 * equal);
            pipe * Ratio::from_f64(share * self.parameters.window_headroom.as_f64())
        };
        bytes.in_packets(connection.packet_size).max(SMALLEST_WINDOW)
    }
}

/// Whether two windows differ by more than a tenth.
fn differs(one: Window, other: Window) -> bool {
    match (one, other) {
        (Window::Packets(one), Window::Packets(other)) => {
            let (one, other) = (one.as_f64(), other.as_f64());
            (one - other).abs() > 0.1 * one.max(1.0)
        }
        _ => one != other,
    }
}
