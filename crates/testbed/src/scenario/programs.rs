//! The programs of a run: `[[server]]`, `[[client]]` and `[ping]`.

use anabranch_scenario::model::{self, Model, NodeId};
use anabranch_scenario::{Fault, Item, Table};
use anabranch_units::Duration;

/// More programs at a time would measure the machine.
const MOST_COPIES: u64 = 64;
/// No echo requests are closer together.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(5);

/// What runs at a node at the far end of one or more paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The node's name.
    pub name: String,
    /// Congestion control of its connections to the client, any that the kernel has.
    pub congestion: String,
    /// What it runs; without it nginx serves the film at port 80. Placeholders: `{dir}` (the film's
    /// directory).
    pub command: Option<Vec<String>>,
    /// What it allows its client.
    pub allows: model::Server,
}

impl Server {
    /// Reads a `[[server]]`; the node is the place of its own.
    pub(super) fn read(mut table: Table<'_>, model: &Model) -> Result<(NodeId, Self), Fault> {
        let names: Vec<&str> = model.nodes.iter().map(|node| node.name.as_str()).collect();
        let node = table.need("node", |item| item.place_in(&names, "node"));
        let congestion = table.get("congestion", Item::name).unwrap_or("cubic");
        let allows =
            node.as_ref().map_or_else(|_| model::Server::default(), |node| model.nodes[*node].server);
        let command = table.get("command", |item| match allows == model::Server::default() {
            true => words(item),
            false => {
                Err(item.fault("a node whose `server` has bounds runs the testbed's own: leave this out"))
            }
        });
        table.finish()?;
        let node = node?;
        Ok((node, Self { name: names[node].into(), congestion: congestion.into(), command, allows }))
    }
}

/// A program to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    pub output: Output,
    /// So many of it run side by side, each with a player of its own.
    pub copies: usize,
    /// For live media: one of its two programs that has ended is started again after so long. Without it the
    /// run is over then.
    pub restart: Option<Duration>,
}

/// Where a client's media goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// To standard output, in order.
    #[default]
    Stdout,
    /// To the file `{out}`, in any order.
    File,
    /// Nowhere: what it prints is kept as a log.
    None,
}

impl Client {
    /// Reads a `[[client]]`; a sender needs live media.
    pub(super) fn read(mut table: Table<'_>, has_live: bool) -> Result<Self, Fault> {
        let name = table.need("name", |item| match item.name()? {
            // It becomes the name of a directory.
            name if name.starts_with('.') => Err(item.fault("a client's name begins with no dot")),
            name => Ok(name.to_owned()),
        });
        let command = table.need("command", words);
        let sender = table.get("sender", |item| match has_live {
            true => words(item),
            false => Err(item.fault("a client that has a sender needs [live] and [film]")),
        });
        let outputs = [("stdout", Output::Stdout), ("file", Output::File), ("none", Output::None)];
        let output = table.get("output", |item| item.one_of(&outputs)).unwrap_or_default();
        let copies = table.get("copies", |item| match item.whole(1..=MOST_COPIES)? {
            copies if copies > 1 && (sender.is_some() || output != Output::Stdout) => {
                Err(item.fault("copies of a client write to standard output: they would share a file"))
            }
            copies => Ok(copies as usize),
        });
        let restart = table.get("restart", |item| match sender.is_some() {
            true => item.duration(),
            false => Err(item.fault("the programs of a client that has a sender are started again")),
        });
        table.finish()?;
        let copies = copies.unwrap_or(1);
        Ok(Self { name: name?, command: command?, sender, output, copies, restart })
    }
}

/// A program and its arguments.
fn words(item: Item<'_>) -> Result<Vec<String>, Fault> {
    let words = item.each(|item| item.text().map(str::to_owned))?;
    if words.is_empty() {
        Err(item.fault(format_args!("`{}` names no program", item.key)))
    } else {
        Ok(words)
    }
}

/// Echo requests from the client to a path's server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping {
    /// The path.
    pub path: usize,
    /// Time between requests.
    pub interval: Duration,
}

impl Ping {
    /// Reads `[ping]`.
    pub(super) fn read(item: Item<'_>, paths: &[&str]) -> Result<Self, Fault> {
        let mut table = item.table("[ping]")?;
        let path = table.get("link", |item| item.place_in(paths, "link from a server")).unwrap_or(0);
        let interval = table.get("interval", |item| match item.duration()? {
            interval if interval < SHORTEST_INTERVAL => {
                Err(item.fault(format_args!("the interval is at least {SHORTEST_INTERVAL}")))
            }
            interval => Ok(interval),
        });
        table.finish()?;
        Ok(Self { path, interval: interval.unwrap_or(Duration::from_millis(100)) })
    }
}
