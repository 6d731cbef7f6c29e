//! Any datagrams, at any time, into both ends of a live stream. What is read is written the same; what waits
//! is bounded, both ends come to rest after each datagram, and neither wants to be woken before then.
//!
//! The input is a row of steps: 0 and 1, two bytes of length and a datagram on that connection; 2 and two
//! bytes, so many milliseconds pass; 3 and eight bytes, the stream ends there.

#![no_main]

use anabranch_live::fec::Code;
use anabranch_live::{ConnectionId, Fec, Receiver, Scheme, Sender, Settings, UplinkId};
use anabranch_protocol::live::wire::{Datagram, encode_data, encode_report};
use anabranch_units::{Duration, Time};
use libfuzzer_sys::fuzz_target;

const LATENCY: Duration = Duration::from_millis(300);
/// What one step may bring about at the most.
const MOST: usize = 100_000;
/// Steps of an input, so that a long one is not a slow one.
const STEPS: usize = 500;

fuzz_target!(|input: &[u8]| {
    let mut ends = Ends::new();
    let mut rest = input;
    for _ in 0..STEPS {
        let Some((&kind, after)) = rest.split_first() else { break };
        let Some(after) = ends.step(kind, after) else { break };
        rest = after;
        ends.rest();
    }
});

struct Ends {
    sender: Sender,
    receiver: Receiver,
    now: Time,
}

impl Ends {
    fn new() -> Self {
        let settings = Settings {
            latency: LATENCY,
            retransmit: true,
            leave_out_stuffing: true,
            fec: Fec::Fixed(Code::new(4, 2).unwrap()),
            scheme: Scheme::AUTO,
            is_published: false,
        };
        let (mut sender, mut receiver) = (Sender::new(settings), Receiver::new(LATENCY, 0));
        for number in 0..2 {
            assert!(sender.connection_up(ConnectionId(number), UplinkId(number), Duration::from_millis(20)));
            assert!(receiver.connection_up(ConnectionId(number)));
        }
        Self { sender, receiver, now: Time::ZERO + Duration::from_secs(1) }
    }

    /// Answers with the rest of the input, `None` when it ends within the step.
    fn step<'a>(&mut self, kind: u8, input: &'a [u8]) -> Option<&'a [u8]> {
        match kind % 4 {
            connection @ (0 | 1) => {
                let (length, rest) = input.split_first_chunk()?;
                let (datagram, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
                self.datagram(ConnectionId(connection.into()), datagram);
                Some(rest)
            }
            2 => {
                let (millis, rest) = input.split_first_chunk()?;
                self.now += Duration::from_millis(u16::from_be_bytes(*millis).into());
                self.sender.push(&[0x47; 188], self.now);
                Some(rest)
            }
            _ => {
                let (next, rest) = input.split_first_chunk()?;
                self.receiver.end(u64::from_be_bytes(*next) / 2, self.now);
                Some(rest)
            }
        }
    }

    fn datagram(&mut self, connection: ConnectionId, datagram: &[u8]) {
        match Datagram::decode(datagram) {
            Ok(Datagram::Data(header, content)) => {
                assert_eq!(encode_data(header, content), datagram);
                assert!(self.sender.receive(connection, datagram, self.now).is_err());
                assert!(self.receiver.receive(connection, datagram, self.now).is_ok());
            }
            Ok(Datagram::Report(report)) => {
                assert_eq!(encode_report(&report), datagram);
                assert!(self.receiver.receive(connection, datagram, self.now).is_err());
                assert!(self.sender.receive(connection, datagram, self.now).is_ok());
            }
            Err(_) => {
                assert!(self.receiver.receive(connection, datagram, self.now).is_err());
                assert!(self.sender.receive(connection, datagram, self.now).is_err());
            }
        }
    }

    /// Does all that there is to do at this time.
    fn rest(&mut self) {
        let mut steps = 0;
        while let Some((_, datagram)) = self.receiver.transmit(self.now) {
            assert!(matches!(Datagram::decode(&datagram), Ok(Datagram::Report(_))));
            steps += 1;
            assert!(steps < MOST, "reports without an end");
        }
        while self.receiver.deliver(self.now).is_some() {
            steps += 1;
            assert!(steps < MOST, "a stream without an end");
        }
        assert!(self.receiver.has_ended(self.now) || self.receiver.deadline() > self.now);
        assert!(self.receiver.status().waiting <= 1 << 18);
        while let Some((_, datagram)) = self.sender.transmit(self.now) {
            assert!(matches!(Datagram::decode(&datagram), Ok(Datagram::Data(..))));
            steps += 1;
            assert!(steps < MOST, "datagrams without an end");
        }
        assert!(self.sender.deadline(self.now) > self.now, "the sender wants to be woken at once");
    }
}
