//! Networks of addresses, as rules name them.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// Addresses that begin alike. IPv4 is written as IPv6 writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network {
    pub address: u128,
    pub mask: u128,
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("'{text}' is no address and no network, such as \"192.0.2.7\" or \"2001:db8::/32\"");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u32>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let (before, address) = match address {
            IpAddr::V4(address) => (96, address.to_ipv6_mapped()),
            IpAddr::V6(address) => (0, address),
        };
        let bits = bits.map_or(Some(128), |bits| bits.checked_add(before)).filter(|bits| *bits <= 128);
        let bits = bits.ok_or_else(wrong)?;
        let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
        Ok(Self { address: address.to_bits() & mask, mask })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, bits) = (Ipv6Addr::from_bits(self.address), self.mask.count_ones());
        match address.to_ipv4_mapped() {
            Some(address) if bits >= 96 => write!(f, "{address}/{}", bits - 96),
            _ => write!(f, "{address}/{bits}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_as_they_are_written() {
        for (text, written) in [
            ("192.0.2.7", "192.0.2.7/32"),
            ("192.0.2.7/24", "192.0.2.0/24"),
            ("::/0", "::/0"),
            ("::1", "::1/128"),
        ] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), written);
        }
    }
}
