use proptest::prelude::*;

use super::*;

fn ladder() -> Vec<Rate> {
    [800, 1600, 3000, 5000].map(Rate::from_kbps).to_vec()
}

fn adaptation(rule: Rule) -> Adaptation {
    Adaptation::new(Parameters { rule, ..Parameters::default() })
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Segments of so long at so many kbps.
fn come(adaptation: &mut Adaptation, kbps: u64, took_s: f64, count: usize) {
    for _ in 0..count {
        adaptation.came(Rate::from_kbps(kbps).amount_in(seconds(took_s)), seconds(took_s));
    }
}

/// Figure 6 of the paper, scaled from 240 s to 30 s: reserve up to 11.25 s, the highest rung from 27 s on.
#[test]
fn the_buffer_rule_follows_its_line_and_keeps_a_rung_between_its_neighbours() {
    let mut adaptation = adaptation(Rule::Buffer);
    let mut at = |buffer: f64| adaptation.choose(&ladder(), seconds(buffer)).rung;
    // The line is at 800 kbps + 4200 kbps * (B - 11.25 s) / 15.75 s: 1.6 Mbps at 14.25 s, 3 Mbps at 19.5 s.
    for (buffer, rung) in
        [(0.0, 0), (11.25, 0), (14.2, 0), (14.3, 1), (19.4, 1), (19.6, 2), (26.9, 2), (27.0, 3)]
    {
        assert_eq!(at(buffer), rung, "rising, {buffer} s");
    }
    for (buffer, rung) in [(26.0, 3), (19.6, 3), (19.4, 2), (14.3, 2), (14.2, 1), (11.3, 1), (11.2, 0)] {
        assert_eq!(at(buffer), rung, "falling, {buffer} s");
    }
}

#[test]
fn the_throughput_rule_takes_nine_tenths_of_what_came_and_knows_nothing_of_the_buffer() {
    let mut adaptation = adaptation(Rule::Throughput);
    assert_eq!(adaptation.choose(&ladder(), seconds(25.0)).rung, 0, "nothing has come");
    for (kbps, rung) in [(500, 0), (1700, 0), (1800, 1), (3300, 1), (3400, 2), (5500, 2), (5600, 3)] {
        let mut adaptation = self::adaptation(Rule::Throughput);
        come(&mut adaptation, kbps, 2.0, 1);
        for buffer in [0.0, 30.0] {
            assert_eq!(adaptation.choose(&ladder(), seconds(buffer)).rung, rung, "{kbps} kbps");
        }
    }
    come(&mut adaptation, 4000, 1.0, 50);
    assert!((adaptation.estimate().unwrap().as_f64() / 4e6 - 1.0).abs() < 1e-6, "what is steady is told");
}

/// After 3 s at half the rate the fast average is three quarters of it; the slow one is farther behind.
#[test]
fn a_fall_is_believed_sooner_than_a_rise() {
    let mbps = |adaptation: &Adaptation| adaptation.estimate().unwrap().as_f64() / 1e6;
    let mut adaptation = adaptation(Rule::Throughput);
    come(&mut adaptation, 4000, 10.0, 20);
    come(&mut adaptation, 2000, 3.0, 1);
    assert!((mbps(&adaptation) - 3.0).abs() < 0.001, "{}", mbps(&adaptation));
    come(&mut adaptation, 2000, 10.0, 20);
    come(&mut adaptation, 4000, 3.0, 1);
    let slow = 4.0 - 2.0 * 0.5_f64.powf(3.0 / 8.0);
    assert!((mbps(&adaptation) - slow).abs() < 0.001, "{} {slow}", mbps(&adaptation));
}

/// BOLA goes from one rung to the next where their scores are equal: by hand with utilities 0, 0.693, 1.322 and
/// 1.833 and the target of 30 s at 2.4, 9.7 and 16.0 s.
#[test]
fn of_both_the_throughput_decides_while_the_buffer_is_low_and_bola_above() {
    let mut adaptation = adaptation(Rule::Both);
    come(&mut adaptation, 1000, 2.0, 1);
    let mut at = |buffer: f64| adaptation.choose(&ladder(), seconds(buffer)).rung;
    assert_eq!((at(0.0), at(11.9)), (0, 0), "by throughput");
    for (buffer, rung) in [(12.0, 2), (15.9, 2), (16.1, 3), (29.9, 3), (9.8, 2), (9.6, 1), (6.0, 1)] {
        assert_eq!(at(buffer), rung, "by the buffer, {buffer} s");
    }
    assert_eq!((at(5.9), at(11.9)), (0, 0), "and by throughput again");
    let of_bola = |buffer: f64| bola::choose(&ladder(), seconds(buffer), seconds(30.0)).rung;
    assert_eq!((of_bola(2.3), of_bola(2.5)), (0, 1));
}

proptest! {
    /// More buffer never takes a lower rung, by either rule that looks at it; and every rule stays within the
    /// ladder, whatever it is.
    #[test]
    fn more_buffer_takes_no_lower_rung(
        mut kbps in proptest::collection::vec(1u64..100_000, 0..8),
        samples in proptest::collection::vec((0u64..100_000_000, 0u64..100_000), 0..8),
        buffers in (0u64..200_000, 0u64..200_000),
        rule in prop_oneof![Just(Rule::Buffer), Just(Rule::Throughput), Just(Rule::Both)],
    ) {
        kbps.sort_unstable();
        let rungs: Vec<_> = kbps.into_iter().map(Rate::from_kbps).collect();
        let mut adaptation = adaptation(rule);
        for (bytes, millis) in samples {
            adaptation.came(Bytes::new(bytes), Duration::from_millis(millis));
        }
        let (less, more) = (buffers.0.min(buffers.1), buffers.0.max(buffers.1));
        let (less, more) = (Duration::from_millis(less), Duration::from_millis(more));
        prop_assert!(adaptation.choose(&rungs, less).rung < rungs.len().max(1));
        prop_assert!(adaptation.choose(&rungs, more).rung < rungs.len().max(1));
        let holds = Parameters::default().holds;
        prop_assert!(bola::choose(&rungs, less, holds).rung <= bola::choose(&rungs, more, holds).rung);
        let of = |buffer| buffer::choose(&rungs, buffer, holds, None).rung;
        prop_assert!(of(less) <= of(more));
    }
}
