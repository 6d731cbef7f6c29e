//! What a sender may send: windows, rates, several connections in place of one, and groups.
//!
//! Events go in, small decisions come out. There are no sockets here, no clock and no randomness: a driver
//! says what happened and when, and the same code runs in the simulator, under QUIC, and beside the kernel's
//! BPF programs, which are held against it.
//!
//! - [`control`]: the contract of a window controller; [`multcp`], which is Reno with one flow, [`cubic`],
//!   [`tfwc`], [`bbr`] and [`dctcp`] keep it. [`algorithm`] has their names, [`trace`] a record of what one was
//!   told and answered.
//! - [`delivery_rate`]: what a path delivers, by what each acknowledgement says; what a paced controller goes
//!   by.
//! - [`tfrc`]: a rate instead of a window, both ends; [`loss_history`] is its estimate of the loss event
//!   rate.
//! - [`vps`]: a group of flows that share by weights what as many standard flows would get.
//! - [`joint`]: the same where only windows can be told, as in a kernel.
//! - [`shares`]: live senders that share what their rate controls allow them together.
//! - [`clients`]: what a client's connections count for in a group.
//! - `flow_use`: how much of its own virtual flow a member of a group uses.
//! - [`turns`]: which of the answers on one connection goes next.
//! - [`multfrc`]: how many connections a stream over a lossy link gets; [`aggregate`]: the same with one
//!   connection in place of them (AIO-TFRC).
//! - [`response`]: what a window, a loss rate and a number of flows give on a path.
//!
//! What is not here: finding losses, sending again, retransmission timers and departure times are the
//! driver's; how a *receiver* of a film chooses its connections and windows is `anabranch-film`.
//!
//! Begin with a controller by its name:
//!
//! ```
//! use anabranch_congestion::algorithm::Algorithm;
//! use anabranch_congestion::control::{Ack, Loss, Start};
//! use anabranch_units::{Bytes, Duration, Time};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let start = Start {
//!     segment: Bytes::new(1000),
//!     initial_window: Bytes::new(10_000),
//!     initial_ssthresh: None,
//!     seed: 0,
//! };
//! let mut controller = "ttfwc:0.9".parse::<Algorithm>()?.controller(&start);
//! assert_eq!(controller.cwnd(), Bytes::new(10_000));
//!
//! // In slow start the window grows by what is acknowledged.
//! let (rtt, begin) = (Duration::from_millis(100), Time::ZERO);
//! controller.on_ack(&Ack {
//!     now: begin + rtt,
//!     acked: Bytes::new(1000),
//!     flight: Bytes::new(10_000),
//!     rtt: Some(rtt),
//!     srtt: rtt,
//!     is_cwnd_limited: true,
//! });
//! assert_eq!(controller.cwnd(), Bytes::new(11_000));
//!
//! // The first loss event halves it.
//! controller.on_loss(&Loss { now: begin + rtt * 2, flight: Bytes::new(11_000) });
//! assert_eq!(controller.cwnd(), Bytes::new(5500));
//! # Ok(())
//! # }
//! ```

pub mod aggregate;
pub mod algorithm;
pub mod bbr;
pub mod clients;
pub mod control;
pub mod cubic;
pub mod dctcp;
pub mod delivery_rate;
mod flow_use;
pub mod joint;
pub mod loss_history;
pub mod multcp;
pub mod multfrc;
pub mod need;
pub mod response;
pub mod shares;
pub mod tfrc;
pub mod tfwc;
pub mod trace;
pub mod turns;
pub mod vps;
