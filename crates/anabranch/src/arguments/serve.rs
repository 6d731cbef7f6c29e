//! `anabranch serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use anabranch_congestion::algorithm::Algorithm;
use anabranch_units::{Bytes, Duration, Rate};
use clap::Args;

use super::address::of_this_machine;
use super::values::{Place, positive_rate, positive_time};

/// Where the access log goes.
pub type LogTarget = Place;

/// Options of `anabranch serve`.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("secure").args(["https", "h3"]).multiple(true))]
pub struct ServeArguments {
    /// The directory to serve; hidden files and what lies outside of it are not
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Speak HTTP at this address: IP:PORT, or a port of 127.0.0.1; 0.0.0.0:PORT is for everyone. May be
    /// given several times [default: 127.0.0.1:8080, unless --https or --h3 is given]
    #[arg(long, value_name = "ADDR", value_parser = of_this_machine)]
    pub http: Vec<SocketAddr>,
    /// Speak HTTPS at this address; may be given several times
    #[arg(long, value_name = "ADDR", value_parser = of_this_machine, requires_all = ["cert", "key"])]
    pub https: Vec<SocketAddr>,
    /// Speak HTTP/3 at this address of UDP; may be given several times
    #[arg(long, value_name = "ADDR", value_parser = of_this_machine, requires_all = ["cert", "key"])]
    pub h3: Vec<SocketAddr>,
    /// The certificate chain for HTTPS and HTTP/3, as a PEM file
    #[arg(long, value_name = "FILE", requires_all = ["secure", "key"])]
    pub cert: Option<PathBuf>,
    /// The certificate's private key, as a PEM file
    #[arg(long, value_name = "FILE", requires_all = ["secure", "cert"])]
    pub key: Option<PathBuf>,
    /// What decides how fast HTTP/3 sends: reno, cubic, multcp:N, tfwc, ttfwc:TP, ttfwc-approximate:TP or bbr
    /// (not with --weights)
    #[arg(long, value_name = "NAME", requires = "h3", default_value_t = Algorithm::Cubic)]
    pub congestion: Algorithm,
    /// Let the clients of each pool that this TOML file declares share what as many plain flows would get,
    /// by its weights; whoever is in no pool sends on its own (docs/sender-control.md). Over HTTP/3
    /// always, over TCP as root where 'anabranch cc load group' has been typed (docs/serving.md). It is
    /// read again when it changes and on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// Log every request to this file, or to standard output with '-'. The file is opened again on SIGHUP and
    /// SIGUSR1, for programs that rotate logs; with --verbose requests are told on standard error as well,
    /// without their queries
    #[arg(long, value_name = "FILE|-")]
    pub access_log: Option<LogTarget>,
    /// Serve metrics for Prometheus at http://ADDR/metrics (docs/statistics.md); ADDR is IP:PORT, or a port
    /// of 127.0.0.1
    #[arg(long, value_name = "ADDR", value_parser = of_this_machine)]
    pub metrics: Option<SocketAddr>,
    /// Most connections at a time, of each of HTTP, HTTPS and HTTP/3; fewer where the system does not permit
    /// two open files for each (three with --weights), which is told at the start. A further one over TCP
    /// gets the place of the one that has said nothing, or taken nothing of its answer, for the longest time,
    /// of the client that has the most; where there is none, it gets 503
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "Limits")]
    pub max_connections: u32,
    /// Most connections at a time from one address (from one /64 with IPv6)
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "Limits")]
    pub max_connections_per_client: u32,
    /// Send a response no faster than this. With this or --max-rate-per-client clients of this program get
    /// ranges in place of stripes
    #[arg(long, value_name = "RATE", value_parser = positive_rate, help_heading = "Limits")]
    pub max_rate: Option<Rate>,
    /// Send all responses to one address (to one /64 with IPv6) together no faster than this, over each of
    /// HTTP, HTTPS and HTTP/3
    #[arg(long, value_name = "RATE", value_parser = positive_rate, help_heading = "Limits")]
    pub max_rate_per_client: Option<Rate>,
    /// Longest head of a request
    #[arg(long, value_name = "SIZE", default_value = "16KiB", value_parser = header_size, help_heading = "Limits")]
    pub max_header: Bytes,
    /// Longest time that a request's head may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = positive_time, help_heading = "Limits")]
    pub header_timeout: Duration,
    /// Longest time between two requests of a connection
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = positive_time, help_heading = "Limits")]
    pub idle_timeout: Duration,
    /// Longest time that a client may take nothing of what waits for it
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = positive_time, help_heading = "Limits")]
    pub write_timeout: Duration,
    /// How long running responses may go on after SIGINT or SIGTERM. On SIGUSR2 the program is started again with
    /// the same arguments, and gets the sockets of HTTP, HTTPS and metrics; when it serves, this one ends with
    /// status 0 as soon as its last response has ended, however long that takes (not with --h3)
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = "Limits")]
    pub stop_grace: Duration,
    /// Send no faster than this, all responses together: a slow server for tests
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = "Shaping")]
    pub shape_rate: Option<Rate>,
    /// Begin every response this much later: a distant server for tests
    #[arg(long, value_name = "TIME", help_heading = "Shaping")]
    pub shape_delay: Option<Duration>,
}

/// A size that an HTTP parser can work with.
fn header_size(input: &str) -> Result<Bytes, String> {
    let size: Bytes = input.parse().map_err(|error: anabranch_units::ParseError| error.to_string())?;
    if (Bytes::kib(8)..=Bytes::mib(1)).contains(&size) {
        Ok(size)
    } else {
        Err("a head may be limited to 8KiB at the least and 1MiB at the most".into())
    }
}
