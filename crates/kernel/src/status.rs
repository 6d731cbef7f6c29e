//! The flows of a loaded control, as its BPF program tells them: a line each, in a file of the kernel's.

use std::net::SocketAddr;

use anabranch_congestion::vps::Weight;
use anabranch_units::Packets;

use crate::error::Error;
use crate::in_use::GROUP;
use crate::pins::list_of_flows;
use crate::rules::read_rules;
use crate::setting::Setting;
use crate::weights::{GroupName, Groups};

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
    /// The group that it is in, or would be in if that were not full; `None` for other controls.
    pub group: Option<GroupName>,
}

/// A group of the control `group`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupStatus {
    /// What the rules call it.
    pub name: GroupName,
    /// How many members it has.
    pub members: u64,
    /// Their joint window, as it was when one of them was heard of last, packets.
    pub window: f64,
    /// Packets delivered since the control was loaded.
    pub delivered: u64,
    /// Packets lost since then.
    pub lost: u64,
}

/// The kernel's threshold of a flow without a loss.
const NO_THRESHOLD: u64 = 0x7fff_ffff;

/// The sockets that use a control now.
///
/// # Errors
/// When it is not loaded, or what it tells cannot be read.
pub fn flows(name: &'static str) -> Result<Vec<FlowStatus>, Error> {
    let text = list_of_flows(name)?;
    let groups =
        if name == Setting::Group.name() { read_rules().ok().map(|(_, groups)| groups) } else { None };
    let lines = text.lines().filter(|line| !line.starts_with(GROUP));
    lines.map(|line| flow(line, groups.as_ref()).ok_or(Error::OtherVersion(name))).collect()
}

/// The groups that rules name, and what no rule is for.
///
/// # Errors
/// When the control is not loaded, or what it tells cannot be read.
pub fn groups() -> Result<Vec<GroupStatus>, Error> {
    let name = Setting::Group.name();
    let (text, (_, groups)) = (list_of_flows(name)?, read_rules()?);
    let mut all = Vec::new();
    for line in text.lines().filter_map(|line| line.strip_prefix(GROUP)) {
        let (number, status) = group(line).ok_or(Error::OtherVersion(name))?;
        all.extend(groups.name(number).map(|name| GroupStatus { name, ..status }));
    }
    Ok(all)
}

/// `number members joint-window-in-2^-20-packets delivered lost`.
fn group(line: &str) -> Option<(u32, GroupStatus)> {
    let mut numbers = line.split(' ').map(|word| word.parse::<u64>().ok());
    let mut next = || numbers.next()?;
    let (number, members, window, delivered, lost) = (next()?, next()?, next()?, next()?, next()?);
    let window = window as f64 / 1_048_576.0;
    Some((
        number.try_into().ok()?,
        GroupStatus { name: GroupName::DEFAULT, members, window, delivered, lost },
    ))
}

/// `local remote cwnd ssthresh loss-events time-outs mean-interval-in-2^-16-packets weight-in-2^-16
/// group`.
fn flow(line: &str, groups: Option<&Groups>) -> Option<FlowStatus> {
    let mut words = line.split(' ');
    let (local, remote) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let mut number = || words.next()?.parse::<u64>().ok();
    let (cwnd, ssthresh) = (Packets::new(number()?), number()?);
    let (loss_events, timeouts) = (number()?.try_into().ok()?, number()?.try_into().ok()?);
    let interval = number()?;
    let (weight, group) = (number()?, number()?.try_into().ok()?);
    Some(FlowStatus {
        local,
        remote,
        cwnd,
        ssthresh: (ssthresh < NO_THRESHOLD).then_some(Packets::new(ssthresh)),
        loss_events,
        timeouts,
        weight: Weight::new(weight as f64 / 65_536.0),
        group: groups.and_then(|groups| groups.name(group)),
        loss_event_rate: (interval > 0).then(|| 65_536.0 / interval as f64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_flow() {
        let told = flow("10.0.0.1:443 10.0.0.2:51000 32 2147483647 0 0 0 0 0", None).unwrap();
        assert_eq!((told.cwnd, told.ssthresh, told.loss_event_rate), (Packets::new(32), None, None));
        assert_eq!(told.group, None);
        let groups = Groups::default();
        let told = flow("[::1]:443 [::1]:51000 32 16 3 1 6553600 262144 0", Some(&groups)).unwrap();
        assert_eq!(told.group, Some(GroupName::DEFAULT));
        assert_eq!((told.ssthresh, told.loss_events, told.timeouts), (Some(Packets::new(16)), 3, 1));
        assert_eq!((told.loss_event_rate, told.weight), (Some(0.01), Weight::new(4.0)));
        for broken in ["", "x", "10.0.0.1:443 10.0.0.2:51000 32", "10.0.0.1:443 10.0.0.2:51000 a 1 1 1 1 0"] {
            assert_eq!(flow(broken, None), None);
            assert_eq!(group(broken), None);
        }
    }

    #[test]
    fn a_line_is_a_group() {
        let (number, told) = group("3 17 10485760 1000 5").unwrap();
        assert_eq!((number, told.members, told.window), (3, 17, 10.0));
        assert_eq!((told.delivered, told.lost), (1000, 5));
    }
}
