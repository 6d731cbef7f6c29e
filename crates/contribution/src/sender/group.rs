//! The senders of one user on one machine that share its uplinks: how they find and hear each other.
//!
//! A group is a directory, in which each member has a socket for datagrams. Every member tells all others how
//! it stands ([`anabranch_protocol::live::standing`]). Nothing else is needed: who is silent is forgotten by
//! the others (`anabranch_congestion::shares`), and the socket of one that was killed is removed by who finds
//! that nobody listens.

mod place;

use std::collections::BTreeSet;
use std::io;
use std::os::unix::net::UnixDatagram as Socket;
use std::path::{Path, PathBuf};

use anabranch_congestion::shares::{MOST_MEMBERS, Standing};
use anabranch_congestion::vps::Weight;
use anabranch_live::UplinkId;
use anabranch_protocol::live::standing::{MAX_STANDINGS, Standings, UplinkStanding};
use rand::RngExt;
use tokio::net::UnixDatagram;

use super::events::SendError;
use super::uplink::Uplink;

pub use place::{GroupName, GroupNameError};

/// A sender's place in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    /// Which.
    pub name: GroupName,
    /// What the sender counts for in it.
    pub weight: Weight,
    /// Where the sockets of groups are; `None`: in `anabranch/groups` in `$XDG_RUNTIME_DIR`, or where that is
    /// not set in a directory of the user's own for temporary files.
    pub directory: Option<PathBuf>,
}

/// Files of a group's directory that are looked at.
const MOST_FILES: usize = 4 * MOST_MEMBERS;

/// A member.
#[derive(Debug)]
pub(super) struct Group {
    settings: GroupSettings,
    directory: PathBuf,
    member: u64,
    /// For what is heard, and the same one for what is told: a member that reads nothing keeps a datagram from
    /// leaving, and tokio would wait with all others then.
    hears: UnixDatagram,
    tells: Socket,
    /// The names of the uplinks in their order.
    uplinks: Vec<String>,
}

impl Group {
    /// Joins a group, within a tokio runtime.
    ///
    /// # Errors
    /// There is no place for a socket that is the user's own.
    pub(super) fn join(settings: &GroupSettings, links: &[Uplink]) -> Result<Self, SendError> {
        let failure = |error: String| SendError::Group(settings.name.to_string(), error);
        let directory = place::directory(settings.directory.as_deref(), &settings.name).map_err(failure)?;
        let member = rand::rng().random();
        let path = directory.join(file_name(member));
        let socket = bind(&path);
        let (hears, tells) =
            socket.map_err(|error| failure(format!("no socket at {}: {error}", path.display())))?;
        let uplinks = links.iter().map(|link| link.name().unwrap_or_default()).collect();
        Ok(Self { settings: settings.clone(), directory, member, hears, tells, uplinks })
    }

    /// Tells all others how this one stands.
    pub(super) fn tell(&mut self, standings: &[(UplinkId, Standing)]) {
        let uplinks = standings.iter().filter_map(|(link, standing)| {
            let name = usize::try_from(link.0).ok().and_then(|link| self.uplinks.get(link))?;
            Some(UplinkStanding {
                name: name.clone(),
                weight_thousandths: thousandths(standing.weight),
                allowed: standing.allowed,
                wanted: standing.wanted,
            })
        });
        let message = Standings { member: self.member, uplinks: uplinks.collect() }.encode();
        let members = match members(&self.directory) {
            Ok(members) if members.contains(&self.member) => members,
            // The directory was cleared, and with it the own socket's name.
            _ => {
                self.come_again();
                return;
            }
        };
        for member in members.into_iter().filter(|member| *member != self.member) {
            let path = self.directory.join(file_name(member));
            match self.tells.send_to(&message, &path) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    // Its program was killed. Another member may have removed it already.
                    let _ = std::fs::remove_file(&path);
                }
                // One that does not read misses it, and one that has just gone too.
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Waits for what another member says: its number, and for each uplink how it stands there. Cancel-safe.
    pub(super) async fn hear(&self) -> (u64, Vec<(UplinkId, Option<Standing>)>) {
        let mut bytes = [0; MAX_STANDINGS + 1];
        loop {
            let received = self.hears.recv(&mut bytes).await;
            let Ok(length) = received else {
                // A socket for datagrams has no errors to tell; if it has, it is not asked all the time.
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            };
            match Standings::decode(bytes.get(..length).unwrap_or_default()) {
                Ok(standings) if standings.member != self.member => {
                    return (standings.member, self.on_own_uplinks(&standings));
                }
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "a datagram at the group's socket was ignored"),
            }
        }
    }

    fn on_own_uplinks(&self, standings: &Standings) -> Vec<(UplinkId, Option<Standing>)> {
        let standing = |name: &String| {
            let found = standings.uplinks.iter().find(|uplink| uplink.name == *name)?;
            let weight = Weight::new(f64::from(found.weight_thousandths) / 1000.0)?;
            Some(Standing { weight, allowed: found.allowed, wanted: found.wanted })
        };
        (0..).map(UplinkId).zip(self.uplinks.iter().map(standing)).collect()
    }

    /// Makes a new socket, where that is possible.
    fn come_again(&mut self) {
        let directory = place::directory(self.settings.directory.as_deref(), &self.settings.name);
        if let Ok(Ok(socket)) = directory.map(|directory| bind(&directory.join(file_name(self.member)))) {
            (self.hears, self.tells) = socket;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.tell(&[]);
        // It may have been removed.
        let _ = std::fs::remove_file(self.directory.join(file_name(self.member)));
    }
}

/// The next thing that is heard of a group; never, where there is none.
pub(super) async fn hear(group: Option<&Group>) -> (u64, Vec<(UplinkId, Option<Standing>)>) {
    match group {
        Some(group) => group.hear().await,
        None => std::future::pending().await,
    }
}

fn thousandths(weight: Weight) -> u32 {
    anabranch_units::Bytes::from_f64(weight.get() * 1000.0).get().try_into().unwrap_or(u32::MAX)
}

/// A socket, to hear at and to tell with.
fn bind(path: &Path) -> io::Result<(UnixDatagram, Socket)> {
    let tells = Socket::bind(path)?;
    tells.set_nonblocking(true)?;
    Ok((UnixDatagram::from_std(tells.try_clone()?)?, tells))
}

/// The name of a member's socket.
fn file_name(member: u64) -> String {
    format!("{member:016x}")
}

/// Who has a socket in a directory.
fn members(directory: &Path) -> io::Result<BTreeSet<u64>> {
    let mut members = BTreeSet::new();
    for entry in std::fs::read_dir(directory)?.take(MOST_FILES) {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| u64::from_str_radix(name, 16).ok());
        members.extend(number.filter(|number| name.to_str() == Some(&file_name(*number))));
    }
    Ok(members)
}

#[cfg(test)]
mod tests;
