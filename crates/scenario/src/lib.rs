//! The language of networks and flows: TOML with quantities as people write them. The format is in
//! `docs/scenario.md`.
//!
//! Two worlds run what is described: the simulator (`anabranch-sim`), and real programs over emulated paths
//! (`anabranch-testbed`). Each reads the same tables with [`read`], adds tables of its own, and refuses what
//! it cannot do.
//!
//! - [`model`]: what is described, as plain data: nodes, links, flows and how long.
//! - [`read`]: `[run]`, `[topology]`, `[[node]]`, `[[link]]`, `[tcp.NAME]` and `[[flow]]` of a document
//!   become a model.
//! - [`read_document`]: any TOML document, whose [`Table`]s and [`Item`]s know their place; everything that
//!   is wrong is told at once, with its place and with what would be right ([`Error`]).
//! - [`Files`]: where the traces come from that a scenario names.
//! - [`Described`]: a model, and the tables that it is from ([`SourceTable`]), so that a world can say where it is
//!   asked for what it cannot do.
//! - [`random`]: the numbers that a seed stands for.
//!
//! What is not here: what becomes of a packet. Nor is anything told here that only one of the worlds has,
//! such as the commands of programs.
//!
//! Begin with a document:
//!
//! ```
//! use anabranch_scenario::{Beside, read, read_document};
//!
//! let text = r#"
//!     run.duration = "10s"
//!     topology = { kind = "dumbbell", pairs = 1, bottleneck = { rate = "8Mbps", delay = "20ms" } }
//! "#;
//! let model = |text: &str| {
//!     read_document("example.toml", text, "a scenario", |mut document| {
//!         let described = read(&mut document, None, &mut Beside(".".as_ref()));
//!         document.finish()?;
//!         Ok(described?.model)
//!     })
//! };
//! assert_eq!(model(text).unwrap().nodes.len(), 4);
//!
//! let error = model(&text.replace("delay", "dealy")).unwrap_err();
//! assert!(error.to_string().contains("did you mean `delay`?"), "{error}");
//! ```

mod algorithm;
mod content;
mod described;
mod error;
mod files;
mod flow;
mod ladder;
mod link;
mod live;
mod media;
pub mod model;
mod names;
mod network;
mod queue;
pub mod random;
mod run;
mod server;
mod source_table;
mod table;
mod tcp;
mod tfrc;
mod topology;
mod trace;
mod values;
mod wire;

pub use described::{Described, read};
pub use error::{Error, Fault, Faults, Mistakes, Span, Wrong};
pub use files::{Beside, Files, LARGEST_FILE, read_text};
pub use media::playback;
pub use source_table::SourceTable;
pub use table::{Item, Table, read_document};
pub use tfrc::MOST_CONNECTIONS;
