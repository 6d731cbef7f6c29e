//! Ends of the live protocol that say what they are told to, for the real program at the other end.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_protocol::live::hello::{Message, PROTOCOL, SESSION_BYTES};
use anabranch_protocol::live::wire::{Content, Header, Width, encode_data};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, RecvStream, SendStream, ServerConfig};
use rustls::RootCertStore;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::common::live::TOKEN;

/// So long an answer may take on a machine that does other things.
const PATIENCE: Duration = Duration::from_secs(20);

/// Makes `cert.pem` for this machine and `key.pem`. Answers with the options of a receiver that shows it.
pub fn certify(directory: &Path) -> [&'static str; 4] {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    fs::write(directory.join("cert.pem"), made.cert.pem()).unwrap();
    fs::write(directory.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    ["--cert", "cert.pem", "--key", "key.pem"]
}

fn certificate(directory: &Path) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(directory.join("cert.pem")).unwrap()
}

async fn read(stream: &mut RecvStream) -> Message {
    let mut length = [0; 2];
    timeout(PATIENCE, stream.read_exact(&mut length)).await.unwrap().unwrap();
    let mut message = vec![0; u16::from_be_bytes(length).into()];
    timeout(PATIENCE, stream.read_exact(&mut message)).await.unwrap().unwrap();
    Message::decode(&message).unwrap()
}

/// A sender with one connection, of which every byte is chosen.
pub struct RawSender {
    runtime: Runtime,
    connection: Connection,
    control: SendStream,
    answers: RecvStream,
    sequence: u32,
}

impl RawSender {
    /// Connects to a receiver that shows the certificate of [`certify`].
    pub fn connect(to: SocketAddr, directory: &Path) -> Self {
        let runtime = Runtime::new().unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate(directory)).unwrap();
        let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(config).unwrap()));
        let (connection, control, answers) = runtime.block_on(async {
            let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
            let connecting = endpoint.connect_with(config, to, "localhost").unwrap();
            let connection = timeout(PATIENCE, connecting).await.unwrap().unwrap();
            let (control, answers) = connection.open_bi().await.unwrap();
            (connection, control, answers)
        });
        Self { runtime, connection, control, answers, sequence: 0 }
    }

    /// Is let in, with a stream that begins at packet 0.
    pub fn greet(&mut self, latency: Duration) {
        let latency = anabranch_units::Duration::from(latency);
        let hello = Message::Hello {
            session: [7; SESSION_BYTES],
            next: 0,
            latency,
            is_published: false,
            token: TOKEN.into(),
        };
        self.say(&hello.encode());
        let answer = self.runtime.block_on(read(&mut self.answers));
        assert_eq!(answer, Message::Welcome { latency });
    }

    /// Any bytes on the stream of messages.
    pub fn say(&mut self, bytes: &[u8]) {
        self.runtime.block_on(self.control.write_all(bytes)).unwrap();
    }

    /// Any bytes in a datagram. It leaves at once.
    pub fn datagram(&self, bytes: Vec<u8>) {
        self.runtime.block_on(self.connection.send_datagram_wait(bytes.into())).unwrap();
    }

    /// A packet of the stream that came into this sender at `time`, in microseconds of its clock.
    pub fn media(&mut self, number: u32, time: u32, payload: &[u8]) {
        let header =
            Header { width: Width::Wide, sequence: self.sequence, timestamp: time, rtt: 1000, several: None };
        self.sequence += 1;
        let content = Content::Media { sequence: number, time, is_again: false, is_packed: false, payload };
        self.datagram(encode_data(header, content));
    }

    /// The stream ends before packet `next`: waits until the receiver has handed on what comes before it.
    pub fn end(mut self, next: u64) {
        self.say(&Message::End { next }.encode());
        assert_eq!(self.runtime.block_on(read(&mut self.answers)), Message::Done);
        self.connection.close(0u32.into(), b"");
    }

    /// Waits until the receiver closes the connection: its code, and why.
    pub fn closed(self) -> (u64, String) {
        let closed = async { timeout(PATIENCE, self.connection.closed()).await.unwrap() };
        match self.runtime.block_on(closed) {
            quinn::ConnectionError::ApplicationClosed(close) => {
                (close.error_code.into(), String::from_utf8_lossy(&close.reason).into_owned())
            }
            other => panic!("{other}"),
        }
    }
}

/// A receiver that answers a sender's datagrams with what it is told to.
pub struct RawReceiver {
    runtime: Runtime,
    endpoint: Endpoint,
    pub address: SocketAddr,
}

impl RawReceiver {
    /// Shows the certificate of [`certify`].
    pub fn start(directory: &Path) -> Self {
        let runtime = Runtime::new().unwrap();
        let key = PrivateKeyDer::from_pem_file(directory.join("key.pem")).unwrap();
        let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate(directory)], key)
            .unwrap();
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        let config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(config).unwrap()));
        let endpoint =
            runtime.block_on(async { Endpoint::server(config, "127.0.0.1:0".parse().unwrap()) }).unwrap();
        let address = endpoint.local_addr().unwrap();
        Self { runtime, endpoint, address }
    }

    /// Lets one sender in and answers each of its datagrams, given with its number, until it is gone. Answers
    /// with how many came.
    pub fn serve(&self, mut answer: impl FnMut(u64, &[u8]) -> Vec<Vec<u8>>) -> u64 {
        self.runtime.block_on(async {
            let incoming = timeout(PATIENCE, self.endpoint.accept()).await.unwrap().unwrap();
            let connection = incoming.await.unwrap();
            let (mut control, mut messages) = connection.accept_bi().await.unwrap();
            let Message::Hello { latency, .. } = read(&mut messages).await else { panic!("no hello") };
            control.write_all(&Message::Welcome { latency }.encode()).await.unwrap();
            let mut count = 0;
            while let Ok(datagram) = connection.read_datagram().await {
                for bytes in answer(count, &datagram) {
                    // Fails when the sender has gone.
                    let _ = connection.send_datagram_wait(bytes.into()).await;
                }
                count += 1;
            }
            count
        })
    }
}
