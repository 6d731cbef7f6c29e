//! A path for tests of rate controllers: no packets, only rates. A connection gets its window every round
//! trip, or its fair share of the path when that is less.

use std::collections::BTreeMap;

use anabranch_units::{Bytes, Duration, Packets, Rate, Time};

use crate::control::{ConnectionId, ConnectionSample, PathId, RateController, Sample, What, Window};

/// A path that greedy flows share with the session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) capacity: Rate,
    pub(crate) rtt: Duration,
    pub(crate) packet_size: Bytes,
    pub(crate) cross_flows: u64,
    /// Loss that every connection sees.
    pub(crate) loss: f64,
    /// How long ago the last payload of each connection arrived.
    pub(crate) silent: Duration,
    /// For how many intervals a connection that is closed still brings what it was asked for, at the rate
    /// that it had.
    pub(crate) drains_for: u32,
}

impl Default for Path {
    /// 6 Mbps and 80 ms with packets of 1000 bytes, as in MultiTCP section 8.1.1.
    fn default() -> Self {
        Self {
            capacity: Rate::from_mbps(6),
            rtt: Duration::from_millis(80),
            packet_size: Bytes::new(1000),
            cross_flows: 0,
            loss: 0.0,
            silent: Duration::ZERO,
            drains_for: 0,
        }
    }
}

impl Path {
    /// Max-min fair rates: who wants less than an equal share leaves the rest to the others.
    fn rates(&self, windows: &BTreeMap<ConnectionId, Option<Packets>>) -> BTreeMap<ConnectionId, Rate> {
        let limit =
            |window: Option<Packets>| window.map_or(Rate::MAX, |w| Rate::of(w * self.packet_size, self.rtt));
        let mut by_limit: Vec<_> = windows.iter().map(|(id, window)| (limit(*window), *id)).collect();
        by_limit.sort();
        let (mut left, mut flows) = (self.capacity.as_bps(), by_limit.len() as u64 + self.cross_flows);
        by_limit
            .into_iter()
            .map(|(limit, id)| {
                let rate = limit.min(Rate::from_bps(left / flows));
                left -= rate.as_bps();
                flows -= 1;
                (id, rate)
            })
            .collect()
    }
}

/// A controller that runs on a path.
#[derive(Debug)]
pub(crate) struct Run<C> {
    pub(crate) controller: C,
    pub(crate) path: Path,
    pub(crate) wanted: Option<Rate>,
    pub(crate) buffer: Option<Duration>,
    windows: BTreeMap<ConnectionId, Option<Packets>>,
    /// What was closed and still delivers: for how many intervals more, and its rate.
    draining: Vec<(u32, Rate)>,
    connecting: usize,
    next: u32,
    now: Time,
    rate: Rate,
}

impl<C: RateController> Run<C> {
    /// A session whose first connections are set up in the first interval.
    pub(crate) fn new(mut controller: C, path: Path, wanted: Option<Rate>) -> Self {
        let connecting = controller.start().len();
        let (windows, now, rate) = (BTreeMap::new(), Time::ZERO, Rate::ZERO);
        let draining = Vec::new();
        Self { controller, path, wanted, buffer: None, windows, draining, connecting, next: 0, now, rate }
    }

    /// Lets this many measuring intervals pass. Connections that were ordered are set up at once, before the
    /// interval.
    pub(crate) fn intervals(&mut self, count: usize) {
        for _ in 0..count {
            while self.connecting > 0 {
                self.connecting -= 1;
                let id = ConnectionId(self.next);
                self.next += 1;
                self.windows.insert(id, None);
                self.with_sample(|controller, sample| controller.connected(id, PathId(0), sample));
            }
            self.now += self.controller.interval(self.path.rtt);
            self.rate = self.path.rates(&self.windows).into_values().sum();
            self.draining.retain_mut(|(left, _)| {
                let is_draining = *left > 0;
                *left = left.saturating_sub(1);
                is_draining
            });
            self.with_sample(C::measure);
        }
    }

    fn with_sample(&mut self, event: impl FnOnce(&mut C, &Sample<'_>) -> Vec<crate::control::Order>) {
        let elapsed = self.controller.interval(self.path.rtt);
        let rates = self.path.rates(&self.windows);
        let connections: Vec<_> = rates
            .into_iter()
            .map(|(connection, rate)| ConnectionSample {
                connection,
                path: PathId(0),
                delivered: rate.amount_in(elapsed),
                srtt: self.path.rtt,
                packet_size: self.path.packet_size,
                silent: self.path.silent,
                loss: self.path.loss,
                network_limited: false,
            })
            .collect();
        let sample = Sample {
            now: self.now,
            elapsed,
            wanted: self.wanted,
            buffer: self.buffer,
            connections: &connections,
            connecting: self.connecting,
            paths: &[],
            aside: self.draining.iter().map(|(_, rate)| rate.amount_in(elapsed)).sum(),
            sated: false,
            left: Bytes::ZERO,
            hungry: false,
            next_rung: None,
        };
        for order in event(&mut self.controller, &sample) {
            match order.what {
                What::Open(_) => self.connecting += 1,
                What::Close(id) => {
                    let rate = self.path.rates(&self.windows).remove(&id);
                    self.draining.extend(rate.map(|rate| (self.path.drains_for, rate)));
                    assert!(self.windows.remove(&id).is_some(), "closes what is not there: {id}");
                    self.controller.closed(id, self.now);
                }
                What::SetWindow(id, window) => {
                    let size = match window {
                        Window::Unlimited => None,
                        Window::Packets(size) => Some(size),
                    };
                    assert!(
                        self.windows.insert(id, size).is_some(),
                        "sets a window of what is not there: {id}"
                    );
                }
                What::LimitRate(_) => panic!("no controller of the papers limits by reading"),
            }
        }
    }

    /// Breaks the oldest connection.
    pub(crate) fn break_one(&mut self) {
        if let Some((id, _)) = self.windows.pop_first() {
            self.controller.closed(id, self.now);
        }
    }

    /// The windows, by connection; `None` is unlimited.
    pub(crate) fn windows(&self) -> Vec<Option<Packets>> {
        self.windows.values().copied().collect()
    }

    /// Sum of the windows that are limited.
    pub(crate) fn window_sum(&self) -> Packets {
        self.windows.values().flatten().copied().sum()
    }

    /// Rate of the last interval.
    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }
}
