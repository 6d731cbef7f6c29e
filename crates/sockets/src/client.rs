//! Who is one client.

use std::net::IpAddr;

/// One client: an IPv4 address, or the /64 that an IPv6 host can take any address of.
pub fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into()),
        address => address,
    }
}
