//! Headers of a transport stream's packets that the packet before tells (ISO/IEC 13818-1, 2.4.3.2): the next one of the
//! same stream, without adaptation field and without the beginning of a unit, as most are.

/// Bytes of a packet's header.
pub(super) const HEADER: usize = 4;
/// The second byte's flags of an error and of a unit's beginning.
const ERROR_OR_BEGINNING: u8 = 0xc0;
/// The last byte: how it is scrambled, that there is a payload and nothing else, a counter of the stream's packets.
const SCRAMBLING: u8 = 0xc0;
const PAYLOAD: u8 = 0x10;
const COUNTER: u8 = 0x0f;

/// The header that a packet has as a rule behind one with this header. Null packets are all alike.
pub(super) fn following(before: [u8; HEADER]) -> [u8; HEADER] {
    let [sync, flags, pid, last] = before;
    if flags & 0x1f == 0x1f && pid == 0xff {
        return before;
    }
    let counter = (last & COUNTER).wrapping_add(1) & COUNTER;
    [sync, flags & !ERROR_OR_BEGINNING, pid, last & SCRAMBLING | PAYLOAD | counter]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_packet_of_a_unit_follows_from_its_first() {
        // A unit begins, with an adaptation field.
        assert_eq!(following([0x47, 0x41, 0x00, 0x3e]), [0x47, 0x01, 0x00, 0x1f]);
        assert_eq!(following([0x47, 0x01, 0x00, 0x1f]), [0x47, 0x01, 0x00, 0x10]);
        assert_eq!(following([0x47, 0x21, 0x00, 0x93]), [0x47, 0x21, 0x00, 0x94]);
    }

    #[test]
    fn null_packets_are_alike() {
        assert_eq!(following([0x47, 0x1f, 0xff, 0x10]), [0x47, 0x1f, 0xff, 0x10]);
    }
}
