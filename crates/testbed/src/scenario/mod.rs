//! Scenario files: networks and flows as `anabranch-scenario` reads them (`docs/scenario.md`), and the
//! programs of a run (`docs/testbed.md`). What the emulator does not have is refused with its place.

mod cross;
mod events;
mod media;
mod paths;
mod programs;
#[cfg(test)]
mod tests;

use std::path::{Path as FilePath, PathBuf};

use anabranch_scenario::model::{self, NodeId};
use anabranch_scenario::{Beside, Described, Fault, Files, Item, Table, read_document, read_text};
use anabranch_units::{Duration, Rate};

use crate::Error;
pub use cross::{Cross, Transport};
use events::Cast;
pub use events::{Deed, Event, Host};
pub use media::{Film, Live};
use paths::MOST;
pub use paths::{Change, Direction, LossPattern, Path, Way};
pub use programs::{Client, Output, Ping, Server};

/// The longest run.
const LONGEST_RUN: Duration = Duration::from_secs(24 * 3600);

/// What is to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The run ends when the client does, and no later than this after its start.
    pub duration: Duration,
    /// Seed of the random losses.
    pub seed: u64,
    /// What the servers offer, and at which rate it is to be played; none for clients that measure something
    /// else.
    pub film: Option<Film>,
    /// How live media is judged; clients that have a sender need it.
    pub live: Option<Live>,
    /// Emulated paths between the client and the servers.
    pub paths: Vec<Path>,
    /// The hosts at the far ends.
    pub servers: Vec<Server>,
    /// The programs that can be measured; a run takes one of them.
    pub clients: Vec<Client>,
    /// Traffic that shares a path's bottleneck with the client.
    pub cross: Vec<Cross>,
    /// What happens to hosts and links while the client runs.
    pub events: Vec<Event>,
    /// A ping beside the client.
    pub ping: Option<Ping>,
}

impl Scenario {
    /// Reads and checks a file, and the traces that it names.
    ///
    /// # Errors
    /// Says where the file is wrong, and what would be right.
    pub fn load(file: &FilePath) -> Result<Self, Error> {
        let name = file.display().to_string();
        let text = read_text(file).map_err(Error::io(name.clone()))?;
        let directory = file.parent().unwrap_or(FilePath::new(""));
        Self::parse(&name, &text, &mut Beside(directory))
    }

    /// Reads and checks a file's text; `file` is its name in errors.
    ///
    /// # Errors
    /// Says where the text is wrong, and what would be right.
    pub fn parse(file: &str, text: &str, files: &mut dyn Files) -> Result<Self, Error> {
        read_document(file, text, "a scenario", |document| read(document, files))
            .map_err(|error| Error::Scenario(error.to_string()))
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

fn read(mut document: Table<'_>, files: &mut dyn Files) -> Result<Scenario, Fault> {
    let described = anabranch_scenario::read(&mut document, None, files);
    let has_live = document.has("live") && document.has("film");
    let film = document.get("film", |item| Film::read(item, has_live));
    let live = document.get("live", Live::read);
    let clients = clients(&mut document, has_live);
    // Where the network is wrong, nobody knows what its programs refer to.
    let Ok(described) = described else {
        for key in ["server", "event", "ping", "kernel"] {
            document.item(key);
        }
        document.finish()?;
        return Err(Fault::TOLD);
    };
    check_run(&mut document, &described);
    let (nodes, servers): (Vec<_>, Vec<_>) = servers(&mut document, &described).into_iter().unzip();
    let network = paths::read(&mut document, &described, &nodes);
    let network = document.kept(network);
    let (mut cross, mut paths, mut ping, mut events) = (Vec::new(), Vec::new(), None, Vec::new());
    match network {
        Some(network) => {
            let read = cross::read(&mut document, &described, &network, &nodes);
            cross = document.kept(read).unwrap_or_default();
            let names: Vec<&str> = network.paths.iter().map(|path| path.name.as_str()).collect();
            ping = document.get("ping", |item| Ping::read(item, &names));
            let client = described.model.nodes[network.client].name.as_str();
            let cast = Cast { servers: &servers, client, paths: &network.paths, has_live };
            events = tables(&mut document, "event", |table| Event::read(table, &cast));
            paths = network.paths;
        }
        None => ["event", "ping", "kernel"].into_iter().for_each(|key| {
            document.item(key);
        }),
    }
    document.finish()?;
    let model::Run { duration, seed, .. } = described.model.run;
    Ok(Scenario { duration, seed, film, live, paths, servers, clients, cross, events, ping })
}

/// Reads the tables of `[[key]]`, of which there are not too many.
fn tables<'a, T>(
    document: &mut Table<'a>,
    key: &'static str,
    read: impl Fn(Table<'a>) -> Result<T, Fault>,
) -> Vec<T> {
    let tables = document.tables(key);
    if tables.len() > MOST
        && let Some(item) = document.item(key)
    {
        document.tell(item.fault(format_args!("more than {MOST} of [[{key}]]")));
        return Vec::new();
    }
    tables.into_iter().filter_map(|table| document.kept(read(table))).collect()
}

fn clients(document: &mut Table<'_>, has_live: bool) -> Vec<Client> {
    let clients = tables(document, "client", |table| Client::read(table, has_live));
    match document.item("client") {
        None => _ = document.need("client", |_| Ok(())),
        Some(item) => {
            let is_again =
                |(at, client): (usize, &Client)| clients[..at].iter().any(|one| one.name == client.name);
            if let Some(again) = clients.iter().enumerate().find(|pair| is_again(*pair)) {
                document.tell(item.fault(format_args!("two clients have the name '{}'", again.1.name)));
            }
        }
    }
    clients
}

/// The servers, each with its node.
fn servers(document: &mut Table<'_>, described: &Described<'_>) -> Vec<(NodeId, Server)> {
    let servers = tables(document, "server", |table| Server::read(table, &described.model));
    match document.item("server") {
        None => _ = document.need("server", |_| Ok(())),
        Some(item) => {
            let mut nodes: Vec<NodeId> = servers.iter().map(|(node, _)| *node).collect();
            nodes.sort_unstable();
            if let Some(pair) = nodes.windows(2).find(|pair| pair[0] == pair[1]) {
                let name = &described.model.nodes[pair[0]].name;
                document.tell(item.fault(format_args!("a second server is at the node '{name}'")));
            }
            let has_bounds = |id: &NodeId| described.model.nodes[*id].server != model::Server::default();
            let mut others = (0..described.model.nodes.len()).filter(|id| nodes.binary_search(id).is_err());
            if let Some(id) = others.find(has_bounds) {
                let name = &described.model.nodes[id].name;
                document.tell(item.fault(format_args!("the node '{name}' has a `server` and no [[server]]")));
            }
        }
    }
    servers
}

/// Refuses what only the simulator does.
fn check_run(document: &mut Table<'_>, described: &Described<'_>) {
    if let Some(item) = described.topology {
        document.tell(item.fault("the testbed generates no networks: write [[node]] and [[link]]"));
    }
    let check = |item: Item<'_>| {
        let mut table = item.table("[run]")?;
        let refused = [
            ("sampling", "the testbed has intervals of its own"),
            ("warm_up", "the testbed counts from the beginning"),
        ];
        for (key, message) in refused {
            table.refuse(key, message);
        }
        match table.item("duration") {
            Some(item) if described.model.run.duration > LONGEST_RUN => {
                Err(item.fault(format_args!("a run of the testbed is at most {LONGEST_RUN}")))
            }
            _ => Ok(()),
        }
    };
    document.kept(check(described.run));
}
