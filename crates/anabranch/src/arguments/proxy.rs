//! `anabranch proxy`.

use std::net::SocketAddr;

use clap::Args;

use super::{AccessArguments, ReportArguments, SourceArguments};

/// Options of `anabranch proxy`.
#[derive(Args, Debug)]
pub struct ProxyArguments {
    /// Listen at this address, IP:PORT or a port of 127.0.0.1; players ask for http://ADDR/URL
    ///
    /// Whoever can reach the address can reach through it whatever this machine can, its own network
    /// included. So it is a loopback address unless another one is given, and there requests must name the
    /// proxy by its own address, so that no web page gets in under a name of its own.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8090", value_parser = super::address::of_this_machine)]
    pub listen: SocketAddr,
    /// Who may ask.
    #[command(flatten)]
    pub access: AccessArguments,
    /// How films are got.
    #[command(flatten)]
    pub source: SourceArguments,
    /// What is told about it.
    #[command(flatten)]
    pub report: ReportArguments,
}
