//! The network at work: packets over links to the ends of TCP connections and of TFRC flows, to those of
//! live streams, and to receivers of datagrams.
//!
//! `state` has what there is; each of the other files what happens to a part of it.

mod connections;
mod datagrams;
mod groups;
mod joint;
mod live;
mod segments;
mod servers;
mod state;
mod step;
mod tfrc;
mod tfrc_flows;
mod travel;

pub(crate) use state::{Datagrams, HalfId, LiveBody, LiveDatagram, LiveWay, Network, Role, TfrcFlow, Upcall};
