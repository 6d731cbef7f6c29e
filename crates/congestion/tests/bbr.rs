//! BBRv3 on a path made by hand, and its bounds whatever it is told.

use std::collections::VecDeque;

use anabranch_congestion::bbr::{Bbr, State};
use anabranch_congestion::control::{Begin, Controller, Delivery, Loss, Start, Timeout};
use anabranch_congestion::delivery_rate::{DeliveryRate, LostPacket, RateSample, SentPacket};
use anabranch_units::{Bytes, Duration, Rate, Time};
use proptest::prelude::*;

const SEGMENT: u64 = 1000;

fn start(seed: u64) -> Start {
    Start {
        segment: Bytes::new(SEGMENT),
        initial_window: Bytes::new(10 * SEGMENT),
        initial_ssthresh: None,
        seed,
    }
}

/// A link with a queue and a round trip, and a sender on it that always has something to send unless it
/// rests. Losses are seen a round trip later, when what was sent next arrives.
struct Path {
    bbr: Bbr,
    rate: DeliveryRate,
    now: u64,
    /// Nanoseconds that a segment takes on the link, and the round trip without a queue.
    segment_time: u64,
    rtt: u64,
    /// Places in the queue, in segments.
    queue: u64,
    link_is_free_at: u64,
    next_departure: u64,
    flying: VecDeque<(u64, SentPacket, bool)>,
    full_at: Bytes,
    recovers_until: Option<Bytes>,
    rests: bool,
    states: Vec<(u64, State)>,
    /// The longest wait in the queue since it was asked last.
    longest_wait: u64,
    delivered: u64,
}

impl Path {
    /// Of so many segments a second.
    fn new(segments_per_second: u64, rtt_ms: u64, queue: u64) -> Self {
        let mut bbr = Bbr::new(&start(1));
        bbr.on_begin(&Begin { now: Time::ZERO, srtt: Duration::from_millis(rtt_ms) });
        Self {
            bbr,
            rate: DeliveryRate::default(),
            now: 0,
            segment_time: 1_000_000_000 / segments_per_second,
            rtt: rtt_ms * 1_000_000,
            queue,
            link_is_free_at: 0,
            next_departure: 0,
            flying: VecDeque::new(),
            full_at: Bytes::ZERO,
            recovers_until: None,
            rests: false,
            states: vec![(0, State::Startup)],
            longest_wait: 0,
            delivered: 0,
        }
    }

    fn send(&mut self) {
        if self.rests {
            self.rate.on_app_limited();
        } else if self.rate.in_flight().is_zero() && self.rate.is_app_limited() {
            self.bbr.on_begin(&Begin { now: self.time(), srtt: Duration::from_nanos(self.rtt) });
        }
        let size = Bytes::new(SEGMENT);
        while !self.rests && self.now >= self.next_departure {
            if self.rate.in_flight() + size > self.bbr.cwnd() {
                return;
            }
            let packet = self.rate.on_sent(self.time(), size);
            if self.rate.in_flight() + size > self.bbr.cwnd() {
                self.full_at = self.rate.delivered();
            }
            let pacing = self.bbr.pacing().expect("a paced controller");
            self.next_departure = self.next_departure.max(self.now) + pacing.rate.time_for(size).as_nanos();
            let begins = self.link_is_free_at.max(self.now);
            let is_lost = (begins - self.now) / self.segment_time > self.queue;
            if !is_lost {
                self.longest_wait = self.longest_wait.max(begins - self.now);
                self.link_is_free_at = begins + self.segment_time;
            }
            self.flying.push_back((self.link_is_free_at + self.rtt, packet, is_lost));
        }
    }

    fn time(&self) -> Time {
        Time::from_nanos(self.now)
    }

    /// The acknowledgement of the next packet, and what was lost before it.
    fn acknowledge(&mut self) {
        let now = self.time();
        while let Some((_, packet, is_lost)) = self.flying.pop_front() {
            if is_lost {
                if self.recovers_until.is_none() {
                    self.bbr.on_loss(&Loss { now, flight: self.rate.in_flight() });
                    self.recovers_until = Some(self.rate.delivered() + self.rate.in_flight());
                }
                let lost = self.rate.on_lost(now, &packet);
                self.bbr.on_packet_lost(&lost);
                continue;
            }
            self.delivered += SEGMENT;
            self.rate.on_delivered(now, &packet, false, true);
            break;
        }
        self.recovers_until = self.recovers_until.filter(|until| *until > self.rate.delivered());
        let Some(sample) = self.rate.sample(now) else { return };
        self.bbr.on_delivery(&Delivery {
            now,
            sample,
            is_in_recovery: self.recovers_until.is_some(),
            is_cwnd_limited: self.full_at >= sample.prior_delivered && !self.full_at.is_zero(),
        });
        if self.bbr.pacing().expect("a paced controller").is_held_back {
            self.rate.on_app_limited();
        }
        if self.states.last().is_none_or(|(_, state)| *state != self.bbr.state()) {
            self.states.push((self.now, self.bbr.state()));
        }
    }

    /// Goes on until this time in milliseconds.
    fn run(&mut self, until_ms: u64) {
        let until = until_ms * 1_000_000;
        self.send();
        loop {
            let arrival = self.flying.front().map_or(u64::MAX, |(at, ..)| *at);
            let window_is_open = self.rate.in_flight() + Bytes::new(SEGMENT) <= self.bbr.cwnd();
            let departure = if self.rests || !window_is_open { u64::MAX } else { self.next_departure };
            let next = arrival.min(departure.max(self.now));
            if next > until {
                break;
            }
            self.now = next;
            if arrival == next {
                self.acknowledge();
            }
            self.send();
        }
        self.now = until;
    }

    /// When a state began, in milliseconds, from this time on.
    fn first(&self, wanted: State, from_ms: u64) -> u64 {
        let found = self.states.iter().find(|(at, state)| *state == wanted && *at >= from_ms * 1_000_000);
        found.map_or(u64::MAX, |(at, _)| at / 1_000_000)
    }

    /// The bandwidth that it reckons with, in segments a second.
    fn bandwidth(&self) -> f64 {
        self.bbr.bandwidth().bytes_per_second() / SEGMENT as f64
    }
}

#[test]
fn startup_ends_on_a_plateau_and_drain_empties_the_queue() {
    let mut path = Path::new(1000, 50, 1000);
    path.run(1000);
    let order: Vec<_> = path.states.iter().map(|(_, state)| *state).take(3).collect();
    // Drained: the first phase down is over with the acknowledgement that begins it.
    assert_eq!(order, [State::Startup, State::Drain, State::ProbeBwCruise]);
    // Ten segments double each round trip to fifty: three round trips, and three without growth; each of them
    // is longer by the queue. The draft's test wants the bandwidth within 2 %.
    assert!((250..600).contains(&path.first(State::Drain, 0)), "{:?}", path.states);
    assert!((path.bandwidth() / 1000.0 - 1.0).abs() < 0.02, "{}", path.bandwidth());
    // A window of two products leaves one of them in the queue.
    assert!(path.longest_wait <= 65_000_000, "{}", path.longest_wait);
    path.longest_wait = 0;
    path.run(1800);
    assert!(path.longest_wait < 5_000_000, "{}", path.longest_wait);
    assert_eq!(path.bbr.longterm_inflight(), None);
}

#[test]
fn startup_ends_on_losses_where_the_queue_is_short() {
    let mut path = Path::new(10_000, 50, 50);
    path.run(2000);
    let longterm = path.bbr.longterm_inflight().expect("a bound").as_f64() / SEGMENT as f64;
    // The path holds 500 segments and 50 in the queue.
    assert!((450.0..700.0).contains(&longterm), "{longterm}");
    assert!((path.bandwidth() / 10_000.0 - 1.0).abs() < 0.02, "{}", path.bandwidth());
}

#[test]
fn bandwidth_is_probed_every_two_to_three_seconds_or_as_reno_would() {
    let mut path = Path::new(5000, 100, 2000);
    path.run(20_000);
    let ups: Vec<_> =
        path.states.iter().filter(|(_, state)| *state == State::ProbeBwUp).map(|(at, _)| *at).collect();
    assert!(ups.len() >= 4, "{:?}", path.states);
    // Two to three seconds from one phase down to the next refill, and a few round trips for the probe. A
    // probe for the round trip begins a new wait, however much of the last one was over.
    for pair in ups.windows(2) {
        let between = (pair[1] - pair[0]) as f64 * 1e-9;
        assert!((2.0..6.8).contains(&between), "{between}");
    }
    assert!(ups.windows(2).any(|pair| pair[1] - pair[0] < 3_800_000_000), "{ups:?}");
    // Twenty segments of 10 ms: Reno would need twenty round trips of 10 ms and some to ask again.
    let mut path = Path::new(2000, 10, 1000);
    path.run(4000);
    let ups = path.states.iter().filter(|(_, state)| *state == State::ProbeBwUp).count();
    assert!((6..=16).contains(&ups), "{ups}");
}

#[test]
fn the_round_trip_is_probed_every_five_seconds_for_a_fifth_of_one() {
    let mut path = Path::new(1000, 50, 1000);
    path.run(30_000);
    let probes: Vec<_> = path
        .states
        .windows(2)
        .filter(|pair| pair[0].1 == State::ProbeRtt)
        .map(|pair| (pair[0].0, pair[1].0))
        .collect();
    assert!((5..=6).contains(&probes.len()), "{probes:?}");
    for (begin, end) in &probes {
        let took = (end - begin) / 1_000_000;
        assert!((200..400).contains(&took), "{took}");
    }
    for pair in probes.windows(2) {
        let between = (pair[1].0 - pair[0].1) as f64 * 1e-9;
        assert!((5.0..5.3).contains(&between), "{between}");
    }
    let rtt = path.bbr.min_rtt().expect("a round trip").as_secs_f64();
    assert!((0.05..0.053).contains(&rtt), "{rtt}");
    assert!(path.delivered > 30 * 1000 * SEGMENT * 95 / 100, "{}", path.delivered);
}

#[test]
fn a_rest_stands_for_a_probe_of_the_round_trip() {
    let mut path = Path::new(1000, 50, 1000);
    path.run(4000);
    path.rests = true;
    path.run(7000);
    path.rests = false;
    let before = path.bandwidth();
    path.run(8500);
    // Five seconds were over at 5 s, and what came after the rest was as good as a probe.
    assert_eq!(path.first(State::ProbeRtt, 0), u64::MAX, "{:?}", path.states);
    assert!((path.bandwidth() / before - 1.0).abs() < 0.05, "{} {before}", path.bandwidth());
}

#[test]
fn a_rate_that_falls_or_rises_is_found() {
    let mut path = Path::new(4000, 40, 200);
    path.run(8000);
    path.segment_time *= 2;
    // Two cycles of up to three seconds forget what was.
    path.run(15_000);
    assert!((path.bandwidth() / 2000.0 - 1.0).abs() < 0.05, "{}", path.bandwidth());
    path.segment_time /= 4;
    // Four times as much, at 1.25 a round trip in one phase up or more.
    path.run(25_000);
    assert!((path.bandwidth() / 8000.0 - 1.0).abs() < 0.05, "{}", path.bandwidth());
}

#[test]
fn less_than_a_packet_on_the_way_keeps_four() {
    // Ten segments a second at 10 ms.
    let mut path = Path::new(10, 10, 50);
    path.run(60_000);
    let cwnd = path.bbr.cwnd().get() / SEGMENT;
    assert!((4..=9).contains(&cwnd), "{cwnd}");
    assert!(path.delivered > 60 * 10 * SEGMENT * 95 / 100, "{}", path.delivered);
}

#[test]
fn an_application_that_sends_little_says_nothing_of_the_path() {
    let mut path = Path::new(1000, 50, 1000);
    path.run(3000);
    let before = path.bandwidth();
    // A segment each 10 ms for twenty seconds: a tenth.
    for step in 0..2000 {
        path.rests = false;
        path.next_departure = path.now;
        path.send();
        path.rests = true;
        path.run(3000 + 10 * (step + 1));
        path.rests = false;
    }
    assert!((path.bandwidth() / before - 1.0).abs() < 0.3, "{} {before}", path.bandwidth());
}

#[test]
fn the_same_seed_gives_the_same_course() {
    let course = || {
        let mut path = Path::new(3000, 30, 60);
        path.run(20_000);
        path.states
    };
    assert_eq!(course(), course());
}

#[test]
fn a_time_out_leaves_a_segment_and_its_end_brings_the_window_back() {
    let mut path = Path::new(1000, 50, 1000);
    path.run(3000);
    let before = path.bbr.cwnd();
    let now = path.time();
    path.bbr.on_timeout(&Timeout { now, flight: before, is_repeated: false });
    assert_eq!(path.bbr.cwnd(), Bytes::new(SEGMENT));
    // What was in flight arrives after all, and the recovery ends.
    path.run(3200);
    assert!(path.bbr.cwnd() >= Bytes::new(SEGMENT * 50), "{:?} {before:?}", path.bbr.cwnd());
}

/// Something that a driver could tell, with numbers that need not fit together.
#[derive(Clone, Debug)]
enum Told {
    Begin(u64),
    Loss,
    Lost([u64; 4], bool),
    Timeout(bool),
    Idle,
    Delivery([u64; 9], bool, bool, bool, bool),
}

fn told() -> impl Strategy<Value = Told> {
    let amount = || prop_oneof![0u64..20_000, 0u64..100_000_000, any::<u64>()];
    prop_oneof![
        1 => amount().prop_map(Told::Begin),
        1 => Just(Told::Loss),
        3 => (prop::array::uniform4(amount()), any::<bool>()).prop_map(|(lost, flag)| Told::Lost(lost, flag)),
        1 => any::<bool>().prop_map(Told::Timeout),
        1 => Just(Told::Idle),
        12 => (prop::array::uniform9(amount()), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>())
            .prop_map(|(sample, has_rtt, is_limited, recovers, is_full)| {
                Told::Delivery(sample, has_rtt, is_limited, recovers, is_full)
            }),
    ]
}

fn tell(bbr: &mut Bbr, now: Time, told: &Told) {
    let bytes = Bytes::new;
    match *told {
        Told::Begin(srtt) => bbr.on_begin(&Begin { now, srtt: Duration::from_nanos(srtt) }),
        Told::Loss => bbr.on_loss(&Loss { now, flight: bbr.cwnd() }),
        Told::Timeout(is_repeated) => bbr.on_timeout(&Timeout { now, flight: bbr.cwnd(), is_repeated }),
        Told::Idle => bbr.on_idle(now),
        Told::Lost([size, in_flight, lost, delivered], is_app_limited) => bbr.on_packet_lost(&LostPacket {
            now,
            size: bytes(size),
            sent_in_flight: bytes(in_flight),
            lost: bytes(lost),
            total_delivered: bytes(delivered),
            is_app_limited,
        }),
        Told::Delivery(sample, has_rtt, is_app_limited, is_in_recovery, is_cwnd_limited) => {
            let [acked, newly_lost, rtt, rate, delivered, prior, in_flight, lost, now_in_flight] = sample;
            let sample = RateSample {
                newly_acked: bytes(acked),
                newly_lost: bytes(newly_lost),
                rtt: has_rtt.then_some(Duration::from_nanos(rtt)),
                rate: Rate::from_bps(rate),
                delivered: bytes(delivered),
                prior_delivered: bytes(prior),
                total_delivered: bytes(prior) + bytes(delivered),
                sent_in_flight: bytes(in_flight),
                lost: bytes(lost),
                in_flight: bytes(now_in_flight),
                is_app_limited,
            };
            bbr.on_delivery(&Delivery { now, sample, is_in_recovery, is_cwnd_limited });
        }
    }
}

proptest! {
    #[test]
    fn windows_and_rates_keep_their_bounds_whatever_is_told(
        events in prop::collection::vec((told(), prop_oneof![0u64..1_000_000, 0u64..20_000_000_000]), 1..400),
        seed in any::<u64>(),
        segment in prop_oneof![Just(0u64), 1u64..65_536],
    ) {
        let mut bbr = Bbr::new(&Start { segment: Bytes::new(segment), ..start(seed) });
        let mut now = Time::ZERO;
        for (event, after) in events {
            now += Duration::from_nanos(after);
            tell(&mut bbr, now, &event);
            let (cwnd, pacing) = (bbr.cwnd().get(), bbr.pacing().unwrap());
            prop_assert!((segment..=1 << 53).contains(&cwnd), "{cwnd}");
            if matches!(event, Told::Delivery(..)) {
                prop_assert!(cwnd >= 4 * segment.max(1), "{cwnd}");
            }
            prop_assert!(pacing.rate.as_bps() >= 8 * segment.max(1), "{:?}", pacing.rate);
            prop_assert!(pacing.rate.as_bps() <= 8_000_000_000_000_000, "{:?}", pacing.rate);
            prop_assert!(pacing.quantum.get() >= 2 * segment.max(1), "{:?}", pacing.quantum);
            prop_assert!(pacing.quantum.get() <= (2 * segment).max(65_536), "{:?}", pacing.quantum);
        }
    }
}
