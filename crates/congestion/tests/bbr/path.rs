//! A path made by hand.

use std::collections::VecDeque;

use anabranch_congestion::bbr::{Bbr, State};
use anabranch_congestion::control::{Begin, Controller, Delivery, Loss, Spurious, Start, Timeout};
use anabranch_congestion::delivery_rate::{DeliveryRate, SentPacket};
use anabranch_units::{Bytes, Duration, Time};

pub const SEGMENT: u64 = 1000;

pub fn start(seed: u64) -> Start {
    Start {
        segment: Bytes::new(SEGMENT),
        initial_window: Bytes::new(10 * SEGMENT),
        initial_ssthresh: None,
        seed,
    }
}

/// What the sender has to send.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    Endless,
    Nothing,
    /// A segment each so many nanoseconds, the next one then.
    Steady {
        interval: u64,
        next: u64,
    },
}

/// A policer, in segments: what passes at once, and what is left of it.
#[derive(Clone, Copy, Debug)]
pub struct Policer {
    pub segments_per_second: f64,
    pub burst: f64,
    pub tokens: f64,
    pub at: u64,
}

/// A link with a queue and a round trip, and a sender on it. Losses are seen a round trip later, when what
/// was sent next arrives.
pub struct Path {
    pub bbr: Bbr,
    pub rate: DeliveryRate,
    pub now: u64,
    /// Nanoseconds that a segment takes on the link, and the round trip without a queue.
    segment_time: u64,
    pub rtt: u64,
    /// Places in the queue, in segments.
    queue: u64,
    link_is_free_at: u64,
    next_departure: u64,
    /// When each packet's answer comes.
    flying: VecDeque<(u64, SentPacket, bool)>,
    full_at: Bytes,
    recovers_until: Option<Bytes>,
    pub source: Source,
    /// Every so many segments one is lost; zero: none.
    pub loses_every: u64,
    /// Answers come together so many nanoseconds apart; one: each by itself.
    pub answers_every: u64,
    pub policer: Option<Policer>,
    /// Where `Some`, what is lost was not: it comes so many nanoseconds late.
    pub late_by: Option<u64>,
    /// What was taken for lost and is still to come.
    late: VecDeque<(u64, SentPacket)>,
    /// How many recoveries were not needed.
    undone: u64,
    sent: u64,
    pub states: Vec<(u64, State)>,
    /// The longest wait in the queue since it was asked last.
    pub longest_wait: u64,
    pub delivered: u64,
    pub lost: u64,
}

impl Path {
    /// Of so many segments a second.
    pub fn new(segments_per_second: u64, rtt_ms: u64, queue: u64) -> Self {
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
            source: Source::Endless,
            loses_every: 0,
            answers_every: 1,
            policer: None,
            late_by: None,
            late: VecDeque::new(),
            undone: 0,
            sent: 0,
            states: vec![(0, State::Startup)],
            longest_wait: 0,
            delivered: 0,
            lost: 0,
        }
    }

    /// The link is so many times as slow from now on, also for what waits in its queue.
    pub fn slow_down(&mut self, times: f64) {
        let (now, rtt) = (self.now, self.rtt);
        let stretched = |at: u64| now + (at.saturating_sub(now) as f64 * times) as u64;
        self.segment_time = (self.segment_time as f64 * times) as u64;
        self.link_is_free_at = stretched(self.link_is_free_at);
        for (answered, ..) in self.flying.iter_mut().filter(|(answered, ..)| *answered > now + rtt) {
            *answered = stretched(*answered - rtt) + rtt;
        }
    }

    /// An application that has so many segments a second from now on.
    pub fn steady(&self, segments_per_second: u64) -> Source {
        Source::Steady { interval: 1_000_000_000 / segments_per_second, next: self.now }
    }

    /// When the application has the next segment.
    fn next_data(&self) -> u64 {
        match self.source {
            Source::Endless => 0,
            Source::Nothing => u64::MAX,
            Source::Steady { next, .. } => next,
        }
    }

    fn window_is_open(&self) -> bool {
        self.rate.in_flight() + Bytes::new(SEGMENT) <= self.bbr.cwnd()
    }

    fn send(&mut self) {
        while self.window_is_open() {
            if self.next_data() > self.now {
                self.rate.on_app_limited();
                return;
            }
            if self.rate.in_flight().is_zero() && self.rate.is_app_limited() {
                self.bbr.on_begin(&Begin { now: self.time(), srtt: Duration::from_nanos(self.rtt) });
            }
            if self.now < self.next_departure {
                return;
            }
            self.leave();
        }
    }

    /// A segment leaves.
    fn leave(&mut self) {
        if let Source::Steady { interval, next } = &mut self.source {
            *next += *interval;
        }
        let size = Bytes::new(SEGMENT);
        let packet = self.rate.on_sent(self.time(), size);
        if !self.window_is_open() {
            self.full_at = self.rate.delivered();
        }
        let pacing = self.bbr.pacing().expect("a paced controller");
        self.next_departure = self.next_departure.max(self.now) + pacing.rate.time_for(size).as_nanos();
        self.sent += 1;
        let begins = self.link_is_free_at.max(self.now);
        let is_lost = (begins - self.now) / self.segment_time > self.queue
            || (self.loses_every > 0 && self.sent.is_multiple_of(self.loses_every))
            || self.is_policed();
        if !is_lost {
            self.longest_wait = self.longest_wait.max(begins - self.now);
            self.link_is_free_at = begins + self.segment_time;
        }
        let answered = (self.link_is_free_at.max(begins) + self.rtt).next_multiple_of(self.answers_every);
        self.flying.push_back((answered, packet, is_lost));
    }

    fn is_policed(&mut self) -> bool {
        let now = self.now;
        self.policer.as_mut().is_some_and(|policer| {
            let gained = (now - policer.at) as f64 * 1e-9 * policer.segments_per_second;
            policer.tokens = (policer.tokens + gained).min(policer.burst);
            policer.at = now;
            let is_conforming = policer.tokens >= 1.0;
            policer.tokens -= f64::from(is_conforming);
            !is_conforming
        })
    }

    pub fn time(&self) -> Time {
        Time::from_nanos(self.now)
    }

    /// When the next acknowledgement comes; what is lost last is given up then.
    fn next_answer(&self) -> u64 {
        let answered = self.flying.iter().find(|(_, _, is_lost)| !is_lost).or(self.flying.back());
        let late = self.late.front().map_or(u64::MAX, |(at, _)| *at);
        answered.map_or(u64::MAX, |(at, ..)| *at).min(late)
    }

    /// The answers stay away so long that the timer runs out: all that is in flight counts as lost, and comes
    /// so many nanoseconds later than it would.
    pub fn time_out(&mut self, late_by: u64) {
        let (now, flight) = (self.time(), self.rate.in_flight());
        self.bbr.on_timeout(&Timeout { now, flight, is_repeated: false });
        self.recovers_until = Some(self.rate.delivered() + flight);
        for (at, packet, _) in std::mem::take(&mut self.flying) {
            self.bbr.on_packet_lost(&self.rate.on_lost(now, &packet));
            self.late.push_back((at + late_by, packet));
        }
    }

    /// What was taken for lost has arrived; with the last of it the recovery was not needed.
    fn arrive_late(&mut self) {
        let (now, was_late) = (self.time(), !self.late.is_empty());
        while let Some((_, packet)) = self.late.pop_front_if(|(at, _)| *at <= self.now) {
            self.delivered += SEGMENT;
            self.rate.on_delivered(now, &packet, true, false);
        }
        if was_late && self.late.is_empty() {
            self.recovers_until = None;
            self.bbr.on_spurious(&Spurious { now, total_delivered: self.rate.delivered() });
            self.undone += 1;
        }
    }

    /// The acknowledgement of all that is answered now, and what was lost before it.
    fn acknowledge(&mut self) {
        let now = self.time();
        while let Some((_, packet, is_lost)) = self.flying.pop_front_if(|(at, ..)| *at <= self.now) {
            if !is_lost {
                self.delivered += SEGMENT;
                self.rate.on_delivered(now, &packet, false, true);
                continue;
            }
            self.lost += SEGMENT;
            if self.recovers_until.is_none() && self.late.is_empty() {
                self.bbr.on_loss(&Loss { now, flight: self.rate.in_flight() });
                self.recovers_until = Some(self.rate.delivered() + self.rate.in_flight());
            }
            let lost = self.rate.on_lost(now, &packet);
            self.bbr.on_packet_lost(&lost);
            if let Some(late_by) = self.late_by {
                self.late.push_back((self.now + late_by, packet));
            }
        }
        self.arrive_late();
        self.recovers_until = self.recovers_until.filter(|until| *until > self.rate.delivered());
        if let Some(sample) = self.rate.sample(now) {
            self.bbr.on_delivery(&Delivery {
                now,
                sample,
                is_in_recovery: self.recovers_until.is_some() || !self.late.is_empty(),
                is_cwnd_limited: self.full_at >= sample.prior_delivered && !self.full_at.is_zero(),
            });
        }
        if self.bbr.pacing().expect("a paced controller").is_held_back {
            self.rate.on_app_limited();
        }
        if self.states.last().is_none_or(|(_, state)| *state != self.bbr.state()) {
            self.states.push((self.now, self.bbr.state()));
        }
    }

    /// Goes on until this time in milliseconds.
    pub fn run(&mut self, until_ms: u64) {
        self.run_while(until_ms, |_| true);
    }

    /// Goes on until a state has begun, and answers when in milliseconds.
    pub fn run_until(&mut self, wanted: State, at_most_ms: u64) -> u64 {
        self.run_while(at_most_ms, |path| path.bbr.state() != wanted);
        assert_eq!(self.bbr.state(), wanted, "{:?}", self.states);
        self.now / 1_000_000
    }

    /// Goes on until a state is left, and answers when in milliseconds. With little in flight the next states
    /// follow with the same acknowledgement.
    pub fn run_past(&mut self, left: State, at_most_ms: u64) -> u64 {
        self.run_while(at_most_ms, |path| path.bbr.state() == left);
        assert_ne!(self.bbr.state(), left, "{:?}", self.states);
        self.now / 1_000_000
    }

    /// Goes on until a recovery is found not to have been needed, and answers how many milliseconds that took.
    pub fn run_undone(&mut self, at_most_ms: u64) -> u64 {
        let (began, before) = (self.now, self.undone);
        self.run_while(at_most_ms, |path| path.undone == before);
        assert_ne!(self.undone, before, "{:?}", self.states);
        (self.now - began) / 1_000_000
    }

    fn run_while(&mut self, until_ms: u64, goes_on: impl Fn(&Self) -> bool) {
        let until = until_ms * 1_000_000;
        self.send();
        while goes_on(self) {
            let departure = if self.window_is_open() {
                self.next_departure.max(self.next_data()).max(self.now)
            } else {
                u64::MAX
            };
            let answer = self.next_answer();
            let next = answer.min(departure);
            if next > until {
                self.now = until;
                break;
            }
            self.now = next;
            if answer == next {
                self.acknowledge();
            }
            self.send();
        }
    }

    /// When a state began, in milliseconds, from this time on.
    pub fn first(&self, wanted: State, from_ms: u64) -> u64 {
        let found = self.states.iter().find(|(at, state)| *state == wanted && *at >= from_ms * 1_000_000);
        found.map_or(u64::MAX, |(at, _)| at / 1_000_000)
    }

    /// The bandwidth that it reckons with, in segments a second.
    pub fn bandwidth(&self) -> f64 {
        self.bbr.bandwidth().bytes_per_second() / SEGMENT as f64
    }

    /// How long what is answered now was on its way.
    pub fn round_trip_ms(&self) -> f64 {
        let oldest = self.flying.front().map_or(Time::ZERO, |(_, packet, _)| packet.sent);
        self.time().since(oldest).as_secs_f64() * 1e3
    }

    /// What is in flight, and what its window and its pacing are, in segments.
    pub fn in_flight(&self) -> f64 {
        self.rate.in_flight().as_f64() / SEGMENT as f64
    }

    pub fn cwnd(&self) -> f64 {
        self.bbr.cwnd().as_f64() / SEGMENT as f64
    }

    /// The pacing rate as a part of the bandwidth, without the margin of 1 %.
    pub fn pacing_gain(&self) -> f64 {
        let pacing = self.bbr.pacing().expect("a paced controller");
        pacing.rate.as_f64() / self.bbr.bandwidth().as_f64() / 0.99
    }

    /// The product of the bandwidth and the round trip that it reckons with, in segments.
    pub fn product(&self) -> f64 {
        self.bandwidth() * self.bbr.min_rtt().expect("a round trip").as_secs_f64()
    }
}
