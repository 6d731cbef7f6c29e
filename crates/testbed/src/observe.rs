//! What is seen of a run from outside the client: its connections, and the congestion control of their
//! senders.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use rattan_env::netns::NetNs;

use crate::programs::Socket;
use crate::topology::{self, CLIENT_HOST};

/// Time between two looks at the connections.
const INTERVAL: Duration = Duration::from_millis(200);

/// One look at the client's connections.
#[derive(Clone, Debug)]
pub struct Look {
    /// When.
    pub at: Instant,
    /// Established connections, by path.
    pub by_path: Vec<u32>,
}

impl Look {
    /// Established connections over all paths.
    pub fn total(&self) -> u32 {
        self.by_path.iter().sum()
    }
}

/// Looks at the client's connections five times a second until `stop`.
pub fn connections(client: &Arc<NetNs>, paths: usize, stop: &AtomicBool) -> Result<Vec<Look>, crate::Error> {
    topology::within(client, || {
        let mut looks = Vec::new();
        while !stop.load(Relaxed) {
            // The entry of the calling thread, which is in the client's namespace.
            let table = fs::read_to_string("/proc/thread-self/net/tcp").unwrap_or_default();
            let mut by_path = vec![0; paths];
            let established = table.lines().filter_map(Socket::parse).filter(|socket| socket.established);
            // The table is read in pieces: one whose place changes meanwhile is there twice.
            let ends: BTreeSet<_> =
                established.filter_map(|socket| Some((socket.address?, socket.port))).collect();
            for (address, _) in ends {
                if let Some((path, CLIENT_HOST)) = topology::path_and_host(address) {
                    by_path.iter_mut().skip(path).take(1).for_each(|count| *count += 1);
                }
            }
            looks.push(Look { at: Instant::now(), by_path });
            thread::sleep(INTERVAL);
        }
        looks
    })
}

/// The congestion controls that a server's connections really use, by the last byte of the client's address,
/// with the number of connections that were seen. From `ss -ti`.
pub fn senders(server: usize, seen: &mut BTreeMap<(u8, String), u64>) {
    let namespace = format!("--net=/run/netns/{}", topology::server_namespace(server));
    let output = Command::new("nsenter")
        .args([&namespace, "--", "ss", "-tinOH", "state", "established"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    // Without ss the summary says that nothing is known.
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    for (host, control) in text.lines().filter_map(sender) {
        *seen.entry((host, control.to_owned())).or_default() += 1;
    }
}

/// The client's host byte and the congestion control in a line of `ss`.
fn sender(line: &str) -> Option<(u8, &str)> {
    let words: Vec<_> = line.split_ascii_whitespace().collect();
    let (peer, _) = words.get(3)?.rsplit_once(':')?;
    let peer: Ipv4Addr = peer.trim_start_matches("[::ffff:").trim_end_matches(']').parse().ok()?;
    let (_, host) = topology::path_and_host(peer)?;
    let scale = words.iter().position(|word| word.starts_with("wscale:"))?;
    Some((host, words.get(scale.checked_sub(1)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_as_ss_prints_them() {
        let line = "0 1312 10.77.0.2:80 10.77.0.1:41234 ts sack cubic wscale:10,10 rto:204 rtt:0.4/0.4";
        assert_eq!(sender(line), Some((1, "cubic")));
        let line = "0 0 [::ffff:10.77.0.2]:5301 [::ffff:10.77.0.10]:5 reno wscale:10,10 rto:204";
        assert_eq!(sender(line), Some((10, "reno")));
        assert_eq!(sender("0 0 127.0.0.1:80 127.0.0.1:2 cubic wscale:1,1"), None);
        assert_eq!(sender(""), None);
    }
}
