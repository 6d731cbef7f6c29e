//! `anabranch cc`: congestion controls for the kernel's TCP.

mod status;

use std::io::{self, Write};

use anabranch_kernel::{Choosers, Rules, Setting};

use crate::arguments::{CcArguments, CcCommand, ControlArguments, ControlName, LoadArguments};
use crate::failure::Failure;
use crate::output::{Output, counted};

/// Does what was asked for.
pub fn run(arguments: CcArguments, output: &Output) -> Result<(), Failure> {
    match arguments.command {
        CcCommand::Load(arguments) => load(&arguments, output),
        CcCommand::Set(arguments) => {
            let setting = setting(&arguments)?;
            match (setting, &arguments.weights) {
                (Setting::Group, None) => {
                    return Err(Failure::usage(
                        "group has nothing to set but its weights, such as --weights weights.toml",
                    ));
                }
                (Setting::Group, Some(_)) => anabranch_kernel::set_rules(&rules(&arguments)?),
                _ => anabranch_kernel::change(setting),
            }
            .map_err(Failure::failed)?;
            output.say(format_args!("{setting}: set"));
            Ok(())
        }
        CcCommand::Unload { control } => unload(control.name(), output),
        CcCommand::List => list(),
        CcCommand::Status(arguments) => print(&status::tell(&arguments)?),
    }
}

fn load(arguments: &LoadArguments, output: &Output) -> Result<(), Failure> {
    let setting = setting(&arguments.control)?;
    let choosers = match setting.choosers() {
        Choosers::Anyone if arguments.anyone => {
            return Err(Failure::usage(format_args!(
                "--anyone is for multcp and group: anyone may choose {}",
                setting.name()
            )));
        }
        Choosers::Privileged if arguments.anyone => Choosers::Anyone,
        choosers => choosers,
    };
    anabranch_kernel::load_for(setting, &rules(&arguments.control)?, choosers).map_err(Failure::failed)?;
    let name = setting.name();
    let takes = format!("takes it with setsockopt(TCP_CONGESTION, \"{name}\"), as iperf3 -C {name} does");
    match choosers {
        Choosers::Anyone => output.say(format_args!(
            "{setting}: loaded. A program {takes}; every new connection does after: sysctl \
             net.ipv4.tcp_congestion_control={name}"
        )),
        Choosers::Privileged => output.say(format_args!(
            "{setting}: loaded. A program with CAP_NET_ADMIN {takes}; whatever takes a route does after: ip \
             route change ... congctl {name}. Other users may choose it if it is loaded with --anyone"
        )),
    }
    Ok(())
}

/// The weights that were given, or all alike.
fn rules(arguments: &ControlArguments) -> Result<Rules, Failure> {
    arguments
        .weights
        .as_deref()
        .map_or_else(|| Ok(Rules::default()), |path| Rules::read(path).map_err(Failure::failed))
}

fn setting(arguments: &ControlArguments) -> Result<Setting, Failure> {
    if arguments.weights.is_some() && arguments.control != ControlName::Group {
        return Err(Failure::usage("--weights is for group"));
    }
    match (arguments.control, arguments.tuning, arguments.flows) {
        (ControlName::Tfwc, None, None) => Ok(Setting::Tfwc),
        (ControlName::Tfwc, ..) => {
            Err(Failure::usage("tfwc has no parameters: ttfwc has a tuning parameter"))
        }
        (ControlName::Ttfwc, Some(tuning), None) => Ok(Setting::Ttfwc(tuning)),
        (ControlName::Ttfwc, ..) => {
            Err(Failure::usage("ttfwc needs its tuning parameter and nothing else, such as --tuning 0.9"))
        }
        (ControlName::Multcp, None, Some(flows)) if (1.0..=Setting::MOST_FLOWS).contains(&flows) => {
            Ok(Setting::MulTcp(flows))
        }
        (ControlName::Group, None, None) => Ok(Setting::Group),
        (ControlName::Group, ..) => {
            Err(Failure::usage("group has weights and no other parameters, such as --weights weights.toml"))
        }
        (ControlName::Multcp, ..) => Err(Failure::usage(format_args!(
            "multcp needs a number of connections from 1 to {} and nothing else, such as --flows 4",
            Setting::MOST_FLOWS
        ))),
    }
}

fn unload(name: &'static str, output: &Output) -> Result<(), Failure> {
    let is_default = anabranch_kernel::list()
        .is_ok_and(|all| all.iter().any(|one| one.is_default && one.setting.name() == name));
    anabranch_kernel::unload(name).map_err(Failure::failed)?;
    output.say(format_args!("{name}: unloaded"));
    if is_default {
        output.warn(format_args!(
            "it is still what new connections get; choose another with: sysctl \
             net.ipv4.tcp_congestion_control=cubic"
        ));
    }
    Ok(())
}

fn list() -> Result<(), Failure> {
    let mut text = String::new();
    for loaded in anabranch_kernel::list().map_err(Failure::failed)? {
        let default = if loaded.is_default { ", the default of new connections" } else { "" };
        let choosers = match loaded.choosers {
            Choosers::Anyone => "anyone may choose it",
            Choosers::Privileged => "CAP_NET_ADMIN is needed to choose it",
        };
        text +=
            &format!("{}: {}, {choosers}{default}\n", loaded.setting, counted(loaded.flows, "connection"));
        if loaded.setting == Setting::Group {
            text += &anabranch_kernel::rules().map_err(Failure::failed)?.to_string();
        }
    }
    print(if text.is_empty() { "none is loaded\n" } else { &text })
}

fn print(text: &str) -> Result<(), Failure> {
    io::stdout().write_all(text.as_bytes()).map_err(|error| Failure::output(&error))
}
