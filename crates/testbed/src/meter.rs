//! Counts what passes a point of a path, by destination.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rattan_core::cells::{Packet, StdPacket};

use crate::emulator::cell::Look;
use crate::topology;

const ETHERNET_HEADER: usize = 14;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// What passed a point of a path towards one address, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes at the network layer, headers included.
    pub bytes: u64,
    /// Bytes of TCP or UDP payload, retransmissions included.
    pub payload: u64,
}

#[derive(Debug, Default)]
struct Counter {
    packets: AtomicU64,
    bytes: AtomicU64,
    payload: AtomicU64,
}

/// The counters of one meter, by the last byte of the destination.
#[derive(Debug)]
pub struct Meter {
    by_host: Vec<Counter>,
}

impl Default for Meter {
    fn default() -> Self {
        Self { by_host: std::iter::repeat_with(Counter::default).take(256).collect() }
    }
}

impl Meter {
    /// What passed towards the address that ends in `host`.
    pub fn count(&self, host: u8) -> Count {
        let counter = &self.by_host[usize::from(host)];
        Count {
            packets: counter.packets.load(Relaxed),
            bytes: counter.bytes.load(Relaxed),
            payload: counter.payload.load(Relaxed),
        }
    }

    fn pass(&self, frame: &[u8]) {
        if let Some((host, bytes, payload)) = measure(frame) {
            let counter = &self.by_host[usize::from(host)];
            counter.packets.fetch_add(1, Relaxed);
            counter.bytes.fetch_add(bytes, Relaxed);
            counter.payload.fetch_add(payload, Relaxed);
        }
    }
}

/// Lets everything pass, counted.
impl Look for Arc<Meter> {
    fn passes(&mut self, packet: &StdPacket) -> bool {
        self.pass(packet.as_slice());
        true
    }
}

/// Destination, length and payload of an IPv4 packet of the run, `None` for anything else.
fn measure(frame: &[u8]) -> Option<(u8, u64, u64)> {
    let packet = frame.get(ETHERNET_HEADER..)?;
    let header = packet.get(..20)?;
    if header[0] >> 4 != 4 {
        return None;
    }
    let destination = Ipv4Addr::new(header[16], header[17], header[18], header[19]);
    let (_, host) = topology::path_and_host(destination)?;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let header_length = usize::from(header[0] & 15) * 4;
    let transport = packet.get(header_length..)?;
    let headers = header_length
        + match header[9] {
            TCP => usize::from(transport.get(12)? >> 4) * 4,
            UDP => 8,
            _ => length,
        };
    Some((host, length as u64, length.saturating_sub(headers) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp_frame(destination: [u8; 4], payload: usize) -> Vec<u8> {
        let mut frame = vec![0; ETHERNET_HEADER + 40 + payload];
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&u16::try_from(40 + payload).unwrap().to_be_bytes());
        frame[23] = TCP;
        frame[30..34].copy_from_slice(&destination);
        frame[46] = 5 << 4;
        frame
    }

    #[test]
    fn counts_by_destination() {
        let meter = Meter::default();
        meter.pass(&tcp_frame([10, 77, 0, 1], 100));
        meter.pass(&tcp_frame([10, 77, 0, 10], 7));
        assert_eq!(meter.count(1), Count { packets: 1, bytes: 140, payload: 100 });
        assert_eq!(meter.count(10), Count { packets: 1, bytes: 47, payload: 7 });
    }

    #[test]
    fn what_is_no_packet_of_the_run_is_not_counted() {
        let good = tcp_frame([10, 77, 0, 1], 0);
        for length in 0..good.len() {
            let _ = measure(&good[..length]);
        }
        assert_eq!(measure(&tcp_frame([8, 8, 8, 8], 0)), None);
        assert_eq!(measure(&[0xff; 60]), None);
    }
}
