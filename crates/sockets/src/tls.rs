//! Certificates: which servers a client trusts, and how a server shows who it is.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use self_signed::Trust;

mod self_signed;

const HTTP_1_1: &[u8] = b"http/1.1";
const HTTP_3: &[u8] = b"h3";

/// A file is not what TLS needs.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A PEM file is damaged.
    #[error("{} is not a PEM file: {reason}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// There is no certificate in a PEM file.
    #[error("no certificate in {}", .0.display())]
    NoCertificate(PathBuf),
    /// There is no private key in a PEM file.
    #[error("no private key in {}", .0.display())]
    NoKey(PathBuf),
    /// A certificate cannot be used as a root.
    #[error("a certificate in {} cannot be trusted: {reason}", path.display())]
    BadRoot {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: rustls::Error,
    },
    /// Certificate and key of a server cannot be used together.
    #[error("certificate {} and key {} cannot be used: {reason}", certificate.display(), key.display())]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        reason: rustls::Error,
    },
}

/// Whom a client trusts: the system's roots and those given. Cheap to clone; clones share sessions that can
/// be resumed.
#[derive(Clone)]
pub struct TlsClient {
    extra_roots: Arc<RootCertStore>,
    /// The certificates behind them.
    given: Arc<Vec<CertificateDer<'static>>>,
    /// Made at the first use: the system's roots take milliseconds to read, and plain HTTP needs none.
    config: Arc<OnceLock<Arc<ClientConfig>>>,
    /// The same for HTTP/3.
    http3: Arc<OnceLock<Arc<QuicClientConfig>>>,
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsClient").field("given", &self.given.len()).finish_non_exhaustive()
    }
}

impl TlsClient {
    /// Trusts the system's roots and the certificates in these PEM files.
    ///
    /// # Errors
    /// A file cannot be read, or holds no usable certificate.
    pub fn new(files: &[PathBuf]) -> Result<Self, TlsError> {
        let mut extra_roots = RootCertStore::empty();
        let mut given = Vec::new();
        for path in files {
            for certificate in certificates(path)? {
                given.push(certificate.clone());
                extra_roots
                    .add(certificate)
                    .map_err(|reason| TlsError::BadRoot { path: path.clone(), reason })?;
            }
        }
        Ok(Self {
            extra_roots: Arc::new(extra_roots),
            given: Arc::new(given),
            config: Arc::default(),
            http3: Arc::default(),
        })
    }

    /// The configuration of a client connection over TCP.
    pub fn config(&self) -> Result<Arc<ClientConfig>, rustls::Error> {
        if let Some(config) = self.config.get() {
            return Ok(config.clone());
        }
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(self.verifier()?)
            .with_no_client_auth();
        config.alpn_protocols = vec![HTTP_1_1.to_vec()];
        Ok(self.config.get_or_init(|| Arc::new(config)).clone())
    }

    /// The same of HTTP/3.
    pub fn http3(&self) -> Result<Arc<QuicClientConfig>, rustls::Error> {
        if let Some(config) = self.http3.get() {
            return Ok(config.clone());
        }
        let config = quic_client(self.verifier()?, HTTP_3)?;
        Ok(self.http3.get_or_init(|| config).clone())
    }

    /// What decides whether a server is who it says.
    pub fn verifier(&self) -> Result<Arc<dyn ServerCertVerifier>, rustls::Error> {
        let mut roots = RootCertStore::clone(&self.extra_roots);
        let system = rustls_native_certs::load_native_certs();
        for error in &system.errors {
            tracing::debug!(%error, "part of the system's trusted certificates cannot be read");
        }
        roots.add_parsable_certificates(system.certs);
        if roots.is_empty() {
            return Err(rustls::Error::General(
                "this machine has no trusted certificates: install ca-certificates or use --cacert".into(),
            ));
        }
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
            .build()
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        Ok(Arc::new(Trust::new(verifier, self.given.clone())))
    }
}

impl Default for TlsClient {
    /// Trusts the system's roots only.
    fn default() -> Self {
        Self {
            extra_roots: Arc::new(RootCertStore::empty()),
            given: Arc::default(),
            config: Arc::default(),
            http3: Arc::default(),
        }
    }
}

/// The TLS configuration of a server, from PEM files with its certificate chain and its private key.
///
/// # Errors
/// A file cannot be read or is empty, or certificate and key do not belong together.
pub fn load_server(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let (chain, private_key) = read_pair(certificate, key)?;
    let pair_error = |reason| TlsError::Pair { certificate: certificate.into(), key: key.into(), reason };
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(pair_error)?
        .with_no_client_auth()
        .with_single_cert(chain, private_key)
        .map_err(pair_error)?;
    config.alpn_protocols = vec![HTTP_1_1.to_vec()];
    Ok(Arc::new(config))
}

/// The configuration of a server over QUIC, from the same files, for clients that speak HTTP/3.
///
/// # Errors
/// A file cannot be read or is empty, or certificate and key do not belong together.
pub fn load_quic_server(certificate: &Path, key: &Path) -> Result<Arc<QuicServerConfig>, TlsError> {
    let (chain, private_key) = read_pair(certificate, key)?;
    quic_server(chain, private_key, HTTP_3).map_err(|reason| TlsError::Pair {
        certificate: certificate.into(),
        key: key.into(),
        reason,
    })
}

/// What a server over QUIC shows to clients that speak `protocol`.
pub fn quic_server(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    protocol: &[u8],
) -> Result<Arc<QuicServerConfig>, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![protocol.to_vec()];
    // What is sent before the handshake is done could be sent again by others.
    config.max_early_data_size = 0;
    let config =
        QuicServerConfig::try_from(config).map_err(|error| rustls::Error::General(error.to_string()))?;
    Ok(Arc::new(config))
}

/// What a client over QUIC needs that speaks `protocol` and trusts as `verifier` does.
pub fn quic_client(
    verifier: Arc<dyn ServerCertVerifier>,
    protocol: &[u8],
) -> Result<Arc<QuicClientConfig>, rustls::Error> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let config =
        QuicClientConfig::try_from(config).map_err(|error| rustls::Error::General(error.to_string()))?;
    Ok(Arc::new(config))
}

/// A certificate chain and its private key from PEM files.
pub fn read_pair(
    certificate: &Path,
    key: &Path,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    Ok((certificates(certificate)?, private_key(&read(key)?, key)?))
}

/// The same from the text of one PEM file that has both.
pub fn pair_in(
    text: &[u8],
    path: &Path,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    Ok((certificates_in(text, path)?, private_key(text, path)?))
}

fn private_key(text: &[u8], path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        rustls_pki_types::pem::Error::NoItemsFound => TlsError::NoKey(path.into()),
        error => TlsError::Pem { path: path.into(), reason: error.to_string() },
    })
}

/// Named here, since a process-wide default is undefined when another crate brings a second provider.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Read { path: path.into(), source })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    certificates_in(&read(path)?, path)
}

fn certificates_in(text: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(text)
        .collect::<Result<_, _>>()
        .map_err(|error| TlsError::Pem { path: path.into(), reason: error.to_string() })?;
    if found.is_empty() { Err(TlsError::NoCertificate(path.into())) } else { Ok(found) }
}
