//! Scenario files: TOML with quantities as people write them (`6M`, `80ms`), unknown keys refused.

mod check;

use std::fmt;
use std::fs;
use std::marker::PhantomData;
use std::path::{Path as FilePath, PathBuf};

use anabranch_film::playback::{Parameters, StallRule};
use anabranch_units::{Duration, Quantity, Rate};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer};

use crate::Error;

/// What is to be run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Limits of the run.
    pub run: Run,
    /// What the servers offer, and at which rate it is to be played; none for clients that measure something
    /// else.
    pub film: Option<Film>,
    /// How live media is judged; clients that have a sender need it.
    pub live: Option<Live>,
    /// Emulated paths between the client and the servers.
    #[serde(rename = "path")]
    pub paths: Vec<Path>,
    /// The hosts at the far ends.
    #[serde(rename = "server")]
    pub servers: Vec<Server>,
    /// The programs that can be measured; a run takes one of them.
    #[serde(rename = "client")]
    pub clients: Vec<Client>,
    /// Traffic that shares a path's bottleneck with the client.
    #[serde(rename = "cross", default)]
    pub cross: Vec<Cross>,
    /// What changes while the client runs.
    #[serde(rename = "event", default)]
    pub events: Vec<Event>,
    /// A ping beside the client.
    pub ping: Option<Ping>,
}

/// Limits of a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The run ends when the client does, and no later than this after its start.
    #[serde(deserialize_with = "quantity")]
    pub duration: Duration,
    /// Seed of the random losses.
    #[serde(default)]
    pub seed: u64,
}

/// The media of the run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Film {
    /// Its constant rate, the container's overhead included.
    #[serde(deserialize_with = "quantity")]
    pub rate: Rate,
    /// How long it plays.
    #[serde(deserialize_with = "quantity")]
    pub duration: Duration,
    /// An existing file at that rate; without it an MPEG transport stream is made with ffmpeg.
    pub file: Option<PathBuf>,
    /// Play time that is loaded before the first picture is shown.
    #[serde(deserialize_with = "quantity", default = "two_seconds")]
    pub prebuffer: Duration,
    /// Play time that is loaded before playing goes on after a stall.
    #[serde(deserialize_with = "quantity", default = "two_seconds")]
    pub rebuffer: Duration,
    /// Instead: stop for this long whenever the next second is not there, as in MultiTCP section 8.3.
    #[serde(deserialize_with = "optional_quantity", default)]
    pub pause: Option<Duration>,
    /// Play time that the player holds at most: it reads no further from a client's standard output. Without
    /// it, it reads all that comes.
    #[serde(deserialize_with = "optional_quantity", default)]
    pub buffer: Option<Duration>,
}

/// Live media: fed to a client's sender at the film's rate, collected from its receiver.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Live {
    /// What a client may take from its sender's input to its receiver's output, beyond the path's own delay:
    /// the `{latency}` of its commands.
    #[serde(deserialize_with = "quantity")]
    pub latency: Duration,
    /// The film's beginning that is not judged: connections and rates settle.
    #[serde(deserialize_with = "quantity", default = "ten_seconds")]
    pub settle: Duration,
    /// A run is over when more than this share of what should have come out since has not; without it, at the
    /// film's end.
    pub give_up: Option<f64>,
}

/// An emulated path. Both directions have the round-trip time's half each.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Its name in events, cross traffic and results.
    pub name: String,
    /// The server at its far end; may be left out when there is only one.
    pub server: Option<String>,
    /// Rate of the bottleneck towards the client, at the network layer.
    #[serde(deserialize_with = "quantity")]
    pub rate: Rate,
    /// Rate towards the server, the same without it.
    #[serde(deserialize_with = "optional_quantity", default)]
    pub rate_up: Option<Rate>,
    /// Round-trip time without queueing.
    #[serde(deserialize_with = "quantity")]
    pub rtt: Duration,
    /// Packets that the DropTail queue of each direction holds.
    pub queue: usize,
    /// Probability that a packet towards the client is lost behind the bottleneck.
    #[serde(default)]
    pub loss: f64,
    /// How many packets are lost in a row, on average: Gilbert's model, with `loss` of all packets lost.
    /// Without it a packet's loss does not depend on the one before.
    pub burst: Option<f64>,
}

/// A host at the far end of one or more paths.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Its name in paths and events.
    pub name: String,
    /// Congestion control of its connections to the client, any that the kernel has.
    #[serde(default = "cubic")]
    pub congestion: String,
    /// What it runs; without it nginx serves the film at port 80. Placeholders: `{dir}` (the film's
    /// directory).
    pub command: Option<Vec<String>>,
}

/// A program to be measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Its name on the command line and in the results.
    pub name: String,
    /// Program and arguments. Placeholders: `{url1}`, `{url2}`, ... and `{address1}`, ... (one a path, in
    /// order), `{interface1}`, ..., `{rate}` (of the film, in bit/s), `{out}` (the file to write), `{dir}`
    /// (the results' directory), `{latency}` (of live media, in ms), `{anabranch}` (the project's program).
    pub command: Vec<String>,
    /// For live media: the program at the server's end, while `command` receives. Same placeholders, where
    /// `{address1}`, ... are the receiver's. The film comes to it at UDP port 5000 of its loopback; what the
    /// receiver sends to UDP port 6000 of its own is collected.
    pub sender: Option<Vec<String>>,
    /// Where its media goes.
    #[serde(default)]
    pub output: Output,
}

/// Where a client's media goes.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Output {
    /// To standard output, in order.
    #[default]
    Stdout,
    /// To the file `{out}`, in any order.
    File,
    /// Nowhere: what it prints is kept as a log.
    None,
}

/// A group of flows that shares a path's bottleneck, from its server towards the client.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cross {
    /// Its name in the results.
    pub name: String,
    /// The path that it goes over; may be left out when there is only one.
    pub path: Option<String>,
    /// TCP flows that send all they can, or UDP at a constant rate.
    #[serde(default)]
    pub kind: CrossKind,
    /// Congestion control of TCP flows.
    #[serde(default = "cubic")]
    pub congestion: String,
    /// How many flows.
    #[serde(default = "one")]
    pub flows: u32,
    /// How much farther away its receiver is than the client: behind the bottleneck, on the way towards it.
    /// It adds that to its round-trip time.
    #[serde(deserialize_with = "quantity", default = "nothing")]
    pub delay: Duration,
    /// Rate of the UDP packets' payload, all flows together.
    #[serde(deserialize_with = "optional_quantity", default)]
    pub rate: Option<Rate>,
    /// When it starts, after the client's start.
    #[serde(deserialize_with = "quantity")]
    pub start: Duration,
    /// When it stops; without it, with the run.
    #[serde(deserialize_with = "optional_quantity", default)]
    pub stop: Option<Duration>,
}

/// The transport of cross traffic.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum CrossKind {
    /// As much as the congestion control finds.
    #[default]
    Tcp,
    /// A constant rate.
    Udp,
}

/// One line of the timetable: what happens to a server, or what changes on a path.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// When, after the client's start.
    #[serde(deserialize_with = "quantity")]
    pub at: Duration,
    /// Kill this server's program (SIGKILL).
    pub kill: Option<String>,
    /// Start this server's program again.
    pub start: Option<String>,
    /// The path that changes.
    pub path: Option<String>,
    /// Whether the path carries packets at all.
    pub up: Option<bool>,
    /// New rate towards the client.
    #[serde(deserialize_with = "optional_quantity", default)]
    pub rate: Option<Rate>,
    /// New round-trip time.
    #[serde(deserialize_with = "optional_quantity", default)]
    pub rtt: Option<Duration>,
    /// New loss probability.
    pub loss: Option<f64>,
}

/// Echo requests from the client to a path's server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ping {
    /// The path; the first without it.
    pub path: Option<String>,
    /// Time between requests.
    #[serde(deserialize_with = "quantity", default = "tenth")]
    pub interval: Duration,
}

fn two_seconds() -> Duration {
    Duration::from_secs(2)
}

fn ten_seconds() -> Duration {
    Duration::from_secs(10)
}

fn nothing() -> Duration {
    Duration::ZERO
}

fn tenth() -> Duration {
    Duration::from_millis(100)
}

fn cubic() -> String {
    "cubic".into()
}

fn one() -> u32 {
    1
}

/// A quantity, which has to say its unit.
struct WithUnit<T>(PhantomData<T>);

impl<T: Quantity> Visitor<'_> for WithUnit<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {} in quotes, with its unit, like {}", T::NAME, T::EXAMPLES)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        T::read_with_unit(text).map_err(E::custom)
    }
}

fn quantity<'de, D: Deserializer<'de>, T: Quantity>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_str(WithUnit(PhantomData))
}

fn optional_quantity<'de, D: Deserializer<'de>, T: Quantity>(deserializer: D) -> Result<Option<T>, D::Error> {
    quantity(deserializer).map(Some)
}

impl Film {
    /// How its player behaves.
    pub fn player(&self) -> Parameters {
        let rebuffer = StallRule::Rebuffer { resume_at: self.rebuffer };
        Parameters { prebuffer: self.prebuffer, stall: self.pause.map_or(rebuffer, StallRule::FixedPause) }
    }
}

impl Path {
    /// The probabilities that a packet is lost, after none and after one or more lost before it.
    ///
    /// Gilbert's model (Bell System Technical Journal 39, 1960) with all packets of its bad state lost:
    /// bursts end with probability 1 / burst, and begin so often that the share `loss` is lost in the long
    /// run.
    pub fn loss_pattern(&self, loss: f64) -> Vec<f64> {
        match self.burst {
            Some(burst) if loss < 1.0 => vec![(loss / (burst * (1.0 - loss))).min(1.0), 1.0 - 1.0 / burst],
            _ => vec![loss],
        }
    }
}

impl Scenario {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// Says where the file is wrong, and which key was probably meant.
    pub fn load(file: &FilePath) -> Result<Self, Error> {
        let text = fs::read_to_string(file).map_err(Error::io(file.display().to_string()))?;
        Self::parse(&text).map_err(|error| Error::Scenario(format!("{}: {error}", file.display())))
    }

    /// Reads and checks a file's text.
    ///
    /// # Errors
    /// Says where the text is wrong, and which key was probably meant.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let scenario: Self = toml::from_str(text).map_err(|error| {
            let hint = nearest(error.message()).map(|name| format!("did you mean `{name}`?\n"));
            Error::Scenario(format!("{error}{}", hint.unwrap_or_default()))
        })?;
        scenario.check().map_err(Error::Scenario)?;
        Ok(scenario)
    }

    /// The same with another film, which is there.
    ///
    /// # Errors
    /// When the scenario has none that it could replace.
    pub fn with_film(mut self, replacement: Option<&(PathBuf, Rate)>) -> Result<Self, Error> {
        if let Some((file, rate)) = replacement {
            let missing = || Error::Scenario("the scenario has no [film] that another could replace".into());
            let film = self.film.as_mut().ok_or_else(missing)?;
            film.file = Some(file.clone());
            film.rate = *rate;
        }
        Ok(self)
    }

    /// The index of the server at the far end of a path.
    pub fn server_of(&self, path: &Path) -> usize {
        let named = |name: &String| self.servers.iter().position(|server| server.name == *name);
        path.server.as_ref().and_then(named).unwrap_or(0)
    }

    /// The index of the path of this name, the first without a name.
    pub fn path_index(&self, name: Option<&String>) -> usize {
        name.and_then(|name| self.paths.iter().position(|path| path.name == *name)).unwrap_or(0)
    }

    /// The client of this name, or the first.
    ///
    /// # Errors
    /// When there is no such client; says which there are.
    pub fn client(&self, name: Option<&str>) -> Result<&Client, Error> {
        let found = match name {
            Some(name) => self.clients.iter().find(|client| client.name == name),
            None => self.clients.first(),
        };
        found.ok_or_else(|| {
            let names: Vec<_> = self.clients.iter().map(|client| client.name.as_str()).collect();
            Error::Scenario(format!("no client '{}'; there are: {}", name.unwrap_or(""), names.join(", ")))
        })
    }
}

/// The name that was probably meant, from the parser's own list of right ones.
fn nearest(message: &str) -> Option<&str> {
    let mut quoted = message.strip_prefix("unknown ")?.split('`').skip(1).step_by(2);
    let wrong = quoted.next()?;
    let distance = |name: &&str| strsim::damerau_levenshtein(wrong, name);
    quoted.min_by_key(distance).filter(|name| distance(name) <= 1 + wrong.len() / 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        [run]
        duration = "10s"
        [[path]]
        name = "main"
        rate = "6M"
        rtt = "80ms"
        queue = 50
        [[server]]
        name = "a"
        [[client]]
        name = "curl"
        command = ["curl", "{url1}"]
    "#;

    fn error(text: &str) -> String {
        Scenario::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn quantities_and_defaults() {
        let scenario = Scenario::parse(GOOD).unwrap();
        assert_eq!(scenario.paths[0].rate, Rate::from_mbps(6));
        assert_eq!(scenario.paths[0].rtt, Duration::from_millis(80));
        assert_eq!(scenario.servers[0].congestion, "cubic");
        assert_eq!(scenario.clients[0].output, Output::Stdout);
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line_and_the_right_name() {
        let text = GOOD.replace("queue = 50", "queu = 50");
        let error = error(&text);
        assert!(error.contains("line 8") && error.contains("did you mean `queue`"), "{error}");
    }

    #[test]
    fn wrong_values_are_refused() {
        for (from, to, expected) in [
            ("\"6M\"", "\"fast\"", "is not a rate"),
            ("\"6M\"", "\"6000000\"", "has no unit; write it like 800k"),
            ("\"6M\"", "6000000", "a rate in quotes, with its unit"),
            ("\"80ms\"", "\"80\"", "has no unit; write it like 200ms"),
            ("queue = 50", "queue = 0", "1 to 1000000"),
            ("queue = 50", "queue = 50\nloss = 1.5", "a probability"),
            ("queue = 50", "queue = 50\nserver = \"b\"", "no server 'b'"),
            ("name = \"curl\"", "name = \"../curl\"", "names are letters"),
            ("[[server]]", "[[server]]\nname = \"b\"\n[[server]]", "say which server"),
            ("queue = 50", "queue = 50\nburst = 0.5", "at least 1"),
            ("queue = 50", "queue = 50\nloss = 0.8\nburst = 2", "cannot be in bursts"),
            ("\"curl\"", "\"curl\"\nsender = [\"cat\"]", "needs [live]"),
            ("[[server]]", "[[event]]\nat = \"1s\"\n[[server]]", "one of kill, start"),
            ("[[server]]", "[[event]]\nat = \"1s\"\nkill = \"x\"\n[[server]]", "no server 'x'"),
            (
                "[[server]]",
                "[[cross]]\nname = \"c\"\nkind = \"udp\"\nstart = \"1s\"\n[[server]]",
                "UDP needs a rate",
            ),
        ] {
            let error = error(&GOOD.replacen(from, to, 1));
            assert!(error.contains(expected), "{to}: {error}");
        }
    }

    #[test]
    fn losses_in_bursts_are_as_many_as_without() {
        let path = |text: &str| Scenario::parse(&GOOD.replace("queue = 50", text)).unwrap().paths.remove(0);
        assert_eq!(path("queue = 50\nloss = 0.04").loss_pattern(0.04), [0.04]);
        let pattern = path("queue = 50\nloss = 0.04\nburst = 4").loss_pattern(0.04);
        // A two-state chain's share in its bad state: p / (p + r).
        let (begin, end) = (pattern[0], 1.0 - pattern[1]);
        assert!((begin / (begin + end) - 0.04).abs() < 1e-12 && end == 0.25, "{pattern:?}");
    }

    #[test]
    fn an_unknown_client_names_the_known() {
        let scenario = Scenario::parse(GOOD).unwrap();
        let error = scenario.client(Some("wget")).unwrap_err().to_string();
        assert!(error.contains("curl"), "{error}");
    }
}
