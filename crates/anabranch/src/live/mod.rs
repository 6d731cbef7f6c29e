//! `anabranch send` and `anabranch receive`.

mod bursts;
mod datagrams;
mod hls;
mod identity;
mod input;
mod output;
mod rate;
mod receive;
mod recording;
mod report;
mod send;
#[cfg(feature = "srt")]
mod srt;
mod token;

use crate::arguments::{ReceiveArguments, SendArguments};
use crate::failure::Failure;
use crate::output::Output;

/// Whether the program can end as every other does.
#[cfg(feature = "srt")]
pub fn has_ended() -> bool {
    srt::has_ended()
}

/// Sends until the input ends, or a signal comes.
///
/// # Errors
/// There is no receiver or it refuses, the input cannot be read, or a signal ends it.
pub async fn send(arguments: SendArguments, output: &Output) -> Result<(), Failure> {
    let ended = send::run(arguments, output).await;
    #[cfg(feature = "srt")]
    srt::end().await;
    ended
}

/// Receives until the stream has ended, or with `--keep` until a signal comes.
///
/// # Errors
/// The address cannot be listened at, the output not be written, or a signal ends it.
pub async fn receive(arguments: ReceiveArguments, output: &Output) -> Result<(), Failure> {
    let ended = receive::run(arguments, output).await;
    #[cfg(feature = "srt")]
    srt::end().await;
    ended
}
