//! SRT (Secure Reliable Transport) at either end: a peer is called, or let in, and a stream taken from it or given
//! to it.
//!
//! The protocol is libsrt's, which is opened when it is needed: a build needs nothing of it, and a machine
//! without it is told what to install ([`Error::NoLibrary`]).
//!
//! - [`Address`]: a URL as srt-live-transmit and ffmpeg write it, `srt://host:9000?streamid=camera`.
//! - [`Peers`]: calls again whoever is gone, or lets in who comes.
//! - [`Peer`]: the stream of one.
//! - [`end`]: before a program ends, and [`leave`] where that fails.
//!
//! ```
//! use anabranch_srt::{Address, Mode};
//!
//! let address: Address = "srt://:9000?mode=listener&latency=200".parse()?;
//! assert_eq!((address.mode(), address.to_string().as_str()), (Mode::Listener, "srt://0.0.0.0:9000"));
//! # Ok::<(), String>(())
//! ```

mod address;
mod door;
mod error;
mod library;
mod peer;
mod peers;
mod socket;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

pub use address::{Address, Mode};
pub use error::Error;
pub use peer::{MOST_MESSAGE, Peer};
pub use peers::{Event, Peers, Refusal};

/// How long [`end`] waits.
const LONGEST_END: Duration = Duration::from_secs(1);

/// Closes all that is open, so that peers hear of it, and lets go of the library: to be called before the program
/// ends, as the library's own end must not meet a thread that is in it. Takes a tenth of a second; where the
/// library hangs it answers after a second that it has not ended, and then only [`leave`] ends the program.
#[must_use]
pub fn end() -> bool {
    let (told, ended) = mpsc::channel();
    let ending = move || {
        library::end();
        let _ = told.send(());
    };
    // Without a thread for it the library stays as it is.
    let has_begun = thread::Builder::new().name("srt-end".into()).spawn(ending).is_ok();
    has_begun && ended.recv_timeout(LONGEST_END).is_ok()
}

/// Ends the program at once, with this exit code. An ordinary end waits for the library, also for one that hangs.
pub fn leave(code: u8) -> ! {
    library::leave(code)
}
