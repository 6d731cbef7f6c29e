//! What the tests of several crates share. Nothing of it is in the program.
//!
//! - [`skipped`]: a test cannot run here, and says why.
//! - [`ScriptedServer`]: a server that answers what a test says, right or wrong, in steps ([`Answer`]).
//! - [`film`]: bytes in which one at a wrong place shows.
//! - [`Events`], the clock of a virtual world, and [`Random`], what is left to chance in it.
//! - [`Namespaces`]: a script in namespaces of its own, which are gone with it; [`Network`]: one for several
//!   programs.
//!
//! ```
//! use anabranch_testkit::Namespaces;
//!
//! let network = Namespaces::network("ip link set lo up");
//! if let Some(output) = network.run(|script| script.arg("ip link set lo up; ip address show lo")) {
//!     assert!(String::from_utf8_lossy(&output.stdout).contains("127.0.0.1"));
//! }
//! ```

mod events;
mod namespaces;
mod random;
mod scripted;

pub use events::Events;
pub use namespaces::{Namespaces, Network};
pub use random::Random;
pub use scripted::{Answer, Asked, ScriptedServer, part, status, whole};

use std::fmt::Display;
use std::io::{self, Write};

/// Tells that a test cannot run on this machine, and why, past what the harness keeps to itself of a test
/// that passes.
pub fn skipped(why: impl Display) {
    // Where there is no place to tell it nobody looks.
    let _ = io::stderr().write_all(format!("SKIPPED: {why}\n").as_bytes());
}

/// A film of so many bytes, different at every position, so that a byte at a wrong place shows.
pub fn film(size: usize) -> Vec<u8> {
    // The highest byte of a multiple of the golden ratio (Knuth, The Art of Computer Programming, 6.4).
    let mut state = 0u64;
    std::iter::repeat_with(|| {
        let [first, ..] = state.to_be_bytes();
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        first
    })
    .take(size)
    .collect()
}
