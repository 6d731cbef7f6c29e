//! The rules of a loaded group: two sets, of which one is in force.

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::error::Error;
use crate::in_use::groups_in_use;
use crate::object::write_parameters;
use crate::pins::{PARAMETERS, RULES, locked, pinned};
use crate::setting::{GENERATION, Setting};
use crate::weights::{Groups, Rules};

/// Writes one of the two sets of rules.
pub(crate) fn write_rules(map: &MapHandle, set: u32, bytes: &[u8]) -> Result<(), Error> {
    map.update(&set.to_ne_bytes(), bytes, MapFlags::ANY)
        .map_err(|error| Error::refused("set the weights", &error))
}

/// Changes the group's weights. Each connection has its new one with its next acknowledgement.
///
/// # Errors
/// When the group is not loaded, or the kernel will not; or there is no room for the groups of the rules
/// beside those that programs have asked for.
pub fn set_rules(rules: &Rules) -> Result<(), Error> {
    let name = Setting::Group.name();
    let _alone = locked(name)?;
    let parameters = pinned(name, PARAMETERS)?;
    let mut bytes = read(&parameters, 0, name)?;
    let other = || Error::OtherVersion(name);
    let place = bytes.get_mut(GENERATION..GENERATION + 4).ok_or_else(other)?;
    let generation = u32::from_ne_bytes(place.try_into().map_err(|_| other())?).wrapping_add(1);
    place.copy_from_slice(&generation.to_ne_bytes());
    let map = pinned(name, RULES)?;
    // Where the rules of before are garbage no group keeps its number.
    let before = Rules::from_bytes(&read(&map, !generation & 1, name)?).map(|(_, groups)| groups);
    // First the set that nobody reads, then the word that says which one is read.
    let used = groups_in_use()?;
    let groups = rules.groups(&before.unwrap_or_default(), None, |number| used.contains(&number));
    write_rules(&map, generation & 1, &rules.to_bytes(&groups.ok_or(Error::NoRoom)?))?;
    write_parameters(&parameters, &bytes)
}

/// The group's weights as they are.
///
/// # Errors
/// When the group is not loaded, or is of another version.
pub fn rules() -> Result<Rules, Error> {
    read_rules().map(|(rules, _)| rules)
}

/// The rules that are in force, and the groups by their numbers.
pub(crate) fn read_rules() -> Result<(Rules, Groups), Error> {
    let name = Setting::Group.name();
    let (rules, groups, _) = rules_of(&pinned(name, PARAMETERS)?, &pinned(name, RULES)?)?;
    Ok((rules, groups))
}

/// The same of these maps, and which of the two sets it is.
pub(crate) fn rules_of(parameters: &MapHandle, rules: &MapHandle) -> Result<(Rules, Groups, u32), Error> {
    let name = Setting::Group.name();
    let other = || Error::OtherVersion(name);
    let bytes = read(parameters, 0, name)?;
    let generation = bytes.get(GENERATION..GENERATION + 4).and_then(|word| word.try_into().ok());
    let set = u32::from_ne_bytes(generation.ok_or_else(other)?) & 1;
    let (rules, groups) = Rules::from_bytes(&read(rules, set, name)?).ok_or_else(other)?;
    Ok((rules, groups, set))
}

/// A value of an array of a loaded control.
pub(crate) fn read(map: &MapHandle, place: u32, name: &'static str) -> Result<Vec<u8>, Error> {
    let bytes = map.lookup(&place.to_ne_bytes(), MapFlags::ANY);
    let bytes = bytes.map_err(|error| Error::refused("show the parameters", &error))?;
    bytes.ok_or(Error::OtherVersion(name))
}
