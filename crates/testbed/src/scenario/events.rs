//! What happens to hosts and links while a client runs: `[[event]]`.

use anabranch_scenario::{Fault, Item, Table};
use anabranch_units::{Bytes, Duration};

use super::paths::Path;
use super::programs::Server;

/// The smallest packet that every network has to carry (RFC 791, section 3.2), and Ethernet's.
const LEAST_MTU: Bytes = Bytes::new(576);
const MOST_MTU: Bytes = Bytes::new(1500);

/// What happens at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, after the client's start.
    pub at: Duration,
    /// What happens.
    pub deed: Deed,
}

/// Where programs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// At this server's node.
    Server(usize),
    /// At the client's.
    Client,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// The program there is killed (SIGKILL).
    Kill(Host),
    /// It is started again.
    Start(Host),
    /// From here on this path's link towards the client carries packets up to this size.
    Mtu(usize, Bytes),
    /// This server has other addresses from here on, and those of before no more.
    Renumber(usize),
}

impl Deed {
    /// Whether it makes a path carry other packets than Ethernet's.
    pub fn is_mtu_of(&self, path: usize) -> bool {
        matches!(self, Self::Mtu(of, _) if *of == path)
    }
}

/// What events speak of.
pub(super) struct Cast<'a> {
    pub(super) servers: &'a [Server],
    /// The name of the client's node.
    pub(super) client: &'a str,
    pub(super) paths: &'a [Path],
    /// Whether there is live media, whose receiver runs at the client's node.
    pub(super) has_live: bool,
}

impl Cast<'_> {
    fn server(&self, item: Item<'_>) -> Result<usize, Fault> {
        let names: Vec<&str> = self.servers.iter().map(|server| server.name.as_str()).collect();
        item.place_in(&names, "server")
    }

    fn host(&self, item: Item<'_>) -> Result<Host, Fault> {
        match item.text() {
            Ok(name) if self.has_live && name == self.client => Ok(Host::Client),
            _ => self.server(item).map(Host::Server),
        }
    }

    fn path(&self, item: Item<'_>) -> Result<usize, Fault> {
        let names: Vec<&str> = self.paths.iter().map(|path| path.name.as_str()).collect();
        item.place_in(&names, "link from a server")
    }
}

impl Event {
    /// Reads an `[[event]]`.
    pub(super) fn read(mut table: Table<'_>, cast: &Cast<'_>) -> Result<Self, Fault> {
        let at = table.need("at", Item::duration);
        let has_mtu = table.has("mtu");
        let link = table.get("link", |item| match has_mtu {
            true => cast.path(item),
            false => Err(item.fault("only an `mtu` is a link's")),
        });
        let size = |item: Item<'_>| item.size_within(LEAST_MTU, MOST_MTU);
        let mut deed = |key, read: &dyn Fn(Item<'_>) -> Result<Deed, Fault>| {
            table.get(key, |item| Ok((item, read(item)?)))
        };
        let deeds = [
            deed("kill", &|item| cast.host(item).map(Deed::Kill)),
            deed("start", &|item| cast.host(item).map(Deed::Start)),
            deed("mtu", &|item| size(item).map(|size| Deed::Mtu(link.unwrap_or(0), size))),
            deed("renumber", &|item| cast.server(item).map(Deed::Renumber)),
        ];
        let mut deeds = deeds.into_iter().flatten();
        let deed = match (deeds.next(), deeds.next()) {
            (Some((_, deed)), None) => Ok(deed),
            (_, Some((item, _))) => {
                Err(item.fault("an event is one of `kill`, `start`, `mtu` and `renumber`"))
            }
            (None, None) if ["kill", "start", "mtu", "renumber"].iter().any(|key| table.has(key)) => {
                Err(Fault::TOLD)
            }
            (None, None) => Err(Fault::new(
                table.span(),
                "an event says whom to `kill`, to `start` or to `renumber`, or a link's `mtu`",
            )),
        };
        let deed = table.kept(deed);
        table.finish()?;
        Ok(Self { at: at?, deed: deed.ok_or(Fault::TOLD)? })
    }
}
