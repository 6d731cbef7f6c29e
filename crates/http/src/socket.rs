//! A TCP socket that the runtime need not hear of while nobody is to read.

use std::io::{self, Read, Write};
use std::net::TcpStream as Unheard;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A TCP socket that can rest. Whoever paces reading would else be woken by every packet, and each costs more
/// than to read what many of them brought.
#[derive(Debug)]
pub(crate) struct Socket(State);

#[derive(Debug)]
enum State {
    /// The runtime hears of every packet.
    Awake(TcpStream),
    /// The runtime does not know it. What is there can be taken, and what there is room for be written.
    Resting(Unheard),
    /// The runtime could not take it over.
    Lost,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self(State::Awake(stream))
    }

    /// Packets that arrive wake nobody, until there is nothing left to be read or no room to write when
    /// somebody wants that.
    pub(crate) fn rest(&mut self) {
        self.0 = match std::mem::replace(&mut self.0, State::Lost) {
            State::Awake(stream) => stream.into_std().map_or(State::Lost, State::Resting),
            state => state,
        };
    }

    /// The socket as the runtime has it.
    fn awake(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        if let State::Resting(_) = self.0
            && let State::Resting(stream) = std::mem::replace(&mut self.0, State::Lost)
        {
            self.0 = State::Awake(TcpStream::from_std(stream)?);
        }
        match &mut self.0 {
            State::Awake(stream) => Ok(Pin::new(stream)),
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// What can be done without waiting; `None`: the socket must be awake for it.
    fn at_once<T>(&self, mut act: impl FnMut(&Unheard) -> io::Result<T>) -> Option<io::Result<T>> {
        let State::Resting(stream) = &self.0 else { return None };
        loop {
            match act(stream) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                done => return Some(done),
            }
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(read) = self.at_once(|mut stream| stream.read(buffer.initialize_unfilled())) {
            return Poll::Ready(read.map(|count| buffer.advance(count)));
        }
        self.awake()?.poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(written) = self.at_once(|mut stream| stream.write(data)) {
            return Poll::Ready(written);
        }
        self.awake()?.poll_write(context, data)
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Nothing is kept here.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.awake()?.poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Socket::new(stream), listener.accept().await.unwrap().0)
    }

    /// Waits until so many bytes can be read.
    fn until_there(stream: &Unheard, count: usize) {
        let mut bytes = vec![0; count];
        while !stream.peek(&mut bytes).is_ok_and(|there| there == count) {
            std::thread::yield_now();
        }
    }

    #[tokio::test]
    async fn what_came_to_a_resting_socket_is_read_without_the_runtime() {
        let (mut socket, mut peer) = pair().await;
        socket.rest();
        peer.write_all(b"hello").await.unwrap();
        let State::Resting(stream) = &socket.0 else { panic!("it does not rest") };
        until_there(stream, 5);
        let mut bytes = [0; 8];
        let mut buffer = ReadBuf::new(&mut bytes);
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut socket).poll_read(&mut context, &mut buffer).is_ready());
        assert_eq!(buffer.filled(), b"hello");
        socket.write_all(b"there").await.unwrap();
        assert!(matches!(socket.0, State::Resting(_)), "it had no reason to wake");
        let mut bytes = [0; 5];
        peer.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"there");
    }

    #[tokio::test]
    async fn a_resting_socket_wakes_when_somebody_waits_for_more_and_for_the_end() {
        let (mut socket, mut peer) = pair().await;
        socket.rest();
        let later = async {
            tokio::task::yield_now().await;
            peer.write_all(b"hello").await.unwrap();
        };
        let mut bytes = [0; 5];
        let (read, ()) = tokio::join!(socket.read_exact(&mut bytes), later);
        assert!(read.is_ok() && &bytes == b"hello");
        socket.rest();
        drop(peer);
        assert_eq!(socket.read(&mut bytes).await.unwrap(), 0);
        socket.rest();
        socket.rest();
        assert_eq!(socket.read(&mut bytes).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_resting_socket_wakes_when_there_is_no_room_to_write() {
        let (mut socket, mut peer) = pair().await;
        socket.rest();
        let sent = vec![7; 8 << 20];
        let taken = async {
            let mut bytes = vec![0; 8 << 20];
            peer.read_exact(&mut bytes).await.unwrap();
            bytes
        };
        let (written, taken) = tokio::join!(socket.write_all(&sent), taken);
        assert!(written.is_ok() && taken == sent);
        assert!(matches!(socket.0, State::Awake(_)));
    }
}
