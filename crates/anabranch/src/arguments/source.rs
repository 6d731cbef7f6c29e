//! What `play`, `fetch` and `proxy` have in common: where media comes from, how, and what is told about it.

use std::net::SocketAddr;
use std::path::PathBuf;

use anabranch_film::interval::Interval;
use anabranch_film::playback::StallRule;
use anabranch_sockets::Interface;
use anabranch_units::{Bytes, Duration, Rate, Ratio};
use clap::{Args, ValueEnum};

use super::values::{
    Header, Place, RateArgument, Untold, factor, interval, lower_ratio, part, positive_time, segment_size,
    spike, stall_rule, upper_ratio,
};

/// Where media comes from, and how.
#[derive(Args, Clone, Debug, Default)]
pub struct SourceArguments {
    /// The rate to hold: 'auto' is the media's own, 'max' as fast as it goes, or a rate such as 3M or 800k
    /// [default: auto for play and proxy, max for fetch]
    #[arg(long, value_name = "auto|max|RATE", allow_hyphen_values = true)]
    pub rate: Option<RateArgument>,
    /// Number of connections: exactly so many with basic, rome and fixed, at most so many with auto, advanced
    /// and mul [default: 16 with auto, 50 with mul, 4 with fixed, else what the papers use]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub connections: Option<u32>,
    /// Network and servers.
    #[command(flatten)]
    pub network: NetworkArguments,
    /// The rate controller.
    #[command(flatten)]
    pub algorithm: AlgorithmArguments,
    /// Play time that has to be there before the player starts [default: 2s]
    #[arg(long, value_name = "TIME", help_heading = "Playback")]
    pub prebuffer: Option<Duration>,
    /// What the modelled player does when it runs out of media: 'rebuffer:TIME' waits until so much is there
    /// again, 'pause:TIME' stops for so long (MultiTCP section 8.3: pause:5s) [default: rebuffer:2s]
    #[arg(long, value_name = "RULE", value_parser = stall_rule, help_heading = "Playback")]
    pub stall_rule: Option<StallRule>,
    /// Memory for media that waits to be taken [default: 32MiB]
    #[arg(long, value_name = "SIZE", value_parser = super::values::memory, help_heading = "Playback")]
    pub memory: Option<Bytes>,
}

/// Network and servers.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Network")]
pub struct NetworkArguments {
    /// Most connections to one host [default: 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub per_host: Option<u32>,
    /// Leave by this network interface, by name or address; may be given several times to use them all
    #[arg(long, value_name = "NAME|ADDR")]
    pub interface: Vec<Interface>,
    /// Add this header to the requests to the hosts of the URLs; may be given several times
    ///
    /// No other host gets it, wherever redirects and playlists lead. For proxy, which has no URLs, there is
    /// --header-for.
    #[arg(long, short = 'H', value_name = "NAME: VALUE")]
    pub header: Vec<Header>,
    /// Add this header to the requests to this origin, such as https://a.example; may be given several times
    ///
    /// No other host gets it. An origin is http:// or https://, a host, and a port where it is not the usual
    /// one. What is for http: is told to the same host over https: as well, but not the other way round.
    #[arg(long, value_names = ["ORIGIN", "NAME: VALUE"], num_args = 2, action = clap::ArgAction::Append)]
    pub header_for: Vec<Untold>,
    /// What to say as User-Agent [default: anabranch/VERSION]
    #[arg(long, value_name = "TEXT")]
    pub user_agent: Option<String>,
    /// Trust the certificates in this PEM file as well as the system's; may be given several times
    #[arg(long, value_name = "FILE")]
    pub cacert: Vec<PathBuf>,
    /// Give up when nothing new has come from any server for so long; one that is too busy at first (429,
    /// 503) is asked again within it [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub timeout: Option<Duration>,
    /// Longest time to set up a connection [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub connect_timeout: Option<Duration>,
    /// Do not ask servers for striping, the protocol between two anabranches
    #[arg(long)]
    pub no_stripe: bool,
    /// Speak HTTP/3 with https: servers, and nothing else
    #[arg(long)]
    pub http3_only: bool,
}

/// A rate controller by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AlgorithmName {
    /// MultiTCP with a fixed number of connections (section 6.3)
    Basic,
    /// MultiTCP with a number of connections that follows congestion (section 6.5)
    Advanced,
    /// As many TCP connections as MULTFRC's control of their number says (MUL-TCP)
    Mul,
    /// The rate coordinator of TCP-ROME
    Rome,
    /// So many connections, as fast as they bring it: what download programs do
    Fixed,
    /// The fewest connections and the smallest windows that hold the rate
    Auto,
}

/// Parameters of MultiTCP as its tables have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// The simulations
    #[value(name = "table8.1")]
    Table81,
    /// The Internet, basic algorithm
    #[value(name = "table8.2")]
    Table82,
    /// The Internet, advanced algorithm
    #[value(name = "table8.3")]
    Table83,
}

/// What TCP-ROME does below its lower threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModelName {
    /// Take what TCP gives
    Strict,
    /// Share the wanted rate out anew
    Compensation,
}

/// The rate controller and its parameters. A parameter that is not given keeps its default or the preset's
/// value.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Rate controller")]
pub struct AlgorithmArguments {
    /// Which rate controller [default: auto, or the one that --preset belongs to]
    #[arg(long, value_name = "NAME")]
    pub algorithm: Option<AlgorithmName>,
    /// All parameters of a table of the MultiTCP thesis; single ones can be changed by the options below
    #[arg(long, value_name = "TABLE")]
    pub preset: Option<Preset>,
    /// basic, advanced, rome: measuring interval, a time or a number of round-trip times: 300ms, 8rtt
    #[arg(long, value_name = "TIME|RTTS", value_parser = interval)]
    pub delta: Option<Interval>,
    /// basic, advanced, rome: weight of the past in averages, 0 to below 1
    #[arg(long, value_name = "RATIO", value_parser = part)]
    pub alpha: Option<Ratio>,
    /// basic, advanced: how far the measured rate may be above the wanted one; the tables' 7000 bytes are 56k
    #[arg(long, value_name = "RATE")]
    pub lambda: Option<Rate>,
    /// basic, advanced: the sum of the windows grows to this multiple of what the rate needs, above 2
    #[arg(long, value_name = "FACTOR", value_parser = spike)]
    pub f: Option<Ratio>,
    /// advanced: congestion ratio from which on more connections would not help
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub cf: Option<Ratio>,
    /// advanced: a connection is silent after so many round-trip times without a byte
    #[arg(long, value_name = "RTTS", value_parser = factor)]
    pub x: Option<Ratio>,
    /// auto, advanced: connections at the start
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub start_connections: Option<u32>,
    /// rome: what happens when the rate is missed
    #[arg(long, value_name = "MODEL")]
    pub model: Option<ModelName>,
    /// rome: lower threshold R- as a ratio of the wanted rate, 0 to 1
    #[arg(long, value_name = "RATIO", value_parser = lower_ratio)]
    pub rate_low: Option<Ratio>,
    /// rome: upper threshold R+ as a ratio of the wanted rate, 1 or more
    #[arg(long, value_name = "RATIO", value_parser = upper_ratio)]
    pub rate_high: Option<Ratio>,
    /// rome: size of every segment (SMS)
    #[arg(long, value_name = "SIZE", value_parser = segment_size)]
    pub segment_size: Option<Bytes>,
    /// auto, rome: lower threshold B- on the buffer
    #[arg(long, value_name = "TIME")]
    pub buffer_low: Option<Duration>,
    /// auto, rome: upper threshold B+ on the buffer
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub buffer_high: Option<Duration>,
    /// auto: hold so much more than the wanted rate, as a ratio of it: 0.05
    #[arg(long, value_name = "RATIO", value_parser = lower_ratio)]
    pub margin: Option<Ratio>,
}

/// What is told about a session.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Reports")]
pub struct ReportArguments {
    /// Write what happens as JSON lines behind what is in this file, or to standard output with '-'; the last
    /// line is a summary
    #[arg(long, value_name = "FILE|-")]
    pub stats: Option<Place>,
    /// Serve metrics for Prometheus at http://ADDR/metrics (docs/statistics.md); ADDR is IP:PORT, or a port
    /// of 127.0.0.1
    #[arg(long, value_name = "ADDR", value_parser = super::address::of_this_machine)]
    pub metrics: Option<SocketAddr>,
}
