//! SIGINT and SIGTERM: the first asks the program to end in order, the second ends it at once.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// A signal that ends the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT, Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Signal {
    /// 128 and the signal's number, as shells have it.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// Tells when the program is to end. Clones tell the same.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<Option<Signal>>);

impl Stop {
    /// Listens for the signals from now on, within a tokio runtime.
    ///
    /// # Errors
    /// The system does not let us.
    pub fn listen() -> io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let (sender, receiver) = watch::channel(None);
        tokio::spawn(async move {
            loop {
                let signal = tokio::select! {
                    _ = interrupt.recv() => Signal::Interrupt,
                    _ = terminate.recv() => Signal::Terminate,
                };
                if sender.send_replace(Some(signal)).is_some() {
                    at_once(signal.exit_code());
                }
            }
        });
        Ok(Self(receiver))
    }

    /// Ready when the program is to end, from then on always. Cancel-safe.
    pub async fn signal(&self) -> Signal {
        let mut receiver = self.0.clone();
        match receiver.wait_for(Option::is_some).await.map(|signal| *signal) {
            Ok(Some(signal)) => signal,
            // The task that listens lives as long as the runtime.
            _ => std::future::pending().await,
        }
    }

    /// The signal that has come, if any.
    pub fn received(&self) -> Option<Signal> {
        *self.0.borrow()
    }
}

/// Ends the program.
fn at_once(code: u8) -> ! {
    #[cfg(feature = "srt")]
    anabranch_srt::leave(code);
    #[cfg(not(feature = "srt"))]
    std::process::exit(code.into())
}
