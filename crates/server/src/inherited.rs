//! Sockets that were listened at before the program began: systemd's (`sd_listen_fds(3)`), or those of a run
//! that hands over.

use std::io;
use std::net::{SocketAddr, TcpListener};

use listenfd::ListenFd;
use tokio::net::TcpSocket;

/// Pending connections that the system keeps for a listener, where it keeps so many: who comes when there are
/// more waits a second.
const BACKLOG: u32 = 4096;

/// Sockets of TCP that are listened at already.
#[derive(Debug, Default)]
pub struct Inherited(Vec<TcpListener>);

impl Inherited {
    /// Those that `LISTEN_FDS` tells of.
    ///
    /// # Errors
    /// It tells of something else than sockets of TCP.
    pub fn from_environment() -> io::Result<Self> {
        let mut handed = ListenFd::from_env();
        let sockets: Vec<_> =
            (0..handed.len()).map(|index| handed.take_tcp_listener(index)).collect::<io::Result<_>>()?;
        Ok(Self(sockets.into_iter().flatten().collect()))
    }

    /// Listens for connections of TCP at one of these, or else at a new socket, within a tokio runtime. For
    /// port 0 one at any port of the address will do.
    ///
    /// # Errors
    /// The system refuses.
    pub fn listen(&mut self, address: SocketAddr) -> io::Result<tokio::net::TcpListener> {
        let fits = |at: SocketAddr| at == address || (address.port() == 0 && at.ip() == address.ip());
        match self.0.iter().position(|socket| socket.local_addr().is_ok_and(fits)) {
            Some(index) => {
                let socket = self.0.remove(index);
                socket.set_nonblocking(true)?;
                tokio::net::TcpListener::from_std(socket)
            }
            None => listen(address),
        }
    }

    /// Where those are that nobody listened at.
    pub fn left(&self) -> Vec<SocketAddr> {
        self.0.iter().filter_map(|socket| socket.local_addr().ok()).collect()
    }
}

/// Listens for connections of TCP, within a tokio runtime.
///
/// # Errors
/// The system refuses.
pub fn listen(address: SocketAddr) -> io::Result<tokio::net::TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart need not wait until the last connections of the run before are forgotten.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_found_by_its_address_and_others_are_new() {
        let old = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = old.local_addr().unwrap();
        let mut inherited = Inherited(vec![old]);
        let other = inherited.listen("127.0.0.2:0".parse().unwrap()).unwrap();
        assert_eq!(inherited.left(), [address]);
        let same = inherited.listen(address).unwrap();
        assert_eq!(same.local_addr().unwrap(), address);
        assert_ne!(other.local_addr().unwrap().ip(), address.ip());
        assert!(inherited.left().is_empty());
    }
}
