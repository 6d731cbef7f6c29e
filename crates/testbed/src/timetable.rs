//! What happens when, in a run.

use anabranch_units::Duration;

use crate::scenario::Scenario;

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start this group of cross traffic.
    StartCross(usize),
    /// Stop this group of cross traffic.
    StopCross(usize),
    /// Kill this server's program.
    Kill(usize),
    /// Start this server's program again.
    Start(usize),
    /// Change a path as this event says.
    Change(usize),
}

/// All that happens, in order of time; what is at the same time is in the file's order.
pub fn timetable(scenario: &Scenario) -> Vec<(Duration, Action)> {
    let mut all = Vec::new();
    for (group, cross) in scenario.cross.iter().enumerate() {
        all.push((cross.start, Action::StartCross(group)));
        all.extend(cross.stop.map(|stop| (stop, Action::StopCross(group))));
    }
    let server = |name: &String| scenario.servers.iter().position(|server| server.name == *name);
    for (index, event) in scenario.events.iter().enumerate() {
        let killed = event.kill.as_ref().and_then(server).map(Action::Kill);
        let started = event.start.as_ref().and_then(server).map(Action::Start);
        all.push((event.at, killed.or(started).unwrap_or(Action::Change(index))));
    }
    all.sort_by_key(|(at, _)| *at);
    all
}
