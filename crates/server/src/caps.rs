//! The links that a response's bytes pass, so that clients get no more than their caps.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_sockets::client_of;
use anabranch_units::Rate;

use super::shape::{Caps, Shaper};

/// Links of the rates that were set: each one's a response, a client, and all.
#[derive(Debug)]
pub(super) struct Links {
    caps: Caps,
    all: Option<Arc<Shaper>>,
    clients: Mutex<Clients>,
}

#[derive(Debug, Default)]
struct Clients {
    links: HashMap<IpAddr, Arc<Shaper>>,
    /// So many links there were when those that nobody waits for were last taken away.
    left: usize,
}

impl Links {
    pub(super) fn new(caps: Caps, all: Option<Arc<Shaper>>) -> Self {
        Self { caps, all, clients: Mutex::default() }
    }

    /// What a response to this client passes, in this order: who waits at the first takes nothing from others
    /// at the next.
    pub(super) fn of_response(&self, client: IpAddr) -> Vec<Arc<Shaper>> {
        let own = self.caps.per_response.map(|rate| Arc::new(Shaper::new(rate)));
        let client = self.caps.per_client.map(|rate| self.of_client(client_of(client), rate));
        own.into_iter().chain(client).chain(self.all.clone()).collect()
    }

    /// A client's link stays as long as it is not free: the next response has to wait for the one before.
    fn of_client(&self, client: IpAddr, rate: Rate) -> Arc<Shaper> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.links.len() > 2 * clients.left.max(32) {
            clients.links.retain(|_, link| Arc::strong_count(link) > 1 || !link.is_free());
            clients.left = clients.links.len();
        }
        clients.links.entry(client).or_insert_with(|| Arc::new(Shaper::new(rate))).clone()
    }
}

#[cfg(test)]
mod tests {
    use anabranch_units::Rate;
    use tokio::time::{Duration, Instant};

    use super::*;

    fn per_client() -> Links {
        Links::new(Caps { per_client: Some(Rate::from_mbps(8)), ..Caps::default() }, None)
    }

    fn first(links: &Links, client: &str) -> Arc<Shaper> {
        links.of_response(client.parse().unwrap()).remove(0)
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_response_to_a_client_waits_for_the_one_before() {
        let (links, now) = (per_client(), Instant::now());
        assert_eq!(first(&links, "10.0.0.1").reserve(1_000_000), now);
        assert_eq!(first(&links, "10.0.0.1").reserve(1), now + Duration::from_secs(1));
        assert_eq!(first(&links, "10.0.0.2").reserve(1), now, "another client");
    }

    #[tokio::test(start_paused = true)]
    async fn only_links_that_somebody_waits_for_are_kept() {
        let links = per_client();
        first(&links, "10.0.0.1").reserve(1_000_000);
        for client in 0..1000 {
            first(&links, &format!("10.1.{}.{}", client / 250, client % 250));
        }
        let kept = links.clients.lock().unwrap().links.len();
        assert!(kept < 100, "{kept} links");
        assert!(!first(&links, "10.0.0.1").is_free());
    }

    #[test]
    fn without_caps_nothing_is_passed() {
        assert!(Links::new(Caps::default(), None).of_response([10, 0, 0, 1].into()).is_empty());
    }
}
