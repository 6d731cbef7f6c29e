//! Virtual packet substitution: flows of one sender share what as many standard flows would get, by weights
//! (K. H. Lau, J. Y. B. Lee, "Sender-driven bandwidth differentiation for transmitting multimedia flows over
//! TCP", MMCN 2006; its sections are cited).
//!
//! Each member of a group brings a *virtual flow* that runs a standard controller. Virtual flows send
//! nothing: whatever their windows allow is credit of the group, and each credit goes to the member whose
//! weight is owed most (3.2). What a member sends is written down as sent by a virtual flow (a packet
//! substitution record, 3.3); when it is acknowledged, cumulatively or by a SACK block, or lost, that virtual
//! flow is told. So the group as a whole is as fair to others as its virtual flows are, whatever the weights
//! inside.
//!
//! Events go in, small decisions come out: a driver says what a member [wants](Group::want), has
//! [sent](Group::on_sent), what was [acknowledged](Group::on_ack) and [lost](Group::on_loss), and
//! [`Group::allocate`] answers which members may send how much now. Finding losses and sending again is the
//! driver's business. Nothing here knows a socket or a clock: the same group serves simulated TCP, a QUIC
//! server (whose acknowledgements name no packet: [`SentTimes`]) and a kernel's user space.
//!
//! Beyond the paper:
//! - A member gets only what it can use: no data, or a small receive window, leave the credit to the others;
//!   who comes back is owed nothing and owes nothing. The paper leaves this to future work.
//! - A virtual flow that its member uses little of counts for little (`flow_use.rs`); what a member needs
//!   itself it may always have of its own flow, and while it counts for less than all, that one stands for
//!   what it sends.
//! - A member whose timer ran out probes with one segment until it is heard of, so that a dead receiver does
//!   not drain the group.
//! - Members behind different bottlenecks must not share credit. The group watches the queueing delay of its
//!   members ([`bottleneck`]), and parts those whose delays move apart into *pools* of their own, and joins
//!   pools whose delays move together.
//! - A virtual flow loses when a packet that stands for one of its own was lost, once a window, as its
//!   controller's contract has it. It times out when a member's timer takes everything it had in flight. It
//!   has no timer of its own. A time-out is the event of one receiver, so it reduces as many flows as have
//!   windows for what was lost, and not all of which a packet was among it.

pub mod bottleneck;
mod company;
mod credit;
mod delays;
mod flight;
mod group;
mod heard;
mod likeness;
mod look;
mod member;
mod names;
mod order;
mod parting;
mod pool;
mod records;
mod seats;
mod sent_times;
pub mod settings;
#[cfg(test)]
mod tests;
mod virtual_flow;
mod weight;

pub use credit::Grant;
pub use group::Group;
pub use heard::Heard;
pub use names::{MemberId, Place};
pub use parting::Regrouped;
pub use sent_times::SentTimes;
pub use weight::{Served, Weight};
