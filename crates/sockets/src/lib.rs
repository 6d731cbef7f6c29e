//! What clients and servers share on this side of a socket.
//!
//! - [`client_of`]: whose an address is.
//! - [`Interface`]: a way out of this machine that a socket is bound to.
//! - [`ListenError`]: why an address cannot be listened at, in the same words everywhere.
//! - [`tls`]: which servers a client trusts, and how a server shows who it is.
//!
//! What is said over a socket is not here: HTTP's client side is `anabranch-http`, its server
//! `anabranch-server`, live media `anabranch-contribution`.
//!
//! ```
//! use anabranch_sockets::Interface;
//!
//! let interface: Interface = "wlan0".parse()?;
//! assert_eq!(interface.to_string(), "wlan0");
//! # Ok::<(), anabranch_sockets::InterfaceError>(())
//! ```

mod client;
mod interface;
mod listen;
pub mod tls;

use std::io;

pub use client::client_of;
pub use interface::{Interface, InterfaceError};
pub use listen::ListenError;

/// A socket could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The network interface that was asked for cannot be used.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The system refused something that a socket needs.
    #[error("cannot prepare a socket: {0}")]
    Socket(#[source] io::Error),
}
