//! The compiled programs, and what of them is loaded.

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject};

use crate::error::Error;
use crate::setting::VARIABLES;

/// The compiled programs.
const OBJECT: &[u8] = include_bytes!("../bpf/control.bpf.o");

/// What is needed of the object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A control by its variable in the object, and the program that lists its flows.
    Control(&'static str),
    /// Only the program that replays.
    Replay(&'static str),
}

/// What the group alone has: a megabyte of members, its rules, and what programs give.
const GROUP_MAPS: [&str; 3] = ["group_state", "rules", "given"];

fn is_of_group(wanted: Wanted) -> bool {
    matches!(wanted, Wanted::Control("group" | "group_anyone") | Wanted::Replay("replay_group"))
}

/// The program that lists the flows of a control.
pub(crate) fn teller(variable: &str) -> &'static str {
    if matches!(variable, "group" | "group_anyone") { "tell_members" } else { "tell_flows" }
}

/// The object with the programs that are needed.
pub(crate) fn prepare(wanted: Wanted) -> Result<OpenObject, Error> {
    libbpf_rs::set_print(None);
    let mut object = ObjectBuilder::default()
        .open_memory(OBJECT)
        .map_err(|error| Error::refused("open the program", &error))?;
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let is_wanted = match wanted {
            _ if GROUP_MAPS.contains(&name.as_str()) => is_of_group(wanted),
            Wanted::Control(control) => name == control || !VARIABLES.contains(&name.as_str()),
            Wanted::Replay(_) => !VARIABLES.contains(&name.as_str()),
        };
        map.set_autocreate(is_wanted).map_err(|error| Error::refused("choose a control", &error))?;
    }
    for mut program in object.progs_mut() {
        let name = program.name().to_string_lossy();
        program.set_autoload(match wanted {
            Wanted::Replay(replay) => name == replay,
            Wanted::Control(control) => {
                let begins = if is_of_group(wanted) { "group_" } else { "control_" };
                name.starts_with(begins) || name == teller(control)
            }
        });
    }
    Ok(object)
}

/// A map of a loaded object by its name.
pub(crate) fn map(object: &Object, name: &str) -> Result<MapHandle, Error> {
    let found = object.maps().find(|map| map.name() == name);
    let missing = || Error::Refused { what: "show a map", problem: format!("there is no map '{name}'") };
    MapHandle::try_from(&found.ok_or_else(missing)?).map_err(|error| Error::refused("show a map", &error))
}

pub(crate) fn write_parameters(map: &MapHandle, bytes: &[u8]) -> Result<(), Error> {
    map.update(&0u32.to_ne_bytes(), bytes, MapFlags::ANY)
        .map_err(|error| Error::refused("set the parameters", &error))
}
