//! TCP, one direction of data: a sender and a receiver. A connection that carries data both ways is two of
//! them.
//!
//! A [`Sender`] keeps the books of its flow (`flow`), has its window from a controller or a group (`window`,
//! `grants`), paces it where the controller answers a rate (`paced`, and `doubts` of what it took for lost),
//! hears of marks (`marks`, from the receiver's `echo`), and asks the rules of its loss recovery (`recovery`)
//! what to send: those of the RFCs (`sack`) or ns-2's (`ns2`), chosen when it begins (`rules`).

mod doubts;
mod echo;
mod flow;
mod grants;
mod marks;
mod ns2;
mod paced;
mod receiver;
mod recovery;
mod rto;
mod rules;
mod sack;
mod scoreboard;
mod sender;
mod window;

pub(crate) use flow::Acknowledgement;
pub(crate) use grants::Note;
pub(crate) use receiver::{Answer, NO_LIMIT, Receiver};
pub(crate) use recovery::Event;
pub(crate) use sender::{Segment, Sender};
pub(crate) use window::start;
