//! The rule that belacoder documents (BELABOX; "adaptive" in the bitrate control page of its fork ceracoder), to compare with: steps up
//! of 30 kbit/s and a thirtieth every half second while round trips are short and do not grow; down by 100
//! kbit/s every 200 ms, and by a tenth more every 250 ms, when round trips or what is not acknowledged grow; to the
//! least when they are far too long.

use anabranch_live::SenderStatus;
use anabranch_units::{Bytes, Duration, Rate, Time};

use super::world::{LEAST, Rule};

const PACKET: f64 = 1316.0;
/// The rule is worked out so often there; here it is asked every 50 ms, and takes as many steps as that is, about.
const STEP_MS: u64 = 25;
const STEPS: usize = 2;

/// In the units of its page: packets, milliseconds, bits per second.
pub struct Additive {
    latency: f64,
    most: f64,
    rate: f64,
    next_up: u64,
    next_down: u64,
    buffer: Mean,
    rtt: Mean,
    least_rtt: f64,
    rtt_delta: f64,
    throughput: f64,
    sent: Option<(Time, u64)>,
    now: u64,
}

/// A slow mean, and the largest step up of late.
struct Mean {
    mean: f64,
    jitter: f64,
    before: f64,
}

impl Mean {
    fn add(&mut self, value: f64) -> f64 {
        let step = value - self.before;
        self.before = value;
        self.mean = if self.mean == 0.0 { value } else { 0.99 * self.mean + 0.01 * value };
        self.jitter = (self.jitter * 0.99).max(step);
        step
    }
}

impl Additive {
    pub fn new(latency: Duration, most: Rate) -> Self {
        let mean = |before| Mean { mean: 0.0, jitter: 0.0, before };
        Self {
            latency: latency.as_millis() as f64,
            most: most.as_f64(),
            rate: most.as_f64(),
            next_up: 0,
            next_down: 0,
            buffer: mean(0.0),
            rtt: mean(300.0),
            least_rtt: 200.0,
            rtt_delta: 0.0,
            throughput: 0.0,
            sent: None,
            now: 0,
        }
    }

    fn step(&mut self, buffer: f64, rtt: f64, throughput: f64) {
        self.now += STEP_MS;
        self.buffer.add(buffer);
        let delta = self.rtt.add(rtt);
        self.rtt_delta = 0.8 * self.rtt_delta + 0.2 * delta;
        self.least_rtt = (self.least_rtt * 1.001).min(rtt);
        self.throughput = 0.97 * self.throughput + 0.03 * throughput;
        let (mean, jitter) = (self.buffer.mean, self.buffer.jitter);
        let emergency = (mean + jitter) * 4.0;
        let half_latency = self.throughput / 8.0 * (self.latency / 2.0) / 1000.0 / PACKET;
        let heavy = (mean + (jitter * 3.0).max(mean)).max(50.0).min(half_latency);
        let light = (mean + jitter * 2.5).max(50.0);
        let long = self.rtt.mean + (self.rtt.jitter * 4.0).max(self.rtt.mean * 0.15);
        let short = self.least_rtt + (self.rtt.jitter * 2.0).max(1.0);
        if self.rate > LEAST.as_f64() && (rtt >= self.latency / 3.0 || buffer > emergency) {
            self.rate = LEAST.as_f64();
            self.next_down = self.now + 200;
        } else if self.now > self.next_down && (rtt > self.latency / 5.0 || buffer > heavy) {
            self.rate -= 100_000.0 + self.rate / 10.0;
            self.next_down = self.now + 250;
        } else if self.now > self.next_down && (rtt > long || buffer > light) {
            self.rate -= 100_000.0;
            self.next_down = self.now + 200;
        } else if self.now > self.next_up && rtt < short && self.rtt_delta < 0.01 {
            self.rate += 30_000.0 + self.rate / 30.0;
            self.next_up = self.now + 500;
        }
        self.rate = self.rate.clamp(LEAST.as_f64(), self.most);
    }
}

impl Rule for Additive {
    fn rate(&mut self, status: &SenderStatus, now: Time) -> Rate {
        let Some(rtt) = status.rtt() else { return Rate::ZERO };
        let (before, sent) = self.sent.replace((now, status.sent)).unwrap_or((now, status.sent));
        let throughput = Rate::of(
            Bytes::of(PACKET as usize * (status.sent - sent) as usize),
            now.since(before).max(Duration::from_millis(1)),
        );
        // What is not acknowledged: what waits, and what is on the way.
        let on_the_way = throughput.amount_in(rtt);
        let buffer = (status.waiting + on_the_way).as_f64() / PACKET;
        for _ in 0..STEPS {
            self.step(buffer, rtt.as_millis() as f64, throughput.as_f64());
        }
        Rate::from_bps_f64(self.rate)
    }
}
