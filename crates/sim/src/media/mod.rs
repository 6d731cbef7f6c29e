//! Media streams: the receiver session of `stream` over simulated TCP, and the servers it asks.
//!
//! A connection is opened by the client, carries its requests one way and the answers the other. A server
//! answers requests in their order, each with a header and the bytes asked for.

mod algorithm;
mod carrying;
mod connection;
mod ladder;
mod limit;
mod player;
mod scenes;
mod viewer;

use std::collections::BTreeMap;

use anabranch_congestion::need::Told;
use anabranch_congestion::vps::Weight;
use anabranch_film::content::ReaderId;
use anabranch_film::control::ConnectionId;
use anabranch_film::session::{Action, Config, Pace, PathFigures, Session, Status};
use anabranch_protocol::ranges::RangeSet;
use anabranch_units::{Bytes, Duration, Time};

use crate::counted::FlowCounted;
use crate::model::{FlowId, Media};
use crate::network::{HalfId, Network};
use crate::report::{Decision, FlowSample, MediaTotals};
use crate::tcp::NO_LIMIT;
use algorithm::controller;
use connection::{ANSWER_HEADER_SIZE, Connection, REQUEST_SIZE, Request};
use limit::ReadLimit;
use viewer::Viewer;

/// Larger than any run can fetch: the size of media without an end.
const ENDLESS: u64 = 1 << 50;
const READER: ReaderId = ReaderId(0);

/// A running stream.
#[derive(Debug)]
pub(crate) struct Stream {
    flow: FlowId,
    media: Media,
    session: Session,
    /// The paths to each server and back.
    paths: Vec<(u32, u32)>,
    connections: BTreeMap<ConnectionId, Connection>,
    /// Every connection's half that carries answers, the closed ones included.
    downs: Vec<HalfId>,
    tick_at: u64,
    look_at: u64,
    limit: ReadLimit,
    /// The player, if it does not take everything at once.
    player: Option<Viewer>,
    requests: u64,
    began: Time,
    /// When its time was over.
    over: Option<Time>,
}

impl Stream {
    pub(crate) fn new(flow: FlowId, media: Media, paths: Vec<(u32, u32)>, start: Time) -> Self {
        let size = media.size.map_or(ENDLESS, Bytes::get);
        let config = Config {
            policy: media.policy,
            controller: controller(&media),
            pace: media.pace,
            playback: media.playback,
            // A player with a buffer of its own shows what it plays, and one that takes everything at once
            // does not.
            media_rate: Some(media.rate)
                .filter(|_| media.reader.is_none() || media.pace != Pace::Media(None)),
            size: Some(size),
            have: RangeSet::new(),
            ranges: true,
            path_caps: vec![media.connections_per_server; media.servers.len()],
            give_up_after: Duration::MAX,
            silent_after: Duration::from_secs(10),
        };
        let mut session = Session::new(config, start);
        if media.reader.is_some() {
            session = session.expecting_any_speed();
        }
        // One that chooses rungs asks for its first segment itself.
        if media.ladder.is_none() {
            session.add_reader(READER, 0..size, start);
        }
        let player = Viewer::new(&media, size, READER, start);
        Self {
            flow,
            media,
            session,
            paths,
            connections: BTreeMap::new(),
            downs: Vec::new(),
            tick_at: u64::MAX,
            look_at: u64::MAX,
            limit: ReadLimit::default(),
            player,
            requests: 0,
            began: start,
            over: None,
        }
    }

    pub(crate) fn start(&mut self, network: &mut Network) {
        self.session.start(Time::from_nanos(network.now));
        self.view(network);
        self.act(network);
    }

    /// The flow's timer.
    pub(crate) fn timer(&mut self, network: &mut Network) {
        if self.over.is_some() {
            return;
        }
        let now = network.now;
        for (connection, bytes) in self.limit.ready(now) {
            self.read(connection, bytes, network);
        }
        self.view(network);
        if now >= self.tick_at {
            self.tick_at = u64::MAX;
            self.give_up_waiting(network);
            self.tell_figures(network);
            self.session.tick(Time::from_nanos(now));
            self.tune(network);
        }
        self.act(network);
    }

    /// The player looks at what has arrived.
    fn view(&mut self, network: &mut Network) {
        let Some(player) = &mut self.player else { return };
        player.step(&mut self.session, Time::from_nanos(network.now));
        for (rate, why) in player.take_chosen() {
            self.note(network, None, "rung", Some(rate.as_bps()), why);
        }
    }

    /// The flow's time is over: every connection is closed.
    pub(crate) fn stop(&mut self, network: &mut Network) {
        self.over = Some(Time::from_nanos(network.now));
        for connection in self.connections.values() {
            network.close(connection.down);
        }
    }

    /// The servers hear how full the buffer is, as a player tells them in its requests, and tune their
    /// senders by it.
    fn tune(&self, network: &mut Network) {
        let Some((rule, buffer)) = self.media.tcp.tuning.zip(self.session.status().buffer) else { return };
        for connection in self.connections.values() {
            network.halves[connection.down as usize].sender.tune(rule.tuning(buffer));
        }
    }

    /// What a connection counts in its group from a request on, by what the player tells with it where that
    /// decides: all connections of the stream together count for one weight.
    fn weight(&self) -> Option<Weight> {
        let share = self.media.tcp.share.as_ref()?;
        let told = || self.player.as_ref().map_or(Told::default(), Viewer::told);
        let of_all = share.by_need.map_or(share.weight, |rule| rule.weight(&told()));
        Some(of_all.times(1.0 / self.connections.len().max(1) as f64))
    }

    fn tell_figures(&mut self, network: &Network) {
        for (id, connection) in &self.connections {
            let half = &network.halves[connection.down as usize];
            self.session.path_figures(
                *id,
                &PathFigures {
                    rtt: Duration::from_nanos(half.sender.srtt()),
                    packet_size: Bytes::new(half.segment()),
                    out_of_order: Some(half.counters.out_of_order),
                    packets: half.counters.arrived,
                    unread: Bytes::new(half.receiver.unread()),
                    held: Duration::ZERO,
                },
                Time::from_nanos(network.now),
            );
        }
    }

    /// Carries out what the session orders.
    fn act(&mut self, network: &mut Network) {
        while let Some(action) = self.session.poll_action() {
            match action {
                Action::Open { connection, path, why } => {
                    self.note(network, Some(connection), "open", Some(u64::from(path.0)), why);
                    self.open(connection, usize::from(path.0), network);
                }
                Action::Close { connection, why } => {
                    self.note(network, Some(connection), "close", None, why);
                    self.leave(connection, network);
                }
                Action::Request { connection, range, why, .. } => {
                    self.note(network, Some(connection), "request", Some(range.start), why);
                    let weight = self.weight();
                    if let Some(state) = self.connections.get_mut(&connection) {
                        let body = range.end - range.start;
                        self.requests += 1;
                        state.written_up += REQUEST_SIZE;
                        state.asked.push_back(Request { end: state.written_up, body, weight });
                        state.awaited.push_back((ANSWER_HEADER_SIZE, body));
                        network.write_to(state.up, state.written_up);
                    }
                }
                Action::SetWindow { connection, window, why } => {
                    self.note(network, Some(connection), "window", window.map(Bytes::get), why);
                    if let Some(state) = self.connections.get(&connection) {
                        let largest = self.media.largest_window.map_or(NO_LIMIT, Bytes::get);
                        network.set_window(
                            state.down,
                            window.map_or(largest, |window| window.get().min(largest)),
                        );
                    }
                }
                Action::LimitRate(rate) => {
                    let value = rate.map(anabranch_units::Rate::as_bps);
                    self.note(network, None, "limit_rate", value, "what is read is limited");
                    self.limit.set(rate, network.now);
                }
                Action::Waiting { last_error } => self.note(network, None, "waiting", None, &last_error),
                Action::Fail { error } => self.note(network, None, "failed", None, &error),
                // Servers that stripe are not simulated, so that the session never joins a group.
                Action::Order { .. } | Action::Leave { .. } => {}
            }
        }
        self.schedule(network);
    }

    /// Sees to it that the flow's timer comes in time.
    fn schedule(&mut self, network: &mut Network) {
        let tick = self.session.next_tick().as_nanos();
        if tick < self.tick_at {
            self.tick_at = tick;
            network.call_flow(self.flow, tick);
        }
        if let Some(look) = self.player.as_ref().and_then(Viewer::next).map(Time::as_nanos)
            && self.look_at != look
        {
            self.look_at = look;
            network.call_flow(self.flow, look);
        }
        if let Some(at) = self.limit.next_call() {
            network.call_flow(self.flow, at);
        }
    }

    /// What all connections together have counted; of `delivered` what TCP delivered.
    pub(crate) fn counted(&self, network: &Network) -> FlowCounted {
        let mut sum = FlowCounted::default();
        for down in &self.downs {
            sum += network.halves[*down as usize].counted();
        }
        sum
    }

    fn note(
        &self,
        network: &mut Network,
        connection: Option<ConnectionId>,
        what: &'static str,
        value: Option<u64>,
        why: &str,
    ) {
        network.decisions.push(Decision {
            at: Time::from_nanos(network.now),
            flow: self.flow,
            connection: connection.map(|id| id.0),
            what,
            value,
            why: why.to_owned(),
        });
    }

    pub(crate) fn status(&self) -> Status {
        self.session.status()
    }

    /// Adds what a sample says of the moment itself.
    pub(crate) fn state(&self, network: &Network, sample: &mut FlowSample) {
        let mut srtt = Duration::ZERO;
        for connection in self.connections.values() {
            let half = &network.halves[connection.down as usize];
            if !half.sender.is_established() {
                continue;
            }
            sample.connections += 1;
            sample.cwnd += Bytes::new(half.sender.cwnd());
            sample.receive_window += match half.receiver.window() {
                NO_LIMIT => Bytes::MAX,
                window => Bytes::new(window),
            };
            if sample.connections == 1 {
                sample.ssthresh = half.sender.ssthresh();
            }
            srtt += Duration::from_nanos(half.sender.srtt());
        }
        if sample.connections > 0 {
            sample.srtt = srtt / u64::from(sample.connections);
        }
        let status = self.session.status();
        (sample.buffer, sample.in_order) = (status.buffer, Bytes::new(status.partition.0));
    }

    /// What this stream adds to its flow's totals, as of `now`.
    pub(crate) fn totals(&self, now: Time) -> MediaTotals {
        let status = self.status();
        MediaTotals {
            lasted: self.over.unwrap_or(now).since(self.began),
            startup: status.playback.startup,
            stalls: status.playback.stalls,
            stalled: status.playback.stalled,
            connections_max: u32::try_from(status.totals.connections_most).unwrap_or(u32::MAX),
            connections_mean: status.connections_mean,
            requests: self.requests,
            duplicate: Bytes::new(status.totals.duplicate),
            rerequested: Bytes::new(status.totals.rerequested),
            seen: self.player.as_ref().map(Viewer::seen),
        }
    }

    /// Payload that the session got, what came twice counted once.
    pub(crate) fn received(&self) -> u64 {
        let totals = self.status().totals;
        totals.received - totals.duplicate
    }
}
