//! The network interface that a connection leaves by, for machines with several.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use socket2::SockRef;

/// Longest name of an interface on Linux (IFNAMSIZ without the terminating zero).
const LONGEST_NAME: usize = 15;

/// A network interface by name, or by an address that it has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Interface {
    /// Such as `eth0`.
    Name(String),
    /// An address of this machine.
    Address(IpAddr),
}

/// An interface cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InterfaceError {
    /// Neither a name nor an address.
    #[error("'{0}' is neither the name of a network interface nor an IP address")]
    Unreadable(String),
    /// There is none of that name.
    #[error("there is no network interface {0}")]
    Unknown(String),
    /// No address of the kind that the server has.
    #[error("the network interface {interface} has no {family} address")]
    NoAddress {
        /// The interface.
        interface: Interface,
        /// `IPv4` or `IPv6`.
        family: &'static str,
    },
    /// The system refuses.
    #[error("cannot use the network interface {interface}: {source}")]
    Bind {
        /// The interface.
        interface: Interface,
        /// Why.
        source: io::Error,
    },
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
        }
    }
}

impl FromStr for Interface {
    type Err = InterfaceError;

    fn from_str(input: &str) -> Result<Self, InterfaceError> {
        if let Ok(address) = input.parse() {
            return Ok(Self::Address(address));
        }
        let is_name = (1..=LONGEST_NAME).contains(&input.len())
            && input.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/' && byte != b':');
        if is_name { Ok(Self::Name(input.into())) } else { Err(InterfaceError::Unreadable(input.into())) }
    }
}

impl Interface {
    /// Makes `socket` leave by this interface on its way to `to`.
    pub fn bind(&self, socket: &SockRef<'_>, to: SocketAddr) -> Result<(), InterfaceError> {
        let address = match self {
            Self::Address(address) if address.is_ipv4() == to.is_ipv4() => *address,
            Self::Address(_) => return Err(self.no_address(to)),
            Self::Name(name) => match bind_device(socket, name) {
                Ok(()) => return Ok(()),
                // Older kernels want a privilege for it. The interface's address serves where routes follow
                // the source.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported
                    ) =>
                {
                    self.address_of(name, to)?
                }
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
                    return Err(InterfaceError::Unknown(name.clone()));
                }
                Err(source) => return Err(InterfaceError::Bind { interface: self.clone(), source }),
            },
        };
        socket
            .bind(&SocketAddr::new(address, 0).into())
            .map_err(|source| InterfaceError::Bind { interface: self.clone(), source })
    }

    fn address_of(&self, name: &str, to: SocketAddr) -> Result<IpAddr, InterfaceError> {
        let all = if_addrs::get_if_addrs()
            .map_err(|source| InterfaceError::Bind { interface: self.clone(), source })?;
        let mut own = all.iter().filter(|interface| interface.name == name).peekable();
        if own.peek().is_none() {
            return Err(InterfaceError::Unknown(name.into()));
        }
        own.map(if_addrs::Interface::ip)
            .find(|address| address.is_ipv4() == to.is_ipv4())
            .ok_or_else(|| self.no_address(to))
    }

    fn no_address(&self, to: SocketAddr) -> InterfaceError {
        InterfaceError::NoAddress {
            interface: self.clone(),
            family: if to.is_ipv4() { "IPv4" } else { "IPv6" },
        }
    }
}

#[cfg(target_os = "linux")]
fn bind_device(socket: &SockRef<'_>, name: &str) -> io::Result<()> {
    socket.bind_device(Some(name.as_bytes()))
}

#[cfg(not(target_os = "linux"))]
fn bind_device(_socket: &SockRef<'_>, _name: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses() {
        assert_eq!("eth0".parse::<Interface>().unwrap(), Interface::Name("eth0".into()));
        assert_eq!("10.0.0.1".parse::<Interface>().unwrap(), Interface::Address([10, 0, 0, 1].into()));
        assert!(matches!("fe80::1".parse().unwrap(), Interface::Address(IpAddr::V6(_))));
        for wrong in ["", "a/b", "a b", "1:2", "sixteen-letters!", "10.0.0.1:80"] {
            assert!(wrong.parse::<Interface>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_of_the_interface_of_the_right_family() {
        let lo = Interface::Name("lo".into());
        let to = SocketAddr::from(([127, 0, 0, 1], 80));
        assert!(lo.address_of("lo", to).unwrap().is_loopback());
        assert!(matches!(lo.address_of("nothing0", to), Err(InterfaceError::Unknown(_))));
    }
}
