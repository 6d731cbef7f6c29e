//! Controls in the kernel. What keeps one loaded is a directory of pinned files, so that no process has to stay.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject};
use rustix::mount::{MountFlags, mount};

use crate::error::Error;
use crate::rules::Rules;
use crate::setting::{GENERATION, NAMES, Setting};
use crate::{OBJECT, status};

/// Where the kernel shows BPF objects that outlive their loader.
const BPF_FS: &str = "/sys/fs/bpf";
/// Where the loaded controls are, a directory each.
pub const DIRECTORY: &str = "/sys/fs/bpf/anabranch";
/// In a control's directory: the registration, the parameters, the list of flows, and the group's rules.
const LINK: &str = "link";
const PARAMETERS: &str = "parameters";
const RULES: &str = "rules";
pub(crate) const FLOWS: &str = "flows";

/// One acknowledgement may stand for as many packets as it wants to: kernels put many together.
const UNLIMITED: u32 = u32::MAX;

/// The first kernel that ties a control to a link: Linux 6.4.
const LEAST_KERNEL: (u32, u32) = (6, 4);

/// A control that the kernel has.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// Which, and how it is set.
    pub setting: Setting,
    /// How many sockets use it.
    pub flows: usize,
    /// Whether new sockets of this network namespace get it.
    pub is_default: bool,
}

fn directory(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

/// Registers a control with the kernel. It stays until [`unload`] or the machine's next start.
///
/// # Errors
/// When the kernel cannot or will not; every error says what to do.
pub fn load(setting: Setting) -> Result<(), Error> {
    load_with(setting, &Rules::default())
}

/// Registers the group with these weights.
///
/// # Errors
/// As [`load`].
pub fn load_group(rules: &Rules) -> Result<(), Error> {
    load_with(Setting::Group, rules)
}

fn load_with(setting: Setting, rules: &Rules) -> Result<(), Error> {
    check_kernel()?;
    mount_bpf_fs()?;
    let name = setting.name();
    let home = directory(name);
    if home.exists() {
        return Err(Error::Loaded(name));
    }
    let mut object =
        prepare(Wanted::Control(name))?.load().map_err(|error| Error::refused("take the program", &error))?;
    write_parameters(&map(&object, PARAMETERS)?, &setting.to_bytes(UNLIMITED))?;
    if setting == Setting::Group {
        write_rules(&map(&object, RULES)?, 0, rules)?;
    }
    fs::create_dir_all(&home).map_err(|source| Error::Io { path: home.clone(), source })?;
    let loaded = pin(&mut object, name, &home);
    if loaded.is_err() {
        // Half of a control is none.
        let _ = remove(&home);
    }
    loaded
}

/// Registers the control and pins all that has to stay.
fn pin(object: &mut Object, name: &'static str, home: &Path) -> Result<(), Error> {
    let refused = |what| move |error: libbpf_rs::Error| Error::refused(what, &error);
    map(object, PARAMETERS)?.pin(home.join(PARAMETERS)).map_err(refused("keep the parameters"))?;
    if name == Setting::Group.name() {
        map(object, RULES)?.pin(home.join(RULES)).map_err(refused("keep the weights"))?;
    }
    let sockets = map(object, "flows")?;
    let tell = object.progs_mut().find(|program| program.name() == "tell_flows");
    if let Some(tell) = tell {
        use std::os::fd::AsFd;
        let mut list = tell.attach_iter(sockets.as_fd()).map_err(refused("list flows"))?;
        list.pin(home.join(FLOWS)).map_err(refused("keep the list of flows"))?;
    }
    let mut control = object.maps_mut().find(|map| map.name() == name).ok_or(Error::Refused {
        what: "register the control",
        problem: "it is not in the object".to_owned(),
    })?;
    let mut link = control.attach_struct_ops().map_err(|error| match error.kind() {
        libbpf_rs::ErrorKind::AlreadyExists => Error::NameTaken(name),
        _ => Error::refused("register the control", &error),
    })?;
    link.pin(home.join(LINK)).map_err(refused("keep the control"))
}

/// What is needed of the object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A control, and the program that lists its flows.
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
        if NAMES.iter().any(|name| map.name() == *name) {
            let is_wanted = matches!(wanted, Wanted::Control(control) if map.name() == control);
            map.set_autocreate(is_wanted).map_err(|error| Error::refused("choose a control", &error))?;
        }
    }
    for mut program in object.progs_mut() {
        let name = program.name().to_string_lossy();
        program.set_autoload(match wanted {
            Wanted::Replay(replay) => name == replay,
            Wanted::Control("group") => name.starts_with("group_") || name == "tell_flows",
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

/// Writes one of the two sets of rules.
fn write_rules(map: &MapHandle, set: u32, rules: &Rules) -> Result<(), Error> {
    map.update(&set.to_ne_bytes(), &rules.to_bytes(), MapFlags::ANY)
        .map_err(|error| Error::refused("set the weights", &error))
}

/// Changes the group's weights. Each connection has its new one with its next acknowledgement.
///
/// # Errors
/// When the group is not loaded, or the kernel will not.
pub fn set_rules(rules: &Rules) -> Result<(), Error> {
    let name = Setting::Group.name();
    let parameters = pinned(name, PARAMETERS)?;
    let mut bytes = read(&parameters, 0, name)?;
    let other = || Error::OtherVersion(directory(name));
    let place = bytes.get_mut(GENERATION..GENERATION + 4).ok_or_else(other)?;
    let generation = u32::from_ne_bytes(place.try_into().map_err(|_| other())?).wrapping_add(1);
    place.copy_from_slice(&generation.to_ne_bytes());
    // First the set that nobody reads, then the word that says which one is read.
    write_rules(&pinned(name, RULES)?, generation & 1, rules)?;
    write_parameters(&parameters, &bytes)
}

/// The group's weights as they are.
///
/// # Errors
/// When the group is not loaded, or is of another version.
pub fn rules() -> Result<Rules, Error> {
    let name = Setting::Group.name();
    let other = || Error::OtherVersion(directory(name));
    let bytes = read(&pinned(name, PARAMETERS)?, 0, name)?;
    let generation = bytes.get(GENERATION..GENERATION + 4).and_then(|word| word.try_into().ok());
    let set = u32::from_ne_bytes(generation.ok_or_else(other)?) & 1;
    Rules::from_bytes(&read(&pinned(name, RULES)?, set, name)?).ok_or_else(other)
}

/// A value of an array of a loaded control.
fn read(map: &MapHandle, place: u32, name: &str) -> Result<Vec<u8>, Error> {
    let bytes = map.lookup(&place.to_ne_bytes(), MapFlags::ANY);
    let bytes = bytes.map_err(|error| Error::refused("show the parameters", &error))?;
    bytes.ok_or_else(|| Error::OtherVersion(directory(name)))
}

/// A map of a loaded control.
fn pinned(name: &'static str, file: &str) -> Result<MapHandle, Error> {
    let path = directory(name).join(file);
    match path.try_exists() {
        Ok(true) => {}
        Ok(false) => return Err(Error::NotLoaded(name)),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(Error::NotRoot),
        Err(source) => return Err(Error::Io { path, source }),
    }
    MapHandle::from_pinned_path(&path).map_err(|error| Error::refused("open the parameters", &error))
}

/// Changes the parameters of a loaded control; its flows go by them from their next event on.
///
/// # Errors
/// When it is not loaded, or the kernel will not.
pub fn change(setting: Setting) -> Result<(), Error> {
    if setting == Setting::Group {
        // It has no others than its weights.
        return Ok(());
    }
    write_parameters(&pinned(setting.name(), PARAMETERS)?, &setting.to_bytes(UNLIMITED))
}

/// Takes a control away. Sockets that have it keep it until they close.
///
/// # Errors
/// When it is not loaded, or the kernel will not.
pub fn unload(name: &'static str) -> Result<(), Error> {
    let home = directory(name);
    match remove(&home) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Error::NotLoaded(name)),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(Error::NotRoot),
        Err(source) => Err(Error::Io { path: home, source }),
    }
}

/// Removes a control's directory; the registration goes first.
fn remove(home: &Path) -> io::Result<()> {
    for entry in [LINK, FLOWS, PARAMETERS, RULES] {
        match fs::remove_file(home.join(entry)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::remove_dir(home)
}

/// The controls that are loaded.
///
/// # Errors
/// When what is loaded cannot be read.
pub fn list() -> Result<Vec<Loaded>, Error> {
    let default = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap_or_default();
    let mut loaded = Vec::new();
    for name in NAMES {
        let map = match pinned(name, PARAMETERS) {
            Ok(map) => map,
            Err(Error::NotLoaded(_)) => continue,
            Err(error) => return Err(error),
        };
        let setting = Setting::from_bytes(name, &read(&map, 0, name)?);
        let setting = setting.ok_or_else(|| Error::OtherVersion(directory(name)))?;
        loaded.push(Loaded {
            setting,
            flows: status::flows(name)?.len(),
            is_default: default.trim() == name,
        });
    }
    Ok(loaded)
}

/// Whether the running kernel has what the programs need.
pub(crate) fn check_kernel() -> Result<(), Error> {
    if !rustix::process::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(Error::NoBtf);
    }
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    match version(&release) {
        Some(version) if version < LEAST_KERNEL => Err(Error::TooOld(release)),
        // Whatever calls itself something else may be new enough.
        _ => Ok(()),
    }
}

/// The first two numbers of a kernel's release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn mount_bpf_fs() -> Result<(), Error> {
    const MAGIC: i128 = 0xcafe_4a11;
    let path = Path::new(BPF_FS);
    let is_there = rustix::fs::statfs(path).is_ok_and(|found| i128::from(found.f_type) == MAGIC);
    if is_there {
        return Ok(());
    }
    mount("bpf", path, "bpf", MountFlags::empty(), None)
        .map_err(|error| Error::NoBpfFs { path: path.to_owned(), source: error.into() })
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn releases_are_read() {
        assert_eq!(version("6.18.44-fc-v445"), Some((6, 18)));
        assert_eq!(version("5.10.0-32-amd64"), Some((5, 10)));
        assert_eq!(version("6.4"), Some((6, 4)));
        assert_eq!(version("rolling"), None);
    }
}
