//! TFRC: sender and receiver over a pipe that loses packets.

use anabranch_congestion::response::{Equation, TcpModel};
use anabranch_congestion::tfrc::{Feedback, Filter, PacketInfo, Parameters, Receiver, Sender};
use anabranch_testkit::{Events, Random};
use anabranch_units::{Bytes, Duration, Rate, Time};

const SIZE: Bytes = Bytes::new(1000);
const RTT: Duration = Duration::from_millis(100);

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance * expected, "{value} instead of {expected}");
}

/// A pipe of a fixed delay in both directions that loses each data packet with the same probability.
struct Pipe {
    now: Time,
    random: Random,
    loss: f64,
    sender: Sender,
    receiver: Receiver,
    data: Events<PacketInfo>,
    feedback: Events<Feedback>,
}

impl Pipe {
    fn new(parameters: Parameters, loss: f64, seed: u64) -> Self {
        Self {
            now: Time::ZERO,
            random: Random::new(seed),
            loss,
            sender: Sender::new(parameters, SIZE),
            receiver: Receiver::new(parameters),
            data: Events::default(),
            feedback: Events::default(),
        }
    }

    /// Runs until `end`, and answers with the packets sent in each second since `from` and with the mean of
    /// the reported p.
    fn run(&mut self, from: Time, end: Time) -> (f64, f64) {
        let (mut sent, mut reported, mut reports) = (0.0, 0.0, 0.0);
        loop {
            let now = (self.sender.next_send().min(self.sender.deadline()).min(self.receiver.deadline()))
                .min(self.data.next())
                .min(self.feedback.next())
                .max(self.now);
            if now >= end {
                return (sent / end.since(from).as_secs_f64(), reported / reports);
            }
            self.now = now;
            if let Some(feedback) = self.feedback.due(now) {
                self.sender.feedback(&feedback, now);
                if now >= from {
                    reported += feedback.loss_event_rate;
                    reports += 1.0;
                }
            }
            let report = match self.data.due(now) {
                Some(packet) => self.receiver.packet(&packet, SIZE, now),
                None => self.receiver.tick(now),
            };
            if let Some(report) = report {
                self.feedback.put(now + RTT / 2, report);
            }
            self.sender.tick(now);
            if self.sender.next_send() <= now {
                let packet = self.sender.sent(now, true);
                sent += f64::from(u8::from(now >= from));
                if self.random.draw() >= self.loss {
                    self.data.put(now + RTT / 2, packet);
                }
            }
        }
    }
}

/// The rate at a loss event rate by the equation, in packets a second.
fn equation_rate(equation: Equation, timeout: Duration, loss_event_rate: f64) -> f64 {
    let tcp = TcpModel { packets_per_ack: 1, timeout };
    tcp.throughput_by(equation, SIZE, RTT, loss_event_rate).as_f64() / (8.0 * SIZE.as_f64())
}

#[test]
fn the_mean_rate_is_that_of_the_equation() {
    for loss in [0.001, 0.003, 0.01, 0.03, 0.1] {
        // The equation is of loss events; several losses in a round trip are one, so it is a little below the
        // losses.
        let (rate, events) = Pipe::new(Parameters::RFC5348, loss, 7).run(at(100_000), at(1_500_000));
        near(rate, equation_rate(Equation::Rfc5348, RTT * 4, events), 0.12);
        near(events, loss, 0.15);
        // At a round trip of a tick, ns-2's time-out is three ticks.
        let (rate, events) = Pipe::new(Parameters::NS2, loss, 7).run(at(100_000), at(1_500_000));
        near(rate, equation_rate(Equation::Padhye, RTT * 3, events), 0.12);
    }
}

#[test]
fn without_losses_slow_start_goes_on_to_the_maximum() {
    let parameters = Parameters { maximum_rate: Rate::from_mbps(8), ..Parameters::RFC5348 };
    let mut pipe = Pipe::new(parameters, 0.0, 1);
    let (rate, events) = pipe.run(at(3_000), at(4_000));
    near(rate, 1000.0, 0.01);
    assert_eq!((events, pipe.sender.allowed_rate()), (0.0, Rate::from_mbps(8)));
}

#[test]
fn after_a_blackout_it_comes_back() {
    let mut pipe = Pipe::new(Parameters::RFC5348, 0.01, 3);
    let before = pipe.run(at(0), at(60_000)).0;
    // All is lost for five seconds: at most a packet in a few seconds at the end.
    pipe.loss = 1.0;
    pipe.run(at(60_000), at(65_000));
    assert!(pipe.sender.allowed_rate() < Rate::from_kbps(20), "{}", pipe.sender.allowed_rate());
    pipe.loss = 0.01;
    let after = pipe.run(at(80_000), at(140_000)).0;
    near(after, before, 0.3);
}

#[test]
fn a_sender_for_n_connections_gets_n_times_the_rate_of_one() {
    for filter in [Filter::First, Filter::All] {
        let parameters = Parameters { filter, ..Parameters::RFC5348 };
        let one = Pipe::new(parameters, 0.02, 5).run(at(100_000), at(1_500_000)).0;
        for flows in [1.5, 3.0, 7.25] {
            let mut pipe = Pipe::new(parameters, 0.02, 5);
            pipe.sender.set_flows(flows);
            let rate = pipe.run(at(100_000), at(1_500_000)).0;
            near(rate, flows * one, 0.08);
        }
    }
}

#[test]
fn the_number_of_connections_may_change_all_the_time() {
    let mut pipe = Pipe::new(Parameters::RFC5348, 0.02, 9);
    let one = pipe.run(at(100_000), at(600_000)).0;
    let (mut end, mut rates) = (600_000, 0.0);
    for round in 0..100_u32 {
        pipe.sender.set_flows(f64::from(round % 5 + 2));
        rates += pipe.run(at(end), at(end + 5_000)).0;
        end += 5_000;
    }
    // Four on the mean.
    near(rates / 100.0, 4.0 * one, 0.1);
}
