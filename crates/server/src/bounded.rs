//! How much a client may send on a stream of HTTP/3. h3 keeps a frame in memory until it is whole, however
//! long it says that it is.

use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{
    Connection, ConnectionErrorIncoming, OpenStreams, RecvStream, SendStream, StreamErrorIncoming, StreamId,
    WriteBuf,
};

/// A connection whose streams are bounded, a way to open such streams, or a stream.
pub(super) struct Bounded<T> {
    inner: T,
    /// Bytes that may come on a stream; of a stream, those that still may.
    most: usize,
}

impl<T> Bounded<T> {
    pub(super) fn new(inner: T, most: usize) -> Self {
        Self { inner, most }
    }
}

impl<T: RecvStream> RecvStream for Bounded<T> {
    type Buf = T::Buf;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<T::Buf>, StreamErrorIncoming>> {
        let data = ready!(self.inner.poll_data(cx))?;
        match self.most.checked_sub(data.as_ref().map_or(0, Buf::remaining)) {
            Some(left) => {
                self.most = left;
                Poll::Ready(Ok(data))
            }
            None => {
                self.inner.stop_sending(Code::H3_EXCESSIVE_LOAD.value());
                Poll::Ready(Err(StreamErrorIncoming::Unknown("the client sends too much".into())))
            }
        }
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.inner.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.inner.recv_id()
    }
}

impl<T: SendStream<Bytes>> SendStream<Bytes> for Bounded<T> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.inner.poll_ready(cx)
    }

    fn send_data<D: Into<WriteBuf<Bytes>>>(&mut self, data: D) -> Result<(), StreamErrorIncoming> {
        self.inner.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.inner.poll_finish(cx)
    }

    fn reset(&mut self, reset_code: u64) {
        self.inner.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.inner.send_id()
    }
}

impl<T: OpenStreams<Bytes>> OpenStreams<Bytes> for Bounded<T> {
    type BidiStream = Bounded<T::BidiStream>;
    type SendStream = T::SendStream;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, StreamErrorIncoming>> {
        self.inner.poll_open_bidi(cx).map_ok(|stream| Bounded::new(stream, self.most))
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<T::SendStream, StreamErrorIncoming>> {
        self.inner.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.inner.close(code, reason);
    }
}

impl<T: Connection<Bytes>> Connection<Bytes> for Bounded<T> {
    type RecvStream = Bounded<T::RecvStream>;
    type OpenStreams = Bounded<T::OpenStreams>;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::RecvStream, ConnectionErrorIncoming>> {
        self.inner.poll_accept_recv(cx).map_ok(|stream| Bounded::new(stream, self.most))
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, ConnectionErrorIncoming>> {
        self.inner.poll_accept_bidi(cx).map_ok(|stream| Bounded::new(stream, self.most))
    }

    fn opener(&self) -> Self::OpenStreams {
        Bounded::new(self.inner.opener(), self.most)
    }
}
