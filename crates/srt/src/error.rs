//! What does not work.

use std::net::SocketAddr;

/// Why there is no SRT, or no peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The library is not there, or cannot be used.
    #[error(
        "SRT needs libsrt 1.5, which this machine does not have (on Debian: apt install libsrt1.5-openssl); \
         {0}"
    )]
    NoLibrary(String),
    /// Nobody can be let in there.
    #[error("cannot listen at srt://{0}: {1}")]
    Listen(SocketAddr, String),
    /// The host has no address.
    #[error("cannot find {0}: {1}")]
    NoHost(String, String),
    /// Who was called does not let us in.
    #[error("{0} does not let us in: {1}")]
    Rejected(String, String),
    /// Nothing answers there.
    #[error("nothing answers at {0}")]
    Nobody(String),
    /// An option or a call that the library refused.
    #[error("{0}: {1}")]
    Call(&'static str, String),
    /// The connection is no more.
    #[error("the connection is gone")]
    Gone,
}
