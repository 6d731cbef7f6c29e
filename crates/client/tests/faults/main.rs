//! Servers that misbehave, and what the engine makes of them: right bytes or a clear error, in bounded time.
//!
//! Every server here runs a script on loopback. The cases run beside each other in one process.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod answers;
mod bodies;
mod changes;
mod ends;
mod nothing_new;
mod opening;
mod rangeless;
mod readers;
mod replicas;
mod segments;
mod viewer;
