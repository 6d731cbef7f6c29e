//! A run: flows that begin and end, samples at every interval, totals at the end.

use anabranch_congestion::vps;
use anabranch_units::{Bytes, Duration, Time};
use rustc_hash::FxHashMap;

use crate::check::{self, ModelError, Place};
use crate::counted::FlowCounted;
use crate::live;
use crate::media::Stream;
use crate::model::{FlowId, Kind, Model, Source, When};
use crate::network::{Datagrams, HalfId, Network, Role, TfrcFlow, Upcall};
use crate::report::{FlowSample, FlowTotals, LinkSample, LinkTotals, Observer, Totals};
use crate::route::Routes;
use crate::tcp::NO_LIMIT;

/// What the engine keeps of a flow.
#[derive(Debug)]
enum FlowState {
    Tcp { half: HalfId, source: Source, next: usize, written: u64, is_open: bool, completed: Option<Time> },
    Datagrams { index: usize },
    Tfrc { index: u32 },
    Media { stream: Box<Stream>, is_started: bool },
    Live { stream: Box<live::Stream>, is_started: bool },
}

/// A simulation of a model.
#[derive(Debug)]
pub struct Simulation {
    model: Model,
    network: Network,
    flows: Vec<FlowState>,
    next_sample: u64,
    samples: Counted,
    /// What was counted at the end of the warm-up, once that is over.
    warm: Option<Counted>,
}

/// The counters of everything at one moment.
#[derive(Clone, Debug, Default)]
struct Counted {
    flows: Vec<FlowCounted>,
    links: Vec<LinkTotals>,
}

impl Simulation {
    /// A run of `model` that has not begun.
    ///
    /// # Errors
    /// When something in the model is impossible, or a flow's ends have no path between them.
    pub fn new(model: Model) -> Result<Self, ModelError> {
        check::check(&model)?;
        let mut network = Network::new(&model);
        let mut routes = Routes::new(&model);
        let mut flows = Vec::with_capacity(model.flows.len());
        for (id, flow) in model.flows.iter().enumerate() {
            let mut path = |network: &mut Network, from: usize, to: usize| {
                network.add_path(&mut routes, from, to).ok_or_else(|| ModelError {
                    place: Place::Flow(id),
                    problem: format!(
                        "no path leads from '{}' to '{}': add a link",
                        model.nodes[from].name, model.nodes[to].name
                    ),
                })
            };
            let start = match flow.start {
                When::At(time) => time.as_nanos(),
                When::Between(from, to) => {
                    from.as_nanos() + network.random(id).below(to.as_nanos() - from.as_nanos())
                }
            };
            flows.push(match &flow.kind {
                Kind::Tcp { from, to, tcp, source } => {
                    let paths = (path(&mut network, *from, *to)?, path(&mut network, *to, *from)?);
                    let written = match source {
                        Source::Greedy => NO_LIMIT,
                        Source::File(size) => size.get(),
                        Source::Constant(_) | Source::Timetable(_) => 0,
                    };
                    let is_file = !matches!(source, Source::Greedy);
                    let half = network.add_half(id, 0, tcp, Role::Opener, paths, written);
                    network.halves[half as usize].tells = is_file;
                    FlowState::Tcp {
                        half,
                        source: source.clone(),
                        next: 0,
                        written,
                        is_open: false,
                        completed: None,
                    }
                }
                Kind::Udp { from, to, size, pattern } => {
                    let path = path(&mut network, *from, *to)?;
                    let index = network.datagrams.len();
                    network.add_datagrams(Datagrams::new(id, size.get() as u32, *pattern, path));
                    FlowState::Datagrams { index }
                }
                Kind::Tfrc { from, to, size, parameters, scheme } => {
                    let paths = (path(&mut network, *from, *to)?, path(&mut network, *to, *from)?);
                    let index = network.tfrc_flows.len() as u32;
                    network.tfrc_flows.push(TfrcFlow::new(id, *size, *parameters, *scheme, paths));
                    FlowState::Tfrc { index }
                }
                Kind::Media(media) => {
                    let mut paths = Vec::with_capacity(media.servers.len());
                    for server in &media.servers {
                        paths.push((
                            path(&mut network, media.client, *server)?,
                            path(&mut network, *server, media.client)?,
                        ));
                    }
                    let stream = Stream::new(id, (**media).clone(), paths, Time::from_nanos(start));
                    FlowState::Media { stream: Box::new(stream), is_started: false }
                }
                Kind::Live(live) => {
                    let mut paths = Vec::with_capacity(live.from.len());
                    for from in &live.from {
                        paths
                            .push((path(&mut network, *from, live.to)?, path(&mut network, live.to, *from)?));
                    }
                    let stream = live::Stream::new(id, (**live).clone(), &paths, &mut network);
                    FlowState::Live { stream: Box::new(stream), is_started: false }
                }
            });
            network.call_flow(id, start);
            if let Some(stop) = flow.stop {
                network.stop_flow(id, stop.as_nanos());
            }
        }
        network.find_direct_links();
        let next_sample = model.run.sampling.as_nanos();
        let mut simulation =
            Self { model, network, flows, next_sample, samples: Counted::default(), warm: None };
        simulation.samples = simulation.counted();
        if simulation.model.run.warm_up.is_zero() {
            simulation.warm = Some(simulation.samples.clone());
        }
        Ok(simulation)
    }

    /// The model that runs.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// When the run ends.
    pub fn end(&self) -> Time {
        Time::ZERO + self.model.run.duration
    }

    /// The time of the last event.
    pub fn now(&self) -> Time {
        Time::from_nanos(self.network.now)
    }

    /// Events until now.
    pub fn events(&self) -> u64 {
        self.network.events
    }

    /// Data packets sent until now, those of UDP included.
    pub fn data_packets(&self) -> u64 {
        self.network.data_packets + self.network.datagrams.iter().map(|datagrams| datagrams.sent).sum::<u64>()
    }

    /// Lets everything happen that happens before `until`, and takes the samples up to and at `until`.
    pub fn run_until(&mut self, until: Time, observer: &mut dyn Observer) {
        let until = until.min(self.end()).as_nanos();
        self.network.tells_loss_events = observer.wants_loss_events();
        if observer.wants_packets() && self.network.trace.is_none() {
            self.network.trace = Some(Vec::new());
        }
        let warm_up = self.model.run.warm_up.as_nanos();
        while self.network.now < until {
            let mut stop = self.next_sample.min(until);
            if self.warm.is_none() {
                stop = stop.min(warm_up);
            }
            while self.network.step(stop) {
                if !self.network.upcalls.is_empty() {
                    self.obey_upcalls();
                }
            }
            self.network.now = stop;
            self.tell(stop, observer);
            if self.warm.is_none() && stop == warm_up {
                self.warm = Some(self.counted());
            }
            if stop == self.next_sample {
                self.sample(observer);
                self.next_sample = stop.saturating_add(self.model.run.sampling.as_nanos());
            }
        }
    }

    fn obey_upcalls(&mut self) {
        let mut upcalls = std::mem::take(&mut self.network.upcalls);
        for upcall in upcalls.drain(..) {
            match upcall {
                Upcall::Flow(flow) => self.flow_timer(flow),
                Upcall::Stop(flow) => self.stop_flow(flow),
                Upcall::Delivered(half, bytes) => self.delivered(half, bytes),
                Upcall::Datagram(flow, uplink, datagram) => {
                    if let FlowState::Live { stream, .. } = &mut self.flows[flow] {
                        stream.arrived(uplink as usize, *datagram, &mut self.network);
                    }
                }
                Upcall::Connected(half) => {
                    let (flow, connection) = self.owner(half);
                    if let FlowState::Media { stream, .. } = &mut self.flows[flow] {
                        stream.connected(connection, &mut self.network);
                    }
                }
                Upcall::Refused(half) => {
                    let (flow, connection) = self.owner(half);
                    if let FlowState::Media { stream, .. } = &mut self.flows[flow] {
                        stream.refused(connection, &mut self.network);
                    }
                }
            }
        }
        // The list's memory is used again.
        upcalls.append(&mut self.network.upcalls);
        self.network.upcalls = upcalls;
    }

    fn flow_timer(&mut self, flow: FlowId) {
        let now = self.network.now;
        let (half, source, next, written, is_open) = match &mut self.flows[flow] {
            FlowState::Tcp { half, source, next, written, is_open, .. } => {
                (half, source, next, written, is_open)
            }
            FlowState::Media { stream, is_started } => {
                if std::mem::replace(is_started, true) {
                    stream.timer(&mut self.network);
                } else {
                    stream.start(&mut self.network);
                }
                return;
            }
            FlowState::Live { stream, is_started } => {
                if std::mem::replace(is_started, true) {
                    stream.timer(&mut self.network);
                } else {
                    stream.start(&mut self.network);
                }
                return;
            }
            FlowState::Tfrc { index } => {
                self.network.begin_tfrc_flow(*index);
                return;
            }
            FlowState::Datagrams { .. } => return,
        };
        let half = *half;
        if !*is_open {
            *is_open = true;
            let is_file = matches!(source, Source::File(_));
            self.network.open(half);
            if is_file {
                self.network.leave_when_done(half);
            }
        }
        match source {
            Source::Greedy | Source::File(_) => {}
            Source::Constant(rate) => {
                let segment = self.network.halves[half as usize].segment();
                *written += segment;
                let interval = rate.time_for(Bytes::new(segment)).as_nanos();
                let end = *written;
                self.network.write_to(half, end);
                self.network.call_flow(flow, now + interval);
            }
            Source::Timetable(files) => {
                while let Some((_, size)) = files.get(*next).filter(|(at, _)| at.as_nanos() <= now) {
                    *written += size.get();
                    *next += 1;
                }
                let (end, later) = (*written, files.get(*next).map(|(at, _)| at.as_nanos()));
                self.network.write_to(half, end);
                if let Some(at) = later {
                    self.network.call_flow(flow, at);
                }
            }
        }
    }

    fn stop_flow(&mut self, flow: FlowId) {
        match &mut self.flows[flow] {
            FlowState::Tcp { half, source, .. } => {
                *source = Source::Greedy;
                let half = *half;
                self.network.halves[half as usize].sender.stop();
                self.network.leave_when_done(half);
            }
            FlowState::Datagrams { .. } => self.network.stop_datagrams(flow),
            FlowState::Tfrc { index } => self.network.stop_tfrc_flow(*index),
            FlowState::Media { stream, .. } => stream.stop(&mut self.network),
            FlowState::Live { stream, .. } => stream.stop(&mut self.network),
        }
    }

    /// The flow and the number of the connection that a half belongs to.
    fn owner(&self, half: HalfId) -> (FlowId, u32) {
        let half = &self.network.halves[half as usize];
        (half.flow, half.connection)
    }

    fn delivered(&mut self, half: HalfId, bytes: u64) {
        let now = self.now();
        let (flow, connection) = self.owner(half);
        match &mut self.flows[flow] {
            FlowState::Tcp { source: Source::File(size), completed, .. }
                if self.network.halves[half as usize].receiver.next() >= size.get() =>
            {
                completed.get_or_insert(now);
            }
            FlowState::Media { stream, .. } => stream.delivered(connection, half, bytes, &mut self.network),
            _ => {}
        }
    }

    /// Hands over what was written down until `until`.
    fn tell(&mut self, until: u64, observer: &mut dyn Observer) {
        for decision in self.network.decisions.drain(..) {
            observer.decision(&decision);
        }
        if let Some(trace) = &mut self.network.trace {
            // A packet may have been computed ahead of the others.
            trace.sort_by_key(|record| record.at);
            let ready = trace.partition_point(|record| record.at.as_nanos() <= until);
            trace.drain(..ready).for_each(|record| observer.packet(&record));
        }
    }

    fn counted(&self) -> Counted {
        Counted {
            flows: self.flows_counted(),
            links: (0..self.model.links.len()).map(|link| self.link_counted(link)).collect(),
        }
    }

    fn flows_counted(&self) -> Vec<FlowCounted> {
        let counted = |flow: &FlowState| match flow {
            FlowState::Tcp { half, .. } => self.network.halves[*half as usize].counted(),
            FlowState::Datagrams { index } => self.network.datagrams[*index].counted(),
            FlowState::Tfrc { index } => self.network.tfrc_flow_counted(*index),
            FlowState::Media { stream, .. } => {
                FlowCounted { delivered: stream.received(), ..stream.counted(&self.network) }
            }
            FlowState::Live { stream, .. } => stream.counted(&self.network),
        };
        self.flows.iter().map(counted).collect()
    }

    fn link_counted(&self, link: usize) -> LinkTotals {
        let counters = self.network.link(link).counters(self.network.now);
        LinkTotals {
            offered: counters.offered,
            dropped: counters.dropped,
            marked: counters.marked,
            lost: counters.lost,
            packets: counters.packets,
            transmitted: Bytes::new(counters.bytes),
            waited: Duration::from_nanos(u64::try_from(counters.waited).unwrap_or(u64::MAX)),
            queue_max: counters.queue_max,
        }
    }

    fn sample(&mut self, observer: &mut dyn Observer) {
        let counted = self.counted();
        let at = self.now();
        let mut companies = FxHashMap::default();
        for (id, (new, old)) in counted.flows.iter().zip(&self.samples.flows).enumerate() {
            let mut sample = FlowSample {
                at,
                flow: id,
                delivered: Bytes::new(new.delivered - old.delivered),
                arrived_wire: Bytes::new(new.arrived_wire - old.arrived_wire),
                sent: new.sent - old.sent,
                lost: new.lost + new.dropped - old.lost - old.dropped,
                retransmitted: new.retransmitted - old.retransmitted,
                ..FlowSample::default()
            };
            self.state_of(id, &mut sample);
            sample.company = self.place(id).map(|place| *companies.entry(place).or_insert(id));
            observer.flow(&sample);
        }
        for (id, (new, old)) in counted.links.iter().zip(&self.samples.links).enumerate() {
            observer.link(&LinkSample {
                at,
                link: id,
                transmitted: new.transmitted - old.transmitted,
                packets: new.packets - old.packets,
                dropped: new.dropped - old.dropped,
                lost: new.lost - old.lost,
                waited: new.waited - old.waited,
            });
        }
        self.samples = counted;
    }

    /// The group that a TCP flow is in, and where in it.
    fn place(&self, flow: FlowId) -> Option<(usize, vps::Place)> {
        match &self.flows[flow] {
            FlowState::Tcp { half, .. } => self.network.place(*half),
            _ => None,
        }
    }

    /// What a sample says of the moment itself.
    fn state_of(&self, flow: FlowId, sample: &mut FlowSample) {
        match &self.flows[flow] {
            FlowState::Tcp { half, .. } => {
                let half = &self.network.halves[*half as usize];
                sample.cwnd = Bytes::new(half.sender.cwnd());
                sample.ssthresh = half.sender.ssthresh();
                sample.receive_window = match half.receiver.window() {
                    NO_LIMIT => Bytes::MAX,
                    window => Bytes::new(window),
                };
                sample.srtt = Duration::from_nanos(half.sender.srtt());
                sample.connections = u32::from(half.sender.is_established());
            }
            FlowState::Media { stream, .. } => stream.state(&self.network, sample),
            FlowState::Live { stream, .. } => stream.state(sample),
            FlowState::Tfrc { index } => {
                (sample.connections, sample.flows, sample.srtt) = self.network.tfrc_flow_state(*index);
            }
            FlowState::Datagrams { .. } => {}
        }
    }

    /// The totals until now, from the end of the warm-up on.
    pub fn totals(&self) -> Totals {
        let nothing = Counted::default();
        let (from, begun) = match &self.warm {
            Some(warm) => (warm, self.model.run.warm_up),
            None => (&nothing, self.now().since(Time::ZERO)),
        };
        let counted = self.counted();
        let zero = FlowCounted::default();
        let flows = counted.flows.iter().enumerate().map(|(id, new)| {
            let old = from.flows.get(id).unwrap_or(&zero);
            let (sum, count) = (new.rtt.0 - old.rtt.0, new.rtt.1 - old.rtt.1);
            FlowTotals {
                delivered: Bytes::new(new.delivered - old.delivered),
                arrived_wire: Bytes::new(new.arrived_wire - old.arrived_wire),
                sent: new.sent - old.sent,
                dropped: new.dropped - old.dropped,
                lost: new.lost - old.lost,
                marked: new.marked - old.marked,
                retransmitted: new.retransmitted - old.retransmitted,
                loss_events: new.loss_events - old.loss_events,
                timeouts: new.timeouts - old.timeouts,
                growths: new.growths - old.growths,
                rtt_mean: Duration::from_nanos(sum.checked_div(count).unwrap_or(0)),
                completed: match &self.flows[id] {
                    FlowState::Tcp { completed, .. } => *completed,
                    _ => None,
                },
                media: match &self.flows[id] {
                    FlowState::Media { stream, .. } => Some(stream.totals(self.now())),
                    _ => None,
                },
                live: match &self.flows[id] {
                    FlowState::Live { stream, .. } => Some(stream.totals(Time::ZERO + begun, self.now())),
                    _ => None,
                },
            }
        });
        let links = counted.links.iter().enumerate().map(|(id, new)| {
            let old = from.links.get(id).copied().unwrap_or_default();
            LinkTotals {
                offered: new.offered - old.offered,
                dropped: new.dropped - old.dropped,
                marked: new.marked - old.marked,
                lost: new.lost - old.lost,
                packets: new.packets - old.packets,
                transmitted: new.transmitted - old.transmitted,
                waited: new.waited - old.waited,
                queue_max: new.queue_max,
            }
        });
        Totals {
            counted: self.now().since(Time::ZERO + begun),
            flows: flows.collect(),
            links: links.collect(),
            data_packets: self.data_packets(),
            events: self.events(),
        }
    }
}
