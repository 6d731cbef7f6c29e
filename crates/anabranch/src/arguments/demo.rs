//! `anabranch demo`.

use clap::Args;

/// Options of `anabranch demo`: there is nothing to prepare, so there are none.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct DemoArguments {}
