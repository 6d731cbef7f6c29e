//! The keys of a client's connection, which show what they decrypt.

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use quinn::{ConnectError, ConnectionId, Side};
use quinn_proto::TransportError;
use quinn_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session,
};
use quinn_proto::transport_parameters::TransportParameters;

use super::Arrivals;

/// What `inner` does, and `arrivals` is shown what comes after the handshake on the one connection that is
/// begun with it.
pub fn shown_to(arrivals: Arc<Arrivals>, inner: Arc<dyn ClientConfig>) -> Arc<dyn ClientConfig> {
    Arc::new(Config { arrivals, inner })
}

struct Config {
    arrivals: Arc<Arrivals>,
    inner: Arc<dyn ClientConfig>,
}

impl ClientConfig for Config {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let inner = self.inner.clone().start_session(version, server_name, parameters)?;
        Ok(Box::new(Shown { arrivals: self.arrivals.clone(), inner, has_handshaken: false }))
    }
}

struct Shown {
    arrivals: Arc<Arrivals>,
    inner: Box<dyn Session>,
    /// The keys of the handshake, which come first, were given out. Its packets have numbers of their own.
    has_handshaken: bool,
}

impl Shown {
    fn show(&self, keys: KeyPair<Box<dyn PacketKey>>) -> KeyPair<Box<dyn PacketKey>> {
        let remote = ShownKey { arrivals: self.arrivals.clone(), inner: keys.remote };
        KeyPair { local: keys.local, remote: Box::new(remote) }
    }
}

impl Session for Shown {
    fn initial_keys(&self, destination: &ConnectionId, side: Side) -> Keys {
        self.inner.initial_keys(destination, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(bytes)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let Keys { header, packet } = self.inner.write_handshake(out)?;
        let is_for_data = std::mem::replace(&mut self.has_handshaken, true);
        let packet = if is_for_data { self.show(packet) } else { packet };
        Some(Keys { header, packet })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.inner.next_1rtt_keys()?;
        Some(self.show(keys))
    }

    fn is_valid_retry(&self, destination: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(destination, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

struct ShownKey {
    arrivals: Arc<Arrivals>,
    inner: Box<dyn PacketKey>,
}

impl PacketKey for ShownKey {
    fn encrypt(&self, packet: u64, bytes: &mut [u8], header_length: usize) {
        self.inner.encrypt(packet, bytes, header_length);
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        self.inner.decrypt(packet, header, payload)?;
        self.arrivals.came(packet, payload);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}
