//! Handshakes of QUIC with clients whose address is not proven: anybody can name any address as the source of
//! a first packet. They are few, and what is sent to such an address is bounded.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use anabranch_sockets::client_of;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

/// Handshakes at a time that one client may have without having proven its address; for a further one it has
/// to (RFC 9000, section 8.1.2). Enough that a browser does not wait a round trip longer.
const MOST_OF_A_CLIENT: usize = 4;
/// The same of all clients: a flood that names many addresses costs others a round trip, and the server no
/// more than this.
const MOST: usize = 64;
/// A first packet has so many bytes at the least (RFC 9000, section 14.1).
const FIRST_PACKET: u64 = 1200;
/// For each byte that came from an address that is not proven, so many may go there (RFC 9000, section 8.1).
const AMPLIFICATION: u64 = 3;

/// The handshakes with clients whose address is not proven.
#[derive(Debug, Default)]
pub struct Handshakes {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    all: usize,
    by_client: HashMap<IpAddr, usize>,
    by_address: HashMap<SocketAddr, Account>,
}

/// What came from an address with handshakes, and what went there.
#[derive(Debug, Default)]
struct Account {
    handshakes: usize,
    received: u64,
    sent: u64,
    /// The connection IDs that were told to it. They cannot be guessed: who uses one has had what was sent
    /// (RFC 9000, section 8.1).
    told: Vec<Vec<u8>>,
    is_proven: bool,
}

/// A handshake with a client whose address is not proven. It counts as long as this lives.
#[derive(Debug)]
pub struct Unproven {
    handshakes: Arc<Handshakes>,
    address: SocketAddr,
}

impl Handshakes {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A first packet has come. `None` when there are too many: the address has to be proven first.
    pub fn begin(self: &Arc<Self>, address: SocketAddr) -> Option<Unproven> {
        let mut inner = self.lock();
        let all = inner.all;
        let theirs = inner.by_client.entry(client_of(address.ip())).or_default();
        if *theirs >= MOST_OF_A_CLIENT || all >= MOST {
            if *theirs == 0 {
                inner.by_client.remove(&client_of(address.ip()));
            }
            return None;
        }
        *theirs += 1;
        inner.all += 1;
        let account = inner.by_address.entry(address).or_default();
        account.handshakes += 1;
        account.received += FIRST_PACKET;
        Some(Unproven { handshakes: self.clone(), address })
    }

    /// Who is at this address has shown a token (RFC 9000, section 8.1): what goes there is not bounded, whatever other
    /// handshakes have begun there.
    pub fn prove(&self, address: SocketAddr) {
        if let Some(account) = self.lock().by_address.get_mut(&address) {
            account.is_proven = true;
        }
    }

    /// Something came from an address.
    fn received(&self, from: SocketAddr, datagram: &[u8]) {
        if let Some(account) = self.lock().by_address.get_mut(&from) {
            account.received = account.received.saturating_add(datagram.len() as u64);
            account.is_proven |= account.told.iter().any(|id| is_to(datagram, id));
        }
    }

    /// How much of `datagrams`, which have `size` bytes each but the last, may go to an address; it counts as
    /// sent.
    fn send(&self, to: SocketAddr, datagrams: &[u8], size: usize) -> usize {
        let mut inner = self.lock();
        let Some(account) = inner.by_address.get_mut(&to).filter(|account| !account.is_proven) else {
            return datagrams.len();
        };
        let left = account.received.saturating_mul(AMPLIFICATION).saturating_sub(account.sent);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let whole = if datagrams.len() <= left { datagrams.len() } else { left / size.max(1) * size };
        account.sent += whole as u64;
        let id = datagrams.get(..whole).and_then(source_id);
        if let Some(id) = id
            .filter(|id| account.told.len() < MOST_OF_A_CLIENT && account.told.iter().all(|told| told != id))
        {
            account.told.push(id.to_vec());
        }
        whole
    }

    /// What was to be sent could not be.
    fn not_sent(&self, to: SocketAddr, bytes: u64) {
        if let Some(account) = self.lock().by_address.get_mut(&to) {
            account.sent = account.sent.saturating_sub(bytes);
        }
    }
}

impl Unproven {
    /// The client has answered to what was sent to its address.
    pub fn prove(self) {
        self.handshakes.prove(self.address);
    }
}

impl Drop for Unproven {
    fn drop(&mut self) {
        let mut inner = self.handshakes.lock();
        inner.all -= 1;
        let client = client_of(self.address.ip());
        if let Some(theirs) = inner.by_client.get_mut(&client) {
            *theirs -= 1;
            if *theirs == 0 {
                inner.by_client.remove(&client);
            }
        }
        if let Some(account) = inner.by_address.get_mut(&self.address) {
            account.handshakes -= 1;
            if account.handshakes == 0 {
                inner.by_address.remove(&self.address);
            }
        }
    }
}

/// The connection ID that a packet with a long header says is its sender's (RFC 8999, section 5.1).
fn source_id(datagram: &[u8]) -> Option<&[u8]> {
    let (destination, rest) = destination_id(datagram)?;
    let source = rest
        .get(destination.len()..)?
        .split_first()
        .and_then(|(length, rest)| rest.get(..usize::from(*length)));
    source.filter(|id| !id.is_empty())
}

/// The connection ID that such a packet is for, and where that begins.
fn destination_id(datagram: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = datagram.get(5..)?.split_first()?;
    let is_long = datagram.first().is_some_and(|flags| flags & 0x80 != 0);
    let id = rest.get(..usize::from(*length)).filter(|_| is_long)?;
    Some((id, rest))
}

/// Whether a datagram is for this connection ID.
fn is_to(datagram: &[u8], id: &[u8]) -> bool {
    let is_short = datagram.first().is_some_and(|flags| flags & 0x80 == 0);
    if is_short {
        datagram[1..].starts_with(id)
    } else {
        destination_id(datagram).is_some_and(|(to, _)| to == id)
    }
}

/// A socket that sends no more to an address than it may before that is proven. quinn sends a whole packet as
/// long as a byte of that is left, so up to a packet more; here that counts as lost on the way, and goes out
/// when the client has sent something.
#[derive(Debug)]
pub struct Thrifty {
    /// What sends and receives.
    pub inner: Arc<dyn AsyncUdpSocket>,
    /// With whom.
    pub handshakes: Arc<Handshakes>,
}

impl AsyncUdpSocket for Thrifty {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.inner.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let &Transmit { destination, ecn, contents, segment_size, src_ip } = transmit;
        let size = segment_size.unwrap_or(contents.len());
        let allowed = self.handshakes.send(destination, contents, size);
        let contents = contents.get(..allowed).unwrap_or(contents);
        if contents.is_empty() {
            return Ok(());
        }
        let segment_size = segment_size.filter(|size| *size < contents.len());
        let sent = self.inner.try_send(&Transmit { destination, ecn, contents, segment_size, src_ip });
        if sent.is_err() {
            self.handshakes.not_sent(destination, contents.len() as u64);
        }
        sent
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [io::IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let polled = self.inner.poll_recv(cx, buffers, meta);
        if let Poll::Ready(Ok(count)) = polled {
            for (buffer, RecvMeta { addr, len, stride, .. }) in buffers.iter().zip(meta.iter()).take(count) {
                let datagrams = buffer.get(..*len).unwrap_or_default().chunks((*stride).max(1));
                datagrams.for_each(|datagram| self.handshakes.received(*addr, datagram));
            }
        }
        polled
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.inner.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_has_to_prove_its_address_and_others_need_not() {
        let handshakes = Arc::new(Handshakes::default());
        let begin = |address: &str, port| handshakes.begin((address.parse::<IpAddr>().unwrap(), port).into());
        let flood: Vec<_> = (0..10).filter_map(|port| begin("192.0.2.1", port)).collect();
        assert_eq!(flood.len(), MOST_OF_A_CLIENT);
        let other = begin("192.0.2.2", 1);
        assert!(other.is_some());
        drop(flood);
        assert!(begin("192.0.2.1", 1).is_some());
        let wide: Vec<_> = (1..=255).filter_map(|host| begin(&format!("10.0.0.{host}"), 1)).collect();
        assert_eq!(wide.len(), MOST - 1);
        drop((wide, other));
        let inner = handshakes.lock();
        assert!(inner.all == 0 && inner.by_client.is_empty() && inner.by_address.is_empty());
    }

    /// A packet with a long header, from one connection ID to another.
    fn packet(to: &[u8], from: &[u8], length: usize) -> Vec<u8> {
        let mut packet = vec![0xC0, 0, 0, 0, 1, u8::try_from(to.len()).unwrap()];
        packet.extend_from_slice(to);
        packet.push(u8::try_from(from.len()).unwrap());
        packet.extend_from_slice(from);
        packet.resize(length, 0);
        packet
    }

    #[test]
    fn what_goes_to_an_address_is_bounded_until_it_is_proven() {
        let handshakes = Arc::new(Handshakes::default());
        let to: SocketAddr = ([192, 0, 2, 1], 1).into();
        let send = |length: usize| handshakes.send(to, &vec![0; length], 1200);
        assert_eq!(send(9000), 9000, "nobody's");
        let unproven = handshakes.begin(to).unwrap();
        let other = handshakes.begin(([192, 0, 2, 1], 2).into()).unwrap();
        assert_eq!((send(1500), send(2628), send(1200)), (1500, 1200, 0), "whole packets only");
        handshakes.received(to, &[0; 300]);
        assert_eq!(send(1200), 1200);
        let again = handshakes.begin(to).unwrap();
        again.prove();
        assert_eq!(send(9000), 9000);
        // A token proves the address of handshakes that nobody goes on with, too.
        let to = ([192, 0, 2, 1], 2).into();
        assert_eq!(handshakes.send(to, &[0; 9000], 1200), 3600);
        handshakes.prove(to);
        assert_eq!(handshakes.send(to, &[0; 9000], 1200), 9000);
        drop((unproven, other));
    }

    #[test]
    fn who_knows_what_was_sent_is_where_it_was_sent_to() {
        let (ours, theirs) = ([7; 8], [9; 5]);
        for (answer, is_proof) in [
            (packet(&ours, &theirs, 50), true),
            (packet(&theirs, &ours, 50), false),
            (packet(&[7; 7], &theirs, 50), false),
            ([&[0x40][..], &ours, &[0; 20]].concat(), true),
            ([&[0x40][..], &theirs, &[0; 20]].concat(), false),
            (vec![0x40], false),
            (vec![0xC0, 0, 0, 0, 1, 200, 7], false),
            (Vec::new(), false),
        ] {
            let handshakes = Arc::new(Handshakes::default());
            let to: SocketAddr = ([192, 0, 2, 1], 1).into();
            let _unproven = handshakes.begin(to).unwrap();
            assert_eq!(handshakes.send(to, &packet(&theirs, &ours, 1200), 1200), 1200);
            handshakes.received(to, &answer);
            assert_eq!(handshakes.send(to, &[0; 9000], 9000) == 9000, is_proof, "{answer:?}");
        }
    }
}
