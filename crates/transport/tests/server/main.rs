//! `anabranch serve` as its clients see it, over real sockets on loopback.

mod client;
mod files;
mod limits;
mod stripe;
