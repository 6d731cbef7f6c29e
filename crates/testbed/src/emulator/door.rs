//! Before a server that has only so many connections: what becomes of those that are one too many.
//!
//! It looks at what comes to port 80 and at what leaves it. A connection has its place from the first packet
//! of its set-up until one of its ends says farewell, so that two which are set up at once are told apart.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_scenario::model::{Above, MostConnections};
use rattan_core::cells::{Ingress, Packet, StdPacket};

use super::cell::Look;
use super::reset;
use super::segment::{FIN, RST, SYN, Segment};

const HTTP: u16 = 80;

/// The places of a server, which all its paths share.
#[derive(Debug)]
pub struct ServerPlaces {
    bound: MostConnections,
    /// Address and port of the clients' ends.
    taken: BTreeSet<([u8; 4], u16)>,
}

/// A door's two sides share it.
pub type Shared = Arc<Mutex<ServerPlaces>>;

impl ServerPlaces {
    /// One before which nobody stands. `None`: the server answers by itself what is above.
    pub fn new(bound: MostConnections) -> Option<Shared> {
        let own = bound.above != Above::Busy;
        own.then(|| Arc::new(Mutex::new(Self { bound, taken: BTreeSet::new() })))
    }

    /// Whether a segment from a client gets through.
    fn comes(&mut self, segment: &Segment) -> bool {
        let client = (segment.source, segment.source_port);
        if segment.flags & (FIN | RST) != 0 {
            self.taken.remove(&client);
        } else if segment.flags & SYN != 0 && !self.taken.contains(&client) {
            let most = usize::try_from(self.bound.most).unwrap_or(usize::MAX);
            if self.taken.len() >= most {
                return false;
            }
            self.taken.insert(client);
        }
        true
    }

    fn goes(&mut self, segment: &Segment) {
        if segment.flags & (FIN | RST) != 0 {
            self.taken.remove(&(segment.destination, segment.destination_port));
        }
    }
}

/// The side towards the clients, which looks at what comes.
pub struct Coming {
    door: Shared,
    /// Where answers to clients enter their path.
    back: Arc<dyn Ingress<StdPacket>>,
}

impl Coming {
    /// The side of a path whose way back begins there.
    pub fn new(door: Shared, back: Arc<dyn Ingress<StdPacket>>) -> Self {
        Self { door, back }
    }
}

impl Look for Coming {
    fn passes(&mut self, packet: &StdPacket) -> bool {
        let segment = Segment::read(packet.as_slice());
        let Some(segment) = segment.filter(|segment| segment.destination_port == HTTP) else { return true };
        let mut door = self.door.lock().unwrap_or_else(PoisonError::into_inner);
        let passes = door.comes(&segment);
        if !passes && door.bound.above == Above::Refuse {
            // A path that is gone needs no answer.
            let _ =
                self.back.enqueue(StdPacket::from_raw_buffer(&reset::answer(packet.as_slice(), &segment)));
        }
        passes
    }
}

/// The side towards the server, which looks at what leaves.
pub struct Going(pub Shared);

impl Look for Going {
    fn passes(&mut self, packet: &StdPacket) -> bool {
        let segment = Segment::read(packet.as_slice()).filter(|segment| segment.source_port == HTTP);
        if let Some(segment) = segment {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).goes(&segment);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: [u8; 4] = [10, 77, 0, 2];
    const CLIENT: [u8; 4] = [10, 77, 0, 1];

    fn from_client(port: u16, flags: u8) -> Segment {
        Segment {
            source: CLIENT,
            destination: SERVER,
            source_port: port,
            destination_port: HTTP,
            sequence: 0,
            flags,
        }
    }

    fn from_server(port: u16, flags: u8) -> Segment {
        let there = from_client(port, flags);
        Segment { source: SERVER, destination: CLIENT, source_port: HTTP, destination_port: port, ..there }
    }

    #[test]
    fn a_place_is_taken_by_the_first_packet_and_left_by_a_farewell_of_either_end() {
        let door = ServerPlaces::new(MostConnections { most: 2, above: Above::Drop }).unwrap();
        let mut door = door.lock().unwrap();
        let comes = |door: &mut ServerPlaces, port, flags| door.comes(&from_client(port, flags));
        assert!(comes(&mut door, 1, SYN) && comes(&mut door, 2, SYN));
        assert!(!comes(&mut door, 3, SYN) && comes(&mut door, 1, SYN), "a set-up is tried again");
        assert!(comes(&mut door, 2, FIN) && comes(&mut door, 3, SYN));
        assert!(!comes(&mut door, 4, SYN));
        door.goes(&from_server(1, RST));
        assert!(comes(&mut door, 4, SYN));
    }

    #[test]
    fn a_server_that_answers_that_it_is_busy_has_no_door() {
        assert!(ServerPlaces::new(MostConnections { most: 2, above: Above::Busy }).is_none());
    }
}
