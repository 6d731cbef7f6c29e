//! Why an address cannot be listened at, in the same words wherever a program of ours listens.

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;

/// An address that cannot be listened at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot listen at {address}: {reason}")]
pub struct ListenError {
    /// The address.
    pub address: SocketAddr,
    reason: Cow<'static, str>,
}

impl ListenError {
    /// What the system said when it was asked for this address.
    pub fn new(address: SocketAddr, error: &io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "another program listens there; take another port, or 0 for any free one".into()
            }
            io::ErrorKind::PermissionDenied => "not permitted (ports below 1024 need a privilege)".into(),
            io::ErrorKind::AddrNotAvailable => "this machine does not have the address".into(),
            _ => error.to_string().into(),
        };
        Self { address, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_told_in_words() {
        let address = "127.0.0.1:80".parse().unwrap();
        let told = ListenError::new(address, &io::ErrorKind::AddrInUse.into()).to_string();
        assert_eq!(
            told,
            "cannot listen at 127.0.0.1:80: another program listens there; take another port, or 0 for \
             any free one"
        );
    }
}
