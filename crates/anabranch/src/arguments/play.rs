//! `anabranch play`.

use std::net::SocketAddr;

use clap::Args;

use super::{FilmUrl, ReportArguments, SourceArguments};

/// Options of `anabranch play`.
#[derive(Args, Debug)]
pub struct PlayArguments {
    /// URLs of the same film on one or more servers
    #[arg(required = true, value_name = "URL")]
    pub urls: Vec<FilmUrl>,
    /// Offer the film to players at this address [default: a free port of 127.0.0.1]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// Start this player; {} stands for the film's address, which is added at the end where {} is missing
    #[arg(long, value_name = "COMMAND")]
    pub player: Option<String>,
    /// Where the film comes from.
    #[command(flatten)]
    pub source: SourceArguments,
    /// What is told about it.
    #[command(flatten)]
    pub report: ReportArguments,
}
