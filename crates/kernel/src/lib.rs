//! Anabranch's congestion controls for the kernel's own TCP: TFWC, TTFWC, MulTCP and a weighted group as BPF
//! programs that any program can then choose.
//!
//! - [`Setting`]: which control, with its parameters.
//! - [`load`], [`change`], [`unload`], [`list`], [`flows`], [`groups`]: what `anabranch cc` does.
//! - [`Rules`], [`load_for`], [`set_rules`], [`rules`](rules()): the weights of the group.
//! - [`Given`]: weights that a program gives its own connections in place of those.
//! - [`replay`]: the same BPF code on a trace of events, to hold it against `congestion`.
//!
//! What is not here: the algorithms in Rust, which are `anabranch-congestion`, and the command line, which is
//! `anabranch cc` (`docs/kernel.md`).
//!
//! The programs are C (`bpf/`), compiled ahead: `make bpf` makes `bpf/control.bpf.o`, which is part of this
//! crate, so that nobody who uses it needs a compiler. libbpf loads it (aya cannot load controls), and finds
//! out about the running kernel's types there.
//!
//! Begin with a control for a program that knows nothing of it. Loading wants root, and Linux 6.4 or later
//! with BTF:
//!
//! ```no_run
//! use anabranch_kernel::{Error, Setting, Tuning, list, load, unload};
//!
//! # fn main() -> Result<(), Error> {
//! let setting = Setting::Ttfwc(Tuning::FASTEST);
//! load(setting)?;
//! // From now on any program may choose it for a connection: TCP_CONGESTION, "ttfwc".
//! for loaded in list()? {
//!     println!("{}: {} connections", loaded.setting, loaded.flows);
//! }
//! unload(setting.name())?;
//! # Ok(())
//! # }
//! ```

mod choosers;
mod error;
mod given;
mod in_use;
mod loaded;
mod machine;
mod object;
mod pins;
pub mod replay;
mod rules;
mod setting;
mod status;
mod weights;

pub use anabranch_congestion::tfwc::Tuning;
pub use anabranch_congestion::vps::Weight;
pub use choosers::Choosers;
pub use error::Error;
pub use given::{Given, GroupNumber};
pub use loaded::{Loaded, change, list, load, load_for, unload};
pub use pins::DIRECTORY;
pub use rules::{rules, set_rules};
pub use setting::{NAMES, Setting};
pub use status::{FlowStatus, GroupStatus, flows, groups};
pub use weights::{GroupName, MOST_GROUPS, MOST_RULES, Rules, RulesError};
