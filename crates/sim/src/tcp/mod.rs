//! TCP, one direction of data: a sender and a receiver. A connection that carries data both ways is two of them.

mod ns2;
mod receiver;
mod rto;
mod scoreboard;
mod sender;
mod share;

pub(crate) use receiver::{Answer, NO_LIMIT, Receiver};
pub(crate) use sender::{Acknowledgement, Event, Segment, Sender};
pub(crate) use share::Note;
