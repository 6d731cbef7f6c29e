//! The command line as it is typed. What it means, with its defaults resolved, is the business of
//! [`crate::settings`].

#![allow(rustdoc::bare_urls, reason = "these comments are help texts, shown in terminals as they are")]

mod access;
mod address;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod cc;
mod demo;
mod fetch;
#[cfg(feature = "lab")]
mod lab;
mod live;
mod pages;
mod play;
#[cfg(target_os = "linux")]
mod player;
mod proxy;
mod redact;
mod serve;
#[cfg(feature = "sim")]
mod sim;
mod source;
mod values;

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

pub use access::{AccessArguments, PageOrigin};
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub use cc::{CcArguments, CcCommand, ControlArguments, ControlName, LoadArguments, StatusArguments};
pub use demo::DemoArguments;
pub use fetch::FetchArguments;
#[cfg(feature = "lab")]
pub use lab::{
    BenchArguments, BenchCommand, LabArguments, LabCommand, PapersArguments, ReadingsArguments, RunArguments,
    SweepArguments, ValidateArguments,
};
pub use live::{
    Endpoint, FecArgument, HlsArguments, Kept, ReceiveArguments, SchemeName, SendArguments, Switch, TellRate,
    TokenArguments,
};
pub use pages::{command, write_manual};
pub use play::{PlayArguments, RungChooser};
#[cfg(target_os = "linux")]
pub use player::PlayerArguments;
pub use proxy::ProxyArguments;
pub use redact::without_secrets;
pub use serve::{LogTarget, ServeArguments};
#[cfg(feature = "sim")]
pub use sim::SimArguments;
pub use source::{
    AlgorithmArguments, AlgorithmName, ModelName, NetworkArguments, Preset, ReportArguments, SourceArguments,
};
pub use values::{Digest, FilmUrl, Header, Place, RateArgument, Untold};

/// Streams media over several connections: as many as its rate needs and no more.
#[derive(Debug, Parser)]
#[command(name = "anabranch", version, propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    /// What concerns every command.
    #[command(flatten)]
    pub globals: Globals,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Globals {
    /// Say nothing but errors, and show no progress
    #[arg(long, short, global = true, conflicts_with = "verbose", display_order = 900)]
    pub quiet: bool,
    /// Tell every decision and its reason
    #[arg(long, short, global = true, display_order = 901)]
    pub verbose: bool,
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Play a film in any player, over as many connections as its rate needs
    Play(PlayArguments),
    /// Get a file over several connections, at a rate or as fast as it goes
    Fetch(FetchArguments),
    /// Let any player use the same engine for any URL, HLS and DASH included
    Proxy(ProxyArguments),
    /// Serve a directory over HTTP, with ranges and striping
    Serve(ServeArguments),
    /// Send live media over a network that loses packets
    Send(SendArguments),
    /// Receive live media from anabranch send
    Receive(ReceiveArguments),
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    /// Give the kernel's TCP a congestion control of Anabranch's, for any program on this machine
    Cc(CcArguments),
    #[cfg(feature = "sim")]
    /// Simulate a network with its flows and streams from a scenario file
    Sim(SimArguments),
    /// Show on this machine what several connections are good for; needs nothing
    Demo(DemoArguments),
    #[cfg(feature = "lab")]
    /// Make published results again, and see which of them hold
    Lab(LabArguments),
    /// Print the completions for a shell
    Completions {
        /// For which shell
        shell: Shell,
    },
    /// Become a player that ends with the program that starts it
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    Player(PlayerArguments),
    /// Write the manual pages into a directory
    #[command(hide = true)]
    Man {
        /// The directory; it is made when it is not there
        directory: PathBuf,
    },
}

/// The commands that a build can be without, and the feature that brings each.
const OPTIONAL: [(&str, &str); 3] = [("cc", "kernel"), ("lab", "lab"), ("sim", "sim")];

/// Why a command is not known, where it is one that this build was made without.
pub fn left_out(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let (command, feature) = OPTIONAL.iter().find(|(command, _)| command == name)?;
    let missing = if *command == "cc" && !cfg!(target_os = "linux") {
        "it works on Linux only".to_owned()
    } else {
        format!("build it with 'cargo build --release -p anabranch --features {feature}'")
    };
    Some(format!("this build of anabranch has no command '{command}': {missing}"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn a_lean_build_says_how_to_build_what_it_lacks() {
        for (name, feature) in OPTIONAL {
            match command().try_get_matches_from(["anabranch", name]) {
                Err(error) if error.kind() == ErrorKind::InvalidSubcommand => {
                    let why = left_out(&error).unwrap();
                    assert!(why.contains(name) && (why.contains(feature) || why.contains("Linux")), "{why}");
                }
                _ => assert!(Cli::command().find_subcommand(name).is_some(), "{name}"),
            }
        }
        let error = command().try_get_matches_from(["anabranch", "stream"]).unwrap_err();
        assert_eq!(left_out(&error), None, "what no build has is told as it is");
    }
}
