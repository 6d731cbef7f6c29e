//! Who the receiver is, and whom a sender trusts.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use anabranch_protocol::live::hello::PROTOCOL;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use ring::{hkdf, hmac};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use sha2::{Digest, Sha256};

use anabranch_sockets::tls::{TlsClient, TlsError, pair_in, provider, quic_client, quic_server, read_pair};

/// The SHA-256 of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    fn of(certificate: &CertificateDer<'_>) -> Self {
        Self(Sha256::digest(certificate).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Fingerprint {
    type Err = String;

    /// 64 hexadecimal digits, colons between them or not, as `openssl x509 -fingerprint -sha256` prints them.
    fn from_str(input: &str) -> Result<Self, String> {
        const FORM: &str =
            "a fingerprint is written as 64 hexadecimal digits, as 'anabranch receive' says it";
        let digits: Option<Vec<u32>> =
            input.chars().filter(|c| *c != ':').map(|digit| digit.to_digit(16)).collect();
        let digits = digits.ok_or(FORM)?;
        if !digits.len().is_multiple_of(2) {
            return Err(FORM.into());
        }
        let bytes: Vec<u8> =
            digits.chunks(2).filter_map(|pair| u8::try_from(pair[0] * 16 + pair.get(1)?).ok()).collect();
        bytes.try_into().map(Self).map_err(|_| FORM.into())
    }
}

/// The key of stateless resets comes from that of the certificate: so a receiver that was killed and started again
/// can tell its sender at once that it knows nothing of the connection.
const RESET_LABEL: &[u8] = b"anabranch stateless reset";

/// That of tokens as well, by which a sender shows that its address is its own (RFC 9000, section 8.1.3): one that comes
/// back to a receiver that was started again needs no Retry.
const TOKEN_LABEL: &[u8] = b"anabranch address token";

/// What a receiver shows.
#[derive(Clone)]
pub struct Identity {
    config: Arc<QuicServerConfig>,
    reset_key: hmac::Key,
    token_key: Arc<hkdf::Prk>,
    fingerprint: Fingerprint,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identity").field(&self.fingerprint).finish()
    }
}

impl Identity {
    /// From PEM files with a certificate chain and its private key.
    ///
    /// # Errors
    /// A file cannot be read or used.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let (chain, private) = read_pair(certificate, key)?;
        let pair = |reason| TlsError::Pair { certificate: certificate.into(), key: key.into(), reason };
        Self::new(chain, private).map_err(pair)
    }

    /// From the text of one PEM file, `path`, with the certificate chain and its private key.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn from_pem(text: &[u8], path: &Path) -> Result<Self, TlsError> {
        let (chain, private) = pair_in(text, path)?;
        let pair = |reason| TlsError::Pair { certificate: path.into(), key: path.into(), reason };
        Self::new(chain, private).map_err(pair)
    }

    /// Makes a certificate that a sender can know by its fingerprint only, and its private key: the text of a
    /// PEM file with both.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn make() -> Result<String, Error> {
        let general = |error: rcgen::Error| Error::General(error.to_string());
        let made = rcgen::generate_simple_self_signed(vec!["anabranch".to_owned()]).map_err(general)?;
        Ok(made.cert.pem() + &made.signing_key.serialize_pem())
    }

    fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self, Error> {
        let first = chain.first().ok_or_else(|| Error::General("no certificate".into()))?;
        let fingerprint = Fingerprint::of(first);
        let secret = |label: &[u8]| Sha256::digest([label, key.secret_der()].concat());
        let reset_key = hmac::Key::new(hmac::HMAC_SHA256, &secret(RESET_LABEL));
        let token_key =
            Arc::new(hkdf::Salt::new(hkdf::HKDF_SHA256, TOKEN_LABEL).extract(&secret(TOKEN_LABEL)));
        Ok(Self { reset_key, token_key, config: quic_server(chain, key, PROTOCOL)?, fingerprint })
    }

    /// By this a sender can know the receiver.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Makes the tokens of stateless resets (RFC 9000, section 10.3.2).
    pub(super) fn reset_key(&self) -> Arc<hmac::Key> {
        Arc::new(self.reset_key.clone())
    }

    /// Makes tokens for senders' addresses.
    pub(super) fn token_key(&self) -> Arc<hkdf::Prk> {
        self.token_key.clone()
    }

    pub(super) fn config(&self) -> Arc<QuicServerConfig> {
        self.config.clone()
    }
}

/// Whom a sender trusts.
#[derive(Clone, Debug)]
pub enum Trusted {
    /// Receivers whose certificate an authority has signed.
    Authorities(TlsClient),
    /// The receiver with this certificate.
    Certificate(Fingerprint),
}

impl Trusted {
    pub(super) fn config(&self) -> Result<Arc<QuicClientConfig>, Error> {
        let verifier: Arc<dyn ServerCertVerifier> = match self {
            Self::Authorities(client) => client.verifier()?,
            Self::Certificate(fingerprint) => Arc::new(Pinned(*fingerprint)),
        };
        quic_client(verifier, PROTOCOL)
    }
}

/// Accepts one certificate, whatever name and time it has: the user knows it. That the other end has its key
/// is checked as always.
#[derive(Debug)]
struct Pinned(Fingerprint);

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found = Fingerprint::of(end_entity);
        if found == self.0 {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::General(format!("its certificate has another fingerprint, {found}")))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &provider().signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &provider().signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_read_as_they_are_written() {
        let pem = Identity::make().unwrap();
        let made = Identity::from_pem(pem.as_bytes(), Path::new("made")).unwrap().fingerprint();
        assert_eq!(made.to_string().parse(), Ok(made));
        let text = made.to_string();
        let pairs: Vec<&str> = (0..32).map(|pair| &text[2 * pair..2 * pair + 2]).collect();
        assert_eq!(pairs.join(":").to_uppercase().parse(), Ok(made));
        for wrong in ["", "00", &text[..63], &format!("{text}0"), &text.replace(&text[..1], "g")] {
            assert!(wrong.parse::<Fingerprint>().is_err(), "{wrong}");
        }
    }
}
