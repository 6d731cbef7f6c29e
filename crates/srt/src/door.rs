//! Who a listener lets in: libsrt asks, in a thread of its own, about everybody who calls.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Callers of whom it is not known what has become of them: more are not remembered.
const MOST_KNOCKING: usize = 64;
/// A caller with whom a connection has not been made after this time was turned away by the library.
const PATIENCE: Duration = Duration::from_millis(500);
/// `SRT_REJX_OVERLOAD` and `SRT_REJX_FORBIDDEN` (access_control.h).
const OVERLOAD: i32 = 1402;
const FORBIDDEN: i32 = 1403;

/// Why a caller was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// It has another stream id.
    StreamId,
    /// There are as many as there may be.
    Full,
    /// By the library, which does not say why: almost always its passphrase is another one, or it has none.
    Encryption,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::StreamId => "it asks for another stream id",
            Self::Full => "no more can be let in",
            Self::Encryption => "SRT could not agree with it, most likely on a passphrase",
        })
    }
}

/// So many peers there are; one fewer when it is dropped.
pub(super) struct Ticket(Arc<AtomicUsize>);

impl Ticket {
    pub(super) fn of(places: &Arc<AtomicUsize>) -> Self {
        places.fetch_add(1, Ordering::Relaxed);
        Self(places.clone())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What is asked for at the door of one listener, and who has come.
struct Door {
    stream_id: Option<String>,
    most: usize,
    taken: Arc<AtomicUsize>,
    knocking: Vec<(SocketAddr, Instant)>,
    refused: Vec<(SocketAddr, Refusal)>,
}

/// The doors by their numbers: the library hands a number around, and no pointer.
static DOORS: Mutex<(usize, BTreeMap<usize, Door>)> = Mutex::new((0, BTreeMap::new()));

fn doors() -> MutexGuard<'static, (usize, BTreeMap<usize, Door>)> {
    DOORS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The door of a listener, as long as it is kept. Nobody is let in afterwards.
pub(super) struct DoorKey {
    number: usize,
    most: usize,
}

impl DoorKey {
    /// Lets in who has this stream id, if one is asked for, while fewer than `most` places are taken.
    pub(super) fn new(stream_id: Option<String>, most: usize, taken: Arc<AtomicUsize>) -> Self {
        let (last, doors) = &mut *doors();
        *last += 1;
        let door = Door { stream_id, most, taken, knocking: Vec::new(), refused: Vec::new() };
        doors.insert(*last, door);
        Self { number: *last, most }
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// So many may be in.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// A connection with it was made.
    pub(super) fn is_in(&self, peer: SocketAddr) {
        if let Some(door) = doors().1.get_mut(&self.number) {
            door.knocking.retain(|(knocking, _)| *knocking != peer);
        }
    }

    /// Who was turned away since this was asked last.
    pub(super) fn refused(&self, now: Instant) -> Vec<(SocketAddr, Refusal)> {
        let mut doors = doors();
        let Some(door) = doors.1.get_mut(&self.number) else { return Vec::new() };
        let mut refused = std::mem::take(&mut door.refused);
        door.knocking.retain(|(peer, since)| {
            let waits = now.duration_since(*since) < PATIENCE;
            if !waits {
                refused.push((*peer, Refusal::Encryption));
            }
            waits
        });
        refused
    }
}

impl Drop for DoorKey {
    fn drop(&mut self) {
        doors().1.remove(&self.number);
    }
}

/// What the library asks.
pub(super) fn asked(number: usize, peer: SocketAddr, stream_id: &str) -> Result<(), i32> {
    let mut doors = doors();
    let door = doors.1.get_mut(&number).ok_or(FORBIDDEN)?;
    let refusal = if door.stream_id.as_deref().is_some_and(|wanted| wanted != stream_id) {
        Some(Refusal::StreamId)
    } else if door.taken.load(Ordering::Relaxed) >= door.most {
        Some(Refusal::Full)
    } else {
        None
    };
    match refusal {
        Some(refusal) => {
            // A caller asks again and again.
            if door.refused.len() < MOST_KNOCKING && !door.refused.contains(&(peer, refusal)) {
                door.refused.push((peer, refusal));
            }
            Err(if refusal == Refusal::Full { OVERLOAD } else { FORBIDDEN })
        }
        None => {
            let is_new = door.knocking.iter().all(|(knocking, _)| *knocking != peer);
            if is_new && door.knocking.len() < MOST_KNOCKING {
                door.knocking.push((peer, Instant::now()));
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn a_door_asks_for_the_stream_id_and_for_room() {
        let taken = Arc::new(AtomicUsize::new(0));
        let key = DoorKey::new(Some("camera".into()), 1, taken.clone());
        assert_eq!(asked(key.number(), peer(1), "studio"), Err(FORBIDDEN));
        assert_eq!(asked(key.number(), peer(2), "camera"), Ok(()));
        let ticket = Ticket::of(&taken);
        key.is_in(peer(2));
        assert_eq!(asked(key.number(), peer(3), "camera"), Err(OVERLOAD));
        let refused = [(peer(1), Refusal::StreamId), (peer(3), Refusal::Full)];
        assert_eq!(key.refused(Instant::now() + PATIENCE), refused);
        drop(ticket);
        assert_eq!(asked(key.number(), peer(3), "camera"), Ok(()));
        let number = key.number();
        drop(key);
        assert_eq!(asked(number, peer(3), "camera"), Err(FORBIDDEN));
    }

    #[test]
    fn who_is_not_in_after_a_while_was_turned_away_by_the_library() {
        let key = DoorKey::new(None, 1, Arc::default());
        let began = Instant::now();
        assert_eq!((asked(key.number(), peer(1), ""), asked(key.number(), peer(1), "")), (Ok(()), Ok(())));
        assert_eq!(key.refused(began), []);
        let later = Instant::now() + PATIENCE;
        assert_eq!(key.refused(later), [(peer(1), Refusal::Encryption)]);
        assert_eq!(key.refused(later), []);
    }

    #[test]
    fn a_crowd_at_the_door_takes_no_memory() {
        let key = DoorKey::new(Some("camera".into()), 1, Arc::default());
        for port in 1..1000 {
            assert!(
                asked(key.number(), peer(port), "").is_err()
                    && asked(key.number(), peer(port), "camera").is_ok()
            );
        }
        assert_eq!(key.refused(Instant::now() + PATIENCE).len(), 2 * MOST_KNOCKING);
    }
}
