//! A fixed number of connections with fixed windows: what download programs do, and the papers compare with.

use anabranch_units::{Bytes, Duration, Rate, Time};

use crate::control::{ConnectionId, Order, PathId, RateController, Sample, What, Window};

/// Opens so many connections, sets the same window on each, and replaces those that go. A film comes as fast as
/// they bring it; a download without a player keeps to its limit.
#[derive(Debug)]
pub struct Fixed {
    connections: usize,
    window: Option<Bytes>,
    limit: Option<Rate>,
}

impl Fixed {
    /// So many connections, each with this receive window; `None`: as large as the system likes.
    pub fn new(connections: u32, window: Option<Bytes>) -> Self {
        Self { connections: connections as usize, window, limit: None }
    }
}

fn open(count: usize) -> Vec<Order> {
    vec![Order { what: What::Open(None), why: "the number of connections is fixed" }; count]
}

impl RateController for Fixed {
    fn start(&mut self) -> Vec<Order> {
        open(self.connections)
    }

    fn connected(&mut self, connection: ConnectionId, _path: PathId, sample: &Sample<'_>) -> Vec<Order> {
        let segment = sample.packet_size(Bytes::new(1000));
        let window =
            self.window.map_or(Window::Unlimited, |window| Window::Packets(window.in_packets(segment)));
        vec![Order { what: What::SetWindow(connection, window), why: "the window is fixed" }]
    }

    fn closed(&mut self, _connection: ConnectionId, _now: Time) {}

    fn measure(&mut self, sample: &Sample<'_>) -> Vec<Order> {
        let mut orders = open(self.connections.saturating_sub(sample.connections.len() + sample.connecting));
        // Where a player has a buffer, the wanted rate is its own, and no limit.
        let limit = sample.wanted.filter(|_| sample.buffer.is_none());
        if limit != self.limit {
            self.limit = limit;
            orders.push(Order { what: What::LimitRate(limit), why: "the limit" });
        }
        orders
    }

    fn interval(&self, _rtt: Duration) -> Duration {
        Duration::from_millis(300)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(fixed: &mut Fixed, sample: Sample<'_>) -> Vec<What> {
        fixed.measure(&sample).into_iter().map(|order| order.what).collect()
    }

    #[test]
    fn what_is_gone_is_replaced() {
        let mut fixed = Fixed::new(3, None);
        assert_eq!(fixed.start().len(), 3);
        let opened = orders(&mut fixed, Sample { connecting: 1, ..Sample::default() });
        assert_eq!(opened, [What::Open(None), What::Open(None)]);
        assert_eq!(orders(&mut fixed, Sample { connecting: 3, ..Sample::default() }), []);
    }

    #[test]
    fn a_limit_is_kept_to_and_a_film_comes_as_fast_as_it_can() {
        let rate = Some(Rate::from_kbps(800));
        let there = Sample { connecting: 2, wanted: rate, ..Sample::default() };
        let mut fixed = Fixed::new(2, None);
        assert_eq!(orders(&mut fixed, there), [What::LimitRate(rate)]);
        assert_eq!(orders(&mut fixed, there), [], "it is told once");
        let film = Sample { buffer: Some(Duration::ZERO), ..there };
        assert_eq!(orders(&mut Fixed::new(2, None), film), []);
    }
}
