//! Controls in the kernel. What keeps one loaded is a directory of pinned files, so that no process has to
//! stay.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use libbpf_rs::{MapCore, Object};

use crate::choosers::Choosers;
use crate::error::Error;
use crate::machine::{check_kernel, mount_bpf_fs};
use crate::object::{Wanted, map, prepare, teller, write_parameters};
use crate::pins::{DIRECTORY, FLOWS, Found, GIVEN, LINK, PARAMETERS, RULES, directory, look, pinned, remove};
use crate::rules::{read, write_rules};
use crate::setting::{NAMES, Setting};
use crate::status;
use crate::weights::{Groups, Rules};

/// One acknowledgement may stand for as many packets as it wants to: kernels put many together.
const UNLIMITED: u32 = u32::MAX;

/// A control that the kernel has.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// Which, and how it is set.
    pub setting: Setting,
    /// How many sockets use it.
    pub flows: usize,
    /// Whether new sockets of this network namespace get it.
    pub is_default: bool,
    /// Who may choose it now: the machine's default, and what `net.ipv4.tcp_allowed_congestion_control` was
    /// set to, are for anyone.
    pub choosers: Choosers,
}

/// Registers a control with the kernel, for those who may [choose](Setting::choosers) it. It stays until
/// [`unload`] or the machine's next start.
///
/// # Errors
/// When the kernel cannot or will not; every error says what to do.
pub fn load(setting: Setting) -> Result<(), Error> {
    load_for(setting, &Rules::default(), setting.choosers())
}

/// The same for other choosers, and with the group's weights. TFWC and TTFWC are for anyone, whatever is
/// asked for.
///
/// # Errors
/// As [`load`].
pub fn load_for(setting: Setting, rules: &Rules, choosers: Choosers) -> Result<(), Error> {
    check_kernel()?;
    mount_bpf_fs()?;
    let name = setting.name();
    match look(name)? {
        Found::Nothing => {}
        Found::Half => return Err(Error::Half(name)),
        Found::Whole => return Err(Error::Loaded(name)),
    }
    let variable = setting.variable(choosers);
    let mut object = prepare(Wanted::Control(variable))?
        .load()
        .map_err(|error| Error::refused("take the program", &error))?;
    write_parameters(&map(&object, PARAMETERS)?, &setting.to_bytes(UNLIMITED))?;
    if setting == Setting::Group {
        let groups = rules.groups(&Groups::default(), None, |_| false).ok_or(Error::NoRoom)?;
        write_rules(&map(&object, RULES)?, 0, &rules.to_bytes(&groups))?;
    }
    create(Path::new(DIRECTORY))?;
    let home = directory(name);
    if !create(&home)? {
        // Somebody else was faster.
        return Err(Error::Half(name));
    }
    let loaded = pin(&mut object, name, variable);
    if loaded.is_err() {
        // Half of a control is none.
        let _ = remove(name);
    }
    loaded
}

/// Makes a directory that only its owner can change; answers whether it was not there.
fn create(path: &Path) -> Result<bool, Error> {
    match DirBuilder::new().mode(0o755).create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(source) => Err(Error::Io { path: path.to_owned(), source }),
    }
}

/// Registers the control and pins all that has to stay.
fn pin(object: &mut Object, name: &'static str, variable: &str) -> Result<(), Error> {
    let home = directory(name);
    let refused = |what| move |error: libbpf_rs::Error| Error::refused(what, &error);
    map(object, PARAMETERS)?.pin(home.join(PARAMETERS)).map_err(refused("keep the parameters"))?;
    if name == Setting::Group.name() {
        map(object, RULES)?.pin(home.join(RULES)).map_err(refused("keep the weights"))?;
        map(object, GIVEN)?.pin(home.join(GIVEN)).map_err(refused("keep what programs give"))?;
    }
    let sockets = map(object, "flows")?;
    let tell = object.progs_mut().find(|program| program.name() == teller(variable));
    if let Some(tell) = tell {
        use std::os::fd::AsFd;
        let mut list = tell.attach_iter(sockets.as_fd()).map_err(refused("list flows"))?;
        list.pin(home.join(FLOWS)).map_err(refused("keep the list of flows"))?;
    }
    let mut control = object.maps_mut().find(|map| map.name() == variable).ok_or(Error::Refused {
        what: "register the control",
        problem: "it is not in the object".to_owned(),
    })?;
    let mut link = control.attach_struct_ops().map_err(|error| match error.kind() {
        libbpf_rs::ErrorKind::AlreadyExists => Error::NameTaken(name),
        _ => Error::refused("register the control", &error),
    })?;
    link.pin(home.join(LINK)).map_err(refused("keep the control"))
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
    match look(name)? {
        Found::Nothing => Err(Error::NotLoaded(name)),
        Found::Half | Found::Whole => remove(name),
    }
}

/// The controls that are loaded.
///
/// # Errors
/// When what is loaded cannot be read.
pub fn list() -> Result<Vec<Loaded>, Error> {
    let told = |file| fs::read_to_string(Path::new("/proc/sys/net/ipv4").join(file)).unwrap_or_default();
    let (default, allowed) = (told("tcp_congestion_control"), told("tcp_allowed_congestion_control"));
    let mut loaded = Vec::new();
    for name in NAMES {
        let map = match pinned(name, PARAMETERS) {
            Ok(map) => map,
            Err(Error::NotLoaded(_)) => continue,
            Err(error) => return Err(error),
        };
        let setting = Setting::from_bytes(name, &read(&map, 0, name)?);
        let setting = setting.ok_or(Error::OtherVersion(name))?;
        loaded.push(Loaded {
            setting,
            flows: status::flows(name)?.len(),
            is_default: default.trim() == name,
            choosers: if allowed.split_whitespace().any(|word| word == name) {
                Choosers::Anyone
            } else {
                Choosers::Privileged
            },
        });
    }
    Ok(loaded)
}
