//! What a sender may send.
//!
//! This crate has no I/O, no clock and no entropy.
//!
//! - [`control`]: the contract of a window controller; [`multcp`], which is Reno with one flow, [`cubic`] and [`tfwc`] keep it.
//!   [`algorithm`] has their names, [`trace`] a record of what one was told and answered.
//! - [`tfrc`]: a rate instead of a window, both ends; [`loss_history`] is its estimate of the loss event rate.
//! - [`vps`]: a group of flows that share by weights what as many standard flows would get.
//! - [`joint`]: the same where only windows can be told, as in a kernel.
//! - `flow_use`: how much of its own virtual flow a member of a group uses.
//! - [`turns`]: which of the answers on one connection goes next.
//! - [`multfrc`]: how many connections a stream over a lossy link gets; [`aggregate`]: the same with one connection in place
//!   of them (AIO-TFRC).
//! - [`response`]: what a window, a loss rate and a number of flows give on a path.

pub mod aggregate;
pub mod algorithm;
pub mod control;
pub mod cubic;
mod flow_use;
pub mod joint;
pub mod loss_history;
pub mod multcp;
pub mod multfrc;
pub mod response;
pub mod tfrc;
pub mod tfwc;
pub mod trace;
pub mod turns;
pub mod vps;
