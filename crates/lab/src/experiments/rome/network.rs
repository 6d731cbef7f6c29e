//! What the networks of TCP-ROME's evaluation have in common: links, TCPs and streams.

use anabranch_film::content::Policy;
use anabranch_film::playback;
use anabranch_film::session::Pace;
use anabranch_sim::model::{Algorithm, Congestion, Link, Media, NodeId, Tcp};
use anabranch_units::{Bytes, Duration, Packets, Rate};

/// A segment of the content: a frame of 3 Mbps at 30 a second.
pub(super) const SEGMENT: Bytes = Bytes::new(12_500);
/// What is asked for ahead of the player.
const LOOK_AHEAD: Bytes = Bytes::mib(64);
/// `auto` gets no more connections than this to all servers together.
const MOST_OF_AUTO: usize = 15;

/// What the paper leaves open in all its runs.
pub(super) const ASSUMED: [&str; 3] = [
    "Reno with SACK, packets of 1000 bytes and 40 of headers, one acknowledgement per packet, initial window 2, no timestamps, \
     time-out of at least 200 ms; queues of 50 packets, DropTail; every TCP waits up to 1 ms before it sends, against phase effects",
    "R- and R+ are 0.95 and 1.05 of the display rate, phi is one round trip, varphi 5/4 of what it has to be above, b = 1 and T_0 as \
     in crates/film; compensation below R-; segments of 12.5 kB",
    "auto has its default parameters, but no more than 15 connections; segments by play time",
];

/// A link in both directions.
pub(super) fn duplex(links: &mut Vec<Link>, one: NodeId, other: NodeId, rate: Rate, delay: Duration) {
    for (from, to) in [(one, other), (other, one)] {
        links.push(Link::drop_tail(from, to, rate, delay, 50));
    }
}

/// The TCP of every connection.
pub(super) fn tcp() -> Tcp {
    Tcp {
        segment: Bytes::new(1000),
        congestion: Congestion::Reno,
        initial_window: Packets::new(2),
        delayed_ack: None,
        timestamps: false,
        send_jitter: Duration::from_millis(1),
        ..Tcp::DEPLOYED
    }
}

/// A stream from one connection to each server; `auto` may have more.
pub(super) fn media(
    client: NodeId,
    servers: Vec<NodeId>,
    algorithm: Algorithm,
    rate: Rate,
    pace: Pace,
) -> Media {
    let is_auto = matches!(algorithm, Algorithm::Auto(_));
    Media {
        client,
        tcp: tcp(),
        rate,
        size: None,
        pace,
        algorithm,
        playback: playback::Parameters::default(),
        reader: None,
        policy: if is_auto {
            Policy::expected(LOOK_AHEAD)
        } else {
            Policy { abandon_after: 0, ..Policy::rome(SEGMENT, LOOK_AHEAD) }
        },
        largest_window: None,
        connect_timeout: None,
        connections_per_server: if is_auto { (MOST_OF_AUTO / servers.len().max(1)).max(1) } else { 1 },
        servers,
    }
}

/// A player that never starts: nothing comes near its play time, so that nothing is asked for again, and its
/// buffer is all that has arrived in order.
pub(super) const NEVER: playback::Parameters = playback::Parameters {
    prebuffer: Duration::from_secs(1_000_000),
    stall: playback::StallRule::Rebuffer { resume_at: Duration::from_secs(2) },
};
