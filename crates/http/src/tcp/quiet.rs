//! A socket that wakes nobody while nobody is to read.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{ControlledSocket, Handle, SocketControl, UNLIMITED};

/// As long as this lives, packets that arrive wake nobody, until they fill the window or the stream ends.
///
/// Who paces reading would else be woken by every packet (the runtime hears of each), and each costs more
/// than it takes to read what many of them brought.
#[derive(Debug)]
pub struct Quiet(Arc<ControlledSocket>);

impl SocketControl {
    /// Keeps the socket quiet; `None` where its window is not limited or the system cannot do it.
    ///
    /// Nothing is lost: what has come until the end of it is told then.
    pub fn quiet(&self) -> Option<Quiet> {
        let Handle::Tcp(socket) = &self.0 else { return None };
        let socket = socket.upgrade()?;
        // With more than the window the kernel would enlarge that.
        let window = socket.wanted.load(Ordering::Relaxed);
        (window != UNLIMITED && socket.descriptor.set_low_water(window).is_ok()).then_some(Quiet(socket))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // Of a socket that is gone nobody waits for anything.
        let _ = self.0.descriptor.set_low_water(1);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anabranch_units::Bytes;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_quiet_socket_tells_of_nothing_until_then_and_of_everything_afterwards() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut peer, _) = listener.accept().await.unwrap();
        let socket = ControlledSocket::new(&stream).unwrap();
        let control = socket.control();
        assert!(control.quiet().is_none(), "there is no window yet");
        control.set_window(Some(Bytes::kib(64))).unwrap();
        let quiet = control.quiet();
        if quiet.is_none() {
            return;
        }
        peer.write_all(b"hello").await.unwrap();
        let early = timeout(Duration::from_millis(50), stream.readable()).await;
        assert!(early.is_err(), "five bytes woke it");
        drop(quiet);
        let mut bytes = [0; 5];
        timeout(Duration::from_secs(20), stream.read_exact(&mut bytes)).await.unwrap().unwrap();
        assert_eq!(&bytes, b"hello");
        let quiet = control.quiet();
        drop(peer);
        let end = timeout(Duration::from_secs(20), stream.read(&mut bytes)).await;
        assert_eq!(end.expect("the end is told at once").unwrap(), 0);
        drop(quiet);
    }
}
