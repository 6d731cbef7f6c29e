//! A deterministic packet-level network simulator: the same seed gives the same bytes of output on every
//! machine.
//!
//! Links queue, delay and lose packets; TCP's two ends, TFRC and datagrams send them; the sessions of a
//! film run unchanged over simulated TCP, and both ends of a live stream over datagrams, as the window controllers and groups of `anabranch-congestion` do.
//!
//! - [`model`]: what is simulated, as plain data.
//! - [`Simulation`]: a run of a model.
//! - [`report`]: what a simulation tells, while it runs and at its end.
//! - [`scenario`]: a model as a TOML file (`docs/scenario.md`).
//! - [`output`]: files of what a simulation tells.
//!
//! What is not here: the algorithms themselves, published experiments and their verdicts (`anabranch-lab`),
//! and real programs over emulated paths (`anabranch-testbed`). Payload has lengths and no content.
//!
//! Begin with a scenario, or build a [`model::Model`]:
//!
//! ```
//! use anabranch_sim::{Simulation, scenario};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = r#"
//!     run.duration = "10s"
//!     topology = { kind = "dumbbell", pairs = 1, bottleneck = { rate = "8Mbps", delay = "20ms", queue = "50 packets" } }
//!
//!     [[flow]]
//!     name = "download"
//!     kind = "tcp"
//!     from = "sender1"
//!     to = "receiver1"
//! "#;
//! let model = scenario::parse("example.toml", text, None, &mut scenario::Beside(".".as_ref()))?;
//! let mut simulation = Simulation::new(model)?;
//! simulation.run_until(simulation.end(), &mut ());
//!
//! // One flow fills the bottleneck: at most 10 MB in 10 s.
//! let delivered = simulation.totals().flows[0].delivered.get();
//! assert!((8_000_000..10_000_000).contains(&delivered), "{delivered}");
//! # Ok(())
//! # }
//! ```

mod check;
mod counted;
mod ecn;
mod link;
mod live;
mod media;
mod network;
pub mod output;
mod packet;
mod queue;
pub mod report;
mod route;
pub mod scenario;
mod simulation;
mod tcp;

pub use anabranch_scenario::model;
pub use check::{ModelError, Place};
pub use route::bottleneck;
pub use simulation::Simulation;
