//! The flows of a loaded control, as its BPF program tells them: a line each, in a file of the kernel's.

use std::net::SocketAddr;

use anabranch_congestion::vps::Weight;
use anabranch_units::Packets;

use crate::error::Error;
use crate::pins::list_of_flows;

/// A socket under one of the controls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowStatus {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Congestion window.
    pub cwnd: Packets,
    /// Slow start threshold; `None` before the first loss.
    pub ssthresh: Option<Packets>,
    /// Loss events, time-outs that ended an interval included.
    pub loss_events: u32,
    /// Time-outs.
    pub timeouts: u32,
    /// The loss event rate that the window follows; `None` where the control keeps none, or before the first
    /// loss event.
    pub loss_event_rate: Option<f64>,
    /// Its weight in the group; `None` for other controls, and for a connection that found the group full and
    /// is on its own.
    pub weight: Option<Weight>,
}

/// The kernel's threshold of a flow without a loss.
const NO_THRESHOLD: u64 = 0x7fff_ffff;

/// The sockets that use a control now.
///
/// # Errors
/// When it is not loaded, or what it tells cannot be read.
pub fn flows(name: &'static str) -> Result<Vec<FlowStatus>, Error> {
    let text = list_of_flows(name)?;
    text.lines().map(|line| flow(line).ok_or(Error::OtherVersion(name))).collect()
}

/// `local remote cwnd ssthresh loss-events time-outs mean-interval-in-2^-16-packets weight-in-2^-16`.
fn flow(line: &str) -> Option<FlowStatus> {
    let mut words = line.split(' ');
    let (local, remote) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let mut number = || words.next()?.parse::<u64>().ok();
    let (cwnd, ssthresh) = (Packets::new(number()?), number()?);
    let (loss_events, timeouts) = (number()?.try_into().ok()?, number()?.try_into().ok()?);
    let interval = number()?;
    let weight = number()?;
    Some(FlowStatus {
        local,
        remote,
        cwnd,
        ssthresh: (ssthresh < NO_THRESHOLD).then_some(Packets::new(ssthresh)),
        loss_events,
        timeouts,
        weight: Weight::new(weight as f64 / 65_536.0),
        loss_event_rate: (interval > 0).then(|| 65_536.0 / interval as f64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_flow() {
        let told = flow("10.0.0.1:443 10.0.0.2:51000 32 2147483647 0 0 0 0").unwrap();
        assert_eq!((told.cwnd, told.ssthresh, told.loss_event_rate), (Packets::new(32), None, None));
        let told = flow("[::1]:443 [::1]:51000 32 16 3 1 6553600 262144").unwrap();
        assert_eq!((told.ssthresh, told.loss_events, told.timeouts), (Some(Packets::new(16)), 3, 1));
        assert_eq!((told.loss_event_rate, told.weight), (Some(0.01), Weight::new(4.0)));
        for broken in ["", "x", "10.0.0.1:443 10.0.0.2:51000 32", "10.0.0.1:443 10.0.0.2:51000 a 1 1 1 1"] {
            assert_eq!(flow(broken), None);
        }
    }
}
