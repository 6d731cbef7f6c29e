//! What the connections of clients count for in a group: a client's weight is that of its connection that
//! counts for most, divided among its connections by what each counts for. So more connections bring a
//! client no larger share.
//!
//! A connection counts for the answer that is sent on it until that has arrived: what was handed to a
//! socket waits there for a while. A driver says when an answer begins and ends, and what has arrived.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::vps::Weight;

/// Whose connections share one weight; connections are known by `K`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Client<K> {
    /// All from an address.
    Address(IpAddr),
    /// One connection: where many clients share an address.
    Connection(K),
}

/// Clients, and their connections in a group.
#[derive(Clone, Debug)]
pub struct Clients<K>(BTreeMap<Client<K>, BTreeMap<K, Counting>>);

/// What a connection counts for.
#[derive(Clone, Copy, Debug, Default)]
struct Counting {
    /// By the answer that is sent on it.
    now: Option<Weight>,
    /// By the last one before, as long as that is on its way and there is no other.
    on_its_way: Option<Weight>,
}

impl<K> Default for Clients<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Copy + Ord> Clients<K> {
    /// A client's connection joins. It counts for nothing yet.
    pub fn join(&mut self, client: Client<K>, connection: K) {
        self.0.entry(client).or_default().insert(connection, Counting::default());
    }

    /// A connection counts for this much from now on; `None`: for what is still on its way, as it has nothing
    /// more to send. Answers the weights of those connections of the client that count.
    pub fn count(&mut self, client: Client<K>, connection: K, weight: Option<Weight>) -> Vec<(K, Weight)> {
        if let Some(counting) = self.0.get_mut(&client).and_then(|theirs| theirs.get_mut(&connection)) {
            let before = std::mem::replace(&mut counting.now, weight);
            counting.on_its_way = if weight.is_none() { before.or(counting.on_its_way) } else { None };
        }
        self.parts(client)
    }

    /// Forgets what was answered and has arrived, which `is_on_its_way` tells of a connection. Answers the
    /// weights of the connections whose client's weight is divided anew.
    pub fn arrived(&mut self, mut is_on_its_way: impl FnMut(K) -> bool) -> Vec<(K, Weight)> {
        let mut changed = Vec::new();
        for (client, theirs) in &mut self.0 {
            let answered = theirs.iter_mut().filter(|(_, counting)| counting.on_its_way.is_some());
            let arrived = answered.filter(|(connection, _)| !is_on_its_way(**connection));
            let count = arrived.map(|(_, counting)| counting.on_its_way = None).count();
            if count > 0 {
                changed.push(*client);
            }
        }
        changed.into_iter().flat_map(|client| self.parts(client)).collect()
    }

    /// A connection leaves. Answers the weights of the client's others that count.
    pub fn leave(&mut self, client: Client<K>, connection: K) -> Vec<(K, Weight)> {
        let Some(theirs) = self.0.get_mut(&client) else { return Vec::new() };
        theirs.remove(&connection);
        if theirs.is_empty() {
            self.0.remove(&client);
        }
        self.parts(client)
    }

    /// Whether anything that was answered may still be on its way.
    pub fn awaits(&self) -> bool {
        self.0.values().flat_map(BTreeMap::values).any(|counting| counting.on_its_way.is_some())
    }

    /// Whether there is no connection.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn parts(&self, client: Client<K>) -> Vec<(K, Weight)> {
        let theirs = self.0.get(&client).into_iter().flatten();
        let busy: Vec<(K, f64)> = theirs
            .filter_map(|(connection, counting)| {
                Some((*connection, counting.now.or(counting.on_its_way)?.get()))
            })
            .collect();
        let Some(whole) = busy.iter().map(|(_, weight)| *weight).reduce(f64::max) else { return Vec::new() };
        let sum: f64 = busy.iter().map(|(_, weight)| weight).sum();
        // The least that there is, where a client divides it among too many.
        let part = |weight: f64| Weight::new(whole * weight / sum).unwrap_or(Weight::LEAST);
        busy.into_iter().map(|(connection, weight)| (connection, part(weight))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn weight(number: f64) -> Option<Weight> {
        Weight::new(number)
    }

    fn told(parts: Vec<(u32, Weight)>) -> Vec<(u32, f64)> {
        parts.into_iter().map(|(connection, weight)| (connection, weight.get())).collect()
    }

    #[test]
    fn a_client_divides_the_weight_of_what_counts_for_most() {
        let client = Client::Address(Ipv4Addr::LOCALHOST.into());
        let mut clients = Clients::default();
        for connection in [1, 2, 3] {
            clients.join(client, connection);
        }
        clients.join(Client::Connection(4), 4);
        assert_eq!(told(clients.count(client, 1, weight(8.0))), [(1, 8.0)]);
        assert_eq!(told(clients.count(client, 2, weight(8.0))), [(1, 4.0), (2, 4.0)]);
        assert_eq!(told(clients.count(client, 2, weight(2.0))), [(1, 6.4), (2, 1.6)].map(rounded));
        assert_eq!(told(clients.count(Client::Connection(4), 4, weight(1.0))), [(4, 1.0)]);
        assert_eq!(told(clients.leave(client, 1)), [(2, 2.0)]);
        assert_eq!(told(clients.leave(client, 2)), []);
        clients.leave(client, 3);
        clients.leave(Client::Connection(4), 4);
        assert!(clients.is_empty());
    }

    fn rounded((connection, number): (u32, f64)) -> (u32, f64) {
        (connection, Weight::new(number).unwrap().get())
    }

    #[test]
    fn an_answer_counts_until_it_has_arrived() {
        let client = Client::Address(Ipv4Addr::LOCALHOST.into());
        let mut clients = Clients::default();
        clients.join(client, 1);
        clients.join(client, 2);
        clients.count(client, 1, weight(1.0));
        clients.count(client, 2, weight(1.0));
        assert!(!clients.awaits());
        assert_eq!(told(clients.count(client, 2, None)), [(1, 0.5), (2, 0.5)]);
        assert!(clients.awaits());
        assert_eq!(told(clients.arrived(|_| true)), []);
        assert_eq!(told(clients.arrived(|connection| connection != 2)), [(1, 1.0)]);
        assert!(!clients.awaits());
        // Who has nothing on its way and asks again counts for that.
        assert_eq!(told(clients.count(client, 2, weight(3.0))), [(1, 0.75), (2, 2.25)]);
    }

    #[test]
    fn a_part_is_never_less_than_the_least() {
        let client = Client::Address(Ipv4Addr::LOCALHOST.into());
        let mut clients = Clients::default();
        clients.join(client, 1);
        clients.join(client, 2);
        clients.count(client, 1, weight(0.001));
        let parts = clients.count(client, 2, weight(0.001));
        assert_eq!(parts, [(1, Weight::LEAST), (2, Weight::LEAST)]);
    }
}
