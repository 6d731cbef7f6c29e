//! The lines of a trace as JSON.

use anabranch_units::{Bytes, Duration, Time};
use serde::{Deserialize, Serialize};

use super::event::{Event, Step, Windows};
use crate::control::{Ack, Loss, Timeout};

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HeaderLine {
    pub trace: String,
    pub algorithm: String,
    pub segment: u64,
    pub initial_window: u64,
    pub initial_ssthresh: Option<u64>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(super) enum EventLine {
    Ack {
        now: u64,
        acked: u64,
        flight: u64,
        rtt: Option<u64>,
        srtt: u64,
        is_cwnd_limited: bool,
        #[serde(flatten)]
        windows: WindowsLine,
    },
    Loss {
        now: u64,
        flight: u64,
        #[serde(flatten)]
        windows: WindowsLine,
    },
    Timeout {
        now: u64,
        flight: u64,
        is_repeated: bool,
        #[serde(flatten)]
        windows: WindowsLine,
    },
    Idle {
        now: u64,
        #[serde(flatten)]
        windows: WindowsLine,
    },
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct WindowsLine {
    cwnd: u64,
    ssthresh: Option<u64>,
}

impl From<Windows> for WindowsLine {
    fn from(windows: Windows) -> Self {
        let ssthresh = (windows.ssthresh != Bytes::MAX).then(|| windows.ssthresh.get());
        Self { cwnd: windows.cwnd.get(), ssthresh }
    }
}

impl From<WindowsLine> for Windows {
    fn from(line: WindowsLine) -> Self {
        Self { cwnd: Bytes::new(line.cwnd), ssthresh: line.ssthresh.map_or(Bytes::MAX, Bytes::new) }
    }
}

impl From<&Step> for EventLine {
    fn from(step: &Step) -> Self {
        let windows = step.windows.into();
        match step.event {
            Event::Ack(ack) => Self::Ack {
                now: ack.now.as_nanos(),
                acked: ack.acked.get(),
                flight: ack.flight.get(),
                rtt: ack.rtt.map(Duration::as_nanos),
                srtt: ack.srtt.as_nanos(),
                is_cwnd_limited: ack.is_cwnd_limited,
                windows,
            },
            Event::Loss(loss) => Self::Loss { now: loss.now.as_nanos(), flight: loss.flight.get(), windows },
            Event::Timeout(timeout) => Self::Timeout {
                now: timeout.now.as_nanos(),
                flight: timeout.flight.get(),
                is_repeated: timeout.is_repeated,
                windows,
            },
            Event::Idle(now) => Self::Idle { now: now.as_nanos(), windows },
        }
    }
}

impl From<EventLine> for Step {
    fn from(line: EventLine) -> Self {
        let (event, windows) = match line {
            EventLine::Ack { now, acked, flight, rtt, srtt, is_cwnd_limited, windows } => {
                let ack = Ack {
                    now: Time::from_nanos(now),
                    acked: Bytes::new(acked),
                    flight: Bytes::new(flight),
                    rtt: rtt.map(Duration::from_nanos),
                    srtt: Duration::from_nanos(srtt),
                    is_cwnd_limited,
                };
                (Event::Ack(ack), windows)
            }
            EventLine::Loss { now, flight, windows } => {
                let loss = Loss { now: Time::from_nanos(now), flight: Bytes::new(flight) };
                (Event::Loss(loss), windows)
            }
            EventLine::Timeout { now, flight, is_repeated, windows } => {
                let timeout = Timeout { now: Time::from_nanos(now), flight: Bytes::new(flight), is_repeated };
                (Event::Timeout(timeout), windows)
            }
            EventLine::Idle { now, windows } => (Event::Idle(Time::from_nanos(now)), windows),
        };
        Self { event, windows: windows.into() }
    }
}
