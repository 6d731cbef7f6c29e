//! Packets on their way.

use crate::ecn::EcnBits;
use crate::tcp::NO_LIMIT;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Syn,
    SynAck,
    Data,
    Ack,
    /// Ends a connection at once.
    Reset,
    Datagram,
    TfrcData,
    TfrcFeedback,
    /// Of a live stream, in either direction.
    Live,
}

/// What only some packets carry: the SACK blocks of an acknowledgement and its count of marks (see
/// [`answered`]), the times and rates of TFRC.
pub(crate) type Extra = [u64; 5];

/// A packet carries nothing more.
const NO_EXTRA: u32 = u32::MAX;

/// SACK blocks; empty ones are unused, each is packed as two distances from what is acknowledged, which are
/// negative for what came twice (RFC 2883). And how many bytes came marked.
pub(crate) fn answered(acknowledged: u64, blocks: [(u64, u64); 3], marked: u64) -> Extra {
    let pack = |(start, end): (u64, u64)| {
        if start < end {
            let distance = |position: u64| u64::from(position.wrapping_sub(acknowledged) as u32);
            distance(start) << 32 | distance(end)
        } else {
            0
        }
    };
    let [first, second, third] = blocks.map(pack);
    [first, second, third, marked, 0]
}

/// The blocks of [`answered`].
pub(crate) fn blocks(acknowledged: u64, extra: Extra) -> [(u64, u64); 3] {
    let [first, second, third, ..] = extra;
    [first, second, third].map(|packed| {
        let position = |distance: u64| acknowledged.wrapping_add_signed(i64::from(distance as u32 as i32));
        (position(packed >> 32), position(packed))
    })
}

/// How many bytes came marked, of [`answered`].
pub(crate) fn marked(extra: Extra) -> u64 {
    extra[3]
}

/// A packet. Half a cache line, because tens of thousands can be under way at a time.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct Packet {
    /// Data: its first byte; an acknowledgement: what is acknowledged; a datagram or TFRC's: its number.
    pub sequence: u64,
    /// The half connection that it belongs to, or the flow of datagrams or of TFRC.
    pub owner: u32,
    /// The place in the table of hops of the link that it enters next.
    pub hop: u32,
    /// Microseconds, modulo 2^32.
    pub timestamp: u32,
    /// The receive window of an acknowledgement.
    pub window: PackedWindow,
    extra: u32,
    /// Size on the wire.
    pub size: u16,
    pub what: What,
    pub ecn: EcnBits,
}

/// A receive window in four bytes; the largest value is no limit at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedWindow(u32);

impl PackedWindow {
    pub(crate) const ZERO: Self = Self(0);

    pub(crate) fn new(bytes: u64) -> Self {
        Self(u32::try_from(bytes).unwrap_or(u32::MAX))
    }

    pub(crate) fn get(self) -> u64 {
        if self.0 == u32::MAX { NO_LIMIT } else { u64::from(self.0) }
    }
}

impl Packet {
    /// Tells flows apart, as addresses and ports do.
    #[inline]
    pub(crate) fn flow_key(&self) -> u64 {
        let kind = match self.what {
            What::Datagram => 1,
            What::TfrcData | What::TfrcFeedback => 2,
            What::Live => 3,
            What::Syn | What::SynAck | What::Data | What::Ack | What::Reset => 0,
        };
        kind << 32 | u64::from(self.owner)
    }

    /// A packet that says nothing but what it is.
    pub(crate) fn new(what: What, owner: u32, hop: u32, sequence: u64, size: u16) -> Self {
        Self {
            sequence,
            owner,
            hop,
            timestamp: 0,
            window: PackedWindow::ZERO,
            extra: NO_EXTRA,
            size,
            what,
            ecn: EcnBits::default(),
        }
    }
}

/// Packets under way, by number.
#[derive(Debug, Default)]
pub(crate) struct PacketStore {
    pool: Vec<Packet>,
    free: Vec<u32>,
    /// What those few carry that carry more.
    extras: Vec<Extra>,
    free_extras: Vec<u32>,
}

impl PacketStore {
    #[inline]
    pub(crate) fn add(&mut self, packet: Packet) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.pool[number as usize] = packet;
                number
            }
            None => {
                self.pool.push(packet);
                (self.pool.len() - 1) as u32
            }
        }
    }

    /// Gives more to a packet that is not under way yet.
    pub(crate) fn set_extra(&mut self, packet: &mut Packet, extra: Extra) {
        packet.extra = match self.free_extras.pop() {
            Some(number) => {
                self.extras[number as usize] = extra;
                number
            }
            None => {
                self.extras.push(extra);
                (self.extras.len() - 1) as u32
            }
        };
    }

    /// A second packet like one that is under way.
    pub(crate) fn copy(&mut self, number: u32) -> u32 {
        let mut packet = self.pool[number as usize];
        if packet.extra != NO_EXTRA {
            let extra = self.extra(&packet);
            self.set_extra(&mut packet, extra);
        }
        self.add(packet)
    }

    /// What more a packet carries that is under way, or was removed just now; zeros if it carries nothing.
    pub(crate) fn extra(&self, packet: &Packet) -> Extra {
        self.extras.get(packet.extra as usize).copied().unwrap_or_default()
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> &Packet {
        &self.pool[number as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> &mut Packet {
        &mut self.pool[number as usize]
    }

    #[inline]
    pub(crate) fn remove(&mut self, number: u32) -> Packet {
        self.free.push(number);
        let packet = self.pool[number as usize];
        if packet.extra != NO_EXTRA {
            self.free_extras.push(packet.extra);
        }
        packet
    }

    /// Reads of a packet before it is needed, so that the memory has brought it by then.
    #[inline]
    pub(crate) fn touch(&self, number: u32) {
        if let Some(packet) = self.pool.get(number as usize) {
            std::hint::black_box(packet.hop);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_on_both_sides_of_what_is_acknowledged() {
        let told = [(1 << 40, (1 << 40) + 1460), (0, 0), ((1 << 40) + 9000, (1 << 40) + 12_000)];
        let acknowledged = (1 << 40) + 5000;
        let read = blocks(acknowledged, answered(acknowledged, told, 7));
        assert_eq!((read[0], read[2]), (told[0], told[2]));
        assert!(read[1].0 >= read[1].1, "{:?}", read[1]);
    }
}
