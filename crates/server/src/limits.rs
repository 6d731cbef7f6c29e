//! How many connections there may be, and whose place a further one gets where there are no more.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_sockets::client_of;
use tokio::sync::Notify;

use super::io_guard::Activity;
use super::metrics::{Metrics, increment};

/// Connections beyond the limit that are told so at the same time; more are closed without a word.
pub(super) const MOST_REFUSALS: usize = 64;

/// Counts connections, all and by client. Where there is no room for one more, it gets the place of one whose
/// client keeps us waiting: of the client that has the most connections, and there as [`Activity`] ranks
/// them. So a crowd of connections that say nothing, or take nothing of their answers, keeps nobody out. A
/// client never loses a place to one that has as many.
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
    clients: HashMap<IpAddr, Vec<Arc<Place>>>,
}

/// A place among the connections that are served.
#[derive(Debug)]
struct Place {
    activity: Arc<Activity>,
    given_away: Notify,
}

/// What becomes of a new connection. It counts as long as this lives, or until its place is given away.
#[derive(Debug)]
pub(super) struct Permit {
    limits: Arc<Limits>,
    /// Whom it counts for; `None`: it is only told that there are too many.
    client: Option<IpAddr>,
    place: Arc<Place>,
}

impl Limits {
    pub(super) fn new(total: usize, per_client: usize, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self { total, per_client, metrics, counts: Mutex::default() })
    }

    /// Lets a connection in that does this. `None` when even a refusal is too much.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr, activity: Activity) -> Option<Permit> {
        let client = client_of(address);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let has_too_many = counts.of(client) >= self.per_client;
        let is_full = has_too_many || counts.served >= self.total;
        let place = Arc::new(Place { activity: Arc::new(activity), given_away: Notify::new() });
        let client = if !is_full || counts.make_room(client, has_too_many) {
            counts.served += 1;
            counts.clients.entry(client).or_default().push(place.clone());
            if is_full {
                increment(&self.metrics.connections_replaced);
            }
            Some(client)
        } else {
            increment(&self.metrics.connections_refused);
            if counts.refused == MOST_REFUSALS {
                return None;
            }
            counts.refused += 1;
            None
        };
        increment(&self.metrics.connections);
        increment(&self.metrics.connections_total);
        Some(Permit { limits: self.clone(), client, place })
    }
}

impl Counts {
    /// How many connections of this client are served.
    fn of(&self, client: IpAddr) -> usize {
        self.clients.get(&client).map_or(0, Vec::len)
    }

    /// Gives a place away for one more connection of `client`, with `own` one of its own. Answers whether
    /// there was one.
    fn make_room(&mut self, client: IpAddr, own: bool) -> bool {
        let theirs = self.of(client);
        let may_lose = |other: IpAddr, places: usize| other == client || (!own && places > theirs);
        let lost = self
            .clients
            .iter()
            .filter(|(other, places)| may_lose(**other, places.len()))
            .flat_map(|(other, places)| {
                let most = Reverse(places.len());
                places.iter().filter_map(move |place| Some(((most, place.activity.wait()?), *other, place)))
            })
            .min_by_key(|(rank, ..)| *rank)
            .map(|(_, other, place)| (other, place.clone()));
        let Some((other, place)) = lost else { return false };
        self.leave(other, &place);
        place.given_away.notify_one();
        true
    }

    fn has(&self, client: IpAddr, place: &Arc<Place>) -> bool {
        self.clients.get(&client).is_some_and(|places| places.iter().any(|other| Arc::ptr_eq(other, place)))
    }

    /// A place is free, unless it was given away before.
    fn leave(&mut self, client: IpAddr, place: &Arc<Place>) {
        let Some(places) = self.clients.get_mut(&client) else { return };
        let Some(index) = places.iter().position(|other| Arc::ptr_eq(other, place)) else { return };
        places.swap_remove(index);
        if places.is_empty() {
            self.clients.remove(&client);
        }
        self.served -= 1;
    }
}

impl Permit {
    /// Whether the connection may be used.
    pub(super) fn is_served(&self) -> bool {
        self.client.is_some()
    }

    /// What tells whether the connection may lose its place.
    pub(super) fn activity(&self) -> &Arc<Activity> {
        &self.place.activity
    }

    /// The place is kept from now on, whatever the client does. Answers whether there was one to be kept.
    pub(super) fn keep(&self) -> bool {
        let counts = self.limits.counts.lock().unwrap_or_else(PoisonError::into_inner);
        self.place.activity.wait_is_over();
        self.client.is_some_and(|client| counts.has(client, &self.place))
    }

    /// Ready when another connection has got the place. Cancel-safe.
    pub(super) async fn given_away(&self) {
        self.place.given_away.notified().await;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limits.metrics.connections.fetch_sub(1, Ordering::Relaxed);
        let mut counts = self.limits.counts.lock().unwrap_or_else(PoisonError::into_inner);
        match self.client {
            Some(client) => counts.leave(client, &self.place),
            None => counts.refused -= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn admit(limits: &Arc<Limits>, address: &str, activity: Activity) -> Permit {
        limits.admit(address.parse().unwrap(), activity).unwrap()
    }

    fn is_given_away(permit: &Permit) -> bool {
        pin!(permit.given_away()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn connections_count_in_all_and_by_client() {
        let limits = Limits::new(3, 2, Arc::default());
        let admit = |address: &str| admit(&limits, address, Activity::default());
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
        let held: Vec<_> = (0..MOST_REFUSALS + 3)
            .map_while(|_| limits.admit("10.0.0.1".parse().unwrap(), Activity::default()))
            .collect();
        assert_eq!(held.len(), 2 + MOST_REFUSALS);
    }

    #[tokio::test(start_paused = true)]
    async fn who_keeps_us_waiting_longest_gives_its_place_away() {
        let limits = Limits::new(3, 3, Arc::default());
        let silent = || Activity::waiting();
        let busy = admit(&limits, "10.0.0.1", Activity::default());
        let first = admit(&limits, "10.0.0.1", silent());
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        let second = admit(&limits, "10.0.0.1", silent());
        let third = admit(&limits, "10.0.0.1", silent());
        assert!(third.is_served());
        assert!(is_given_away(&first) && !is_given_away(&second) && !is_given_away(&busy));
        drop(first);
        assert_eq!(limits.counts.lock().unwrap().served, 3);
        drop((second, third, busy));
        assert!(limits.counts.lock().unwrap().clients.is_empty());
        assert_eq!(limits.counts.lock().unwrap().served, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_of_one_client_takes_nothing_from_another() {
        let limits = Limits::new(3, 3, Arc::default());
        let player = admit(&limits, "10.0.0.1", Activity::waiting());
        let crowd: Vec<_> = (0..2).map(|_| admit(&limits, "10.0.0.9", Activity::waiting())).collect();
        let more = admit(&limits, "10.0.0.9", Activity::waiting());
        assert!(more.is_served() && is_given_away(&crowd[0]));
        assert!(!is_given_away(&player));
        // Nor does one that is busy make room for it by losing the other's.
        let limits = Limits::new(2, 2, Arc::default());
        let player = admit(&limits, "10.0.0.1", Activity::waiting());
        let _busy = admit(&limits, "10.0.0.9", Activity::default());
        assert!(!admit(&limits, "10.0.0.9", Activity::waiting()).is_served());
        assert!(!is_given_away(&player));
    }
}
