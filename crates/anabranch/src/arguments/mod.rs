//! The command line as it is typed. What it means, with its defaults resolved, is the business of [`crate::settings`].

mod cc;
mod demo;
mod fetch;
mod lab;
mod live;
mod pages;
mod play;
mod proxy;
mod serve;
mod sim;
mod source;
mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

pub use cc::{CcArguments, CcCommand, ControlArguments, ControlName};
pub use demo::DemoArguments;
pub use fetch::FetchArguments;
pub use lab::{LabArguments, LabCommand, RunArguments, SweepArguments, ValidateArguments};
pub use live::{Endpoint, FecArgument, ReceiveArguments, SchemeName, SendArguments, Switch, TokenArguments};
pub use pages::{command, write_manual};
pub use play::PlayArguments;
pub use proxy::ProxyArguments;
pub use serve::{LogTarget, ServeArguments};
pub use sim::SimArguments;
pub use source::{
    AlgorithmArguments, AlgorithmName, ModelName, NetworkArguments, Preset, ReportArguments, SourceArguments,
};
pub use values::{Digest, FilmUrl, Place, RateArgument};

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
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Tell every decision and its reason
    #[arg(long, short, global = true)]
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
    /// Give the kernel's TCP a congestion control of Anabranch's, for any program on this machine
    Cc(CcArguments),
    /// Simulate a network with its flows and streams from a scenario file
    Sim(SimArguments),
    /// Show on this machine what several connections are good for; needs nothing
    Demo(DemoArguments),
    /// Make published results again, and see which of them hold
    Lab(LabArguments),
    /// Print the completions for a shell
    Completions {
        /// For which shell
        shell: Shell,
    },
    /// Write the manual pages into a directory
    #[command(hide = true)]
    Man {
        /// The directory; it is made when it is not there
        directory: PathBuf,
    },
}
