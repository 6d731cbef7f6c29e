//! What can go wrong with a connection, in categories that can be acted on and in words for a user.

use std::io;
use std::net::SocketAddr;

use anabranch_units::{Bytes, Duration};

use anabranch_sockets::{InterfaceError, SocketError};

/// A part of a response that breaks the rules of HTTP, or the bounds set here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

/// An established connection failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server cut the connection off.
    #[error("the server reset the connection")]
    Reset,
    /// The connection ended in the middle of a response; how much was missing, where the server had said how
    /// much comes.
    #[error("the server closed the connection {}", missing.map_or_else(
        || "in the middle of a response".to_owned(), |missing| format!("{missing} before the end \
            of a response")))]
    Truncated {
        /// Payload that did not come.
        missing: Option<Bytes>,
    },
    /// The connection ended without TLS's `close_notify`, and only its end says where the response ends:
    /// anybody on the path may have cut it off (RFC 9112, 9.8).
    #[error("the connection ended without a close_notify of TLS: the end of the response may be missing")]
    CutOff,
    /// The server does not keep to HTTP.
    #[error("the server's response is broken: {0}")]
    Malformed(#[from] Malformed),
    /// More requests than the connection holds were sent before their responses came.
    #[error("too many requests are waiting for an answer")]
    TooManyInFlight,
    /// The connection was closed, or handed over to another protocol.
    #[error("the connection is closed")]
    Closed,
    /// TLS found something wrong.
    #[error("TLS failed: {0}")]
    Tls(rustls::Error),
    /// Anything else that the system reports.
    #[error("the connection failed: {0}")]
    Io(io::Error),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        match error.kind() {
            ConnectionReset | ConnectionAborted | BrokenPipe => Self::Reset,
            UnexpectedEof => Self::Truncated { missing: None },
            _ => match tls_cause(&error) {
                Some(cause) => Self::Tls(cause),
                None => Self::Io(error),
            },
        }
    }
}

/// A connection could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The name has no address, or nobody could be asked for it.
    #[error("cannot find the host {host}: {reason}")]
    UnknownHost {
        /// The name.
        host: String,
        /// What the resolver says.
        reason: String,
    },
    /// Nobody listens there.
    #[error("{address} refused the connection")]
    Refused {
        /// Where.
        address: SocketAddr,
    },
    /// Nobody answered in time.
    #[error("{host} did not answer within {after}")]
    Timeout {
        /// Whom.
        host: String,
        /// How long was waited.
        after: Duration,
    },
    /// The network does not lead there, or the system reports something else.
    #[error("cannot connect to {address}: {source}")]
    Unreachable {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The network interface that was asked for cannot be used.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The server cannot prove that it is who it should be.
    #[error("the certificate of {host} is not accepted: {reason}")]
    Certificate {
        /// Whose.
        host: String,
        /// Why.
        reason: String,
    },
    /// TLS could not be agreed on.
    #[error("no secure connection to {host}: {reason}")]
    Tls {
        /// With whom.
        host: String,
        /// Why.
        reason: String,
    },
    /// The proxy that the environment names for this server cannot be used.
    #[error("the proxy {proxy}: {reason}")]
    Proxy {
        /// Where it is.
        proxy: String,
        /// Why.
        reason: String,
    },
    /// HTTP/3 was asked for, and there is none without TLS.
    #[error("HTTP/3 is spoken with https: only, not with http: at {host}")]
    NotSecure {
        /// Whom.
        host: String,
    },
    /// The system refused something that a socket needs.
    #[error("cannot prepare a socket: {0}")]
    Socket(io::Error),
}

impl From<SocketError> for ConnectError {
    fn from(error: SocketError) -> Self {
        match error {
            SocketError::Interface(error) => Self::Interface(error),
            SocketError::Socket(error) => Self::Socket(error),
        }
    }
}

/// What is said of a certificate that nobody trusts.
const UNTRUSTED: &str = "its issuer is not trusted here (--cacert FILE adds one)";

/// The same of one that its own server has signed.
const SELF_SIGNED: &str =
    "it is self-signed, and not trusted here (--cacert FILE with the certificate trusts it)";

/// Whether webpki refused a certificate because it is that of an authority: a self-signed one usually says so
/// of itself.
fn is_self_signed(reason: &str) -> bool {
    reason.contains("CaUsedAsEndEntity")
}

impl ConnectError {
    pub(super) fn from_handshake(host: &str, error: &io::Error) -> Self {
        let host = host.to_owned();
        match tls_cause(error) {
            Some(cause) => Self::from_tls(host, &cause),
            None if error.kind() == io::ErrorKind::UnexpectedEof => {
                Self::Tls { host, reason: "the server closed the connection during the handshake".into() }
            }
            None => Self::Tls { host, reason: error.to_string() },
        }
    }

    pub(super) fn from_quic(host: &str, error: quinn::ConnectionError) -> Self {
        let host = host.to_owned();
        match error {
            // QUIC tells the cause in words only.
            quinn::ConnectionError::TransportError(error) if error.reason.contains("certificate") => {
                let reason = error.reason;
                let reason = if reason.contains("UnknownIssuer") || reason.contains("BadSignature") {
                    UNTRUSTED.into()
                } else if is_self_signed(&reason) {
                    SELF_SIGNED.into()
                } else {
                    reason
                };
                Self::Certificate { host, reason }
            }
            other => Self::Tls { host, reason: other.to_string() },
        }
    }

    pub(super) fn from_tls(host: String, cause: &rustls::Error) -> Self {
        use rustls::CertificateError as Bad;
        use rustls::Error::{General, InvalidCertificate, InvalidMessage};
        match cause {
            InvalidCertificate(bad) => {
                let reason = match bad {
                    // The latter when a trusted certificate has the issuer's name but another key.
                    Bad::UnknownIssuer | Bad::BadSignature => UNTRUSTED.into(),
                    Bad::Expired | Bad::ExpiredContext { .. } => "it has expired".into(),
                    Bad::NotValidYet | Bad::NotValidYetContext { .. } => "it is not valid yet".into(),
                    Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
                        "it is for another name".into()
                    }
                    Bad::Revoked => "it was revoked".into(),
                    Bad::Other(other) if is_self_signed(&other.to_string()) => SELF_SIGNED.into(),
                    other => other.to_string(),
                };
                Self::Certificate { host, reason }
            }
            General(reason) => Self::Tls { host, reason: reason.clone() },
            InvalidMessage(_) => {
                Self::Tls { host, reason: "the server does not speak TLS on this port".into() }
            }
            other => Self::Tls { host, reason: other.to_string() },
        }
    }
}

fn tls_cause(error: &io::Error) -> Option<rustls::Error> {
    error.get_ref()?.downcast_ref::<rustls::Error>().cloned()
}
