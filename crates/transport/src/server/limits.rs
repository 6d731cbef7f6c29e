//! How many connections there may be.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use super::metrics::{Metrics, increment};

/// Connections beyond the limit that are told so at the same time; more are closed without a word.
const MOST_REFUSALS: usize = 64;

/// Counts connections, all and by client.
#[derive(Debug)]
pub(super) struct Limits {
    total: usize,
    per_client: usize,
    metrics: Arc<Metrics>,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    served: usize,
    refused: usize,
    clients: HashMap<IpAddr, usize>,
}

/// What becomes of a new connection. It counts as long as this lives.
#[derive(Debug)]
pub(super) struct Permit {
    limits: Arc<Limits>,
    /// Whom it counts for; `None`: it is only told that there are too many.
    client: Option<IpAddr>,
}

impl Limits {
    pub(super) fn new(total: usize, per_client: usize, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self { total, per_client, metrics, counts: Mutex::default() })
    }

    /// `None` when even a refusal is too much.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Permit> {
        let client = client_of(address);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let theirs = counts.clients.get(&client).copied().unwrap_or(0);
        let client = (counts.served < self.total && theirs < self.per_client).then_some(client);
        match client {
            Some(client) => {
                counts.served += 1;
                counts.clients.insert(client, theirs + 1);
            }
            None => {
                increment(&self.metrics.connections_refused);
                if counts.refused == MOST_REFUSALS {
                    return None;
                }
                counts.refused += 1;
            }
        }
        increment(&self.metrics.connections);
        increment(&self.metrics.connections_total);
        Some(Permit { limits: self.clone(), client })
    }
}

impl Permit {
    /// Whether the connection may be used.
    pub(super) fn is_served(&self) -> bool {
        self.client.is_some()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limits.metrics.connections.fetch_sub(1, Ordering::Relaxed);
        let mut counts = self.limits.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(client) = self.client else {
            counts.refused -= 1;
            return;
        };
        counts.served -= 1;
        if let Some(theirs) = counts.clients.get_mut(&client) {
            *theirs -= 1;
            if *theirs == 0 {
                counts.clients.remove(&client);
            }
        }
    }
}

/// One client: an IPv4 address, or the /64 that an IPv6 host can take any address of.
fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into()),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_count_in_all_and_by_client() {
        let limits = Limits::new(3, 2, Arc::default());
        let admit = |address: &str| limits.admit(address.parse().unwrap()).unwrap();
        let first = admit("10.0.0.1");
        let second = admit("::ffff:10.0.0.1");
        assert!(first.is_served() && second.is_served());
        assert!(!admit("10.0.0.1").is_served(), "two of one client");
        let other = admit("2001:db8::1");
        assert!(other.is_served());
        assert!(!admit("2001:db8::2").is_served(), "three in all");
        drop(first);
        assert!(admit("2001:db8::2").is_served());
        drop((second, other));
        assert!(limits.counts.lock().unwrap().clients.is_empty());
        let held: Vec<_> =
            (0..MOST_REFUSALS + 3).map_while(|_| limits.admit("10.0.0.1".parse().unwrap())).collect();
        assert_eq!(held.len(), 2 + MOST_REFUSALS);
    }
}
