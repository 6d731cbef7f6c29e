//! Packets on their way.

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
}

/// A packet. It is as large as a cache line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Data: its first byte; an acknowledgement: what is acknowledged; a datagram or TFRC's: its number.
    pub sequence: u64,
    /// The receive window of an acknowledgement; TFRC: the time that it tells, in nanoseconds.
    pub window: u64,
    /// SACK blocks as distances from `sequence`, empty ones are unused; TFRC: three numbers, see [`pack`].
    pub blocks: [(u32, u32); 3],
    /// The half connection that it belongs to, or the flow of datagrams or of TFRC.
    pub owner: u32,
    /// The place in the table of hops of the link that it enters next.
    pub hop: u32,
    /// Size on the wire.
    pub size: u32,
    /// Microseconds, modulo 2^32.
    pub timestamp: u32,
    pub what: What,
}

/// Three numbers in the place of SACK blocks.
pub(crate) fn pack(numbers: [u64; 3]) -> [(u32, u32); 3] {
    numbers.map(|number| ((number >> 32) as u32, number as u32))
}

/// The inverse of [`pack`].
pub(crate) fn unpack(blocks: [(u32, u32); 3]) -> [u64; 3] {
    blocks.map(|(high, low)| u64::from(high) << 32 | u64::from(low))
}

/// Packets under way, by number.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    pool: Vec<Packet>,
    free: Vec<u32>,
}

impl Packets {
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
        self.pool[number as usize]
    }
}
