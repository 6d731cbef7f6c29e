//! The byte stream under a connection: TCP, or TLS over it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::tcp::{ControlledSocket, SocketControl};

/// An open byte stream to a server.
#[derive(Debug)]
pub struct Stream {
    inner: Inner,
    socket: Arc<ControlledSocket>,
}

#[derive(Debug)]
enum Inner {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

impl Stream {
    pub(super) fn plain(stream: TcpStream, socket: Arc<ControlledSocket>) -> Self {
        Self { inner: Inner::Plain(stream), socket }
    }

    pub(super) fn secure(stream: TlsStream<TcpStream>, socket: Arc<ControlledSocket>) -> Self {
        Self { inner: Inner::Secure(Box::new(stream)), socket }
    }

    /// A handle on the window and the path figures of the socket.
    pub fn control(&self) -> SocketControl {
        self.socket.control()
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
