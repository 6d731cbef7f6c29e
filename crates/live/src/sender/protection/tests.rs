//! The parity of a stream beside others, decision by decision.

use super::super::super::bursts::{Bursts, Fate};
use super::*;

const EVERY_50_MS: Duration = Duration::from_millis(50);
const TIME: Duration = Duration::from_millis(400);

fn packet(time: Time) -> Packet {
    Packet { time, payload: vec![0; 1316].into() }
}

/// Half a second of a stream, and the choice after it; every third datagram of late was lost.
fn chosen(allowed: Rate, beside: Option<Beside>) -> Protection {
    let mut bursts = Bursts::default();
    for index in 0..300 {
        let number = bursts.leaves();
        bursts.known(number, if index % 3 == 0 { Fate::Lost } else { Fate::Arrived });
    }
    let mut protection = Protection::new(Fec::Auto);
    let situation = Situation {
        losses: bursts.losses(),
        recent: bursts.recent(),
        time: TIME,
        rtt: Some(TIME),
        retransmit: true,
        beside,
        allowed,
        catch_up: Rate::ZERO,
    };
    protection.set_time(TIME);
    protection.choose(&situation, Time::ZERO);
    for sequence in 0..10 {
        let now = Time::ZERO + EVERY_50_MS * sequence;
        protection.protect(sequence, &packet(now), now);
    }
    protection.choose(&situation, Time::ZERO + EVERY_50_MS * 10);
    protection
}

fn beside(saved: f64) -> Option<Beside> {
    Some(Beside { late: 1.0, saved })
}

/// Of so many packets in 50 ms.
fn rate(packets: u64) -> Rate {
    Rate::of(packet_size() * packets, EVERY_50_MS)
}

#[test]
fn parity_asks_for_the_rate_that_it_has_no_room_for() {
    // A fifth to spare has no room for a parity packet beside the third that is sent again.
    let tight = chosen(rate(6) * Ratio::new(1, 5), beside(1.0));
    assert_eq!(tight.code(), None);
    assert!(
        tight.lacking() > rate(1) * Ratio::new(1, 2) && tight.lacking() <= rate(3),
        "{}",
        tight.lacking()
    );
    let wide = chosen(rate(10), beside(1.0));
    assert_eq!(wide.lacking(), Rate::ZERO);
    assert!(wide.code().is_some_and(|code| code.parity() >= code.media() / 2), "{:?}", wide.code());
}

#[test]
fn beside_others_parity_keeps_to_what_is_saved() {
    let parity = |saved| {
        let protection = chosen(rate(10), beside(saved));
        (
            protection.code().map_or(0.0, |code| f64::from(code.parity()) / f64::from(code.media())),
            protection.lacking(),
        )
    };
    assert_eq!(parity(0.0), (0.0, Rate::ZERO));
    let (tenth, all) = (parity(0.1).0, parity(1.0).0);
    assert!(tenth <= 0.3 && tenth < all, "{tenth} and {all}");
}

#[test]
fn where_sending_again_comes_in_time_there_is_no_parity_though_others_fill_the_queue() {
    let mut bursts = Bursts::default();
    for index in 0..300 {
        let number = bursts.leaves();
        bursts.known(number, if index % 100 == 0 { Fate::Lost } else { Fate::Arrived });
    }
    let parity = |late| {
        let mut protection = Protection::new(Fec::Auto);
        protection.interval = Some(EVERY_50_MS);
        let situation = Situation {
            losses: bursts.losses(),
            recent: bursts.recent(),
            time: TIME * 3,
            rtt: Some(TIME),
            retransmit: true,
            beside: Some(Beside { late, saved: 1.0 }),
            allowed: rate(10),
            catch_up: Rate::ZERO,
        };
        protection.choose(&situation, Time::ZERO);
        protection.code().map_or(0, Code::parity)
    };
    assert!(parity(0.0) == 0 && parity(0.1) > 0, "{} and {}", parity(0.0), parity(0.1));
}

/// A block of one packet has no time of its own over which its parity could leave.
#[test]
fn the_parity_of_a_short_block_leaves_over_all_the_time_that_is_left() {
    let mut protection = Protection::new(Fec::Auto);
    protection.set_time(TIME);
    protection.chosen = Code::new(1, 4).ok();
    protection.protect(0, &packet(Time::ZERO), Time::ZERO);
    let leaves: Vec<Time> = protection.later.iter().map(|(leaves, _)| *leaves).collect();
    let spacing = TIME * MOST_OF_REST / 4;
    assert!(leaves.iter().copied().eq((1..=4).map(|index| Time::ZERO + spacing * index)), "{leaves:?}");
}
