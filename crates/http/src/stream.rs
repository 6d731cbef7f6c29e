//! The byte stream under a connection: TCP, or TLS over it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use super::socket::Socket;
use crate::tcp::{ControlledSocket, SocketControl};

/// An open byte stream to a server.
#[derive(Debug)]
pub struct Stream {
    inner: Inner,
    socket: Arc<ControlledSocket>,
}

#[derive(Debug)]
enum Inner {
    Plain(Socket),
    Secure(Box<TlsStream<Socket>>),
}

impl Stream {
    pub(super) fn plain(stream: Socket, socket: Arc<ControlledSocket>) -> Self {
        Self { inner: Inner::Plain(stream), socket }
    }

    pub(super) fn secure(stream: TlsStream<Socket>, socket: Arc<ControlledSocket>) -> Self {
        Self { inner: Inner::Secure(Box::new(stream)), socket }
    }

    /// A handle on the window and the path figures of the socket.
    pub fn control(&self) -> SocketControl {
        self.socket.control()
    }

    /// Packets that arrive wake nobody until somebody reads again: for who waits before that. Nothing is
    /// lost; what has come until then is there, and the end of the stream is told.
    pub fn rest(&mut self) {
        match &mut self.inner {
            Inner::Plain(stream) => stream.rest(),
            Inner::Secure(stream) => stream.get_mut().0.rest(),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Inner::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Inner::Secure(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.inner {
            Inner::Plain(stream) => Pin::new(stream).poll_write(context, data),
            Inner::Secure(stream) => Pin::new(stream).poll_write(context, data),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Inner::Plain(stream) => Pin::new(stream).poll_flush(context),
            Inner::Secure(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Inner::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Inner::Secure(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
