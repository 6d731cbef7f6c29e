//! What a decision of the content coordinator costs, by the number of outstanding segments: it must not grow
//! with it.
//!
//! `cargo bench -p anabranch-film`

use anabranch_film::content::{Coordinator, InFlight, Policy, ReaderId};
use anabranch_film::control::ConnectionId;
use anabranch_protocol::ranges::RangeSet;
use anabranch_units::{Bytes, Duration, Rate, Time};
use divan::{Bencher, black_box};

const CONNECTIONS: u32 = 8;
const SEGMENT: Bytes = Bytes::kib(16);
const OUTSTANDING: [usize; 5] = [10, 100, 1_000, 10_000, 100_000];

fn main() {
    divan::main();
}

/// A film with so many segments outstanding over eight connections, none of them late.
fn world(outstanding: usize) -> Coordinator {
    let size = 1 << 40;
    let policy = Policy {
        in_flight: InFlight::Requests(usize::MAX),
        ..Policy::rome(SEGMENT, Bytes::new(u64::MAX / 4))
    };
    let policy = Policy { missing: Policy::expected(SEGMENT).missing, ..policy };
    let mut coordinator = Coordinator::new(policy, Some(size), RangeSet::new());
    coordinator.set_media_rate(Rate::from_kbps(1));
    coordinator.add_reader(ReaderId(0), 0..size);
    for id in 0..CONNECTIONS {
        coordinator.add_connection(ConnectionId(id), Duration::from_millis(50), Time::ZERO);
        coordinator.estimate(ConnectionId(id), Rate::from_mbps(100), Duration::from_millis(50));
    }
    for (_, connection) in (0..outstanding).zip((0..CONNECTIONS).cycle()) {
        coordinator.next_request(ConnectionId(connection), Time::ZERO).expect("a request");
    }
    coordinator
}

/// A segment arrives and the next one is asked for: the decision of every response.
#[divan::bench(args = OUTSTANDING)]
fn arrival_and_next_request(bencher: Bencher, outstanding: usize) {
    let mut coordinator = world(outstanding);
    let mut connections = (0..CONNECTIONS).cycle();
    bencher.bench_local(|| {
        let connection = ConnectionId(connections.next().unwrap_or(0));
        let (request, _) = coordinator.answering(connection).expect("outstanding");
        coordinator.arrived(request, SEGMENT.get(), Time::ZERO);
        black_box(coordinator.next_request(connection, Time::ZERO))
    });
}

/// Nothing is late: the look that every tick takes.
#[divan::bench(args = OUTSTANDING)]
fn look_for_late_segments(bencher: Bencher, outstanding: usize) {
    let mut coordinator = world(outstanding);
    bencher.bench_local(|| black_box(coordinator.reassign_late(Time::ZERO)));
}
