//! TFRC: the RFC's arithmetic at the sender and the receiver, and what they make of absurd input.

use anabranch_congestion::response::{Equation, TcpModel};
use anabranch_congestion::tfrc::{Feedback, InitialWindow, PacketInfo, Parameters, Receiver, Sender};
use anabranch_units::{Bytes, Duration, Rate, Time};
use proptest::prelude::*;

const SIZE: Bytes = Bytes::new(1000);
const RTT: Duration = Duration::from_millis(100);

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance * expected, "{value} instead of {expected}");
}

/// A sender that has always more to send, told of one packet after the other by hand.
fn report(sender: &mut Sender, sent: u64, receive_rate: u64, loss_event_rate: f64) {
    sender.sent(at(sent), true);
    let feedback = Feedback {
        timestamp: at(sent),
        delay: Duration::ZERO,
        receive_rate: Rate::from_kbps(receive_rate),
        loss_event_rate,
    };
    sender.feedback(&feedback, at(sent) + RTT);
}

#[test]
fn a_sender_begins_with_a_packet_a_second() {
    let mut sender = Sender::new(Parameters::RFC5348, SIZE);
    assert_eq!((sender.next_send(), sender.deadline()), (Time::ZERO, Time::NEVER));
    let packet = sender.sent(at(0), true);
    assert_eq!(packet, PacketInfo::single(0, at(0), None, 0));
    assert_eq!((sender.next_send(), sender.deadline()), (at(1000), at(2000)));
    // Without any report it halves (section 4.4): two packets take four seconds then.
    sender.tick(at(1999));
    assert_eq!(sender.allowed_rate(), Rate::from_kbps(8));
    sender.tick(at(2000));
    assert_eq!((sender.allowed_rate(), sender.deadline()), (Rate::from_kbps(4), at(6000)));
    // It sent nothing since, so it is not to blame.
    sender.tick(at(6000));
    assert_eq!(sender.allowed_rate(), Rate::from_kbps(4));
}

#[test]
fn the_first_report_gives_the_initial_window() {
    let first = |parameters: Parameters, size: u64| {
        let mut sender = Sender::new(parameters, Bytes::new(size));
        report(&mut sender, 0, 0, 0.0);
        assert_eq!(sender.rtt(), Some(RTT));
        sender.allowed_rate().as_bps() / 80
    };
    // Bytes in a round trip: min(4 s, max(2 s, 4380)).
    assert_eq!(first(Parameters::RFC5348, 1000), 4000);
    assert_eq!(first(Parameters::RFC5348, 1460), 4380);
    assert_eq!(first(Parameters::RFC5348, 3000), 6000);
    let two = Parameters { initial_window: InitialWindow::Packets(2), ..Parameters::RFC5348 };
    assert_eq!(first(two, 3000), 6000);
}

#[test]
fn a_handshake_gives_the_initial_window_until_the_first_report() {
    let mut sender = Sender::new(Parameters::LIVE, SIZE).with_round_trip(RTT * 5);
    assert_eq!((sender.rtt(), sender.allowed_rate()), (Some(RTT * 5), Rate::from_kbps(160)));
    sender.sent(at(0), true);
    assert_eq!(sender.next_send(), at(50));
    // Its round trip takes the place of the handshake's, and what has arrived bounds what follows.
    report(&mut sender, 100, 10, 0.0);
    assert_eq!((sender.rtt(), sender.allowed_rate()), (Some(RTT), Rate::from_kbps(800)));
    report(&mut sender, 200, 500, 0.0);
    assert_eq!(sender.allowed_rate(), Rate::from_kbps(1000));
}

#[test]
fn slow_start_doubles_up_to_twice_the_receive_rate() {
    let mut sender = Sender::new(Parameters::RFC5348, SIZE);
    report(&mut sender, 0, 0, 0.0);
    assert_eq!(sender.allowed_rate(), Rate::from_kbps(320));
    report(&mut sender, 100, 320, 0.0);
    assert_eq!(sender.allowed_rate(), Rate::from_kbps(640));
    // Less than a round trip later: no change.
    report(&mut sender, 150, 640, 0.0);
    assert_eq!(sender.allowed_rate(), Rate::from_kbps(640));
    report(&mut sender, 200, 640, 0.0);
    assert_eq!(sender.allowed_rate(), Rate::from_kbps(1280));
    // The receiver gets no more than 640 kbps; what it got at the beginning is forgotten.
    report(&mut sender, 500, 640, 0.0);
    assert_eq!(sender.allowed_rate(), Rate::from_kbps(1280));
    // A receive rate that falls holds for two round trips.
    report(&mut sender, 600, 200, 0.0);
    assert_eq!(sender.allowed_rate(), Rate::from_kbps(1280));
    report(&mut sender, 1000, 200, 0.0);
    assert_eq!(sender.allowed_rate(), Rate::from_kbps(400));
    // Never below the initial rate.
    report(&mut sender, 2000, 1, 0.0);
    assert_eq!(sender.allowed_rate(), Rate::from_kbps(320));
}

#[test]
fn losses_end_slow_start() {
    let mut sender = Sender::new(Parameters::RFC5348, SIZE);
    report(&mut sender, 0, 0, 0.0);
    // p = 0.01, R = 0.1 s, t_RTO = 0.4 s: 0.1 sqrt(0.02/3) + 0.4 * 3 sqrt(0.03/8) * 0.01 * 1.0032 = 0.0081650
    // + 0.0007372 = 0.0089022 s a packet, 898.7 kbps.
    report(&mut sender, 100, 2000, 0.01);
    near(sender.allowed_rate().as_f64(), 898_654.0, 1e-4);
    // Twice the receive rate is less.
    report(&mut sender, 1000, 300, 0.01);
    assert_eq!(sender.allowed_rate(), Rate::from_kbps(600));
    // It follows the equation upwards at once.
    report(&mut sender, 2000, 2000, 0.01);
    near(sender.allowed_rate().as_f64(), 898_654.0, 1e-4);
    // s / t_mbi is the least: 1000 bytes in 64 s.
    report(&mut sender, 3000, 0, 1.0);
    report(&mut sender, 4000, 0, 1.0);
    assert_eq!(sender.allowed_rate(), Rate::from_bps(125));
}

/// A sender with a share is told what its share of `whole` kbps lets through, as long as its control allows that.
fn with_share(share: f64, whole: u64, loss_event_rate: f64) -> Sender {
    let mut sender = Sender::new(Parameters::RFC5348, SIZE);
    sender.set_share(share);
    for round in 0..40 {
        let sent = (whole * 1000).min(sender.allowed_alone().as_bps()) as f64 / 1000.0 * share;
        report(&mut sender, 100 * round, sent as u64, loss_event_rate);
    }
    sender
}

#[test]
fn a_share_is_a_part_of_what_the_control_goes_on_to_allow() {
    let alone = with_share(1.0, 2000, 0.01);
    near(alone.allowed_rate().as_f64(), 898_654.0, 1e-4);
    for share in [0.3, 0.7, 1.75, 3.0] {
        let sender = with_share(share, 2000, 0.01);
        near(sender.allowed_alone().as_f64(), alone.allowed_rate().as_f64(), 1e-5);
        near(sender.allowed_rate().as_f64(), share * alone.allowed_rate().as_f64(), 1e-5);
    }
    // A path that carries less than the equation gives holds it at twice what arrives, as it would arrive alone.
    near(with_share(0.5, 300, 0.01).allowed_alone().as_f64(), 600_000.0, 0.01);
}

#[test]
fn before_the_first_loss_a_part_shows_no_more_than_it_is() {
    // In the first two round trips nothing bounds it. Then half of what is allowed arrives, and twice that is all
    // that is known: it stays there.
    near(with_share(0.5, 3000, 0.0).allowed_alone().as_f64(), 4.0 * 320_000.0, 1e-6);
    near(with_share(1.0, 3000, 0.0).allowed_alone().as_f64(), 6_000_000.0, 0.01);
    near(with_share(2.0, 3000, 0.0).allowed_alone().as_f64(), 6_000_000.0, 0.01);
}

#[test]
fn packets_of_a_share_belong_to_as_many_connections_as_it_stands_for() {
    let mut sender = Sender::new(Parameters::RFC5348, SIZE);
    for (share, flows) in [(1.75, 1.75), (0.4, 1.0), (1.7142857, 110.0 / 64.0), (1.0, 1.0)] {
        sender.set_share(share);
        assert_eq!(sender.sent(at(0), true).flows, flows);
    }
}

#[test]
fn ns2_adds_a_packet_each_round_trip() {
    let mut sender = Sender::new(Parameters::NS2, SIZE);
    report(&mut sender, 0, 0, 0.0);
    report(&mut sender, 100, 2000, 0.2);
    let before = sender.allowed_rate().as_bps();
    // 80 kbps are a packet in each 100 ms: after one round trip, and for more than two as for two.
    report(&mut sender, 200, 2000, 0.001);
    near(sender.allowed_rate().as_f64(), (before + 80_000) as f64, 1e-4);
    report(&mut sender, 900, 2000, 0.001);
    near(sender.allowed_rate().as_f64(), (before + 240_000) as f64, 1e-4);
}

#[test]
fn ns2_always_allows_a_packet_each_round_trip() {
    for (parameters, kbps) in [(Parameters::RFC5348, 20), (Parameters::NS2, 80)] {
        let mut sender = Sender::new(parameters, SIZE);
        report(&mut sender, 0, 0, 0.0);
        report(&mut sender, 1000, 10, 0.01);
        // Twice the receive rate is 20 kbps, a packet in 100 ms is 80 kbps.
        assert_eq!(sender.allowed_rate(), Rate::from_kbps(kbps));
    }
}

#[test]
fn without_reports_the_limit_halves() {
    let mut sender = Sender::new(Parameters::RFC5348, SIZE);
    report(&mut sender, 0, 0, 0.0);
    report(&mut sender, 1000, 800, 0.01);
    let equation = sender.allowed_rate().as_f64();
    near(equation, 898_654.0, 1e-4);
    assert_eq!(sender.deadline(), at(1100) + RTT * 4);
    // X_Bps is below twice X_recv: half of it, and half again.
    for part in [2.0, 4.0, 8.0] {
        sender.sent(sender.deadline(), true);
        sender.tick(sender.deadline());
        near(sender.allowed_rate().as_f64(), equation / part, 1e-4);
    }
    // The next report counts beside the half of that limit: 2 X_recv.
    report(&mut sender, 4000, 100, 0.01);
    assert_eq!(sender.allowed_rate(), Rate::from_kbps(200));
    // X_Bps is more than twice X_recv: the limit becomes X_recv.
    sender.sent(at(4150), true);
    sender.tick(sender.deadline());
    assert_eq!(sender.allowed_rate(), Rate::from_kbps(100));
}

#[test]
fn idle_senders_keep_a_small_rate() {
    let mut sender = Sender::new(Parameters::RFC5348, SIZE);
    report(&mut sender, 0, 0, 0.0);
    report(&mut sender, 100, 320, 0.0);
    assert_eq!(sender.allowed_rate(), Rate::from_kbps(640));
    // Twice the recovery rate of 320 kbps is not below itself, so it halves once.
    for expected in [320, 320, 320] {
        sender.tick(sender.deadline());
        assert_eq!(sender.allowed_rate(), Rate::from_kbps(expected));
    }
    // The same when packets were lost and little was received.
    report(&mut sender, 9000, 300, 0.01);
    assert_eq!(sender.allowed_rate(), Rate::from_kbps(600));
    sender.tick(sender.deadline());
    assert_eq!(sender.allowed_rate(), Rate::from_kbps(600));
}

#[test]
fn too_little_data_does_not_lower_the_limit() {
    let mut sender = Sender::new(Parameters::RFC5348, SIZE);
    report(&mut sender, 0, 0, 0.0);
    report(&mut sender, 1000, 800, 0.01);
    let report_limited = |sender: &mut Sender, sent: u64, receive_rate: u64, p: f64| {
        let timestamp = sender.sent(at(sent), false).timestamp;
        let receive_rate = Rate::from_kbps(receive_rate);
        let feedback = Feedback { timestamp, delay: Duration::ZERO, receive_rate, loss_event_rate: p };
        sender.feedback(&feedback, at(sent) + RTT);
    };
    // The application sends 50 kbps for a long time: the receive rate of before still counts.
    for second in 2..20 {
        report_limited(&mut sender, 1000 * second, 50, 0.01);
        near(sender.allowed_rate().as_f64(), 898_654.0, 1e-4);
    }
    // A loss in such a time halves what counts: max(800 / 2, 0.85 * 50).
    report_limited(&mut sender, 20_000, 50, 0.02);
    assert_eq!(sender.allowed_rate(), Rate::from_kbps(400));
}

#[test]
fn packets_leave_at_the_allowed_rate() {
    let parameters = Parameters { granularity: Duration::from_millis(10), ..Parameters::RFC5348 };
    let mut sender = Sender::new(parameters, SIZE);
    report(&mut sender, 0, 0, 0.0);
    // 320 kbps: 25 ms from packet to packet, and half a tick of the driver's timer early.
    assert_eq!(sender.next_send(), at(25 - 5));
    sender.sent(at(20), true);
    assert_eq!(sender.next_send(), at(50 - 5));
    // Late by less than a round trip: it catches up.
    sender.sent(at(120), true);
    assert_eq!(sender.next_send(), at(75 - 5));
    // Late by a second: a round trip's worth and no more.
    sender.sent(at(1120), true);
    assert_eq!(sender.next_send(), at(1045 - 5));
    // Over a round trip that is shorter than two ticks: what the timer may have missed. 128 Mbps are 62.5 us
    // from packet to packet.
    let mut near_by = Sender::new(parameters, SIZE);
    near_by.sent(at(0), true);
    let (delay, receive_rate) = (Duration::ZERO, Rate::ZERO);
    let feedback = Feedback { timestamp: at(0), delay, receive_rate, loss_event_rate: 0.0 };
    near_by.feedback(&feedback, Time::ZERO + Duration::from_micros(250));
    near_by.sent(at(120), true);
    assert_eq!(near_by.next_send(), at(100) + Duration::from_nanos(62_500 / 2));
    // With bursts of a packet nothing is caught up.
    let mut sender = Sender::new(Parameters { burst: Some(1), ..parameters }, SIZE);
    report(&mut sender, 0, 0, 0.0);
    sender.sent(at(120), true);
    assert_eq!(sender.next_send(), at(145 - 5));
}

#[test]
fn a_longer_round_trip_slows_down_at_once() {
    let mut sender = Sender::new(Parameters::RFC5348, SIZE);
    report(&mut sender, 0, 0, 0.0);
    sender.sent(at(100), true);
    let feedback = Feedback {
        timestamp: at(100),
        delay: Duration::from_millis(30),
        receive_rate: Rate::from_kbps(320),
        loss_event_rate: 0.0,
    };
    // 430 ms without the receiver's 30: R = 0.9 * 100 + 0.1 * 400 = 130 ms.
    sender.feedback(&feedback, at(530));
    near(sender.rtt().unwrap().as_secs_f64(), 0.13, 1e-6);
    // R_sqmean = 0.9 sqrt(0.1) + 0.1 sqrt(0.4) = 0.34785; over sqrt(0.4) = 0.63246 it is 0.55.
    near(sender.sending_rate().as_f64(), 0.55 * sender.allowed_rate().as_f64(), 1e-3);
}

/// A receiver that gets packets of [`SIZE`] by number, one each 10 ms from time zero, with a round-trip time
/// of 100 ms.
struct Arrivals {
    receiver: Receiver,
    reports: Vec<(u64, Feedback)>,
}

impl Arrivals {
    fn new() -> Self {
        Self::with(Parameters::RFC5348)
    }

    fn with(parameters: Parameters) -> Self {
        Self { receiver: Receiver::new(parameters), reports: Vec::new() }
    }

    /// All of `sequences`, and what the feedback timer gives in between.
    fn take(&mut self, sequences: impl IntoIterator<Item = u64>) {
        for sequence in sequences {
            let now = at(10 * sequence);
            self.wait(now);
            let packet = PacketInfo::single(sequence, now, Some(RTT), 0);
            self.reports
                .extend(self.receiver.packet(&packet, SIZE, now).map(|feedback| (sequence, feedback)));
        }
    }

    fn wait(&mut self, until: Time) {
        while self.receiver.deadline() <= until {
            let now = self.receiver.deadline();
            self.reports
                .extend(self.receiver.tick(now).map(|feedback| (now.as_nanos() / 10_000_000, feedback)));
        }
    }

    fn report_times(&self) -> Vec<u64> {
        self.reports.iter().map(|(time, _)| *time).collect()
    }
}

#[test]
fn the_receiver_reports_once_a_round_trip() {
    let mut arrivals = Arrivals::new();
    arrivals.take(0..=35);
    assert_eq!(arrivals.report_times(), [0, 10, 20, 30]);
    let first = arrivals.reports[0].1;
    assert_eq!((first.receive_rate, first.loss_event_rate), (Rate::ZERO, 0.0));
    // Ten packets in 100 ms. The timer is before the packet that arrives at the same time.
    let third = arrivals.reports[2].1;
    assert_eq!((third.timestamp, third.delay), (at(190), Duration::from_millis(10)));
    assert_eq!((third.receive_rate, third.loss_event_rate), (Rate::from_kbps(800), 0.0));
    // Nothing arrives for a second: one report of the last packets, then none until the next packet, and that
    // at once.
    arrivals.wait(at(1350));
    assert_eq!(arrivals.report_times(), [0, 10, 20, 30, 40]);
    assert_eq!(arrivals.receiver.deadline(), Time::NEVER);
    arrivals.take([36].map(|sequence| sequence + 100));
    let last = arrivals.reports[5];
    assert_eq!(last.0, 136);
    // One packet in the last round trip.
    assert_eq!(last.1.receive_rate, Rate::from_kbps(80));
}

#[test]
fn without_a_round_trip_time_it_reports_each_packet() {
    let mut receiver = Receiver::new(Parameters::RFC5348);
    for sequence in 0..5 {
        let now = at(1000 * sequence);
        let packet = PacketInfo::single(sequence, now, None, 0);
        assert!(receiver.packet(&packet, SIZE, now).is_some());
        assert!(receiver.packet(&packet, SIZE, now).is_none(), "a duplicate");
        assert_eq!(receiver.deadline(), Time::NEVER);
    }
}

#[test]
fn the_first_loss_gives_the_interval_of_the_receive_rate() {
    let mut arrivals = Arrivals::new();
    arrivals.take((0..=55).filter(|sequence| *sequence != 52));
    // Three packets later, at once: 800 kbps was the largest rate.
    let (time, feedback) = arrivals.reports[arrivals.reports.len() - 1];
    assert_eq!(time, 55);
    let tcp = TcpModel { packets_per_ack: 1, timeout: RTT * 4 };
    let rate = tcp.throughput_by(Equation::Rfc5348, SIZE, RTT, feedback.loss_event_rate);
    near(rate.as_f64(), 800_000.0, 0.01);
    // By the square-root law p would be 1.5 / 10^2; time-outs take some of it.
    assert!(feedback.loss_event_rate < 0.015 && feedback.loss_event_rate > 0.011);
    // A loss within a round trip of it belongs to the same event, a later one does not: its interval is 16
    // packets long.
    let before = arrivals.receiver.loss_event_rate();
    arrivals.take((56..=66).filter(|sequence| *sequence != 60));
    assert!(arrivals.receiver.loss_event_rate() <= before);
    let reports = arrivals.reports.len();
    arrivals.take((67..=71).filter(|sequence| *sequence != 68));
    assert_eq!(arrivals.reports.len(), reports + 1);
    near(arrivals.receiver.loss_event_rate(), 2.0 / (16.0 + 1.0 / before), 1e-9);
}

#[test]
fn what_arrived_before_the_first_loss_can_be_the_longer_interval() {
    let first_interval = |arrived: u64| {
        let mut arrivals = Arrivals::with(Parameters { first_interval_arrived: true, ..Parameters::RFC5348 });
        arrivals.take((0..arrived + 4).filter(|sequence| *sequence != arrived));
        1.0 / arrivals.receiver.loss_event_rate()
    };
    // The receive rate stands for about 80 packets; the three after the loss have arrived, too.
    assert!((67.0..91.0).contains(&first_interval(52)));
    near(first_interval(500), 503.0, 1e-9);
}

#[test]
fn a_loss_at_the_very_beginning_counts_as_half_a_packet_in_a_round_trip() {
    let mut receiver = Receiver::new(Parameters::RFC5348);
    // Packets arrive at once, so that no rate is measured.
    for sequence in [0, 2, 3, 4] {
        receiver.packet(&PacketInfo::single(sequence, at(0), Some(RTT), 0), SIZE, at(0));
    }
    let tcp = TcpModel { packets_per_ack: 1, timeout: RTT * 4 };
    let rate = tcp.throughput_by(Equation::Rfc5348, SIZE, RTT, receiver.loss_event_rate());
    near(rate.as_f64(), 40_000.0, 0.01);
}

#[test]
fn several_reports_in_a_round_trip() {
    let parameters = Parameters { feedback_per_rtt: 4, ..Parameters::RFC5348 };
    let mut receiver = Receiver::new(parameters);
    receiver.packet(&PacketInfo::single(0, at(0), Some(RTT), 0), SIZE, at(0));
    assert_eq!(receiver.deadline(), at(25));
}

#[test]
fn reports_of_a_short_round_trip_leave_time_between_them_and_the_sender_waits_for_them() {
    let least = Duration::from_millis(10);
    let parameters = Parameters { least_feedback_interval: least, ..Parameters::RFC5348 };
    let mut receiver = Receiver::new(parameters);
    let rtt = Duration::from_millis(1);
    receiver.packet(&PacketInfo::single(0, at(0), Some(rtt), 0), SIZE, at(0));
    assert_eq!(receiver.deadline(), at(10));
    let mut sender = Sender::new(parameters, SIZE);
    sender.sent(at(0), true);
    let receive_rate = Rate::from_mbps(100);
    let report = Feedback { timestamp: at(0), delay: Duration::ZERO, receive_rate, loss_event_rate: 0.0 };
    assert_eq!(sender.feedback(&report, at(1)), Some(rtt));
    assert_eq!(sender.deadline(), at(1) + least * u64::from(parameters.nofeedback_rtts));
}

/// Packets that ask for the first report leave before their time.
#[test]
fn packets_that_leave_early_do_not_put_off_those_behind_them() {
    let mut sender = Sender::new(Parameters::RFC5348, SIZE);
    for millis in [0, 10, 20, 30] {
        sender.sent(at(millis), false);
    }
    assert_eq!(sender.next_send(), at(1030));
    let report =
        Feedback { timestamp: at(30), delay: Duration::ZERO, receive_rate: Rate::ZERO, loss_event_rate: 0.0 };
    sender.feedback(&report, at(130)).unwrap();
    assert!(sender.next_send() < at(130), "{}", sender.next_send());
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0u64..2_000_000_000, 2 => 0u64..10, 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn parameters() -> impl Strategy<Value = Parameters> {
    let exact = (any::<u8>(), 0u32..5, 0u32..5, 0u32..9);
    (prop::bool::ANY, exact, number(), number(), prop::option::of(0u32..4)).prop_map(
        |(is_ns2, (intervals, later_packets, feedback_per_rtt, rtts), maximum_rate, granularity, burst)| {
            Parameters {
                first_interval_arrived: intervals % 2 == 0,
                maximum_rate: Rate::from_bps(maximum_rate),
                granularity: Duration::from_nanos(granularity),
                burst,
                intervals,
                later_packets,
                feedback_per_rtt,
                least_feedback_interval: Duration::from_nanos(granularity / 2),
                nofeedback_rtts: rtts,
                ..if is_ns2 { Parameters::NS2 } else { Parameters::RFC5348 }
            }
        },
    )
}

fn flows() -> impl Strategy<Value = f64> {
    prop_oneof![4 => 1.0f64..20.0, 1 => any::<f64>(), 1 => Just(f64::NAN)]
}

#[derive(Clone, Debug)]
enum Step {
    Send { has_more: bool },
    Feedback(Feedback),
    Flows(f64),
    Share(f64),
    Tick,
}

fn step() -> impl Strategy<Value = Step> {
    let loss = prop_oneof![Just(0.0), 0.0f64..1.0, any::<f64>()];
    let feedback =
        (number(), number(), number(), loss).prop_map(|(timestamp, delay, rate, loss_event_rate)| {
            Step::Feedback(Feedback {
                timestamp: Time::from_nanos(timestamp),
                delay: Duration::from_nanos(delay),
                receive_rate: Rate::from_bps(rate),
                loss_event_rate,
            })
        });
    prop_oneof![
        any::<bool>().prop_map(|has_more| Step::Send { has_more }),
        feedback,
        flows().prop_map(Step::Flows),
        prop_oneof![0.0f64..8.0, any::<f64>()].prop_map(Step::Share),
        Just(Step::Tick)
    ]
}

proptest! {
    #[test]
    fn a_senders_rate_stays_in_its_bounds(
        parameters in parameters(), size in 1u64..70_000, steps in prop::collection::vec((number(), step()), 0..200),
    ) {
        let size = Bytes::new(size);
        let mut sender = Sender::new(parameters, size);
        let least = Rate::of(size, parameters.longest_interval);
        let mut now = Time::ZERO;
        for (pause, step) in steps {
            now += Duration::from_nanos(pause);
            match step {
                Step::Send { has_more } => {
                    let may_send = sender.next_send();
                    sender.sent(now, has_more);
                    prop_assert!(sender.next_send() >= may_send);
                }
                Step::Feedback(feedback) => {
                    sender.feedback(&feedback, now);
                }
                Step::Flows(flows) => sender.set_flows(flows),
                Step::Share(share) => sender.set_share(share),
                Step::Tick => {
                    sender.tick(now);
                    prop_assert!(sender.deadline() > now || now == Time::NEVER);
                }
            }
            for rate in [sender.allowed_rate(), sender.sending_rate()] {
                // In floats, as very large rates are rounded to them.
                let stands_for = (sender.flows() * sender.share()).min(100.0);
                let most = parameters.maximum_rate.as_f64().max(stands_for * (least.as_f64() + 1.0));
                let least = (least.as_f64() * stands_for.min(1.0)).floor();
                prop_assert!(rate.as_f64() >= least && rate.as_f64() <= most * (1.0 + 1e-12) + 1.0, "{rate}");
            }
            prop_assert!((0.0..=1.0).contains(&sender.loss_event_rate()));
        }
    }

    #[test]
    fn a_receiver_reports_rates_whatever_comes(
        parameters in parameters(),
        packets in prop::collection::vec((number(), number(), number(), prop::option::of(number()), number()), 0..200),
        shares in prop::collection::vec((flows(), 0u16..20, number()), 200),
    ) {
        let mut receiver = Receiver::new(parameters);
        let mut now = Time::ZERO;
        for ((pause, sequence, timestamp, rtt, size), (flows, connection, number)) in packets.into_iter().zip(shares) {
            now += Duration::from_nanos(pause);
            let late = receiver.tick(now);
            prop_assert!(receiver.tick(now).is_none() || receiver.deadline() == Time::NEVER);
            let rtt = rtt.map(Duration::from_nanos);
            let single = PacketInfo::single(sequence, Time::from_nanos(timestamp), rtt, sequence);
            let packet = PacketInfo { flows, connection, connection_sequence: number, ..single };
            for feedback in [late, receiver.packet(&packet, Bytes::new(size), now)].into_iter().flatten() {
                prop_assert!((0.0..=1.0).contains(&feedback.loss_event_rate));
            }
        }
    }

    #[test]
    fn reordering_below_three_packets_is_no_loss(swaps in prop::collection::vec(any::<bool>(), 1..200)) {
        let mut receiver = Receiver::new(Parameters::RFC5348);
        let mut order: Vec<u64> = (0..2 * swaps.len() as u64 + 1).collect();
        for (pair, swap) in swaps.iter().enumerate() {
            if *swap {
                order.swap(2 * pair + 1, 2 * pair + 2);
            }
        }
        for (slot, sequence) in (0..).zip(order) {
            let packet = PacketInfo::single(sequence, at(10 * sequence), Some(RTT), 0);
            receiver.packet(&packet, SIZE, at(10 * slot));
        }
        prop_assert_eq!(receiver.loss_event_rate(), 0.0);
    }
}
