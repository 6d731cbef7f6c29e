//! What the members do.

use std::collections::VecDeque;

use anabranch_congestion::vps::Heard;
use anabranch_congestion::vps::settings::Begins;
use anabranch_units::{Duration, Time};

use crate::ways::Way;

pub const SEGMENT: u64 = 1460;
const SECOND: u64 = 1_000_000_000;
/// As much as there is room for at a receiver.
const MOST_WANTED: u64 = 64 * SEGMENT;

/// All members are behind one queue whose length moves.
pub struct Course {
    pub name: &'static str,
    pub begins: Begins,
    /// Each member's application writes a segment so often a second, one after the other.
    writes: u64,
    /// How often each does.
    times: u64,
    /// So many segments at each.
    segments: u64,
    /// One packet in so many is lost.
    lost: u64,
}

/// Four packets a second are 48 kbps, and too few for delays to be compared.
pub const COURSES: [Course; 4] = [
    Course { name: "seldom", begins: Begins::Alone, writes: 4, times: 80, segments: 1, lost: u64::MAX },
    Course {
        name: "seldom, as one",
        begins: Begins::Together,
        writes: 4,
        times: 80,
        segments: 1,
        lost: u64::MAX,
    },
    Course { name: "often", begins: Begins::Alone, writes: 20, times: 400, segments: 1, lost: u64::MAX },
    Course { name: "all they can", begins: Begins::Together, writes: 10, times: 1, segments: 200, lost: 100 },
];

/// A packet on its way.
struct Packet {
    back: Time,
    member: usize,
    first: u64,
    is_lost: bool,
    rtt: Duration,
}

impl Course {
    /// Answers how many packets were sent.
    pub fn run(&self, members: u64, way: &mut impl Way) -> u64 {
        let count = members as usize;
        let (mut left, mut next) = (vec![0; count], vec![0; count]);
        let mut flying: VecDeque<Packet> = VecDeque::new();
        let gap = SECOND / self.writes / members;
        let (mut sent, mut written) = (0, 0);
        let mut sending = Vec::new();
        loop {
            let writes = Time::from_nanos(SECOND + gap * written);
            let back = flying.front().map(|packet| packet.back);
            let (now, member) = if let Some(packet) =
                flying.pop_front_if(|packet| packet.back <= writes || written == members * self.times)
            {
                let Packet { back: now, member, first, is_lost, rtt } = packet;
                if is_lost {
                    way.lost(member, first, now);
                    left[member] += SEGMENT;
                } else {
                    way.acknowledged(member, first, &Heard { now, rtt: Some(rtt), srtt: rtt });
                }
                way.judge(now);
                (now, member)
            } else if written < members * self.times {
                let member = (written % members) as usize;
                left[member] += self.segments * SEGMENT;
                written += 1;
                (writes, member)
            } else {
                debug_assert!(back.is_none());
                return sent;
            };
            way.want(member, left[member].min(MOST_WANTED));
            // The queue moves by ten milliseconds within some seconds.
            let second = now.since(Time::ZERO).as_secs_f64();
            let queue = 0.005 * (second * 2.0).sin() + 0.005 * (second * 5.3).sin();
            let rtt = Duration::from_secs_f64(0.08 + queue);
            way.send(member, now, &mut sending);
            for member in sending.drain(..) {
                let first = next[member];
                way.sent(member, first, now);
                next[member] += SEGMENT;
                left[member] -= SEGMENT;
                sent += 1;
                flying.push_back(Packet {
                    back: now + rtt,
                    member,
                    first,
                    is_lost: sent % self.lost == 0,
                    rtt,
                });
            }
        }
    }
}
