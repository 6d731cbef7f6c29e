//! `anabranch cc`.

use std::path::PathBuf;

use anabranch_kernel::Tuning;
use clap::{Args, Subcommand, ValueEnum};

/// Options of `anabranch cc`.
#[derive(Args, Debug)]
pub struct CcArguments {
    /// What to do with them.
    #[command(subcommand)]
    pub command: CcCommand,
}

/// What is done with congestion controls of the kernel.
#[derive(Debug, Subcommand)]
pub enum CcCommand {
    /// Give the kernel a congestion control, which programs can then choose; it stays until it is unloaded or
    /// the machine starts anew
    Load(LoadArguments),
    /// Change the parameters of a loaded control, and of all its connections at once
    Set(ControlArguments),
    /// Take a control away; connections that have it keep it until they end
    Unload {
        /// Which
        #[arg(value_name = "CONTROL")]
        control: ControlName,
    },
    /// List the controls that are loaded
    List,
    /// Show the connections of the loaded controls: windows, loss events
    Status(StatusArguments),
}

/// What is shown, and how.
#[derive(Args, Debug)]
pub struct StatusArguments {
    /// Of which control [default: all that are loaded]
    #[arg(value_name = "CONTROL")]
    pub control: Option<ControlName>,
    /// The groups of the control group, in place of connections: members, joint window, packets delivered and
    /// lost
    #[arg(long)]
    pub groups: bool,
    /// A line of JSON for each connection or group
    #[arg(long)]
    pub json: bool,
    /// Connections and groups as metrics for Prometheus, such as node_exporter's textfile collector reads
    /// (docs/kernel.md)
    #[arg(long, conflicts_with_all = ["groups", "json"])]
    pub prometheus: bool,
}

/// A control with its parameters, and who may choose it.
#[derive(Args, Debug)]
pub struct LoadArguments {
    /// What is loaded.
    #[command(flatten)]
    pub control: ControlArguments,
    /// multcp and group: let every user of this machine choose it for a connection. Without this a program
    /// needs CAP_NET_ADMIN, or has it from its route (congctl): who can choose it takes as many shares of a
    /// bottleneck as N, or as members. tfwc and ttfwc take one share, and anyone may choose them
    #[arg(long)]
    pub anyone: bool,
}

/// A control with its parameters.
#[derive(Args, Debug)]
pub struct ControlArguments {
    /// Which: tfwc sends smoothly at the fair rate; ttfwc is the same, tuned between smooth and fast; multcp
    /// is one connection that counts for several; group has all its connections share, by weights, what as
    /// many plain ones would get
    #[arg(value_name = "CONTROL")]
    pub control: ControlName,
    /// ttfwc: from 0 (smooth) to 1 (fast)
    #[arg(long, value_name = "TP")]
    pub tuning: Option<Tuning>,
    /// multcp: for how many connections each counts, from 1 to 1000
    #[arg(long, value_name = "N")]
    pub flows: Option<f64>,
    /// group: the weights, by remote address and port, local port and cgroup (docs/kernel.md) [default: all
    /// count alike]
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
}

/// The controls by their names in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ControlName {
    /// TCP-friendly window control
    Tfwc,
    /// Tunable TCP-friendly window control
    Ttfwc,
    /// One connection that counts for several
    Multcp,
    /// Connections that share by weights
    Group,
}

impl ControlName {
    /// What the kernel calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tfwc => "tfwc",
            Self::Ttfwc => "ttfwc",
            Self::Multcp => "multcp",
            Self::Group => "group",
        }
    }
}
