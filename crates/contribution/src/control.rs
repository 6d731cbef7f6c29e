//! Messages of [`anabranch_protocol::live::hello`] on a stream of QUIC.

use anabranch_protocol::live::hello::{MAX_MESSAGE, Message};
use quinn::{RecvStream, SendStream};

/// No message could be read or written.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum ControlError {
    /// The connection is gone, or ends.
    #[error("the connection was closed")]
    Closed,
    /// What came is no message.
    #[error("the other end does not speak this version of the protocol")]
    Protocol,
}

pub(super) async fn read(stream: &mut RecvStream) -> Result<Message, ControlError> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).await.map_err(|_| ControlError::Closed)?;
    let length = usize::from(u16::from_be_bytes(length));
    if length > MAX_MESSAGE {
        return Err(ControlError::Protocol);
    }
    let mut message = vec![0; length];
    stream.read_exact(&mut message).await.map_err(|_| ControlError::Closed)?;
    Message::decode(&message).map_err(|_| ControlError::Protocol)
}

pub(super) async fn write(stream: &mut SendStream, message: &Message) -> Result<(), ControlError> {
    stream.write_all(&message.encode()).await.map_err(|_| ControlError::Closed)
}
