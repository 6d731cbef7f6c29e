//! Real programs in network namespaces over emulated paths.
//!
//! A [`scenario::Scenario`] names paths (rate, round-trip time, queue, loss and more), the servers at their
//! far ends, the clients that can be measured, cross traffic and a timetable. [`isolate::run`] carries one
//! client through it and answers with a [`report::Summary`]; [`compare`] does so for several clients and
//! makes a table.
//!
//! # How it is built
//! A run is a process of its own in new network, mount and process-id namespaces ([`isolate`]). In there, a
//! namespace for the client and one for each server are joined by virtual Ethernet pairs ([`topology`]),
//! whose inner ends `rattan-core` carries packets between ([`emulator`]). Everything that a run makes belongs
//! to those namespaces: when the run ends, is interrupted or killed, the kernel takes back all of it, so
//! there is nothing left to clean.

pub mod compare;
pub mod emulator;
mod error;
pub mod film;
mod inside;
pub mod isolate;
pub mod live;
mod meter;
mod observe;
mod ping;
mod programs;
mod progress;
pub mod relay;
pub mod report;
pub mod scenario;
mod timetable;
pub mod topology;

pub use error::Error;
