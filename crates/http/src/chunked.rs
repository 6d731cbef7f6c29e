//! The chunked transfer coding (RFC 9112, 7.1), read piece by piece.

use super::error::Malformed;

/// Longest line with a chunk's size and its extensions.
const LONGEST_SIZE_LINE: usize = 1024;

/// Longest trailer section, all its lines together.
const LONGEST_TRAILERS: usize = 16 * 1024;

/// Reads the framing of a chunked body; the data itself never passes through it.
///
/// Give [`ChunkedDecoder::advance`] what has come, drop as many bytes as it says, then take up to
/// [`ChunkedDecoder::data`] bytes of payload, telling [`ChunkedDecoder::took`], and so on until
/// [`ChunkedDecoder::is_done`].
#[derive(Clone, Debug, Default)]
pub struct ChunkedDecoder {
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    #[default]
    Size,
    Data {
        left: u64,
    },
    DataEnd,
    Trailers {
        seen: usize,
    },
    Done,
}

impl ChunkedDecoder {
    /// Reads framing from the start of `input`; returns how many bytes of it were framing and are done with.
    /// When that leaves neither data nor the end, more input is needed behind what was not used.
    ///
    /// # Errors
    /// The framing is broken, or longer than the bounds set here.
    pub fn advance(&mut self, input: &[u8]) -> Result<usize, Malformed> {
        let mut used = 0;
        while let Some(length) = self.advance_once(&input[used..])? {
            used += length;
        }
        Ok(used)
    }

    /// How many bytes of payload come next; zero when framing comes next.
    pub fn data(&self) -> u64 {
        match self.state {
            State::Data { left } => left,
            _ => 0,
        }
    }

    /// `count` bytes of payload, at most [`ChunkedDecoder::data`], were taken.
    pub fn took(&mut self, count: u64) {
        if let State::Data { left } = &mut self.state {
            *left = left.saturating_sub(count);
            if *left == 0 {
                self.state = State::DataEnd;
            }
        }
    }

    /// Whether the body is complete.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Reads one piece of framing; `None` when none is due or it is not complete.
    fn advance_once(&mut self, input: &[u8]) -> Result<Option<usize>, Malformed> {
        match self.state {
            State::Data { .. } | State::Done => Ok(None),
            State::Size => {
                let bad_size = Malformed("the size of a chunk makes no sense");
                // httparse takes a line without a digit for zero.
                if input.first().is_some_and(|byte| !byte.is_ascii_hexdigit()) {
                    return Err(bad_size);
                }
                match httparse::parse_chunk_size(input).map_err(|_| bad_size)? {
                    httparse::Status::Complete((length, _)) if length > LONGEST_SIZE_LINE => Err(bad_size),
                    httparse::Status::Complete((length, size)) => {
                        self.state =
                            if size == 0 { State::Trailers { seen: 0 } } else { State::Data { left: size } };
                        Ok(Some(length))
                    }
                    httparse::Status::Partial if input.len() >= LONGEST_SIZE_LINE => Err(bad_size),
                    httparse::Status::Partial => Ok(None),
                }
            }
            State::DataEnd => match input {
                [b'\r', b'\n', ..] => {
                    self.state = State::Size;
                    Ok(Some(2))
                }
                [] | [b'\r'] => Ok(None),
                _ => Err(Malformed("a chunk is longer than its size")),
            },
            State::Trailers { seen } => {
                let end = input.iter().position(|byte| *byte == b'\n').map(|end| end + 1);
                if seen + end.unwrap_or(input.len()) > LONGEST_TRAILERS {
                    return Err(Malformed("its trailers do not end"));
                }
                let Some(length) = end else { return Ok(None) };
                let is_empty_line = matches!(&input[..length], b"\r\n" | b"\n");
                self.state =
                    if is_empty_line { State::Done } else { State::Trailers { seen: seen + length } };
                Ok(Some(length))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Decodes what comes in pieces of at most `piece` bytes; the payload and what was left behind the end.
    fn decode(input: &[u8], piece: usize) -> Result<(Vec<u8>, Option<Vec<u8>>), Malformed> {
        let mut decoder = ChunkedDecoder::default();
        let (mut waiting, mut payload) = (Vec::new(), Vec::new());
        for (index, part) in input.chunks(piece).enumerate() {
            waiting.extend_from_slice(part);
            loop {
                waiting.drain(..decoder.advance(&waiting)?);
                let count = waiting.len().min(usize::try_from(decoder.data()).unwrap_or(usize::MAX));
                payload.extend(waiting.drain(..count));
                decoder.took(count as u64);
                if decoder.is_done() {
                    waiting.extend_from_slice(&input[((index + 1) * piece).min(input.len())..]);
                    return Ok((payload, Some(waiting)));
                }
                if count == 0 {
                    break;
                }
            }
        }
        Ok((payload, None))
    }

    #[test]
    fn chunks_extensions_and_trailers() {
        let body = b"4;name=value\r\nWiki\r\n5 ; a\r\npedia\r\n0\r\nExpires: never\r\nX: y\r\n\r\nHTTP/1.1";
        for piece in 1..=body.len() {
            assert_eq!(
                decode(body, piece),
                Ok((b"Wikipedia".to_vec(), Some(b"HTTP/1.1".to_vec()))),
                "{piece}"
            );
        }
    }

    #[test]
    fn broken_framing() {
        for wrong in [
            "\r\n",
            "x\r\n",
            "4\nWiki",
            "4\r\nWikip",
            "-4\r\n",
            "10000000000000000\r\n",
            ";a\r\n",
            "4\r\nWiki\rx",
        ] {
            assert!(decode(wrong.as_bytes(), wrong.len()).is_err(), "{wrong:?}");
            assert!(decode(wrong.as_bytes(), 1).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn endless_lines_are_cut_off() {
        let extension = [b"1;".as_slice(), &[b'a'; LONGEST_SIZE_LINE]].concat();
        let trailer = [b"0\r\n".as_slice(), &[b'a'; LONGEST_TRAILERS + 1]].concat();
        let trailers = [b"0\r\n".as_slice(), &b"a: b\r\n".repeat(LONGEST_TRAILERS / 6 + 1)].concat();
        for endless in [extension, trailer, trailers] {
            assert!(decode(&endless, endless.len()).is_err());
            assert!(decode(&endless, 100).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces(input in prop::collection::vec(any::<u8>(), 0..200), piece in 1usize..50) {
            // Broken framing is found sooner or later, but never taken for a body.
            if let Ok((payload, Some(rest))) = decode(&input, piece) {
                prop_assert_eq!(decode(&input, input.len()), Ok((payload, Some(rest))));
            }
        }

        #[test]
        fn what_was_encoded_is_decoded(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..10),
            piece in 1usize..50,
        ) {
            let mut body = Vec::new();
            for chunk in &chunks {
                body.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                body.extend_from_slice(chunk);
                body.extend_from_slice(b"\r\n");
            }
            body.extend_from_slice(b"0\r\n\r\nnext");
            prop_assert_eq!(decode(&body, piece), Ok((chunks.concat(), Some(b"next".to_vec()))));
        }
    }
}
