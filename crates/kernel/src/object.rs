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

/// The object with the programs that are needed.
pub(crate) fn prepare(wanted: Wanted) -> Result<OpenObject, Error> {
    libbpf_rs::set_print(None);
    let mut object = ObjectBuilder::default()
        .open_memory(OBJECT)
        .map_err(|error| Error::refused("open the program", &error))?;
    for mut map in object.maps_mut() {
        if VARIABLES.iter().any(|name| map.name() == *name) {
            let is_wanted = matches!(wanted, Wanted::Control(control) if map.name() == control);
            map.set_autocreate(is_wanted).map_err(|error| Error::refused("choose a control", &error))?;
        }
    }
    for mut program in object.progs_mut() {
        let name = program.name().to_string_lossy();
        program.set_autoload(match wanted {
            Wanted::Replay(replay) => name == replay,
            Wanted::Control("group" | "group_anyone") => name.starts_with("group_") || name == "tell_flows",
            Wanted::Control(_) => name.starts_with("control_") || name == "tell_flows",
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
