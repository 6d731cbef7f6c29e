//! Players by hand, and what holds for all of them.

use proptest::prelude::*;

use super::*;

/// 1000 bytes a second.
const RATE: Rate = Rate::from_kbps(8);

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn playback(parameters: Parameters) -> Playback {
    Playback::new(parameters, Some(RATE), Time::ZERO)
}

#[test]
fn section_8_3_by_hand() {
    let mut player = playback(Parameters::multitcp_8_3());
    player.advance(at(9_000), Bytes::new(9_999), false);
    assert_eq!(player.report(), PlaybackReport::default());
    // Ten seconds of media, and half a second more that is never played: no second begins that is not all
    // there.
    player.advance(at(10_000), Bytes::new(10_500), false);
    assert_eq!((player.report().startup, player.report().playing), (Some(secs(10)), true));
    // Runs out at 20 s, looks at 25 s in vain.
    player.advance(at(27_000), Bytes::new(10_500), false);
    let report = player.report();
    assert_eq!((report.stalls, report.stalled, report.playing), (2, secs(7), false));
    assert_eq!(player.play_position(), Bytes::new(10_000));
    // Enough comes at 28 s; the pause ends at 30 s.
    player.advance(at(28_000), Bytes::new(15_000), false);
    assert!(!player.report().playing);
    player.advance(at(31_000), Bytes::new(15_000), false);
    let report = player.report();
    assert_eq!((report.stalls, report.stalled, report.playing), (2, secs(10), true));
    assert_eq!(player.play_position(), Bytes::new(11_000));
    assert_eq!(player.buffer(), Some(secs(4)));
}

#[test]
fn section_8_3_goes_on_at_the_end_of_a_pause_with_what_comes_then() {
    let mut player = playback(Parameters::multitcp_8_3());
    player.advance(at(10_000), Bytes::new(10_000), false);
    player.advance(at(25_000), Bytes::new(12_000), false);
    assert_eq!((player.report().stalls, player.report().stalled), (1, secs(5)));
    assert!(player.report().playing);
}

#[test]
fn rebuffering_by_hand() {
    let mut player = playback(Parameters::default());
    player.advance(at(1_000), Bytes::new(2_000), false);
    assert_eq!(player.report().startup, Some(secs(1)));
    // Runs out at 3 s; one second of media is not enough at 7 s, two are at 8 s.
    player.advance(at(7_000), Bytes::new(3_000), false);
    assert_eq!((player.report().stalls, player.report().stalled), (1, secs(4)));
    player.advance(at(8_000), Bytes::new(4_000), false);
    assert_eq!((player.report().stalls, player.report().stalled), (1, secs(5)));
    player.advance(at(9_000), Bytes::new(4_000), true);
    assert!(player.report().playing);
    player.advance(at(12_000), Bytes::new(4_000), true);
    let report = player.report();
    assert_eq!((report.finished, report.playing, report.stalls, report.stalled), (true, false, 1, secs(5)));
    assert_eq!((player.play_position(), player.buffer()), (Bytes::new(4_000), None));
}

#[test]
fn the_end_is_enough_to_start_and_to_go_on() {
    let mut player = playback(Parameters::default());
    player.advance(at(1_000), Bytes::new(500), true);
    assert!(player.report().playing);
    player.advance(at(1_500), Bytes::new(500), true);
    assert!(player.report().finished && player.report().stalls == 0);
    let mut empty = playback(Parameters::default());
    empty.advance(at(1_000), Bytes::ZERO, true);
    assert!(empty.report().finished);
}

#[test]
fn waits_for_the_rate_and_follows_its_changes() {
    let mut player = Playback::new(Parameters::default(), None, Time::ZERO);
    player.advance(at(1_000), Bytes::new(9_000), false);
    assert_eq!((player.buffer(), player.report().startup), (None, None));
    player.set_rate(at(2_000), RATE);
    assert_eq!((player.buffer(), player.report().startup), (Some(secs(9)), Some(secs(2))));
    // One second at 1000 bytes, then twice as fast: 8000 bytes in four seconds.
    player.set_rate(at(3_000), Rate::from_kbps(16));
    assert_eq!((player.buffer(), player.play_position()), (Some(secs(4)), Bytes::new(1_000)));
    player.advance(at(8_000), Bytes::new(9_000), false);
    assert_eq!(player.report().stalled, secs(1));
}

#[test]
fn a_seek_buffers_again_and_is_no_stall() {
    let mut player = playback(Parameters::default());
    player.advance(at(1_000), Bytes::new(5_000), true);
    player.reset(at(2_000), Bytes::new(70_000));
    assert_eq!((player.play_position(), player.buffer()), (Bytes::new(70_000), Some(Duration::ZERO)));
    player.advance(at(6_000), Bytes::new(1_999), false);
    assert!(!player.report().playing);
    player.advance(at(7_000), Bytes::new(3_000), false);
    player.advance(at(8_000), Bytes::new(3_000), false);
    assert_eq!(player.play_position(), Bytes::new(71_000));
    let report = player.report();
    assert_eq!((report.startup, report.stalls, report.stalled), (Some(secs(1)), 0, Duration::ZERO));
}

#[test]
fn a_player_that_shows_what_it_plays_does_not_stall_and_goes_on_from_there() {
    let mut player = playback(Parameters::default());
    player.advance(at(1_000), Bytes::new(5_000), false);
    player.advance(at(2_000), Bytes::new(5_000), false);
    // Paused for a minute, then twice as fast for a second.
    player.follow(at(62_000), Bytes::new(5_000), false, Bytes::new(1_000));
    player.follow(at(63_000), Bytes::new(5_000), false, Bytes::new(3_000));
    assert_eq!((player.play_position(), player.buffer()), (Bytes::new(3_000), Some(secs(2))));
    assert_eq!((player.report().stalls, player.report().stalled), (0, Duration::ZERO));
    // By the clock again: what is there runs out after two seconds.
    player.advance(at(66_000), Bytes::new(5_000), false);
    assert_eq!((player.report().stalls, player.report().stalled), (1, secs(1)));
    // It was not kept waiting any more when it left bytes lying.
    player.follow(at(67_000), Bytes::new(9_000), false, Bytes::new(5_000));
    player.follow(at(99_000), Bytes::new(9_000), false, Bytes::new(5_000));
    assert_eq!((player.report().stalls, player.report().stalled), (1, secs(2)));
    // Nor back, nor beyond what is there.
    player.follow(at(100_000), Bytes::new(9_000), false, Bytes::new(1_000));
    player.has_played(Bytes::new(90_000));
    assert_eq!(player.play_position(), Bytes::new(9_000));
}

#[test]
fn absurd_times_cost_nothing() {
    for parameters in [Parameters::multitcp_8_3(), Parameters::default()] {
        let mut player = playback(parameters);
        player.advance(at(1), Bytes::new(20_000), false);
        player.advance(Time::NEVER, Bytes::new(20_000), false);
        player.advance(at(5), Bytes::MAX, false);
        player.advance(Time::NEVER, Bytes::MAX, true);
        assert!(player.report().stalls >= 1);
    }
}

fn parameters() -> impl Strategy<Value = Parameters> {
    let stall = prop_oneof![
        (0u64..6_000).prop_map(|pause| StallRule::FixedPause(Duration::from_millis(pause))),
        (0u64..4_000).prop_map(|at| StallRule::Rebuffer { resume_at: Duration::from_millis(at) }),
    ];
    (0u64..5_000, stall)
        .prop_map(|(prebuffer, stall)| Parameters { prebuffer: Duration::from_millis(prebuffer), stall })
}

proptest! {
    #[test]
    fn calls_in_between_change_nothing(
        parameters in parameters(), rate in 1_000u64..50_000, ends in any::<bool>(),
        arrivals in prop::collection::vec((1u64..4_000, 0u64..6_000, prop::collection::vec(0u64..4_000, 0..4)), 1..40),
    ) {
        let rate = Some(Rate::from_bps(rate));
        let (mut seldom, mut often) =
            (Playback::new(parameters, rate, Time::ZERO), Playback::new(parameters, rate, Time::ZERO));
        let (mut now, mut there, last) = (0, 0, arrivals.len() - 1);
        for (index, (step, bytes, between)) in arrivals.into_iter().enumerate() {
            let mut between: Vec<u64> = between.into_iter().map(|time| now + time.min(step - 1)).collect();
            between.sort_unstable();
            for time in between {
                often.advance(at(time), Bytes::new(there), false);
                prop_assert!(often.play_position() <= Bytes::new(there));
            }
            (now, there) = (now + step, there + bytes);
            let before = seldom.report();
            for player in [&mut seldom, &mut often] {
                player.advance(at(now), Bytes::new(there), ends && index == last);
            }
            prop_assert_eq!(seldom.report(), often.report());
            prop_assert_eq!(seldom.play_position(), often.play_position());
            let after = seldom.report();
            prop_assert!(after.stalls >= before.stalls && after.stalled >= before.stalled);
        }
    }

    #[test]
    fn every_moment_is_start_up_play_or_stall(
        parameters in parameters(), arrivals in prop::collection::vec((1u64..4_000, 0u64..6_000), 1..40),
    ) {
        let mut player = playback(parameters);
        let (mut now, mut there) = (0, 0);
        for (step, bytes) in arrivals {
            (now, there) = (now + step, there + bytes);
            player.advance(at(now), Bytes::new(there), false);
            let report = player.report();
            if let Some(startup) = report.startup {
                // 1000 bytes a second: a byte a millisecond.
                let played = Duration::from_millis(player.play_position().get());
                prop_assert_eq!(startup + played + report.stalled, at(now).since(Time::ZERO));
            }
        }
    }
}
