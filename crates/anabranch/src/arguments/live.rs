//! `anabranch send` and `anabranch receive`.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use anabranch_congestion::vps::Weight;
use anabranch_contribution::{Fingerprint, GroupName, MOST_SENDERS};
use anabranch_live::fec::Code;
use anabranch_live::{LEAST_LATENCY, MOST_LATENCY};
use anabranch_sockets::Interface;
use anabranch_units::{Bytes, Duration, Rate};
use clap::{Args, ValueEnum};

use super::address::{of_everybody, of_this_machine};
use super::source::ReportArguments;

/// Options of `anabranch send`.
#[derive(Args, Debug)]
pub struct SendArguments {
    /// The receiver
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    pub to: String,
    /// Where the stream comes from: 'udp://ADDR:PORT' listens there; 'srt://HOST:PORT' calls an SRT peer, and
    /// 'srt://:PORT?mode=listener' is called by one (also streamid=, passphrase=, pbkeylen=, latency= in
    /// milliseconds, as srt-live-transmit has them); a file goes at the rate of its clock; '-' is standard input
    #[arg(long, value_name = "udp://ADDR|srt://ADDR|FILE|-", default_value = "-")]
    pub input: Endpoint,
    /// Send a file or standard input at this rate
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = some_rate)]
    pub rate: Option<Rate>,
    /// How the sender shares the network with others
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub scheme: SchemeName,
    /// Let tfrc, multfrc and aio-tfrc reckon as they were published (RFC 5348), and not as today's TCP does
    /// (docs/live-control.md)
    #[arg(long)]
    pub as_published: bool,
    /// Parity: 'off', 'auto' where sending again comes too late, or blocks of N packets of which K are media,
    /// such as 61,50
    #[arg(long, value_name = "off|auto|N,K", default_value = "off")]
    pub fec: FecArgument,
    /// Send the null packets of a transport stream as well: they are left out otherwise, and the receiver
    /// puts them back
    #[arg(long)]
    pub keep_stuffing: bool,
    /// Whether lost packets are sent again, as long as they can come in time
    #[arg(long, value_name = "on|off", default_value = "on")]
    pub retransmit: Switch,
    /// The receiver hands on what it got so long after it came into the sender; the larger one of both ends
    /// holds
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = latency)]
    pub latency: Duration,
    /// Tell programs that connect here which rate fits, as lines of JSON, for an encoder that follows
    /// (docs/live.md): a socket in the file system, or IP:PORT, or a port of 127.0.0.1
    #[arg(long, value_name = "unix:PATH|ADDR")]
    pub tell_rate: Option<TellRate>,
    /// Share with all senders of this user on this machine that name the same group: together they send what
    /// as many single ones would, by weights (docs/live.md)
    #[arg(long, value_name = "NAME")]
    pub group: Option<GroupName>,
    /// What this sender counts for in its group, from 0.001 to 1000 [default: 1]
    #[arg(long, value_name = "W", requires = "group", allow_hyphen_values = true)]
    pub weight: Option<Weight>,
    /// Leave by this network interface, by name or address; may be given several times to use them all
    #[arg(long, value_name = "NAME|ADDR")]
    pub interface: Vec<Interface>,
    /// Trust the receiver whose certificate has this SHA-256 fingerprint, which it says when it starts
    #[arg(long, value_name = "SHA256", conflicts_with = "cacert")]
    pub fingerprint: Option<Fingerprint>,
    /// Trust the certificates in this PEM file as well as the system's; may be given several times
    #[arg(long, value_name = "FILE")]
    pub cacert: Vec<PathBuf>,
    /// What lets this sender in.
    #[command(flatten)]
    pub token: TokenArguments,
    /// What is told about it.
    #[command(flatten)]
    pub report: ReportArguments,
}

/// Options of `anabranch receive`.
#[derive(Args, Debug)]
pub struct ReceiveArguments {
    /// Listen at this address of UDP: IP:PORT, or a port of every IPv4 address of this machine
    #[arg(long, value_name = "ADDR", value_parser = of_everybody)]
    pub listen: SocketAddr,
    /// Where the stream goes: 'udp://HOST:PORT'; 'srt://HOST:PORT' calls an SRT peer, and
    /// 'srt://:PORT?mode=listener' lets viewers in (also streamid=, passphrase=, pbkeylen=, latency= in
    /// milliseconds, as srt-live-transmit has them); a file, or '-' for standard output; a file that has something
    /// in it is kept, and a number added to the name of the new one [default: -, or none with --hls]
    #[arg(long, value_name = "udp://ADDR|srt://ADDR|FILE|-")]
    pub output: Option<Endpoint>,
    /// Where it goes as HLS.
    #[command(flatten)]
    pub hls: HlsArguments,
    /// Start this player, such as 'mpv {}', 'ffplay {}' or 'vlc {}', and play the stream in it; {} stands for
    /// its standard input
    #[arg(long, value_name = "COMMAND", value_parser = super::values::player, conflicts_with = "output")]
    pub player: Option<String>,
    /// Let so many senders in at a time; {} in the name of --output stands for the number of each, and ports
    /// of udp:// and srt:// count up
    #[arg(long, value_name = "N", default_value = "1", value_parser = senders)]
    pub senders: usize,
    /// Hand the stream on so long after it came into the sender; the larger one of both ends holds
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = latency)]
    pub latency: Duration,
    /// When a stream has ended wait for the next sender
    #[arg(long)]
    pub keep: bool,
    /// Keep the certificate that is made, and its key, in this file, so that the fingerprint stays the same,
    /// or not at all ('none') [default: anabranch/receiver.pem in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "FILE|none", conflicts_with = "cert")]
    pub identity: Option<Kept>,
    /// The certificate chain, as a PEM file [default: one is made, and its fingerprint said]
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// The certificate's private key, as a PEM file
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// What a sender must show.
    #[command(flatten)]
    pub token: TokenArguments,
    /// What is told about it.
    #[command(flatten)]
    pub report: ReportArguments,
}

/// A live stream as HLS.
#[derive(Args, Clone, Debug)]
pub struct HlsArguments {
    /// Write the stream as HLS into this directory, as live.m3u8 and its segments, for 'anabranch serve DIR' or
    /// any web server; it has to be an MPEG transport stream. With --senders {} in the name stands for the number
    /// of each. A playlist that is there already is gone on with
    #[arg(long = "hls", value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// HLS: begin a segment with the first key frame after this time
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = segment, requires = "directory")]
    pub hls_segment: Duration,
    /// HLS: with low latency, by parts of segments that are no longer than this, such as 300ms: players are
    /// three parts behind; 'anabranch serve' gives them (docs/live.md)
    #[arg(long, value_name = "TIME", value_parser = part, requires = "directory")]
    pub hls_part: Option<Duration>,
    /// HLS: list the segments of this time, at least three; as many that were listed are kept beside them
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = window, requires = "directory")]
    pub hls_window: Duration,
    /// HLS: use no more of the disk; the oldest segments go before their time
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = space, requires = "directory")]
    pub hls_space: Bytes,
}

/// The secret of both ends.
#[derive(Args, Clone, Default)]
pub struct TokenArguments {
    /// A secret that the receiver asks for; others on the machine can see it here, so better use
    /// --token-file, or the environment variable ANABRANCH_TOKEN
    #[arg(long, value_name = "TEXT", conflicts_with = "token_file")]
    pub token: Option<String>,
    /// The secret is the first line of this file
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// It is a secret.
impl fmt::Debug for TokenArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.token.is_some() { "Token(..)" } else { "Token" })
    }
}

/// Where a stream comes from or goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// UDP at this address.
    Udp(SocketAddr),
    /// SRT with the peer of this address.
    #[cfg(feature = "srt")]
    Srt(anabranch_srt::Address),
    /// A file.
    File(PathBuf),
    /// Standard input or output.
    Standard,
}

impl Endpoint {
    /// Whether what comes from there comes whether or not anybody takes it.
    pub fn is_live(&self) -> bool {
        match self {
            Self::Udp(_) => true,
            #[cfg(feature = "srt")]
            Self::Srt(_) => true,
            Self::File(_) | Self::Standard => false,
        }
    }
}

#[cfg(feature = "srt")]
fn srt(input: &str) -> Result<Endpoint, String> {
    input.parse().map(Endpoint::Srt)
}

#[cfg(not(feature = "srt"))]
fn srt(_: &str) -> Result<Endpoint, String> {
    Err("this build of anabranch has no SRT: build it with 'cargo build --release -p anabranch --features srt'".into())
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(input: &str) -> Result<Self, String> {
        // A slash that is missing must not make a file's name, which is shown, of a URL with a passphrase.
        if input.starts_with("srt:") {
            return srt(input);
        }
        match input.strip_prefix("udp://") {
            Some(address) => {
                // As ffmpeg and srt-live-transmit write it: nothing or '@' for any address.
                let address = address.strip_prefix('@').unwrap_or(address);
                of_everybody(address).map(Self::Udp).map_err(|_| {
                    "UDP is written udp://192.0.2.1:5000, udp://localhost:5000 or udp://:5000".into()
                })
            }
            None if input == "-" => Ok(Self::Standard),
            None if input.contains("://") => Err("only udp://, srt://, files and '-' are known".into()),
            None => Ok(Self::File(input.into())),
        }
    }
}

/// Where it is told which rate fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TellRate {
    /// At this address of TCP.
    Tcp(SocketAddr),
    /// At a socket in the file system.
    Unix(PathBuf),
}

impl FromStr for TellRate {
    type Err = String;

    fn from_str(input: &str) -> Result<Self, String> {
        match input.strip_prefix("unix:") {
            Some("") => Err("a socket is written unix:PATH".into()),
            Some(path) => Ok(Self::Unix(path.into())),
            None => of_this_machine(input).map(Self::Tcp),
        }
    }
}

impl fmt::Display for TellRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Where something is kept from one start to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// In this file.
    File(PathBuf),
    /// It is not.
    Nowhere,
}

impl FromStr for Kept {
    type Err = Infallible;

    fn from_str(input: &str) -> Result<Self, Infallible> {
        Ok(if input == "none" { Self::Nowhere } else { Self::File(input.into()) })
    }
}

/// A scheme by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemeName {
    /// One connection at the rate that TCP would have (RFC 5348)
    Tfrc,
    /// As many such connections as fill a link that loses packets, and no more
    Multfrc,
    /// One connection that stands for several
    AioTfrc,
    /// The same with a control of ours, which keeps the link filled
    Auto,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

/// `--fec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FecArgument {
    /// No parity.
    Off,
    /// As much as the losses ask for.
    Auto,
    /// Blocks of this code.
    Code(Code),
}

impl FromStr for FecArgument {
    type Err = String;

    fn from_str(input: &str) -> Result<Self, String> {
        const FORM: &str = "parity is 'off', 'auto' or N,K: N packets of which K are media, such as 61,50";
        match input {
            "off" => return Ok(Self::Off),
            "auto" => return Ok(Self::Auto),
            _ => {}
        }
        let (all, media) = input.split_once(',').ok_or(FORM)?;
        let (all, media): (u32, u32) = (all.parse().map_err(|_| FORM)?, media.parse().map_err(|_| FORM)?);
        let parity = all.checked_sub(media).filter(|parity| *parity > 0).ok_or(FORM)?;
        Code::new(media, parity).map(Self::Code).map_err(|error| format!("{FORM}; {error}"))
    }
}

fn latency(input: &str) -> Result<Duration, String> {
    between(input, LEAST_LATENCY, MOST_LATENCY)
}

/// The name or address of a host and a port, which are looked up later.
fn host_and_port(input: &str) -> Result<String, String> {
    const FORMS: &str = "a receiver is written HOST:PORT, such as studio.example:9000 or [2001:db8::1]:9000";
    match input.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && (!host.contains(':') || host.ends_with(']')) => {
            match port.parse::<u16>() {
                Ok(1..) => Ok(input.into()),
                _ => Err(format!("a port is a number from 1 to 65535; {FORMS}")),
            }
        }
        _ => Err(FORMS.into()),
    }
}

fn segment(input: &str) -> Result<Duration, String> {
    between(input, Duration::from_secs(1), Duration::from_secs(20))
}

fn part(input: &str) -> Result<Duration, String> {
    between(input, Duration::from_millis(100), Duration::from_secs(1))
}

fn window(input: &str) -> Result<Duration, String> {
    between(input, Duration::from_secs(3), Duration::from_secs(24 * 3600))
}

fn space(input: &str) -> Result<Bytes, String> {
    between(input, Bytes::mib(1), Bytes::mib(1 << 30))
}

/// A quantity within bounds.
fn between<Q>(input: &str, least: Q, most: Q) -> Result<Q, String>
where
    Q: FromStr<Err = anabranch_units::ParseError> + PartialOrd + Copy + fmt::Display,
{
    let value: Q = input.parse().map_err(|error: anabranch_units::ParseError| error.to_string())?;
    if least <= value && value <= most {
        Ok(value)
    } else {
        Err(format!("{value} is out of bounds: {least} at the least and {most} at the most"))
    }
}

fn senders(input: &str) -> Result<usize, String> {
    match input.parse() {
        Ok(senders) if (1..=MOST_SENDERS).contains(&senders) => Ok(senders),
        _ => Err(format!("1 to {MOST_SENDERS} senders can be let in")),
    }
}

fn some_rate(input: &str) -> Result<Rate, String> {
    let rate: Rate = input.parse().map_err(|error: anabranch_units::ParseError| error.to_string())?;
    if rate.is_zero() { Err("a rate above zero is needed".into()) } else { Ok(rate) }
}
