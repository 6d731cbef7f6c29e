//! The frames of a packet (RFC 9000, section 19), as far as it takes to find the data of streams in them, or
//! whether they are acknowledged.

/// Shows each piece of a stream's data in a packet: the stream, where the piece belongs, and how long it is.
/// What is behind a frame that is damaged or of an unknown kind is left out.
pub(super) fn stream_data(frames: &[u8], mut show: impl FnMut(u64, u64, usize)) {
    let mut rest = Rest(frames);
    while rest.frame(&mut show).is_some() {}
}

/// Whether a packet with these frames is to be acknowledged: with PADDING, ACK and CONNECTION_CLOSE alone it is
/// not (RFC 9002, section 2).
pub(super) fn are_acknowledged(frames: &[u8]) -> bool {
    let mut rest = Rest(frames);
    loop {
        let is_readable = match rest.0.first() {
            None | Some(0x1c | 0x1d) => return false,
            Some(0x00 | 0x02 | 0x03) => rest.frame(&mut |_, _, _| {}).is_some(),
            Some(_) => return true,
        };
        if !is_readable {
            return true;
        }
    }
}

struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    /// Reads a frame; `None`: there is none that can be read.
    fn frame(&mut self, show: &mut impl FnMut(u64, u64, usize)) -> Option<()> {
        match self.number()? {
            // PADDING, PING, HANDSHAKE_DONE.
            0x00 | 0x01 | 0x1e => Some(()),
            kind @ (0x02 | 0x03) => self.acknowledgement(kind == 0x03),
            // RESET_STREAM.
            0x04 => self.numbers(3),
            // STOP_SENDING, MAX_STREAM_DATA, STREAM_DATA_BLOCKED.
            0x05 | 0x11 | 0x15 => self.numbers(2),
            // CRYPTO.
            0x06 => {
                self.number()?;
                self.text()
            }
            // NEW_TOKEN, and DATAGRAM with a length (RFC 9221).
            0x07 | 0x31 => self.text(),
            kind @ 0x08..=0x0f => {
                let stream = self.number()?;
                let offset = if kind & 0x04 == 0 { 0 } else { self.number()? };
                let length = if kind & 0x02 == 0 { self.0.len() } else { self.length()? };
                self.skip(length)?;
                show(stream, offset, length);
                Some(())
            }
            // MAX_DATA, MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID.
            0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x19 => self.numbers(1),
            // NEW_CONNECTION_ID.
            0x18 => {
                self.numbers(2)?;
                let (length, rest) = self.0.split_first()?;
                self.0 = rest;
                self.skip(usize::from(*length) + 16)
            }
            // PATH_CHALLENGE, PATH_RESPONSE.
            0x1a | 0x1b => self.skip(8),
            _ => None,
        }
    }

    fn acknowledgement(&mut self, has_marks: bool) -> Option<()> {
        self.numbers(2)?;
        let ranges = self.number()?;
        self.number()?;
        // Each takes two bytes at the least, so that what has come bounds them.
        for _ in 0..ranges {
            self.numbers(2)?;
        }
        if has_marks { self.numbers(3) } else { Some(()) }
    }

    /// A number of variable length (RFC 9000, section 16).
    fn number(&mut self) -> Option<u64> {
        let first = *self.0.first()?;
        let (number, rest) = self.0.split_at_checked(1 << (first >> 6))?;
        self.0 = rest;
        let without_length = u64::from(first & 0x3f);
        Some(number[1..].iter().fold(without_length, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn numbers(&mut self, count: usize) -> Option<()> {
        (0..count).try_for_each(|_| self.number().map(drop))
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    fn text(&mut self) -> Option<()> {
        let length = self.length()?;
        self.skip(length)
    }

    fn skip(&mut self, length: usize) -> Option<()> {
        self.0 = self.0.get(length..)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(frames: &[&[u8]]) -> Vec<(u64, u64, usize)> {
        let mut found = Vec::new();
        stream_data(&frames.concat(), |stream, offset, length| found.push((stream, offset, length)));
        found
    }

    #[test]
    fn data_is_found_behind_every_other_frame() {
        let others: [&[u8]; 16] = [
            &[0, 0, 0],
            &[0x01],
            &[0x1e],
            // Two ranges besides the first.
            &[0x02, 0x40, 0x80, 0x05, 0x02, 0x01, 0x00, 0x01, 0x02, 0x03],
            &[0x03, 0x09, 0x05, 0x00, 0x01, 0x07, 0x08, 0x09],
            &[0x04, 0x04, 0x01, 0x02],
            &[0x05, 0x04, 0x01],
            &[0x06, 0x00, 0x02, 0x08, 0x08],
            &[0x07, 0x01, 0x08],
            &[0x10, 0x80, 0x00, 0x00, 0x00],
            &[0x11, 0x04, 0x01],
            &[0x16, 0x01],
            &[0x18, 1, 0, 2, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8],
            &[0x1a, 8, 8, 8, 8, 8, 8, 8, 8],
            &[0x31, 0x01, 0x08],
            // With its end, and a length.
            &[0x0b, 0x08, 0x01, 0xff],
        ];
        let last: &[u8] = &[0x0c, 0x04, 0xc0, 0, 0, 0, 0, 0, 1, 2, 7, 7, 7];
        for other in &others[..15] {
            assert_eq!(found(&[other, last]), [(4, 258, 3)], "{other:?}");
        }
        assert_eq!(found(&[&others.concat(), last]), [(8, 0, 1), (4, 258, 3)]);
    }

    #[test]
    fn padding_acknowledgements_and_the_end_of_a_connection_are_not_acknowledged() {
        let acknowledgement: &[u8] = &[0x02, 0x40, 0x80, 0x05, 0x02, 0x01, 0x00, 0x01, 0x02, 0x03];
        let marked: &[u8] = &[0x03, 0x09, 0x05, 0x00, 0x01, 0x07, 0x08, 0x09];
        let end: &[u8] = &[0x1c, 0, 0, 0];
        for silent in
            [&[&[][..]][..], &[acknowledgement], &[&[0, 0], marked], &[acknowledgement, marked, end]]
        {
            assert!(!are_acknowledged(&silent.concat()), "{silent:?}");
            for other in [&[0x01][..], &[0x1e], &[0x08, 0, 1], &[0x1a, 8, 8, 8, 8, 8, 8, 8, 8]] {
                assert!(are_acknowledged(&[other, &silent.concat()[..]].concat()), "{other:?} {silent:?}");
            }
        }
        assert!(are_acknowledged(&[acknowledgement, &[0x01]].concat()));
    }

    #[test]
    fn what_is_cut_off_or_unknown_is_left_out() {
        let whole: &[u8] = &[0x0e, 0x04, 0x05, 0x02, 7, 7];
        assert_eq!(found(&[whole]), [(4, 5, 2)]);
        (0..whole.len()).for_each(|length| assert_eq!(found(&[&whole[..length]]), []));
        // A range too many, an unknown kind, an end of the connection.
        for nonsense in [&[0x02, 1, 1, 0xff, 0xff][..], &[0x21], &[0x1c, 0, 0, 0]] {
            assert_eq!(found(&[nonsense, whole]), [], "{nonsense:?}");
        }
    }
}
