//! `anabranch play`.

use std::net::SocketAddr;

use clap::{Args, ValueEnum};

use super::{AccessArguments, FilmUrl, ReportArguments, SourceArguments};

/// Options of `anabranch play`.
#[derive(Args, Debug)]
pub struct PlayArguments {
    /// URLs of the same film on one or more servers
    #[arg(required = true, value_name = "URL")]
    pub urls: Vec<FilmUrl>,
    /// Offer the film to players at this address: IP:PORT, or a port of 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "ADDR", value_parser = super::address::of_this_machine)]
    pub listen: Option<SocketAddr>,
    /// Start this player, and end with it; {} stands for the film's address, which is added at the end where
    /// {} is missing. Without it the address is said, and play ends when the film was read to its end
    #[arg(long, value_name = "COMMAND", value_parser = super::values::player)]
    pub player: Option<String>,
    /// Who chooses the rung of a playlist
    #[arg(long, value_name = "WHO", value_enum, default_value_t = RungChooser::Auto)]
    pub rung: RungChooser,
    /// Who may ask.
    #[command(flatten)]
    pub access: AccessArguments,
    /// Where the film comes from.
    #[command(flatten)]
    pub source: SourceArguments,
    /// What is told about it.
    #[command(flatten)]
    pub report: ReportArguments,
}

/// Who chooses the rung of a playlist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RungChooser {
    /// This program for players that do not choose by themselves, which are mpv and ffmpeg; others do
    Auto,
    /// The player
    Player,
    /// This program, whatever the player is
    Here,
}
