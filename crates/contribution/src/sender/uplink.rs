//! A way out of this machine, and its socket. An interface can come later than the program, go, and come
//! again with another address: a socket is bound to one that was there when it was made, so a new one takes
//! its place when nothing comes through it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_quic::client_socket;
use anabranch_sockets::{Interface, SocketError};
use quinn::{Endpoint, EndpointConfig};

use super::super::socket::Quiet;
use super::events::SendError;

/// An interface, or what the system chooses.
#[derive(Debug)]
pub(super) struct Uplink {
    to: SocketAddr,
    interface: Option<Interface>,
    endpoint: Mutex<Option<Endpoint>>,
}

impl Uplink {
    pub(super) fn new(to: SocketAddr, interface: Option<Interface>) -> Self {
        Self { to, interface, endpoint: Mutex::new(None) }
    }

    /// The interface, if one was given.
    pub(super) fn name(&self) -> Option<String> {
        self.interface.as_ref().map(ToString::to_string)
    }

    /// Whether a socket can be had.
    ///
    /// # Errors
    /// None can.
    pub(super) fn check(&self) -> Result<(), SendError> {
        client_socket(self.to, self.interface.as_ref()).map(drop).map_err(failure)
    }

    /// For a new connection: with a new socket, unless others have theirs on it.
    ///
    /// # Errors
    /// There is no socket, as when the interface is not there.
    pub(super) fn endpoint(&self) -> Result<Endpoint, SendError> {
        match self.current() {
            Some(endpoint) if endpoint.open_connections() > 0 => Ok(endpoint),
            Some(endpoint) => self.renew().map(|()| endpoint),
            None => {
                let socket = client_socket(self.to, self.interface.as_ref()).map_err(failure)?;
                let made = Endpoint::new(EndpointConfig::default(), None, socket.into(), Arc::new(Quiet))
                    .map_err(|error| failure(SocketError::Socket(error)))?;
                let mut place = self.endpoint.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(place.get_or_insert(made).clone())
            }
        }
    }

    /// All connections go on with a new socket (RFC 9000, section 9).
    ///
    /// # Errors
    /// There is none; the old one stays.
    pub(super) fn renew(&self) -> Result<(), SendError> {
        let socket = client_socket(self.to, self.interface.as_ref()).map_err(failure)?;
        let endpoint = self.current();
        endpoint
            .map_or(Ok(()), |endpoint| endpoint.rebind(socket.into()))
            .map_err(|error| failure(SocketError::Socket(error)))
    }

    /// The endpoint, if it was needed.
    pub(super) fn current(&self) -> Option<Endpoint> {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn failure(error: SocketError) -> SendError {
    match error {
        SocketError::Interface(error) => SendError::Interface(error.to_string()),
        SocketError::Socket(error) => SendError::Socket(error.to_string()),
    }
}
