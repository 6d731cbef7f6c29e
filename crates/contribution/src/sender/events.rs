//! What a sender tells whoever has started it.

use std::net::SocketAddr;

/// Why a sender ends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// There is no socket for it.
    #[error("cannot open a UDP socket: {0}")]
    Socket(String),
    /// A network interface cannot be used.
    #[error("{0}")]
    Interface(String),
    /// The TLS configuration cannot be made.
    #[error("{0}")]
    Tls(String),
    /// It cannot share with the senders of a group.
    #[error("cannot share with the group '{0}': {1}")]
    Group(String, String),
    /// No connection was made for long.
    #[error("no receiver answers at {0}: is 'anabranch receive' running there, and does UDP get through?")]
    NoReceiver(SocketAddr),
    /// It does not let us in.
    #[error("the receiver refuses: {0}")]
    Refused(String),
    /// It has no place for us at the moment.
    #[error("the receiver refuses: {0}")]
    Busy(String),
    /// It is not the one that was asked for.
    #[error(
        "the receiver at {0} is not trusted: {1}; give its --fingerprint, or its authority with --cacert"
    )]
    NotTrusted(SocketAddr, String),
}

/// Something that a person should know. `link` is the interface, where one was given.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SenderEvent {
    /// There is a connection.
    Connected {
        /// By which link.
        link: Option<String>,
    },
    /// The last connection of a link was lost.
    Lost {
        /// Of which link.
        link: Option<String>,
        /// Why.
        why: String,
    },
    /// No connection can be made at the moment.
    Waits {
        /// By which link.
        link: Option<String>,
        /// Why.
        why: SendError,
    },
}
