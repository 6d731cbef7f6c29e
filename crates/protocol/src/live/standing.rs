//! What live senders of one machine that share an uplink tell each other: `docs/live-protocol.md`.
//!
//! A message is a datagram of a local socket: [`MAGIC`], the sender's number (8 bytes, big endian as all
//! numbers), how many uplinks follow (1 byte), and of each the length of its name (1 byte), the name, the
//! weight in thousandths (4 bytes), what is allowed and what is wanted (8 bytes each, bits per second).

use anabranch_units::Rate;

/// How a message begins: what it is, and its version.
pub const MAGIC: [u8; 8] = *b"ANABGRP1";
/// Most uplinks of a message.
pub const MAX_UPLINKS: usize = 8;
/// Longest name of an uplink, in bytes.
pub const MAX_NAME: usize = 64;
/// No message is longer.
pub const MAX_STANDINGS: usize = MAGIC.len() + 8 + 1 + MAX_UPLINKS * (1 + MAX_NAME + 4 + 8 + 8);

/// How a sender stands on its uplinks; on one that is missing it is not any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standings {
    /// The sender, which takes its number at random.
    pub member: u64,
    /// [`MAX_UPLINKS`] at most.
    pub uplinks: Vec<UplinkStanding>,
}

/// How a sender stands on an uplink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UplinkStanding {
    /// The interface; empty: the one that the system chooses. [`MAX_NAME`] bytes at most.
    pub name: String,
    /// What it counts for, in thousandths.
    pub weight_thousandths: u32,
    /// What its own control allows it.
    pub allowed: Rate,
    /// What it would send if it were not held back.
    pub wanted: Rate,
}

/// The bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no message of a group of senders")]
pub struct StandingsError;

impl Standings {
    /// Reads a message.
    ///
    /// # Errors
    /// The bytes are none.
    pub fn decode(bytes: &[u8]) -> Result<Self, StandingsError> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or(StandingsError)?;
        let (member, rest) = take(rest).map(|(member, rest)| (u64::from_be_bytes(member), rest))?;
        let ([count], mut rest) = take(rest)?;
        if usize::from(count) > MAX_UPLINKS {
            return Err(StandingsError);
        }
        let mut uplinks = Vec::new();
        for _ in 0..count {
            let ([length], after) = take(rest)?;
            let (name, after) = after.split_at_checked(length.into()).ok_or(StandingsError)?;
            let name = str::from_utf8(name).map_err(|_| StandingsError)?;
            if name.len() > MAX_NAME {
                return Err(StandingsError);
            }
            let (weight, after) = take(after)?;
            let (allowed, after) = take(after)?;
            let (wanted, after) = take(after)?;
            uplinks.push(UplinkStanding {
                name: name.to_owned(),
                weight_thousandths: u32::from_be_bytes(weight),
                allowed: Rate::from_bps(u64::from_be_bytes(allowed)),
                wanted: Rate::from_bps(u64::from_be_bytes(wanted)),
            });
            rest = after;
        }
        if rest.is_empty() { Ok(Self { member, uplinks }) } else { Err(StandingsError) }
    }

    /// The message. Uplinks beyond the bound, and those whose names are too long, are left out.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let uplinks = self.uplinks.iter().filter(|uplink| uplink.name.len() <= MAX_NAME);
        let uplinks: Vec<&UplinkStanding> = uplinks.take(MAX_UPLINKS).collect();
        let short = |length: usize| u8::try_from(length).unwrap_or(u8::MAX);
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.member.to_be_bytes());
        bytes.push(short(uplinks.len()));
        for uplink in uplinks {
            bytes.push(short(uplink.name.len()));
            bytes.extend(uplink.name.as_bytes());
            bytes.extend(uplink.weight_thousandths.to_be_bytes());
            bytes.extend(uplink.allowed.as_bps().to_be_bytes());
            bytes.extend(uplink.wanted.as_bps().to_be_bytes());
        }
        bytes
    }
}

/// So many bytes, and what follows them.
fn take<const COUNT: usize>(bytes: &[u8]) -> Result<([u8; COUNT], &[u8]), StandingsError> {
    bytes.split_first_chunk().map(|(taken, rest)| (*taken, rest)).ok_or(StandingsError)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn standings() -> impl Strategy<Value = Standings> {
        let uplink = ("[a-z0-9é]{0,30}", any::<u32>(), any::<u64>(), any::<u64>());
        let uplink = uplink.prop_map(|(name, weight_thousandths, allowed, wanted)| UplinkStanding {
            name,
            weight_thousandths,
            allowed: Rate::from_bps(allowed),
            wanted: Rate::from_bps(wanted),
        });
        (any::<u64>(), prop::collection::vec(uplink, 0..=MAX_UPLINKS))
            .prop_map(|(member, uplinks)| Standings { member, uplinks })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(standings in standings()) {
            let bytes = standings.encode();
            prop_assert!(bytes.len() <= MAX_STANDINGS);
            prop_assert_eq!(Standings::decode(&bytes), Ok(standings));
        }

        #[test]
        fn a_message_that_is_cut_or_goes_on_is_none(
            standings in standings(), cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = standings.encode();
            prop_assert_eq!(Standings::decode(&bytes[..cut.index(bytes.len())]), Err(StandingsError));
            bytes.push(0);
            prop_assert_eq!(Standings::decode(&bytes), Err(StandingsError));
        }

        #[test]
        fn any_bytes_are_a_message_or_an_error(rest in prop::collection::vec(any::<u8>(), 0..200)) {
            let bytes = [&MAGIC[..], &rest].concat();
            if let Ok(standings) = Standings::decode(&bytes) {
                prop_assert_eq!(standings.encode(), bytes);
            }
        }
    }

    #[test]
    fn what_is_too_much_is_left_out_and_refused() {
        let uplink = |name: String| UplinkStanding {
            name,
            weight_thousandths: 1000,
            allowed: Rate::from_kbps(1),
            wanted: Rate::from_kbps(2),
        };
        let long = "x".repeat(MAX_NAME + 1);
        let uplinks = std::iter::once(uplink(long)).chain((0..20).map(|number| uplink(number.to_string())));
        let mut bytes = Standings { member: 7, uplinks: uplinks.collect() }.encode();
        let names = Standings::decode(&bytes).unwrap().uplinks.into_iter().map(|uplink| uplink.name);
        assert!(names.eq((0..MAX_UPLINKS).map(|number| number.to_string())));
        bytes[MAGIC.len() + 8] = 9;
        assert_eq!(Standings::decode(&bytes), Err(StandingsError));
    }
}
