//! What a group costs a packet, by its members, the judging of who shares a bottleneck included: it must not
//! grow with them.
//!
//! `cargo bench -p anabranch-congestion`; each member sends four packets a second for twenty seconds, so that
//! a sample is 80 packets for each of them.

use std::collections::VecDeque;

use anabranch_congestion::algorithm::Algorithm;
use anabranch_congestion::control::Start;
use anabranch_congestion::vps::bottleneck::Settings;
use anabranch_congestion::vps::{Group, Heard, MemberId, Weight};
use anabranch_units::{Bytes, Duration, Time};
use divan::Bencher;
use divan::counter::ItemsCount;

const SEGMENT: u64 = 1460;
const PACKETS_EACH: u64 = 80;
const MEMBERS: [u64; 4] = [10, 100, 1000, 5000];

fn main() {
    divan::main();
}

/// Members that send what they have when they may, all behind one queue whose length moves.
#[divan::bench(args = MEMBERS, sample_count = 3, sample_size = 1)]
fn a_packet_sent_and_acknowledged(bencher: Bencher, members: u64) {
    let packets = members * PACKETS_EACH;
    bencher.counter(ItemsCount::new(packets)).bench_local(|| course(members, packets));
}

fn course(members: u64, packets: u64) -> usize {
    let start = Start {
        segment: Bytes::new(SEGMENT),
        initial_window: Bytes::new(10 * SEGMENT),
        initial_ssthresh: None,
        seed: 0,
    };
    let mut group = Group::new(Algorithm::Reno, start).watching(Settings::default());
    let ids: Vec<MemberId> = (0..members).map(|_| group.join(Weight::ONE)).collect();
    let mut sent = vec![0; ids.len()];
    let mut flying = VecDeque::new();
    let gap = Duration::from_nanos(250_000_000 / members);
    let mut now = Time::ZERO + Duration::from_secs(1);
    let mut moved = 0;
    for number in 0..packets {
        now += gap;
        let member = (number % members) as usize;
        group.want(ids[member], Bytes::new(SEGMENT));
        for grant in group.allocate(now) {
            // Nobody else waits.
            let next = &mut sent[member];
            group.on_sent(grant.member, *next..*next + SEGMENT, now);
            flying.push_back((now, member, *next));
            *next += SEGMENT;
        }
        // The queue moves by ten milliseconds within some seconds.
        let second = now.since(Time::ZERO).as_secs_f64();
        let rtt = Duration::from_secs_f64(0.08 + 0.005 * (second * 2.0).sin() + 0.005 * (second * 5.3).sin());
        while let Some((_, member, first)) = flying.pop_front_if(|(at, ..)| *at + rtt <= now) {
            let heard = Heard { now, rtt: Some(rtt), srtt: rtt };
            let acknowledged = first..first + SEGMENT;
            group.on_ack(ids[member], std::slice::from_ref(&acknowledged), &heard);
            group.want(ids[member], Bytes::ZERO);
            moved += group.regroup(now).len();
        }
    }
    moved
}
