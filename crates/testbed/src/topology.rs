//! Namespaces, virtual Ethernet pairs, addresses and routes of a run.
//!
//! Path `i` is the network 10.77.i.0/24: the client is .1, its server .2, and each group of cross traffic has
//! an address of its own on the client's side, from .10 on. So a packet's destination says whose it is, and a
//! route per destination says which congestion control its sender uses (`congctl`, which needs no sysctl of
//! the machine).
//!
//! Where the size of packets changes there is a router between a server and the emulator, in a namespace of
//! its own: what such a link does not carry its kernel cuts into fragments, or tells the sender of (ICMP).

use std::fs;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use anabranch_units::Bytes;
use rattan_env::netns::NetNs;
use rattan_env::veth::{MacAddr, VethPair, VethPairBuilder};

use crate::Error;
use crate::scenario::{Scenario, Transport};

/// The port at which iperf3 serves the first group of cross traffic; the others follow.
const FIRST_CROSS_PORT: u16 = 5301;
/// The last byte of the first cross traffic's address on the client's side.
const FIRST_CROSS_HOST: u8 = 10;
/// The last byte of the client's own address.
pub const CLIENT_HOST: u8 = 1;
/// The last byte of a server's first address.
const SERVER_HOST: u8 = 2;
/// The last byte of a router's address.
const ROUTER_HOST: u8 = 254;
/// A router's interface to the server.
const INNER: &str = "inner";
/// The addresses that a server can have, as few networks as they are.
const SERVER_NETWORKS: [(u8, u8); 3] = [(2, 31), (4, 30), (8, 31)];

/// Name of the client's namespace.
pub const CLIENT: &str = "client";

/// Name of a server's namespace.
pub fn server_namespace(server: usize) -> String {
    format!("server{server}")
}

/// The client's interface of a path.
pub fn interface(path: usize) -> String {
    format!("path{path}")
}

/// The client's address on a path.
pub fn client_address(path: usize) -> Ipv4Addr {
    address(path, CLIENT_HOST)
}

/// The server's first address on a path.
pub fn server_address(path: usize) -> Ipv4Addr {
    address(path, SERVER_HOST)
}

/// The namespace of the router on a path.
fn router_namespace(path: usize) -> String {
    format!("router{path}")
}

/// The last byte of the address to which a group of cross traffic sends.
pub fn cross_host(group: usize) -> u8 {
    FIRST_CROSS_HOST.saturating_add(u8::try_from(group).unwrap_or(u8::MAX))
}

/// The address to which a group of cross traffic sends.
pub fn cross_address(path: usize, group: usize) -> Ipv4Addr {
    address(path, cross_host(group))
}

/// The port at which a group of cross traffic is served.
pub fn cross_port(group: usize) -> u16 {
    FIRST_CROSS_PORT.saturating_add(u16::try_from(group).unwrap_or(u16::MAX))
}

/// The path and the host byte of an address of a run.
pub fn path_and_host(address: Ipv4Addr) -> Option<(usize, u8)> {
    match address.octets() {
        [10, 77, path, host] => Some((usize::from(path), host)),
        _ => None,
    }
}

/// The scenario's limits keep the numbers of paths and groups well within a byte.
fn address(path: usize, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, u8::try_from(path).unwrap_or(u8::MAX), host)
}

/// What the kernel holds for a run, apart from the programs.
#[derive(Debug)]
pub struct Topology {
    /// Per path, the pair to the client and the pair to the server; the second cell of each is the
    /// emulator's.
    pub pairs: Vec<(Arc<VethPair>, Arc<VethPair>)>,
    /// The client's namespace.
    pub client: Arc<NetNs>,
    /// The servers' namespaces.
    pub servers: Vec<Arc<NetNs>>,
    /// Those of routers, which live as long as this.
    _routers: Vec<Arc<NetNs>>,
}

/// Makes the namespaces and joins them to this process's own, where the emulator is.
///
/// # Errors
/// When the kernel refuses, or `ip` is not installed.
pub fn build(scenario: &Scenario) -> Result<Topology, Error> {
    let namespace = |name: &str| NetNs::new(name).map_err(Error::emulator);
    let client = namespace(CLIENT)?;
    ip(&["-n", CLIENT, "link", "set", "lo", "up"])?;
    let mut servers = Vec::new();
    for index in 0..scenario.servers.len() {
        let name = server_namespace(index);
        servers.push(namespace(&name)?);
        ip(&["-n", &name, "link", "set", "lo", "up"])?;
    }
    let (mut pairs, mut routers) = (Vec::new(), Vec::new());
    for (index, path) in scenario.paths.iter().enumerate() {
        let server = path.server;
        let to_client = pair(index, "c", CLIENT_HOST, &interface(index), &client)?;
        let to_server = if scenario.events.iter().any(|event| event.deed.is_mtu_of(index)) {
            let router = namespace(&router_namespace(index))?;
            let outside = pair(index, "s", ROUTER_HOST, &interface(index), &router)?;
            route_inside(scenario, index, server, &router)?;
            routers.push(router);
            outside
        } else {
            pair(index, "s", SERVER_HOST, &interface(index), &servers[server])?
        };
        pairs.push((to_client, to_server));
        routes(scenario, index, server, &client, &servers)?;
    }
    Ok(Topology { pairs, client, servers, _routers: routers })
}

/// Joins a server to the router of a path.
fn route_inside(scenario: &Scenario, path: usize, server: usize, router: &Arc<NetNs>) -> Result<(), Error> {
    let (here, far, device) = (router_namespace(path), server_namespace(server), interface(path));
    // Both ends have one hardware address, which is where a packet goes without ARP.
    let mac = format!("02:00:77:{path:02x}:{ROUTER_HOST:02x}:01");
    ip(&[
        "-n", &here, "link", "add", INNER, "address", &mac, "type", "veth", "peer", "name", &device,
        "address", &mac, "netns", &far,
    ])?;
    for (namespace, name) in [(&here, INNER), (&far, device.as_str())] {
        ip(&["-n", namespace, "link", "set", name, "arp", "off", "up"])?;
    }
    ip(&["-n", &far, "address", "add", &format!("{}/24", server_address(path)), "dev", &device])?;
    for (other, _) in scenario.paths.iter().enumerate().filter(|(_, other)| other.server == server) {
        for (host, bits) in SERVER_NETWORKS {
            ip(&["-n", &here, "route", "add", &format!("{}/{bits}", address(other, host)), "dev", INNER])?;
        }
        if other != path {
            ip(&["-n", &here, "route", "add", &format!("{}/24", address(other, 0)), "dev", &device])?;
        }
    }
    within(router, || fs::write("/proc/sys/net/ipv4/ip_forward", "1"))?
        .map_err(Error::io("net.ipv4.ip_forward"))
}

/// Lets a path's link towards the client carry packets up to this size. There is a router where that changes.
///
/// # Errors
/// When the kernel refuses.
pub fn set_mtu(path: usize, most: Bytes) -> Result<(), Error> {
    ip(&["-n", &router_namespace(path), "link", "set", &interface(path), "mtu", &most.get().to_string()])
}

/// Gives a server other addresses, the `times`th ones, and takes those away that it has.
///
/// # Errors
/// When the kernel refuses, or there are no more.
pub fn renumber(scenario: &Scenario, server: usize, times: u8) -> Result<(), Error> {
    let host = SERVER_HOST.saturating_add(times);
    if host >= FIRST_CROSS_HOST {
        let most = FIRST_CROSS_HOST - SERVER_HOST - 1;
        return Err(Error::Scenario(format!("a server gets no more than {most} new addresses")));
    }
    let namespace = server_namespace(server);
    for (path, _) in scenario.paths.iter().enumerate().filter(|(_, path)| path.server == server) {
        // The first one has the network's length, with which a second one would go when it goes.
        let before = format!("{}/{}", address(path, host - 1), if times == 1 { 24 } else { 32 });
        let after = format!("{}/32", address(path, host));
        ip(&["-n", &namespace, "address", "add", &after, "dev", &interface(path)])?;
        ip(&["-n", &namespace, "address", "del", &before, "dev", &interface(path)])?;
    }
    Ok(())
}

/// A pair of which one end is in `namespace` and the other here.
fn pair(
    path: usize,
    side: &str,
    host: u8,
    name: &str,
    namespace: &Arc<NetNs>,
) -> Result<Arc<VethPair>, Error> {
    let number = u8::try_from(path).unwrap_or(u8::MAX);
    let mac = |end: u8| MacAddr::new([0x02, 0, 0x77, number, host, end]);
    // The pair is made here under names of its own, and renamed where it ends up: all paths' ends would
    // collide.
    let outer = format!("{side}{path}");
    let pair = VethPairBuilder::new()
        .name(outer.clone(), format!("{side}{path}e"))
        .mac_addr(mac(1), mac(2))
        .ip_addr((address(path, host).into(), 24), (Ipv4Addr::new(169, 254, number, host).into(), 32))
        .namespace(Some(Arc::clone(namespace)), None)
        .build(path)
        .map_err(Error::emulator)?;
    let file = namespace.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    ip(&["-n", &file, "link", "set", &outer, "down"])?;
    // Without ARP the emulator need not carry broadcasts; it writes the right hardware addresses itself.
    ip(&["-n", &file, "link", "set", &outer, "name", name, "arp", "off"])?;
    ip(&["-n", &file, "link", "set", name, "up"])?;
    Ok(pair)
}

fn routes(
    scenario: &Scenario,
    path: usize,
    server: usize,
    client: &Arc<NetNs>,
    servers: &[Arc<NetNs>],
) -> Result<(), Error> {
    let device = interface(path);
    let far = server_namespace(server);
    let near = format!("{}/32", client_address(path));
    let congestion = &scenario.servers[server].congestion;
    ip(&["-n", &far, "route", "add", &near, "dev", &device, "congctl", congestion])?;
    for (group, cross) in scenario.cross.iter().enumerate() {
        if cross.path != path {
            continue;
        }
        let near = cross_address(path, group).to_string();
        ip(&["-n", CLIENT, "address", "add", &format!("{near}/24"), "dev", &device])?;
        let near = format!("{near}/32");
        let mut route = vec!["-n", &far, "route", "add", &near, "dev", &device];
        if let Transport::Tcp(congestion) = &cross.transport {
            route.extend(["congctl", congestion]);
        }
        ip(&route)?;
    }
    // The route of a path's own network is shorter than the routes below, which would take its answers to
    // another path.
    let own = format!("{}/32", server_address(path));
    ip(&["-n", CLIENT, "route", "add", &own, "dev", &device])?;
    // A program that binds itself to an interface may reach the other end's other addresses over it too.
    for (other, _) in scenario.paths.iter().enumerate().filter(|(_, other)| other.server == server) {
        if other < path {
            for (one, two) in [(path, other), (other, path)] {
                for (namespace, end) in [(CLIENT, server_address(one)), (&far, client_address(one))] {
                    let end = format!("{end}/32");
                    ip(&["-n", namespace, "route", "add", &end, "dev", &interface(two), "metric", "100"])?;
                }
            }
        }
    }
    if scenario.paths.iter().filter(|path| path.server == server).count() > 1 {
        // A packet for one of the server's addresses may come by the path of another.
        for namespace in [client, &servers[server]] {
            within(namespace, || fs::write("/proc/sys/net/ipv4/conf/all/rp_filter", "0"))?
                .map_err(Error::io("net.ipv4.conf.all.rp_filter"))?;
        }
    }
    Ok(())
}

/// Runs `task` on a thread of its own in a namespace.
///
/// # Errors
/// When the namespace cannot be entered.
pub fn within<R: Send>(namespace: &Arc<NetNs>, task: impl FnOnce() -> R + Send) -> Result<R, Error> {
    thread::scope(|scope| {
        let inside = scope.spawn(|| namespace.enter().map(|_| task()).map_err(Error::emulator));
        inside.join().unwrap_or_else(|_| Err(Error::Emulator("a thread in a namespace panicked".into())))
    })
}

fn ip(arguments: &[&str]) -> Result<(), Error> {
    let line = || format!("ip {}", arguments.join(" "));
    let output = Command::new("ip")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::Program { program: line(), cause: error.to_string() })?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Error::Program {
            program: line(),
            cause: String::from_utf8_lossy(&output.stderr).trim().into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_say_whose_a_packet_is() {
        assert_eq!(path_and_host(cross_address(3, 1)), Some((3, cross_host(1))));
        assert_eq!(path_and_host(client_address(0)), Some((0, CLIENT_HOST)));
        assert_eq!(path_and_host(Ipv4Addr::LOCALHOST), None);
    }
}
