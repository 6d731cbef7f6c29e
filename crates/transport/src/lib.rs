//! The only room with sockets and the real clock.
//!
//! - [`http`]: an HTTP/1.1 client connection with two requests in flight, over TCP or TLS, on a chosen interface.
//! - [`live`]: `anabranch send` and `anabranch receive`: live media over QUIC datagrams.
//! - [`tcp`]: receive windows and path figures of a TCP socket.
//! - [`tls`]: certificates and roots.
//! - [`server`]: `anabranch serve`.
//! - [`media`]: the rate that a film needs, read from the film itself.
//! - [`engine`]: drives a receiver session of [`anabranch_film`] over real connections.

pub mod engine;
pub mod http;
mod listen;
pub mod live;
pub mod media;
mod quic;
pub mod server;
pub mod tcp;
pub mod tls;

pub use listen::ListenError;
