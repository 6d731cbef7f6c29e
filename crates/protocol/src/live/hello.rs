//! What the two ends tell each other on a connection's stream of bytes, before and after the media.
//!
//! A message is its length (2 bytes, big endian), its kind (1 byte) and its fields.

use anabranch_units::Duration;

/// The protocol's name in ALPN (RFC 7301).
pub const PROTOCOL: &[u8] = b"anabranch-live/1";
/// Bytes of a session's name, which its sender takes at random.
pub const SESSION_BYTES: usize = 16;
/// Longest token.
pub const MAX_TOKEN: usize = 256;
/// No message is longer, its length not counted.
pub const MAX_MESSAGE: usize = 1 + SESSION_BYTES + 8 + 4 + MAX_TOKEN;

const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const END: u8 = 3;
const DONE: u8 = 4;
/// As [`HELLO`], with the published control.
const HELLO_PUBLISHED: u8 = 5;

/// A message.
#[derive(Clone, PartialEq, Eq)]
pub enum Message {
    /// The sender's first: who it is.
    Hello {
        /// All connections of a sender have the same.
        session: [u8; SESSION_BYTES],
        /// The next media packet that has not been sent yet.
        next: u64,
        /// The sender's latency budget, in whole milliseconds.
        latency: Duration,
        /// Whether its control of the rate is the published one, RFC 5348's, of which the receiver has a part.
        is_published: bool,
        /// What it shows to be let in; at most [`MAX_TOKEN`] bytes.
        token: Vec<u8>,
    },
    /// The receiver's answer: media may come.
    Welcome {
        /// The latency budget of both: the larger of the two, in whole milliseconds.
        latency: Duration,
    },
    /// The sender's last: the stream ends before this media packet.
    End {
        /// One more than the last.
        next: u64,
    },
    /// The receiver's last: everything that can come was handed on.
    Done,
}

/// The token is a secret: it is not shown.
impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Hello { next, latency, .. } => write!(f, "Hello({next}, {latency})"),
            Self::Welcome { latency } => write!(f, "Welcome({latency})"),
            Self::End { next } => write!(f, "End({next})"),
            Self::Done => f.write_str("Done"),
        }
    }
}

/// Bytes are no message of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the other end does not speak this version of the protocol")]
pub struct MessageError;

impl Message {
    /// Reads a message, its length already taken off.
    ///
    /// # Errors
    /// It is none.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let (kind, rest) = bytes.split_first().ok_or(MessageError)?;
        match *kind {
            HELLO | HELLO_PUBLISHED => {
                let (session, rest) = rest.split_first_chunk().ok_or(MessageError)?;
                let (next, rest) = rest.split_first_chunk().ok_or(MessageError)?;
                let (latency, token) = rest.split_first_chunk().ok_or(MessageError)?;
                if token.len() > MAX_TOKEN {
                    return Err(MessageError);
                }
                let next = u64::from_be_bytes(*next);
                // So that no counter comes to its end.
                if next > u64::MAX / 2 {
                    return Err(MessageError);
                }
                let (session, latency, token) = (*session, millis(*latency), token.to_vec());
                Ok(Self::Hello { session, next, latency, is_published: *kind == HELLO_PUBLISHED, token })
            }
            WELCOME => rest
                .try_into()
                .map(|latency| Self::Welcome { latency: millis(latency) })
                .map_err(|_| MessageError),
            END => {
                let next = rest.try_into().map(u64::from_be_bytes).map_err(|_| MessageError)?;
                if next > u64::MAX / 2 { Err(MessageError) } else { Ok(Self::End { next }) }
            }
            DONE if rest.is_empty() => Ok(Self::Done),
            _ => Err(MessageError),
        }
    }

    /// The message with its length in front. A token beyond its bound is cut, and lets nobody in.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; 2];
        let put_latency = |bytes: &mut Vec<u8>, latency: &Duration| {
            let millis = u32::try_from(latency.as_millis()).unwrap_or(u32::MAX);
            bytes.extend(millis.to_be_bytes());
        };
        match self {
            Self::Hello { session, next, latency, is_published, token } => {
                bytes.push(if *is_published { HELLO_PUBLISHED } else { HELLO });
                bytes.extend(session);
                bytes.extend(next.to_be_bytes());
                put_latency(&mut bytes, latency);
                bytes.extend(&token[..token.len().min(MAX_TOKEN)]);
            }
            Self::Welcome { latency } => {
                bytes.push(WELCOME);
                put_latency(&mut bytes, latency);
            }
            Self::End { next } => {
                bytes.push(END);
                bytes.extend(next.to_be_bytes());
            }
            Self::Done => bytes.push(DONE),
        }
        let length = u16::try_from(bytes.len() - 2).unwrap_or(u16::MAX);
        bytes[..2].copy_from_slice(&length.to_be_bytes());
        bytes
    }
}

fn millis(bytes: [u8; 4]) -> Duration {
    Duration::from_millis(u32::from_be_bytes(bytes).into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn messages_come_back(
            session in any::<[u8; SESSION_BYTES]>(), next in 0..=u64::MAX / 2, latency in any::<u32>(),
            token in prop::collection::vec(any::<u8>(), 0..=MAX_TOKEN), is_published in any::<bool>(),
        ) {
            let latency = Duration::from_millis(latency.into());
            for message in [
                Message::Hello { session, next, latency, is_published, token },
                Message::Welcome { latency },
                Message::End { next },
                Message::Done,
            ] {
                let bytes = message.encode();
                let length = usize::from(u16::from_be_bytes([bytes[0], bytes[1]]));
                prop_assert!(length == bytes.len() - 2 && length <= MAX_MESSAGE);
                prop_assert_eq!(Message::decode(&bytes[2..]), Ok(message));
            }
        }

        #[test]
        fn whatever_arrives_is_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = Message::decode(&bytes);
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for wrong in [&[][..], &[0], &[9, 1], &[HELLO, 1, 2], &[WELCOME, 0, 0, 0], &[END, 1], &[DONE, 0]] {
            assert_eq!(Message::decode(wrong), Err(MessageError), "{wrong:?}");
        }
        let mut far = Message::End { next: 0 }.encode();
        far[3] = 0xff;
        assert_eq!(Message::decode(&far[2..]), Err(MessageError));
    }

    #[test]
    fn a_token_is_not_shown() {
        let token = b"secret".to_vec();
        let hello =
            Message::Hello { session: [0; 16], next: 1, latency: Duration::ZERO, is_published: false, token };
        assert!(!format!("{hello:?}").contains("115"));
    }
}
