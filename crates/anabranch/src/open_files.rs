//! The limit of open files: programs that serve need more than the usual one, and the players that they start
//! the usual one.

use std::sync::OnceLock;

use anabranch_server::raise_descriptor_limit;
use rustix::process::{Resource, getrlimit};

/// The limit that this program was started with, once it was raised; `None` in it: there was none.
static BEFORE: OnceLock<Option<u64>> = OnceLock::new();

/// Raises the limit as far as it may be, and tells it; `None` where there is none.
pub fn raise_limit() -> Option<u64> {
    BEFORE.get_or_init(|| getrlimit(Resource::Nofile).current);
    raise_descriptor_limit()
}

/// The limit that this program was started with, where it has raised it.
pub fn limit_before() -> Option<u64> {
    BEFORE.get().copied().flatten()
}
