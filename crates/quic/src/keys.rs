//! The keys of a connection, which show what they encrypt and decrypt.

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use quinn::{ConnectError, ConnectionId, Side};
use quinn_proto::TransportError;
use quinn_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig,
    Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;

/// What is shown the packets of a connection.
pub(super) trait Watch: Send + Sync {
    /// A packet of so many bytes, with these frames, is about to be sent.
    fn sends(&self, frames: &[u8], bytes: u64) {
        let _ = (frames, bytes);
    }

    /// A packet of this number has come after the handshake, with these frames.
    fn came(&self, number: u64, frames: &[u8]) {
        let _ = (number, frames);
    }
}

/// What `inner` does, and `watch` is shown the one connection that is begun with it.
pub(super) fn shown_by_client(watch: Arc<dyn Watch>, inner: Arc<dyn ClientConfig>) -> Arc<dyn ClientConfig> {
    Arc::new(Config { watch, inner })
}

/// The same for a connection that is accepted with it.
pub(super) fn shown_by_server(watch: Arc<dyn Watch>, inner: Arc<dyn ServerConfig>) -> Arc<dyn ServerConfig> {
    Arc::new(Config { watch, inner })
}

struct Config<T: ?Sized> {
    watch: Arc<dyn Watch>,
    inner: Arc<T>,
}

impl ClientConfig for Config<dyn ClientConfig> {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let inner = self.inner.clone().start_session(version, server_name, parameters)?;
        Ok(Box::new(Shown { watch: self.watch.clone(), inner, has_handshaken: false }))
    }
}

impl ServerConfig for Config<dyn ServerConfig> {
    fn initial_keys(&self, version: u32, destination: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.inner.initial_keys(version, destination)
    }

    fn retry_tag(&self, version: u32, destination: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, destination, packet)
    }

    fn start_session(self: Arc<Self>, version: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        let inner = self.inner.clone().start_session(version, parameters);
        Box::new(Shown { watch: self.watch.clone(), inner, has_handshaken: false })
    }
}

struct Shown {
    watch: Arc<dyn Watch>,
    inner: Box<dyn Session>,
    /// The keys of the handshake, which come first, were given out. Its packets have numbers of their own.
    has_handshaken: bool,
}

impl Shown {
    fn show(&self, keys: KeyPair<Box<dyn PacketKey>>) -> KeyPair<Box<dyn PacketKey>> {
        let show = |inner| Box::new(ShownKey { watch: self.watch.clone(), inner });
        KeyPair { local: show(keys.local), remote: show(keys.remote) }
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
    watch: Arc<dyn Watch>,
    inner: Box<dyn PacketKey>,
}

impl PacketKey for ShownKey {
    fn encrypt(&self, packet: u64, bytes: &mut [u8], header_length: usize) {
        let end = bytes.len().saturating_sub(self.inner.tag_len());
        if let Some(frames) = bytes.get(header_length..end) {
            self.watch.sends(frames, anabranch_units::Bytes::of(bytes.len()).get());
        }
        self.inner.encrypt(packet, bytes, header_length);
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        self.inner.decrypt(packet, header, payload)?;
        self.watch.came(packet, payload);
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
