//! The network of the thesis' figure 8.1, who sends in it, and the two ways in which it is run.

use anabranch_film::content::Policy;
use anabranch_film::playback;
use anabranch_film::session::Pace;
use anabranch_sim::model::{
    Algorithm, Congestion, Flow, Kind, Link, Media, Model, Node, NodeId, Pattern, Run, Source, Tcp, When,
};
use anabranch_units::{Bytes, Duration, Packets, Rate, Time};

/// As the thesis has it: every link of the bottleneck's rate, nothing random but the times of start.
pub(super) const AS_PRINTED: &str = "as printed";
/// Without phase effects: access links of 100 Mbps, and every TCP waits for a random part of the bottleneck's
/// service time before it sends.
pub(super) const DEPHASED: &str = "dephased";
/// Both; relations are judged on the second.
pub(super) const VARIANTS: [&str; 2] = [AS_PRINTED, DEPHASED];

/// Payload of a packet (the thesis' MTU), and its size on the wire.
pub(super) const PACKET: Bytes = Bytes::new(1000);
const WIRE: Bytes = Bytes::new(1040);
/// The flow that is the stream; those behind it are the cross traffic.
pub(super) const STREAM: usize = 0;
const SENDER: NodeId = 0;
const ROUTER: NodeId = 1;
const RECEIVER: NodeId = 2;
const GENERATOR: NodeId = 3;
/// A request asks for so much: the thesis' server stripes single packets.
const RANGE: Bytes = Bytes::new(20_000);

/// What the thesis' text says of all these runs, and we had to choose.
pub(super) const ASSUMED: [&str; 5] = [
    "queues of 50 packets, DropTail; Reno with SACK, packets of 1000 bytes and 40 of headers, one acknowledgement per packet, \
     initial window 2, no timestamps, time-out of at least 200 ms; cross TCPs always have data and no window limit",
    "as printed: the access links have the bottleneck's rate. dephased: they have 100 Mbps, and every TCP waits for a random part \
     of the bottleneck's service time before it sends a packet. Relations are judged on dephased",
    "the server does not stripe packets: each connection is asked for ranges of 20 kB, two at a time. Nothing is asked for twice",
    "stalls by the rule of section 8.3: 10 s of media before the start, then stops of 5 s",
    "auto has its default parameters, but no more than 15 connections, all from the same server; a buffer of 5 to 20 s, segments by \
     play time",
];

/// Rates and delays of the dumbbell.
#[derive(Clone, Copy)]
pub(super) struct Path {
    /// Of the link from the router to the receiver.
    pub bottleneck: Rate,
    /// Of each link but the generator's.
    pub delay: Duration,
    /// Of the link from the generator to the router.
    pub generator_delay: Duration,
}

impl Path {
    /// That of figure 8.1: 6 Mbps and 20 ms.
    pub(super) const FIGURE_8_1: Self = Self {
        bottleneck: Rate::from_mbps(6),
        delay: Duration::from_millis(20),
        generator_delay: Duration::from_millis(20),
    };

    /// The same delays around another bottleneck.
    pub(super) const fn with_bottleneck(kbps: u64) -> Self {
        Self { bottleneck: Rate::from_kbps(kbps), ..Self::FIGURE_8_1 }
    }
}

/// A stream that is run over a path.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    /// Rate of the media (T_d).
    pub rate: Rate,
    /// The socket's buffer, where it matters.
    pub largest_window: Option<Bytes>,
}

/// What competes with the stream.
#[derive(Clone, Copy)]
pub(super) enum Cross {
    /// So many long TCPs that begin within a second from here on.
    Tcps(u32, u64),
    /// Datagrams at 5.5 Mbps from here to there.
    Burst(u64, u64),
}

pub(super) const fn seconds(seconds: u64) -> Time {
    Time::from_nanos(seconds * 1_000_000_000)
}

fn tcp(path: &Path, variant: &str) -> Tcp {
    Tcp {
        segment: PACKET,
        congestion: Congestion::Reno,
        initial_window: Packets::new(2),
        delayed_ack: None,
        timestamps: false,
        send_jitter: if variant == DEPHASED { path.bottleneck.time_for(WIRE) } else { Duration::ZERO },
        ..Tcp::DEPLOYED
    }
}

/// The model of a run. A seed moves the starts and, when dephased, every packet.
pub(super) fn model(
    path: &Path,
    stream: Stream,
    algorithm: &Algorithm,
    cross: &[Cross],
    duration: Duration,
    variant: &str,
    seed: u64,
) -> Model {
    let access = if variant == DEPHASED { Rate::from_mbps(100) } else { path.bottleneck };
    let mut links = Vec::new();
    for (one, other, rate, delay) in [
        (SENDER, ROUTER, access, path.delay),
        (ROUTER, RECEIVER, path.bottleneck, path.delay),
        (GENERATOR, ROUTER, access, path.generator_delay),
    ] {
        for (from, to) in [(one, other), (other, one)] {
            links.push(Link::drop_tail(from, to, rate, delay, 50));
        }
    }
    let tcp = tcp(path, variant);
    let mut flows = vec![Flow {
        name: "stream".into(),
        start: When::Between(Time::ZERO, Time::ZERO + Duration::from_millis(100)),
        stop: None,
        kind: Kind::Media(Box::new(media(stream, algorithm, tcp.clone()))),
    }];
    for cross in cross {
        match *cross {
            Cross::Tcps(count, from) => flows.extend((0..count).map(|number| Flow {
                name: format!("cross {from}-{number}"),
                start: When::Between(seconds(from), seconds(from + 1)),
                stop: None,
                kind: Kind::Tcp { from: GENERATOR, to: RECEIVER, tcp: tcp.clone(), source: Source::Greedy },
            })),
            Cross::Burst(from, to) => flows.push(Flow {
                name: format!("burst {from}"),
                start: When::At(seconds(from)),
                stop: Some(seconds(to)),
                kind: Kind::Udp {
                    from: GENERATOR,
                    to: RECEIVER,
                    size: PACKET,
                    pattern: Pattern::Constant { rate: Rate::from_kbps(5500), jitter: false },
                },
            }),
        }
    }
    let nodes = ["sender", "router", "receiver", "generator"].map(Node::new);
    Model {
        nodes: nodes.into(),
        links,
        flows,
        run: Run { duration, seed, sampling: Duration::from_secs(1), warm_up: Duration::ZERO },
    }
}

/// The algorithms of the thesis know no play times: their player is modelled after the run (see
/// [`played`](super::measure::played)), so that nothing is asked for again because it is late. `auto` plays.
fn media(stream: Stream, algorithm: &Algorithm, tcp: Tcp) -> Media {
    let look_ahead = Bytes::mib(64);
    let (playback, policy) = if matches!(algorithm, Algorithm::Auto(_)) {
        (playback::Parameters::multitcp_8_3(), Policy::expected(look_ahead))
    } else {
        let never = playback::Parameters {
            prebuffer: Duration::from_secs(1_000_000),
            ..playback::Parameters::multitcp_8_3()
        };
        (never, Policy { abandon_after: 0, ..Policy::rome(RANGE, look_ahead) })
    };
    Media {
        client: RECEIVER,
        servers: vec![SENDER],
        tcp,
        rate: stream.rate,
        size: None,
        pace: Pace::Media(Some(stream.rate)),
        algorithm: algorithm.clone(),
        playback,
        reader: None,
        policy,
        largest_window: stream.largest_window,
        connect_timeout: None,
        connections_per_server: 15,
    }
}
