//! The links over which a stream goes, and what is beside it there.

use anabranch_congestion::algorithm::Algorithm;
use anabranch_units::{Duration, Rate};

/// A row of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub rate: Rate,
    pub rtt: Duration,
    pub queue: usize,
    pub latency: Duration,
    pub loss: f64,
    pub burst: f64,
    /// TCP flows beside it, which begin one after the other.
    pub tcp: Option<(usize, Algorithm)>,
    /// Of the delay, each way.
    pub jitter: Duration,
    /// What the link's rate is from the middle of what is judged on.
    pub later: Option<Rate>,
}

pub const WIRELESS: Row = Row {
    rate: Rate::from_mbps(1),
    rtt: Duration::from_millis(168),
    queue: 25,
    latency: Duration::from_millis(672),
    loss: 0.0,
    burst: 1.0,
    tcp: None,
    jitter: Duration::ZERO,
    later: None,
};

pub const NARROW: Row = Row {
    rate: Rate::from_kbps(100),
    rtt: Duration::from_millis(757),
    queue: 10,
    latency: Duration::from_millis(3028),
    ..WIRELESS
};

/// Those of `bench/live_rows.py` with one link, and others beside TCP.
pub fn rows() -> [(&'static str, Row); 16] {
    let beside = Row { tcp: Some((1, Algorithm::Cubic)), ..WIRELESS };
    [
        ("loss-0", WIRELESS),
        ("loss-2", Row { loss: 0.02, ..WIRELESS }),
        ("loss-4", Row { loss: 0.04, ..WIRELESS }),
        ("loss-8", Row { loss: 0.08, ..WIRELESS }),
        ("bursts", Row { loss: 0.04, burst: 5.0, ..WIRELESS }),
        ("beside-tcp", beside),
        ("halved", Row { later: Some(Rate::from_kbps(500)), ..WIRELESS }),
        ("narrow", NARROW),
        ("beside-queue-10", Row { queue: 10, ..beside }),
        ("beside-queue-60", Row { queue: 60, ..beside }),
        ("beside-two", Row { tcp: Some((2, Algorithm::Cubic)), ..WIRELESS }),
        ("beside-reno", Row { tcp: Some((1, Algorithm::Reno)), ..WIRELESS }),
        ("beside-2M", Row { rate: Rate::from_mbps(2), queue: 50, ..beside }),
        ("beside-second", Row { latency: Duration::from_secs(1), ..beside }),
        (
            "beside-short",
            Row { rtt: Duration::from_millis(60), latency: Duration::from_millis(400), ..beside },
        ),
        ("beside-lossy", Row { loss: 0.01, ..beside }),
    ]
}
