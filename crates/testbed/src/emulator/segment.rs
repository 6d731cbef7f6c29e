//! What the emulator reads of a TCP segment.

/// Of a set-up.
pub const SYN: u8 = 2;
/// A farewell.
pub const FIN: u8 = 1;
/// A farewell at once.
pub const RST: u8 = 4;

/// Where in a frame the network layer begins.
pub const ETHERNET: usize = 14;
const TCP: u8 = 6;

/// A TCP segment in IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it comes from.
    pub source: [u8; 4],
    /// Where it goes to.
    pub destination: [u8; 4],
    /// The port there.
    pub source_port: u16,
    /// The port here.
    pub destination_port: u16,
    /// Its first byte.
    pub sequence: u32,
    /// What else it says.
    pub flags: u8,
}

impl Segment {
    /// Reads a frame, `None` when it holds no TCP segment.
    pub fn read(frame: &[u8]) -> Option<Self> {
        let packet = frame.get(ETHERNET..)?;
        let header = packet.get(..20)?;
        if header[0] >> 4 != 4 || header[9] != TCP {
            return None;
        }
        let tcp = packet.get(usize::from(header[0] & 15) * 4..)?.get(..20)?;
        let address = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
        Some(Self {
            source: address(12),
            destination: address(16),
            source_port: u16::from_be_bytes([tcp[0], tcp[1]]),
            destination_port: u16::from_be_bytes([tcp[2], tcp[3]]),
            sequence: u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]),
            flags: tcp[13],
        })
    }
}
