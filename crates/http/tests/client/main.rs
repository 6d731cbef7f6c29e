//! The HTTP client against servers that do what they should, and against servers that do not.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, which clippy does not take for tests, fail by panic too"
)]

mod connecting;
mod exchanging;
mod http3;
mod probing;
mod proxies;
mod securing;
mod server;
mod windows;
