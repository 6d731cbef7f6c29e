//! The peers of an address: one that is called again and again, or those who call.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::address::{Address, Mode};
use super::door::{self, DoorKey, Ticket};
use super::error::Error;
use super::library::{Setting, Until};
use super::peer::Peer;
use super::socket::Socket;

pub use super::door::Refusal;

/// The wait between two calls: it doubles from the first to the last.
const LEAST_WAIT: Duration = Duration::from_millis(250);
const MOST_WAIT: Duration = Duration::from_secs(5);
/// So often a thread that waits looks whether anybody waits for it.
const LOOK: Duration = Duration::from_millis(100);
/// Messages about callers who were turned away come no faster, for each reason.
const REFUSALS: Duration = Duration::from_secs(1);
/// Events that wait for whoever takes them.
const EVENTS: usize = 16;
/// Callers that the library keeps for us.
const BACKLOG: i32 = 8;
/// `SRT_REJECT_REASON`.
const BAD_SECRET: i32 = 10;
const UNSECURE: i32 = 11;
const TIMEOUT: i32 = 16;
/// Reasons that the program there gave have a number from here on.
const OF_PROGRAMS: i32 = 1000;

/// What happens.
#[derive(Debug)]
pub enum Event {
    /// There is a peer.
    Connected(Peer),
    /// A caller was not let in; it may try again.
    Refused(SocketAddr, Refusal),
    /// Who is called does not answer, or does not let us in: it is called again. Told once for each reason.
    Failed(Error),
}

/// A thread that finds peers, until this is dropped.
#[derive(Debug)]
pub struct Peers {
    events: mpsc::Receiver<Event>,
    name: String,
}

impl Peers {
    /// Begins to call, or to listen for `most` peers at a time. Blocks for as long as a socket takes.
    ///
    /// # Errors
    /// There is no library, or the address cannot be listened at.
    pub fn start(address: Address, most: usize) -> Result<Self, Error> {
        let (sender, events) = mpsc::channel(EVENTS);
        let places = Arc::new(AtomicUsize::new(0));
        match address.mode() {
            Mode::Caller => {
                // Whether it can be had at all is told now.
                let socket = Socket::new(&address)?;
                drop(socket);
                let name = address.to_string();
                thread::spawn(move || call_again(&address, &sender, &places));
                Ok(Self { events, name })
            }
            Mode::Listener => {
                let (socket, key, at) = listen(&address, most, &places)?;
                thread::spawn(move || let_in(&socket, &key, &sender, &places));
                Ok(Self { events, name: format!("srt://{at}") })
            }
        }
    }

    /// What happens next; never `None` for as long as the library has not ended.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }
}

/// Who is called, or where is listened.
impl std::fmt::Display for Peers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

fn call_again(address: &Address, events: &mpsc::Sender<Event>, places: &Arc<AtomicUsize>) {
    let (mut wait, mut told) = (LEAST_WAIT, None);
    while !events.is_closed() {
        match call(address, events) {
            Ok(Some(socket)) => {
                let peer = Peer::new(socket, address.to_string(), Ticket::of(places));
                if events.blocking_send(Event::Connected(peer)).is_err() {
                    return;
                }
                (wait, told) = (LEAST_WAIT, None);
                while places.load(Ordering::Relaxed) > 0 && !events.is_closed() {
                    thread::sleep(LOOK);
                }
            }
            Ok(None) => return,
            Err(error) => {
                if told.as_ref() != Some(&error)
                    && events.blocking_send(Event::Failed(error.clone())).is_err()
                {
                    return;
                }
                told = Some(error);
            }
        }
        let until = Instant::now() + wait;
        while Instant::now() < until && !events.is_closed() {
            thread::sleep(LOOK.min(wait));
        }
        wait = (wait * 2).min(MOST_WAIT);
    }
}

/// `None`: nobody waits for it.
fn call(address: &Address, events: &mpsc::Sender<Event>) -> Result<Option<Socket>, Error> {
    let to = of_host(address)?;
    let name = || address.to_string();
    let failed = |fault: &dyn std::fmt::Display| Error::Call("cannot call by SRT", fault.to_string());
    let mut socket = Socket::new(address)?;
    socket.wait_until(Until::Connected).map_err(|fault| failed(&fault))?;
    socket.libsrt.connect(socket.id, to).map_err(|fault| failed(&fault))?;
    while !socket.wait(LOOK).map_err(|fault| failed(&fault))? {
        if events.is_closed() {
            return Ok(None);
        }
    }
    if !socket.is_broken() {
        socket.wait_until(Until::Readable).map_err(|fault| failed(&fault))?;
        return Ok(Some(socket));
    }
    let (reason, told) = socket.libsrt.rejection(socket.id).map_err(|fault| failed(&fault))?;
    Err(match reason {
        TIMEOUT => Error::Nobody(name()),
        BAD_SECRET => Error::Rejected(name(), "the passphrase is another one there".into()),
        UNSECURE => Error::Rejected(name(), "one end has a passphrase, and the other none".into()),
        OF_PROGRAMS.. => Error::Rejected(name(), in_words(reason)),
        _ => Error::Rejected(name(), told),
    })
}

/// The reasons of programs, as access_control.h has them.
fn in_words(reason: i32) -> String {
    match reason - OF_PROGRAMS {
        400 => "it does not understand the stream id".into(),
        401 | 403 => "it does not permit it, most likely for its stream id".into(),
        402 => "it has as many as it takes".into(),
        404 => "it does not know the stream id".into(),
        409 => "another one sends there".into(),
        code => format!("for a reason of its own, {code}"),
    }
}

/// The first address of a host; what every network has comes first.
fn of_host(address: &Address) -> Result<SocketAddr, Error> {
    let host = address.host();
    let found = (host, address.port()).to_socket_addrs();
    let found = found.map_err(|error| Error::NoHost(host.into(), error.to_string()))?;
    let found = found.min_by_key(SocketAddr::is_ipv6);
    found.ok_or_else(|| Error::NoHost(host.into(), "it has no address".into()))
}

fn listen(
    address: &Address,
    most: usize,
    places: &Arc<AtomicUsize>,
) -> Result<(Socket, DoorKey, SocketAddr), Error> {
    let at = of_host(address)?;
    let mut socket = Socket::new(address)?;
    if at.ip() == IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED) {
        // As for every socket of this machine; the library wants it said.
        socket.set(Setting::OnlyIpv6, 0).map_err(|fault| Error::Listen(at, fault.to_string()))?;
    }
    let key = DoorKey::new(address.stream_id.clone(), most, places.clone());
    let begun = socket.libsrt.bind(socket.id, at);
    let begun = begun.and_then(|()| socket.libsrt.ask(socket.id, door::asked, key.number()));
    let begun = begun.and_then(|()| socket.libsrt.listen(socket.id, BACKLOG));
    let begun = begun.and_then(|()| socket.wait_until(Until::Readable)).and_then(|()| socket.name());
    let at = begun.map_err(|fault| Error::Listen(at, fault.to_string()))?;
    Ok((socket, key, at))
}

fn let_in(socket: &Socket, key: &DoorKey, events: &mpsc::Sender<Event>, places: &Arc<AtomicUsize>) {
    let mut told = BTreeMap::new();
    while !events.is_closed() {
        match socket.wait(LOOK) {
            Ok(true) => {}
            Ok(false) => {
                let now = Instant::now();
                for (peer, refusal) in key.refused(now) {
                    let is_news = |told: &Instant| now.duration_since(*told) >= REFUSALS;
                    if told.get(&refusal).is_none_or(is_news) {
                        // Who does not listen misses it.
                        let _ = events.try_send(Event::Refused(peer, refusal));
                        told.insert(refusal, now);
                    }
                }
                continue;
            }
            // The library has ended.
            Err(_) => return,
        }
        let Ok((id, from)) = socket.libsrt.accept(socket.id) else {
            // One that is gone again.
            thread::sleep(LOOK);
            continue;
        };
        key.is_in(from);
        // It was let in before the one before it was counted.
        if places.load(Ordering::Relaxed) >= key.most() {
            drop(Socket::accepted(socket.libsrt, id));
            continue;
        }
        let ticket = Ticket::of(places);
        if let Ok(accepted) = Socket::accepted(socket.libsrt, id) {
            let peer = Peer::new(accepted, from.to_string(), ticket);
            if events.blocking_send(Event::Connected(peer)).is_err() {
                return;
            }
        }
    }
}
