//! quinn's state machines in virtual time: servers that send as much as they may to clients behind one
//! bottleneck. What a server does is what `anabranch serve` does; only clock, sockets and timers are not real.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anabranch_congestion::algorithm::Algorithm;
use anabranch_congestion::vps::Weight;
use anabranch_quic::{
    InFlight, Membership, Pace, PacedFactory, ROUND, Sharing, SingleFactory, Wakeable, WeightedFactory,
    client_transport, server_transport,
};
use anabranch_testkit::{Events, Random};
use anabranch_units::{Bytes, Duration, Rate, Time};
use bytes::BytesMut;
use quinn_proto::congestion::{CubicConfig, NewRenoConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig,
    Event, ServerConfig, StreamEvent, StreamId,
};

/// The first one opens the stream.
const REQUEST: &[u8] = b"GET";

/// What the bottleneck does.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    pub rate: Rate,
    /// Of the whole way there and back, without the queue.
    pub round_trip: Duration,
    pub queue: Bytes,
    /// What is lost on the wire behind the queue, of one.
    pub loss: f64,
    /// A queue longer than this marks.
    pub marks_above: Bytes,
}

impl Path {
    /// One without losses and marks, whose queue holds so many products of bandwidth and delay.
    pub fn new(megabits: u64, round_trip_millis: u64, products: f64) -> Self {
        let rate = Rate::from_bps(megabits * 1_000_000);
        let round_trip = Duration::from_millis(round_trip_millis);
        let product = rate.as_f64() / 8.0 * round_trip.as_secs_f64();
        let queue = Bytes::from_f64(product * products);
        Self { rate, round_trip, queue, loss: 0.0, marks_above: Bytes::MAX }
    }
}

/// A control of a server: one of ours, or one of quinn's own.
#[derive(Clone, Copy, Debug)]
pub enum Control {
    Ours(Algorithm),
    /// Shares with the others of these, whose virtual flows run Reno.
    Grouped,
    QuinnCubic,
    QuinnNewReno,
}

/// One end of a connection.
struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    peer: SocketAddr,
    config: Option<Arc<ServerConfig>>,
    in_flight: InFlight,
    pace: Option<Pace>,
    member: Option<Member>,
    stream: Option<StreamId>,
    /// What the application of a server has to say, and how much of it is written.
    source: Source,
    written: u64,
    received: u64,
    /// How a client asks, how many pieces it has asked for, and when it may do so again.
    asks: Option<Asks>,
    asked: u64,
    next_ask: Time,
}

/// A server's place in the group.
struct Member {
    factory: Arc<WeightedFactory>,
    membership: Option<Membership>,
    counts: bool,
}

impl Member {
    /// Whether a server has more of an answer to send.
    fn count(&mut self, is_answering: bool) {
        let Self { membership: Some(membership), counts, .. } = self else { return };
        if std::mem::replace(counts, is_answering) != is_answering {
            membership.count(is_answering.then_some(Weight::ONE));
        }
    }
}

/// A connection that is looked at whenever anything happens.
struct Awake;

impl Wakeable for Awake {
    fn wake(&self, _: u64) {}
}

/// How much a server has to send.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    Endless,
    /// From this time on, at this rate.
    Steady(Time, Rate),
    /// What the client asks for, in pieces of so much.
    Asked(Bytes),
    Nothing,
}

/// How a client asks: for a piece after the other.
#[derive(Clone, Copy, Debug)]
pub struct Asks {
    pub piece: Bytes,
    /// The most that are under way.
    pub at_once: u64,
    /// The most that it asks for.
    pub rate: Rate,
}

struct Datagram {
    flow: usize,
    to_server: bool,
    data: BytesMut,
    ecn: Option<EcnCodepoint>,
}

/// Several connections, each `[client, server]`, through one bottleneck.
pub struct World {
    path: Path,
    start: Instant,
    pub now: Time,
    flows: Vec<[End; 2]>,
    /// The group of those in it, what its clock says in nanoseconds, and when it is looked after next.
    sharing: Option<Arc<Sharing>>,
    clock: Arc<AtomicU64>,
    round: Time,
    arrivals: Events<Datagram>,
    /// What waits in the queue: when it is out, and how much it is.
    queue: VecDeque<(Time, Bytes)>,
    queued: Bytes,
    chance: Random,
    /// Since they were read last: packets that the queue dropped, the sum of waiting times, and packets.
    pub dropped: u64,
    waited: Duration,
    passed: u64,
}

fn identity() -> (ServerConfig, ClientConfig) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let certificate = made.cert.der().clone();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let server = ServerConfig::with_single_cert(vec![certificate.clone()], key).expect("a server");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).expect("a root");
    (server, ClientConfig::with_root_certificates(Arc::new(roots)).expect("a client"))
}

impl World {
    pub fn new(path: Path, controls: &[Control], seed: u64) -> Self {
        let start = Instant::now();
        let mut world = Self {
            path,
            start,
            now: Time::ZERO,
            flows: Vec::new(),
            sharing: None,
            clock: Arc::default(),
            round: Time::ZERO,
            arrivals: Events::default(),
            queue: VecDeque::new(),
            queued: Bytes::ZERO,
            chance: Random::new(seed),
            dropped: 0,
            waited: Duration::ZERO,
            passed: 0,
        };
        for (number, control) in (0u64..).zip(controls) {
            let flow = world.connect(*control, seed + number);
            world.flows.push(flow);
        }
        world
    }

    /// The group, which begins with its first member.
    fn sharing(&mut self) -> Arc<Sharing> {
        let (start, clock) = (self.start, self.clock.clone());
        let now = move || start + std::time::Duration::from_nanos(clock.load(Ordering::Relaxed));
        self.sharing.get_or_insert_with(|| Sharing::declared_by(Algorithm::Reno, Arc::new(now))).clone()
    }

    fn connect(&mut self, control: Control, seed: u64) -> [End; 2] {
        let (mut server, mut client) = identity();
        let mut transport = server_transport(std::time::Duration::from_secs(60));
        let counted = InFlight::default();
        let in_flight = counted.clone();
        let (mut pace, mut member) = (None, None);
        match control {
            Control::QuinnCubic => {
                transport.congestion_controller_factory(Arc::new(CubicConfig::default()));
            }
            Control::QuinnNewReno => {
                transport.congestion_controller_factory(Arc::new(NewRenoConfig::default()));
            }
            Control::Grouped => {
                let factory = Arc::new(WeightedFactory::new(self.sharing(), in_flight));
                transport.congestion_controller_factory(factory.clone());
                member = Some(Member { factory, membership: None, counts: false });
            }
            Control::Ours(algorithm) if algorithm.is_paced() => {
                let ours = pace.insert(Pace::new(self.start)).clone();
                let factory = PacedFactory { algorithm, seed, in_flight, pace: ours };
                transport.enable_segmentation_offload(false).congestion_controller_factory(Arc::new(factory));
            }
            Control::Ours(algorithm) => {
                transport.congestion_controller_factory(Arc::new(SingleFactory { algorithm, in_flight }));
            }
        }
        server.crypto = counted.told_by(server.crypto.clone());
        server.transport_config(Arc::new(transport));
        client.transport_config(Arc::new(client_transport()));
        let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let endpoint = |config: Option<Arc<ServerConfig>>, number: u8| {
            let mut bytes = [number; 32];
            bytes[..8].copy_from_slice(&seed.to_be_bytes());
            Endpoint::new(Arc::new(EndpointConfig::default()), config, true, Some(bytes))
        };
        let end = |config: Option<Arc<ServerConfig>>, number: u8, pace, member, source| End {
            endpoint: endpoint(config.clone(), number),
            connection: None,
            peer: address(2 - u16::from(number)),
            config,
            in_flight: counted.clone(),
            pace,
            member,
            stream: None,
            source,
            written: 0,
            received: 0,
            asks: None,
            asked: 0,
            next_ask: Time::ZERO,
        };
        let mut client_end = end(None, 0, None, None, Source::Nothing);
        let server_end = end(Some(Arc::new(server)), 1, pace, member, Source::Endless);
        let connecting = client_end.endpoint.connect(self.start, client, client_end.peer, "localhost");
        client_end.connection = Some(connecting.expect("an address"));
        [client_end, server_end]
    }

    /// What the server of a flow has to send from now on.
    pub fn source(&mut self, flow: usize, source: Source) {
        let server = &mut self.flows[flow][1];
        (server.source, server.written) = (source, 0);
    }

    /// What the client of a flow asks for from now on. It asks from the beginning on, or never.
    pub fn asks(&mut self, flow: usize, asks: Asks) {
        let now = self.now;
        let [client, server] = &mut self.flows[flow];
        (client.asks, client.next_ask, server.source) = (Some(asks), now, Source::Asked(asks.piece));
    }

    fn instant(&self) -> Instant {
        self.start + std::time::Duration::from_nanos(self.now.as_nanos())
    }

    /// What each client has received.
    pub fn received(&self) -> Vec<u64> {
        self.flows.iter().map(|[client, _]| client.received).collect()
    }

    /// How long a packet waited in the queue on the mean since this was asked last.
    pub fn mean_wait(&mut self) -> Duration {
        let (waited, passed) = (std::mem::take(&mut self.waited), std::mem::take(&mut self.passed));
        waited / passed.max(1)
    }

    /// Goes on until this time, and answers what each client received meanwhile in Mbps.
    pub fn run(&mut self, seconds: u64) -> Vec<f64> {
        let (began, before) = (self.now, self.received());
        let until = Time::ZERO + Duration::from_secs(seconds);
        loop {
            self.clock.store(self.now.as_nanos(), Ordering::Relaxed);
            if let Some(sharing) = self.sharing.as_ref().filter(|_| self.round <= self.now) {
                sharing.look_after();
                self.round = self.now + ROUND.into();
            }
            for flow in 0..self.flows.len() {
                self.drive(flow, 0);
                self.drive(flow, 1);
            }
            let next = self.next();
            if next > until {
                break;
            }
            self.now = next.max(self.now);
            while let Some(datagram) = self.arrivals.due(self.now) {
                self.arrive(datagram);
            }
        }
        self.now = until;
        let took = until.since(began).as_secs_f64();
        let received = self.received();
        received.iter().zip(&before).map(|(now, then)| (now - then) as f64 * 8e-6 / took).collect()
    }

    fn next(&mut self) -> Time {
        let timers = self.flows.iter_mut().flatten().flat_map(|end| {
            let timeout = end.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
            [timeout, end.pace.as_ref().and_then(Pace::departure)]
        });
        let first = timers
            .flatten()
            .min()
            .map_or(Time::NEVER, |at| Time::ZERO + Duration::from(at.saturating_duration_since(self.start)));
        // What is due already waits for room, which an arrival makes.
        let writes = self.flows.iter().filter_map(|[_, server]| server.next_write());
        let source = writes.filter(|at| *at > self.now).min();
        let asks = self.flows.iter().map(|[client, _]| client.next_ask).filter(|at| *at > self.now).min();
        let source = source.unwrap_or(Time::NEVER).min(asks.unwrap_or(Time::NEVER));
        let round = self.sharing.as_ref().map_or(Time::NEVER, |_| self.round);
        first.min(self.arrivals.next()).min(source).min(round)
    }

    /// Has an end do what is due: its timers, its application, and what it sends.
    fn drive(&mut self, flow: usize, end: usize) {
        let (now, at) = (self.now, self.instant());
        let this = &mut self.flows[flow][end];
        let Some((handle, connection)) = &mut this.connection else { return };
        if connection.poll_timeout().is_some_and(|timeout| timeout <= at) {
            connection.handle_timeout(at);
        }
        if let Some(pace) = this.pace.as_ref().filter(|pace| pace.departure().is_some_and(|due| due <= at)) {
            pace.depart(at);
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => {
                    if let Some(pace) = &this.pace {
                        pace.begin();
                    }
                    if let Some(Member { factory, membership, .. }) = &mut this.member {
                        *membership = Some(factory.join(Awake, Some(this.peer.ip())));
                    }
                    if end == 0 {
                        let stream = connection.streams().open(Dir::Bi).expect("a stream");
                        connection.send_stream(stream).write(REQUEST).expect("room");
                        this.stream = Some(stream);
                    }
                }
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    this.stream = connection.streams().accept(Dir::Bi);
                }
                Event::ConnectionLost { reason } => panic!("{reason}"),
                _ => {}
            }
        }
        if let Some(stream) = this.stream {
            let mut receiving = connection.recv_stream(stream);
            if let Ok(mut chunks) = receiving.read(true) {
                while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                    this.received += Bytes::of(chunk.bytes.len()).get();
                }
                let _ = chunks.finalize();
            }
            if end == 0 {
                while let Some(asks) = this.asks
                    && this.next_ask <= now
                    && this.asked < this.received / asks.piece.get() + asks.at_once
                {
                    connection.send_stream(stream).write(REQUEST).expect("room");
                    this.asked += 1;
                    this.next_ask = now.max(this.next_ask + asks.rate.time_for(asks.piece));
                }
            } else {
                if let Some(window) = this.in_flight.new_send_window() {
                    connection.set_send_window(window);
                }
                let asked = (this.received / Bytes::of(REQUEST.len()).get()).saturating_sub(1);
                let mut may = this.source.until(now, asked).saturating_sub(this.written);
                this.member.iter_mut().for_each(|member| member.count(may > 0));
                const PIECE: [u8; 16 * 1024] = [0; 16 * 1024];
                while may > 0 {
                    let piece = usize::try_from(may).unwrap_or(usize::MAX).min(PIECE.len());
                    let Ok(written) = connection.send_stream(stream).write(&PIECE[..piece]) else { break };
                    let written = Bytes::of(written).get();
                    (this.written, may) = (this.written + written, may - written);
                }
                this.member.iter_mut().for_each(|member| member.count(may > 0));
            }
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = this.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        let mut sent = Vec::new();
        let mut buffer = Vec::new();
        // Ten datagrams at once, as quinn has it.
        while let Some(transmit) = connection.poll_transmit(at, 10, &mut buffer) {
            let segment = transmit.segment_size.unwrap_or(transmit.size).max(1);
            sent.extend(
                buffer[..transmit.size].chunks(segment).map(|data| (BytesMut::from(data), transmit.ecn)),
            );
            buffer.clear();
        }
        for (data, ecn) in sent {
            self.send(Datagram { flow, to_server: end == 0, data, ecn });
        }
    }

    /// A datagram leaves: through the queue to a client, and straight to a server.
    fn send(&mut self, mut datagram: Datagram) {
        let one_way = self.path.round_trip / 2;
        if datagram.to_server {
            self.arrivals.put(self.now + one_way, datagram);
            return;
        }
        while let Some((_, size)) = self.queue.pop_front_if(|(out, _)| *out <= self.now) {
            self.queued -= size;
        }
        let size = Bytes::of(datagram.data.len());
        if self.queued + size > self.path.queue {
            self.dropped += 1;
            return;
        }
        if self.queued > self.path.marks_above && datagram.ecn.is_some() {
            datagram.ecn = Some(EcnCodepoint::Ce);
        }
        let free = self.queue.back().map_or(self.now, |(out, _)| *out);
        let out = free + self.path.rate.time_for(size);
        self.waited += free.since(self.now);
        self.passed += 1;
        self.queue.push_back((out, size));
        self.queued += size;
        if self.chance.draw() >= self.path.loss {
            self.arrivals.put(out + one_way, datagram);
        }
    }

    fn arrive(&mut self, datagram: Datagram) {
        let at = self.instant();
        let Datagram { flow, to_server, data, ecn } = datagram;
        let this = &mut self.flows[flow][usize::from(to_server)];
        let mut answer = Vec::new();
        match this.endpoint.handle(at, this.peer, None, ecn, data, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                let (_, connection) = this.connection.as_mut().expect("it is connected");
                connection.handle_event(event);
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let config = this.config.clone();
                let accepted = this.endpoint.accept(incoming, at, &mut answer, config);
                let Ok(accepted) = accepted else { panic!("it is let in") };
                this.connection = Some(accepted);
            }
            Some(DatagramEvent::Response(_)) | None => {}
        }
        let end = usize::from(to_server);
        self.drive(flow, end);
    }
}

impl Source {
    /// How much there is until then, when so many pieces were asked for.
    fn until(self, now: Time, asked: u64) -> u64 {
        match self {
            Self::Endless => u64::MAX,
            Self::Steady(from, rate) => {
                Bytes::from_f64(rate.bytes_per_second() * now.since(from).as_secs_f64()).get()
            }
            Self::Asked(piece) => asked * piece.get(),
            Self::Nothing => 0,
        }
    }
}

impl End {
    /// When there is something new to write, where that is not at once.
    fn next_write(&self) -> Option<Time> {
        self.stream?;
        // In pieces of a packet.
        let Source::Steady(from, rate) = self.source else { return None };
        Some(from + rate.time_for(Bytes::new(self.written + 1200)))
    }
}
