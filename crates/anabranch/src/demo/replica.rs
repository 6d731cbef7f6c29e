//! The demonstration's servers: each a whole HTTP server of this program, on a path made slow in user space.

use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anabranch_server::{Config, Server, Shape};
use anabranch_units::Rate;
use tokio::task::JoinHandle;
use url::Url;

use crate::failure::Failure;

/// The film's name on the servers.
pub(super) const NAME: &str = "film.mp4";

/// How long a request takes to the server and back: that of a server in another country.
const DELAY: std::time::Duration = std::time::Duration::from_millis(40);

/// A server of the film that gives no more than its rate, to all connections together.
pub(super) struct Replica {
    url: Url,
    serving: JoinHandle<()>,
}

impl Replica {
    /// Serves `directory`.
    ///
    /// # Errors
    /// The system has no port for it.
    pub(super) fn start(directory: &Path, rate: Rate) -> Result<Self, Failure> {
        let config = Config {
            shape: Some(Shape { rate: Some(rate), first_byte_delay: DELAY }),
            ..Config::new(directory, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
        };
        let server = Server::bind(config).map_err(Failure::failed)?;
        let address = server.local_addr().map_err(Failure::failed)?;
        let url = Url::parse(&format!("http://{address}/{NAME}")).map_err(Failure::failed)?;
        Ok(Self { url, serving: tokio::spawn(server.run(pending())) })
    }

    /// Where it has the film.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Ends the server in the middle of whatever it does: its connections break, and new ones are refused.
    pub(super) fn kill(&self) {
        self.serving.abort();
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.kill();
    }
}
