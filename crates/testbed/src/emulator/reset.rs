//! The answer of a host to the set-up of a connection that it refuses (RFC 9293, section 3.10.7.1).

use super::segment::{ETHERNET, RST, Segment};

const ACK: u8 = 16;
const LENGTH: usize = 40;
const PROTOCOL_AND_LENGTH: [u8; 4] = [0, 6, 0, 20];

/// The frame that answers `frame`, which holds this segment.
pub fn answer(frame: &[u8], segment: &Segment) -> Vec<u8> {
    let mut answer = vec![0; ETHERNET + LENGTH];
    // Hardware addresses the other way round, and the same kind of packet.
    answer[..6].copy_from_slice(&frame[6..12]);
    answer[6..12].copy_from_slice(&frame[..6]);
    answer[12..14].copy_from_slice(&frame[12..14]);
    let (ip, tcp) = answer[ETHERNET..].split_at_mut(20);
    ip[0] = 0x45;
    ip[3] = 40;
    // Not to be fragmented, through 64 routers, TCP.
    ip[6] = 0x40;
    ip[8] = 64;
    ip[9] = 6;
    ip[12..16].copy_from_slice(&segment.destination);
    ip[16..20].copy_from_slice(&segment.source);
    let sum = checksum(&[&*ip]);
    ip[10..12].copy_from_slice(&sum);
    tcp[..2].copy_from_slice(&segment.destination_port.to_be_bytes());
    tcp[2..4].copy_from_slice(&segment.source_port.to_be_bytes());
    tcp[8..12].copy_from_slice(&segment.sequence.wrapping_add(1).to_be_bytes());
    tcp[12] = 5 << 4;
    tcp[13] = RST | ACK;
    let sum = checksum(&[&ip[12..20], &PROTOCOL_AND_LENGTH, &*tcp]);
    tcp[16..18].copy_from_slice(&sum);
    answer
}

/// The Internet checksum (RFC 1071) of parts of even lengths.
fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let words = parts.iter().flat_map(|part| part.chunks_exact(2));
    let mut sum: u32 = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let [_, _, high, low] = (!sum).to_be_bytes();
    [high, low]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::segment::SYN;

    #[test]
    fn the_answer_goes_back_and_its_checksums_hold() {
        let segment = Segment {
            source: [10, 77, 0, 1],
            destination: [10, 77, 0, 2],
            source_port: 40_000,
            destination_port: 80,
            sequence: u32::MAX,
            flags: SYN,
        };
        let mut frame = vec![0; 60];
        frame[..14].copy_from_slice(&[1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 8, 0]);
        let answer = answer(&frame, &segment);
        assert_eq!(answer[..14], [2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 8, 0]);
        let read = Segment::read(&answer).unwrap();
        assert_eq!((read.source, read.source_port), (segment.destination, 80));
        assert_eq!((read.destination, read.destination_port), (segment.source, 40_000));
        assert_eq!((read.flags, read.sequence), (RST | ACK, 0));
        // It acknowledges the SYN.
        assert_eq!(answer[14 + 28..14 + 32], [0, 0, 0, 0]);
        // A sum over what has its checksum in it is zero.
        assert_eq!(checksum(&[&answer[14..34]]), [0, 0]);
        assert_eq!(checksum(&[&answer[26..34], &PROTOCOL_AND_LENGTH, &answer[34..]]), [0, 0]);
    }
}
