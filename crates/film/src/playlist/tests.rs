use proptest::prelude::*;

use super::*;

const PICTURE: GroupId = GroupId(0);
const SOUND: GroupId = GroupId(1);
const LOW: TrackId = TrackId(0);
const HIGH: TrackId = TrackId(1);
const TONE: TrackId = TrackId(2);

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn segment(track: TrackId, number: u64) -> SegmentId {
    SegmentId { track, number }
}

/// Two rungs and a sound of 20 segments of 4 s each, from the number 7 on.
fn playlist(parameters: Parameters) -> Playlist {
    let mut playlist = Playlist::new(parameters);
    for (track, group) in [(LOW, PICTURE), (HIGH, PICTURE), (TONE, SOUND)] {
        playlist.listed(track, group, 7, vec![Duration::from_secs(4); 20]);
    }
    playlist
}

fn come(playlist: &mut Playlist, segment: SegmentId, size: Bytes) {
    playlist.came(segment, size, Duration::from_secs(3), at(0));
}

#[test]
fn what_is_played_next_is_fetched_when_the_player_waits_for_nothing() {
    let mut playlist = playlist(Parameters::default());
    assert_eq!(playlist.next(at(0)), None, "nobody plays");
    playlist.asked(segment(LOW, 7), Hints::default(), at(0));
    assert_eq!(playlist.next(at(1)), None, "the player waits");
    come(&mut playlist, segment(LOW, 7), Bytes::kib(400));
    assert_eq!(playlist.next(at(2)), Some(segment(LOW, 8)));
    assert_eq!(playlist.next(at(3)), None, "one at a time");
    // The player asks for what is under way.
    playlist.asked(segment(LOW, 8), Hints::default(), at(4));
    come(&mut playlist, segment(LOW, 8), Bytes::kib(400));
    let mut fetched = 0;
    while let Some(next) = playlist.next(at(5)) {
        fetched += 1;
        assert_eq!(next, segment(LOW, 8 + fetched));
        come(&mut playlist, next, Bytes::kib(400));
    }
    assert_eq!(fetched, 7, "30 s behind the start of the segment that was asked for, and no more");
}

#[test]
fn the_rung_above_is_the_next_one_to_which_the_player_may_go() {
    let mut playlist = playlist(Parameters::default());
    assert_eq!(playlist.next_rung(LOW), None, "nothing is told of rates");
    playlist.needs(LOW, Rate::from_kbps(850));
    // The same track with other sound.
    playlist.needs(LOW, Rate::from_kbps(800));
    playlist.needs(LOW, Rate::ZERO);
    playlist.needs(HIGH, Rate::from_kbps(2000));
    playlist.needs(TONE, Rate::from_kbps(900));
    assert_eq!(playlist.next_rung(LOW), Some(Ratio::new(5, 2)));
    assert_eq!((playlist.next_rung(HIGH), playlist.next_rung(TONE)), (None, None));
    for (track, kbps) in [(TrackId(3), 1200), (TrackId(4), 820)] {
        playlist.listed(track, PICTURE, 7, Vec::new());
        playlist.needs(track, Rate::from_kbps(kbps));
        // A playlist that comes again tells its segments alone.
        playlist.listed(track, PICTURE, 7, Vec::new());
    }
    assert_eq!(playlist.next_rung(LOW), Some(Ratio::new(3, 2)), "820 kbps is no step");
    let said = |top| Hints { top: Some(Rate::from_kbps(top)), ..Hints::default() };
    playlist.asked(segment(LOW, 7), said(1000), at(0));
    assert_eq!(playlist.next_rung(LOW), None, "its player goes no higher than a megabit");
    playlist.asked(segment(LOW, 8), said(1500), at(0));
    assert_eq!(playlist.next_rung(LOW), Some(Ratio::new(3, 2)));
}

/// What the paths give is a mean of some seconds; a segment that is slow tells sooner that it is less now.
#[test]
fn what_is_next_is_fetched_while_a_player_has_waited_long_for_what_ends() {
    let mut playlist = playlist(Parameters::default());
    let size = Rate::from_kbps(800).amount_in(Duration::from_secs(4));
    playlist.asked(segment(LOW, 7), Hints::default(), at(0));
    playlist.came(segment(LOW, 7), size, Duration::from_millis(600), at(600));
    playlist.asked(segment(LOW, 8), Hints::default(), at(1000));
    playlist.ends(segment(LOW, 8));
    assert_eq!(playlist.next(at(2900)), None, "in less than half of its play time");
    assert_eq!(playlist.next(at(3100)), Some(segment(LOW, 9)));
}

/// What a player of a ladder asks for next is not known, and what it does not ask for was got for nothing.
#[test]
fn nothing_is_fetched_ahead_where_the_paths_give_far_more_than_is_played_and_there_are_other_rungs() {
    let comes_at = |playlist: &mut Playlist, track, kbps: u64| {
        let size = Rate::from_kbps(800).amount_in(Duration::from_secs(4));
        playlist.asked(segment(track, 7), Hints::default(), at(0));
        let took = Rate::from_kbps(kbps).time_for(size);
        playlist.came(segment(track, 7), size, took, at(0));
        playlist.next(at(1))
    };
    assert_eq!(comes_at(&mut playlist(Parameters::default()), LOW, 1500), Some(segment(LOW, 8)));
    assert_eq!(comes_at(&mut playlist(Parameters::default()), LOW, 1700), None);
    assert_eq!(
        comes_at(&mut playlist(Parameters::default()), TONE, 1700),
        Some(segment(TONE, 8)),
        "there is one"
    );
    // Of what is chosen here nothing is in vain.
    let mut chosen = adapting();
    let rung = chosen.choose(7, false, at(0)).unwrap().track;
    assert!(comes_at(&mut chosen, rung, 1700).is_some());
    // What is said to be next is next.
    let mut playlist = playlist(Parameters::default());
    comes_at(&mut playlist, LOW, 5000);
    let said = Hints { next: Some(segment(HIGH, 8)), ..Hints::default() };
    playlist.asked(segment(LOW, 7), said, at(1));
    assert_eq!(playlist.next(at(2)), Some(segment(HIGH, 8)));
}

#[test]
fn what_is_next_begins_when_connections_of_what_is_under_way_have_nothing_to_do() {
    let mut playlist = playlist(Parameters::default());
    playlist.asked(segment(LOW, 7), Hints::default(), at(0));
    assert_eq!(playlist.next(at(1)), None);
    playlist.ends(segment(LOW, 7));
    assert_eq!(playlist.next(at(1)), Some(segment(LOW, 8)));
    playlist.ends(segment(LOW, 8));
    assert_eq!(playlist.next(at(2)), None, "two end at a time");
    playlist.came(segment(LOW, 7), Bytes::kib(400), Duration::from_secs(4), at(4000));
    assert_eq!(playlist.next(at(4000)), Some(segment(LOW, 9)));
    // What came while another one ended is no measure of its own: 400 KiB in a second.
    playlist.came(segment(LOW, 8), Bytes::kib(400), Duration::from_secs(3), at(5000));
    let kbps = playlist.rate().unwrap().as_bps() / 1000;
    assert!((1900..2200).contains(&kbps), "{kbps}: half of 819 and half of 3277");
}

#[test]
fn sound_and_picture_are_fetched_in_turn() {
    let mut playlist = playlist(Parameters::default());
    for track in [LOW, TONE] {
        playlist.asked(segment(track, 7), Hints::default(), at(0));
        come(&mut playlist, segment(track, 7), Bytes::kib(10));
    }
    let order: Vec<_> = (0..4)
        .map(|_| {
            let next = playlist.next(at(1)).unwrap();
            come(&mut playlist, next, Bytes::kib(10));
            next
        })
        .collect();
    assert_eq!(order, [segment(LOW, 8), segment(TONE, 8), segment(LOW, 9), segment(TONE, 9)]);
}

#[test]
fn another_rung_throws_away_what_was_fetched_of_the_first_and_leaves_the_sound() {
    let mut playlist = playlist(Parameters::default());
    for track in [HIGH, TONE] {
        playlist.asked(segment(track, 7), Hints::default(), at(0));
        come(&mut playlist, segment(track, 7), Bytes::kib(10));
    }
    for _ in 0..2 {
        let next = playlist.next(at(1)).unwrap();
        come(&mut playlist, next, Bytes::kib(10));
    }
    playlist.asked(segment(LOW, 8), Hints::default(), at(2));
    assert!(!playlist.keeps(segment(HIGH, 8)) && playlist.keeps(segment(TONE, 8)));
    assert_eq!(playlist.next(at(3)), None);
    come(&mut playlist, segment(LOW, 8), Bytes::kib(10));
    assert_eq!(playlist.next(at(4)), Some(segment(LOW, 9)));
}

#[test]
fn a_player_that_is_gone_keeps_nothing() {
    let mut playlist = playlist(Parameters::default());
    playlist.asked(segment(LOW, 7), Hints::default(), at(0));
    come(&mut playlist, segment(LOW, 7), Bytes::kib(10));
    assert!(playlist.next(at(15_000)).is_some() && !playlist.is_forgotten(at(15_000)));
    assert!(playlist.next(at(15_001)).is_none() && playlist.is_forgotten(at(15_001)));
    assert!(!playlist.keeps(segment(LOW, 7)) && !playlist.keeps(segment(LOW, 8)));
    // One that comes back without having been missed begins anew.
    let mut playlist = self::playlist(Parameters::default());
    for number in [7, 8] {
        playlist.asked(segment(LOW, number), Hints::default(), at(0));
        come(&mut playlist, segment(LOW, number), Bytes::kib(10));
    }
    assert_eq!(playlist.next(at(1)), Some(segment(LOW, 9)));
    come(&mut playlist, segment(LOW, 9), Bytes::kib(10));
    playlist.asked(segment(LOW, 8), Hints::default(), at(20_000));
    come(&mut playlist, segment(LOW, 8), Bytes::kib(10));
    assert_eq!(playlist.next(at(20_001)), Some(segment(LOW, 9)));
}

#[test]
fn at_the_live_edge_there_is_nothing_ahead() {
    let mut playlist = playlist(Parameters::default());
    playlist.asked(segment(LOW, 26), Hints::default(), at(0));
    come(&mut playlist, segment(LOW, 26), Bytes::kib(10));
    assert_eq!(playlist.next(at(1)), None);
    playlist.listed(LOW, PICTURE, 8, vec![Duration::from_secs(4); 20]);
    assert_eq!(playlist.next(at(2)), Some(segment(LOW, 27)));
}

#[test]
fn a_rate_is_believed_at_once_when_it_rises_and_slowly_when_it_falls() {
    let mut playlist = playlist(Parameters::default());
    let mbps = |playlist: &Playlist| playlist.rate().unwrap().as_f64() / 1e6;
    playlist.measured(Rate::from_mbps(2), Duration::from_millis(100));
    playlist.measured(Rate::from_mbps(10), Duration::from_millis(100));
    assert!((5.9..6.1).contains(&mbps(&playlist)));
    playlist.measured(Rate::from_mbps(2), Duration::from_millis(100));
    assert!((5.8..6.0).contains(&mbps(&playlist)));
    for _ in 0..16 {
        playlist.measured(Rate::from_mbps(2), Duration::from_secs(1));
    }
    assert!((2.0..2.5).contains(&mbps(&playlist)), "{}", mbps(&playlist));
    let delivered = playlist.delivery().unwrap().ratio_to(playlist.rate().unwrap());
    assert!((1.1..1.25).contains(&delivered), "within a quarter: {delivered}");
}

#[test]
fn a_player_with_one_rung_gets_what_is_there_at_once() {
    let mut playlist = Playlist::new(Parameters::default());
    playlist.listed(LOW, PICTURE, 5, vec![Duration::from_secs(4); 20]);
    playlist.listed(TONE, SOUND, 5, vec![Duration::from_secs(4); 20]);
    playlist.measured(Rate::from_mbps(2), Duration::from_secs(1));
    assert_eq!(playlist.delivery(), None);
    // There is another one, though nobody knows its segments.
    playlist.listed(HIGH, PICTURE, 0, Vec::new());
    assert!(playlist.delivery().is_some());
}

#[test]
fn what_the_player_has_to_play_follows_from_what_it_asked_for() {
    let mut playlist = playlist(Parameters::default());
    let came = |playlist: &mut Playlist, number, now| {
        playlist.came(segment(LOW, number), Bytes::kib(400), Duration::from_secs(1), at(now));
    };
    playlist.asked(segment(LOW, 7), Hints::default(), at(0));
    assert_eq!(playlist.ahead(segment(LOW, 7), at(1000)), Duration::ZERO, "it has nothing to play yet");
    came(&mut playlist, 7, 1000);
    assert_eq!(playlist.ahead(segment(LOW, 8), at(2000)), Duration::from_secs(3));
    playlist.asked(segment(LOW, 8), Hints::default(), at(2000));
    playlist.asked(segment(HIGH, 8), Hints::default(), at(3000));
    assert_eq!(playlist.ahead(segment(HIGH, 8), at(3000)), Duration::from_secs(2));
    // For a second it stood still, and what it did not play then it still has.
    playlist.asked(segment(LOW, 8), Hints::default(), at(3000));
    came(&mut playlist, 8, 6000);
    assert_eq!(playlist.ahead(segment(LOW, 9), at(7000)), Duration::from_secs(3));
    // It went elsewhere.
    playlist.asked(segment(HIGH, 20), Hints::default(), at(2000));
    assert_eq!(playlist.ahead(segment(HIGH, 20), at(2000)), Duration::ZERO);
}

proptest! {
    /// Whatever a player asks for and whenever things come: what is fetched ahead is of the rung that was
    /// asked for last, behind it, near it, and fits the memory; and the player comes first.
    #[test]
    fn what_is_fetched_ahead_is_bounded(
        steps in proptest::collection::vec((0u8..4, 0u32..3, 5u64..30, 1u64..5_000, 0u64..20_000), 1..200),
    ) {
        let parameters = Parameters { memory: Bytes::mib(8), ..Parameters::default() };
        let mut playlist = playlist(parameters);
        let mut now = Time::ZERO;
        let mut asked = BTreeMap::new();
        let mut waits = None;
        let mut there = BTreeMap::new();
        for (step, track, number, size, pause) in steps {
            let track = TrackId(track);
            match step {
                0 => {
                    let wanted = segment(track, number);
                    playlist.asked(wanted, Hints::default(), now);
                    asked.insert(track == TONE, wanted);
                    waits = (!there.contains_key(&wanted)).then_some(wanted);
                }
                1 => {
                    if let Some(wanted) = waits.take() {
                        come(&mut playlist, wanted, Bytes::kib(size));
                        there.insert(wanted, size);
                    }
                }
                2 => now += Duration::from_millis(pause),
                _ => if let Some(next) = playlist.next(now) {
                    let last: SegmentId = asked[&(next.track == TONE)];
                    prop_assert_eq!(next.track, last.track);
                    prop_assert!(next.number > last.number && (next.number - last.number) * 4 <= 30 + 4);
                    prop_assert!(there.keys().filter(|segment| playlist.keeps(**segment)).count() <= 12);
                    prop_assert!(waits.is_none_or(|wanted| !playlist.keeps(wanted)));
                    let kept: Bytes = there.iter()
                        .filter(|(segment, _)| **segment != next && playlist.keeps(**segment))
                        .map(|(_, size)| Bytes::kib(*size)).sum();
                    prop_assert!(kept <= parameters.memory);
                    come(&mut playlist, next, Bytes::kib(size));
                    there.insert(next, size);
                },
            }
        }
    }
}

#[test]
fn what_the_player_says_that_it_asks_for_next_is_fetched_next_and_what_follows_it() {
    let mut playlist = playlist(Parameters::default());
    let said = |next| Hints { buffer: Some(Duration::from_secs(7)), next: Some(next), ..Hints::default() };
    playlist.asked(segment(LOW, 7), said(segment(HIGH, 8)), at(0));
    assert_eq!(playlist.ahead(segment(LOW, 7), at(1000)), Duration::from_secs(6), "as the player says");
    come(&mut playlist, segment(LOW, 7), Bytes::kib(10));
    for number in [8, 9] {
        assert_eq!(playlist.next(at(1)), Some(segment(HIGH, number)));
        come(&mut playlist, segment(HIGH, number), Bytes::kib(10));
    }
    assert!(playlist.keeps(segment(LOW, 7)) && playlist.keeps(segment(HIGH, 9)));
    // What is not listed, is of another kind of media, or is asked for now is none.
    for nothing in [segment(LOW, 500), segment(TONE, 8), segment(LOW, 9)] {
        playlist.asked(segment(LOW, 9), said(nothing), at(2));
        come(&mut playlist, segment(LOW, 9), Bytes::kib(10));
        assert_eq!(playlist.next(at(3)), Some(segment(LOW, 10)), "{nothing:?}");
        playlist.failed(segment(LOW, 10));
    }
}

/// Two rungs of 1 and 2 Mbps among which is chosen here.
fn adapting() -> Playlist {
    let mut playlist = playlist(Parameters::default());
    let rungs = vec![(LOW, Rate::from_mbps(1)), (HIGH, Rate::from_mbps(2))];
    playlist.adapts(rungs, adaptation::Parameters::default());
    playlist
}

/// Asks for what was chosen, and has it come at so many kbps.
fn play(playlist: &mut Playlist, number: u64, kbps: u64, now: Time) -> TrackId {
    let rung = playlist.choose(number, false, now).unwrap();
    let wanted = segment(rung.track, number);
    playlist.asked(wanted, Hints::default(), now);
    playlist.came(
        wanted,
        Rate::from_kbps(kbps).amount_in(Duration::from_secs(1)),
        Duration::from_secs(1),
        now,
    );
    rung.track
}

#[test]
fn a_rung_is_chosen_by_what_came_when_a_segment_is_fetched_and_stays_until_it_is_asked_for() {
    let mut playlist = adapting();
    assert_eq!(play(&mut playlist, 7, 5000, at(0)), LOW, "nothing is known");
    let next = playlist.next(at(1)).unwrap();
    assert_eq!(next, segment(HIGH, 8), "5 Mbps hold 2");
    assert_eq!(playlist.choose(8, false, at(2)).unwrap().track, HIGH, "it is under way");
    // The paths become slow meanwhile: what is there stays what it is, what is not does not.
    playlist.came(next, Bytes::kib(200), Duration::from_secs(30), at(2));
    assert_eq!(playlist.next(at(3)), Some(segment(LOW, 9)));
    let rung = playlist.choose(8, false, at(3)).unwrap();
    assert_eq!((rung.track, rung.place), (HIGH, 1));
    playlist.asked(segment(HIGH, 8), Hints::default(), at(3));
    assert!(
        playlist.keeps(segment(HIGH, 8)) && playlist.keeps(segment(LOW, 9)),
        "another rung is no other place"
    );
    assert_eq!(playlist.ahead(segment(HIGH, 9), at(3)), Duration::from_secs(8) - Duration::from_millis(3));
}

#[test]
fn with_much_to_play_a_higher_rung_is_tried_than_what_came_allows() {
    let mut playlist = adapting();
    play(&mut playlist, 7, 1500, at(0));
    let mut last = 7;
    while let Some(next) = playlist.next(at(1)) {
        assert_eq!(next.number, last + 1, "no number is fetched of two rungs");
        last = next.number;
        // With 12 s to play BOLA decides, and nothing of the paths.
        let ahead = (next.number - 7) * 4;
        assert_eq!(next.track == HIGH, ahead > 12, "{ahead} s");
        playlist.came(next, Bytes::new(187_500), Duration::from_secs(1), at(1));
    }
    assert_eq!(last, 14);
}

#[test]
fn what_goes_on_from_its_middle_stays_of_its_rung_and_what_was_never_chosen_does_not() {
    let mut playlist = adapting();
    assert_eq!(play(&mut playlist, 7, 5000, at(0)), LOW);
    for number in 8..12 {
        assert_eq!(play(&mut playlist, number, 5000, at(number)), HIGH);
    }
    // Its player is gone, and what was there with it.
    assert_eq!(playlist.choose(7, true, at(60_000)).unwrap().track, LOW);
    assert_eq!(playlist.choose(7, false, at(60_000)).unwrap().track, HIGH);
    // The sound has no ladder.
    playlist.asked(segment(TONE, 7), Hints::default(), at(60_000));
    come(&mut playlist, segment(TONE, 7), Bytes::kib(10));
    assert_eq!(playlist.next(at(60_001)), Some(segment(TONE, 8)));
}

proptest! {
    /// However its player goes to and fro, what is remembered of it is bounded, and no number is there twice.
    #[test]
    fn what_was_chosen_is_bounded(numbers in proptest::collection::vec((0u64..u64::MAX, 0u64..10_000), 1..300)) {
        let mut playlist = adapting();
        let mut now = Time::ZERO;
        for (number, kbps) in numbers {
            let number = if number % 2 == 0 { 7 + number % 20 } else { number };
            now += Duration::from_millis(kbps);
            play(&mut playlist, number, kbps, now);
            while let Some(next) = playlist.next(now) {
                let twice = [LOW, HIGH].iter().filter(|track| playlist.keeps(segment(**track, next.number)));
                prop_assert_eq!(twice.count(), 1);
                come(&mut playlist, next, Bytes::kib(10));
            }
        }
        prop_assert!(playlist.ladder.unwrap().remembers() <= 64);
    }
}

#[test]
fn a_player_that_asks_before_the_last_segment_has_come_waits_until_more_is_known() {
    let mut playlist = adapting();
    let first = segment(playlist.choose(7, false, at(0)).unwrap().track, 7);
    playlist.asked(first, Hints::default(), at(0));
    assert!(
        playlist.is_too_soon(8, at(1)) && !playlist.is_too_soon(7, at(1)) && !playlist.is_too_soon(12, at(1))
    );
    // It is there while it waits, however long that is.
    for millis in [10_000, 20_000, 30_000] {
        assert!(playlist.is_too_soon(8, at(millis)));
    }
    playlist.came(first, Bytes::kib(500), Duration::from_secs(30), at(30_000));
    assert!(!playlist.is_too_soon(8, at(30_000)));
    // Nobody waits for what is not under way any more, nor where nothing is chosen.
    playlist.asked(segment(LOW, 8), Hints::default(), at(30_000));
    playlist.failed(segment(LOW, 8));
    assert!(!playlist.is_too_soon(9, at(30_000)));
    let mut playlist = self::playlist(Parameters::default());
    playlist.asked(segment(LOW, 7), Hints::default(), at(0));
    assert!(!playlist.is_too_soon(8, at(1)));
}

/// Over as many connections as the lower rung needs nobody finds out whether more would hold the next one.
#[test]
fn a_rung_is_brought_as_fast_as_the_next_one_needs() {
    let playlist = adapting();
    let within = |track| playlist.comes_within(segment(track, 7));
    assert_eq!(within(LOW), Some(Duration::from_millis(1800)), "2 Mbps by 0.9, in place of 1");
    assert_eq!((within(HIGH), within(TONE)), (Some(Duration::from_secs(4)), Some(Duration::from_secs(4))));
    assert_eq!(playlist.comes_within(segment(LOW, 500)), None);
}
