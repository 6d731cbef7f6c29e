//! A fixed number of connections with fixed windows: what the papers compare with.

use anabranch_film::control::{ConnectionId, Order, PathId, RateController, Sample, What, Window};
use anabranch_units::{Bytes, Duration, Time};

/// Opens so many connections, sets the same window on each, and replaces those that go.
#[derive(Debug)]
pub(super) struct Fixed {
    connections: usize,
    window: Option<Bytes>,
}

impl Fixed {
    pub(super) fn new(connections: u32, window: Option<Bytes>) -> Self {
        Self { connections: connections as usize, window }
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
        open(self.connections.saturating_sub(sample.connections.len() + sample.connecting))
    }

    fn interval(&self, _rtt: Duration) -> Duration {
        Duration::from_millis(300)
    }
}
