//! Addresses to listen at, as people write them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// An address; a port alone is one of this machine only.
pub(super) fn of_this_machine(input: &str) -> Result<SocketAddr, String> {
    address(input, Ipv4Addr::LOCALHOST)
}

/// An address; a port alone is one that everybody can reach.
pub(super) fn of_everybody(input: &str) -> Result<SocketAddr, String> {
    address(input, Ipv4Addr::UNSPECIFIED)
}

/// `127.0.0.1:8000`, `[::1]:8000`, `localhost:8000`, and `8000` or `:8000`, which is at `alone`.
fn address(input: &str, alone: Ipv4Addr) -> Result<SocketAddr, String> {
    if let Ok(address) = input.parse() {
        return Ok(address);
    }
    let (host, port) = input.rsplit_once(':').unwrap_or(("", input));
    let ip = match host {
        "" => Some(alone),
        host if host.eq_ignore_ascii_case("localhost") => Some(Ipv4Addr::LOCALHOST),
        _ => None,
    };
    // A sign is none of a port, though it is one of a number.
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let wrong = |what: &str| {
        Err(format!(
            "{what}; write it like 127.0.0.1:8000, [::1]:8000, localhost:8000 or 8000, which is {alone}:8000"
        ))
    };
    match (ip, port.parse::<u16>()) {
        (Some(ip), Ok(port)) if is_number => Ok(SocketAddr::new(IpAddr::V4(ip), port)),
        (Some(_), _) if is_number => wrong("a port is at most 65535"),
        _ if is_an_ip(input) => wrong("the port is missing"),
        (None, Ok(_)) if is_number && !host.contains('/') => {
            wrong("only an IP address of this machine, or localhost, can be listened at")
        }
        _ => wrong("this is no address to listen at"),
    }
}

fn is_an_ip(input: &str) -> bool {
    let bare = input.strip_prefix('[').and_then(|input| input.strip_suffix(']')).unwrap_or(input);
    bare.parse::<IpAddr>().is_ok() || input.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_and_localhost_are_addresses() {
        for (input, expected) in [
            ("8000", "127.0.0.1:8000"),
            (":8080", "127.0.0.1:8080"),
            ("localhost:8000", "127.0.0.1:8000"),
            ("LocalHost:0", "127.0.0.1:0"),
            ("0.0.0.0:80", "0.0.0.0:80"),
            ("[::]:443", "[::]:443"),
        ] {
            assert_eq!(of_this_machine(input), Ok(expected.parse().unwrap()), "{input}");
        }
        assert_eq!(of_everybody(":9000"), Ok("0.0.0.0:9000".parse().unwrap()));
        assert_eq!(of_everybody("localhost:9000"), Ok("127.0.0.1:9000".parse().unwrap()));
    }

    #[test]
    fn what_is_no_address_is_told_with_what_would_be_one() {
        for (input, told) in [
            ("127.0.0.1", "the port is missing"),
            ("::1", "the port is missing"),
            ("[::1]", "the port is missing"),
            ("localhost", "the port is missing"),
            ("65536", "at most 65535"),
            (":99999", "at most 65535"),
            ("example.org:80", "only an IP address"),
            ("http://127.0.0.1:80", "no address"),
            ("+80", "no address"),
            ("", "no address"),
            (":", "no address"),
            ("localhost:", "no address"),
            ("localhost:http", "no address"),
        ] {
            let error = of_this_machine(input).unwrap_err();
            assert!(error.starts_with(told) || error.contains(told), "{input}: {error}");
            assert!(error.contains("localhost:8000"), "{input}: {error}");
        }
    }
}
