//! What starts a player; no command for users.

use std::ffi::OsString;

use clap::Args;

/// A player that ends with the program that starts it, however that ends.
#[derive(Args, Debug)]
pub struct PlayerArguments {
    /// The process that starts it
    pub parent: i32,
    /// The limit of open files that it gets
    #[arg(long)]
    pub open_files: Option<u64>,
    /// The player with its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}
