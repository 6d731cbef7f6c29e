//! The client side of HTTP/1.1 and HTTP/3 (RFC 9110, RFC 9112, RFC 9114): a connection with several requests
//! in flight.
//!
//! Two requests in flight spare the round trip that is idle between two ranges; hyper's client cannot do
//! that, so the framing is read here, with httparse for the heads. The parts, from the outside in:
//! [`probe()`] finds out what a URL leads to, [`Connection`] does the I/O, and a decoder without I/O takes
//! the responses apart. [`ResponseHead::parse`], [`ContentRange`], [`EntityTag`] and [`ChunkedDecoder`] are
//! the parsers; they take any bytes without a panic and with bounded memory.
//!
//! Which bytes are asked for, and over how many connections, is not decided here but in `anabranch-film`,
//! which `anabranch-client` drives over these connections.
//!
//! ```no_run
//! # async fn ask() -> Result<(), Box<dyn std::error::Error>> {
//! use anabranch_http::{ConnectOptions, ExtraHeaders, probe};
//!
//! let url = "https://a.example/film.mp4".parse()?;
//! let found = probe(&url, &ExtraHeaders::default(), &ConnectOptions::default()).await?;
//! println!("{:?} bytes, ranges: {}", found.size, found.accepts_ranges);
//! # Ok(())
//! # }
//! ```

mod chunked;
mod connect;
mod connection;
mod cookies;
mod decoder;
mod error;
mod exchange;
mod fields;
mod head;
mod http3;
mod pool;
mod probe;
mod proxy;
mod request;
mod socket;
mod status;
mod stream;
mod target;
pub mod tcp;
mod version;
mod wire;

pub use chunked::ChunkedDecoder;
pub use connect::{ConnectOptions, FIRST_BYTES};
pub use connection::Connection;
pub use cookies::CookieJar;
pub use decoder::Received;
pub use error::{ConnectError, Error, Malformed};
pub use fields::{ContentRange, EntityTag};
pub use head::{LONGEST_HEAD, RangeError, ResponseHead};
pub use pool::Pool;
pub use probe::{MOST_REDIRECTS, Probe, ProbeError, probe, probe_head};
pub use proxy::Proxies;
pub use request::{ExtraHeaders, HeaderError, Method, RequestHead};
pub use status::status_in_words;
pub use stream::Stream;
pub use target::{Origin, Target, TargetError, shown};
pub use version::Version;
