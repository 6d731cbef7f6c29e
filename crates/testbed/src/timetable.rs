//! What happens when, in a run.

use anabranch_units::Duration;

use crate::scenario::{Deed, Scenario, Way};

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start this group of cross traffic.
    StartCross(usize),
    /// Stop this group of cross traffic.
    StopCross(usize),
    /// Do what an event says.
    Do(Deed),
    /// Make of a direction of this path what its change of this number says.
    Change(usize, Way, usize),
}

/// All that happens, in order of time; what is at the same time is in the order of cross traffic, events and
/// paths, each in the file's.
pub fn timetable(scenario: &Scenario) -> Vec<(Duration, Action)> {
    let mut all = Vec::new();
    for (group, cross) in scenario.cross.iter().enumerate() {
        all.push((cross.start, Action::StartCross(group)));
        all.extend(cross.stop.map(|stop| (stop, Action::StopCross(group))));
    }
    all.extend(scenario.events.iter().map(|event| (event.at, Action::Do(event.deed))));
    for (index, path) in scenario.paths.iter().enumerate() {
        for way in [Way::ToClient, Way::ToServer] {
            let changes = path.direction(way).changes.iter().enumerate();
            all.extend(changes.map(|(number, change)| (change.at, Action::Change(index, way, number))));
        }
    }
    all.sort_by_key(|(at, _)| *at);
    all
}
