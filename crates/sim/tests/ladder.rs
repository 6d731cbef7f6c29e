//! Players that choose rungs, held against what follows from their rules.

#![allow(clippy::expect_used, reason = "a test may panic")]

use anabranch_sim::Simulation;
use anabranch_sim::model::Model;
use anabranch_sim::report::{MediaTotals, Seen};
use anabranch_sim::scenario::{Beside, Error, parse};
use anabranch_units::{Bytes, Duration, Rate};

fn model(text: &str) -> Result<Model, Error> {
    parse("ladder.toml", text, None, &mut Beside(std::path::Path::new(".")))
}

/// A player alone before a link of this rate, with a round trip of 40 ms and a queue of twice that.
fn scenario(link: &str, rule: &str, more: &str) -> Model {
    let text = format!(
        "[run]\nduration = \"600s\"\n[[node]]\nname = \"viewer\"\n[[node]]\nname = \"server\"\n\
         [[link]]\nfrom = \"server\"\nto = \"viewer\"\nrate = \"{link}\"\ndelay = \"20ms\"\nqueue = \"64KiB\"\n\
         [[flow]]\nname = \"film\"\nkind = \"media\"\nclient = \"viewer\"\nservers = [\"server\"]\npace = \"max\"\n\
         algorithm = \"fixed\"\nladder = {{ rungs = [\"800k\", \"1600k\", \"3M\", \"5M\"], rule = \"{rule}\"{more} }}\n"
    );
    model(&text).expect("a possible scenario")
}

fn run(model: Model) -> (MediaTotals, Seen) {
    let mut simulation = Simulation::new(model).expect("a possible model");
    simulation.run_until(simulation.end(), &mut ());
    let totals = simulation.totals().flows[0].media.expect("a stream");
    (totals, totals.seen.expect("a player with a ladder"))
}

/// What is left of a link's rate for payload: 1460 of 1500 bytes.
fn payload(link: Rate) -> f64 {
    link.as_f64() * 1460.0 / 1500.0
}

fn rung(seen: Seen) -> f64 {
    seen.rung.expect("it has played").as_f64()
}

/// The buffer stays between its ends, so that segments come all the time: as much is played as comes, and the mean
/// rung is the rate of the link (Huang et al., section 3: while the buffer is neither empty nor full, the average
/// video rate matches the capacity).
#[test]
fn the_buffer_rule_plays_at_the_rate_of_the_path() {
    for link in ["1200k", "2200k", "4M"] {
        let (_, seen) = run(scenario(link, "buffer", ""));
        let capacity = payload(link.parse::<Rate>().expect("a rate"));
        // A round trip is idle between two segments, and the beginning is at the lowest rung.
        let part = rung(seen) / capacity;
        assert!((0.9..1.0).contains(&part), "{link}: {part}");
        assert_eq!(seen.stalls, 0, "{link}");
        assert!(seen.switches >= 2, "{link}: it goes to and fro between the rungs around the link's rate");
    }
}

/// The highest rung within nine tenths of what segments came at, the request's round trip included.
#[test]
fn the_throughput_rule_plays_the_highest_rung_that_the_path_holds_and_leaves_the_rest() {
    for (link, highest) in
        [("1500k", 800_000.0), ("2200k", 1_600_000.0), ("4M", 3_000_000.0), ("8M", 5_000_000.0)]
    {
        let (_, seen) = run(scenario(link, "throughput", ""));
        // Only the first segments, of which slow start is a part, are of lower rungs.
        let part = rung(seen) / highest;
        assert!((0.99..=1.0).contains(&part), "{link}: {part}");
        assert!(seen.stalls == 0 && seen.switches <= 2, "{link}: {seen:?}");
    }
}

/// BOLA fills the buffer up to where the rung above would be best, so that nothing is left idle for long: it
/// plays more than the throughput rule, and stalls no more.
#[test]
fn both_together_play_more_than_the_throughput_alone() {
    for link in ["2200k", "4M"] {
        let (_, both) = run(scenario(link, "both", ""));
        let (_, throughput) = run(scenario(link, "throughput", ""));
        assert!(rung(both) > 1.05 * rung(throughput), "{link}: {} {}", rung(both), rung(throughput));
        assert!(rung(both) < payload(link.parse::<Rate>().expect("a rate")), "{link}");
        assert_eq!(both.stalls, 0, "{link}");
    }
}

/// Where even the lowest rung is too much, the part of the time that is played is the link's rate by that of the
/// rung, whatever the rule.
#[test]
fn below_the_lowest_rung_every_rule_stalls_for_what_the_path_lacks() {
    for rule in ["buffer", "throughput", "both"] {
        let (totals, seen) = run(scenario("600k", rule, ""));
        let startup = seen.startup.expect("it has begun");
        let played = (totals.lasted - startup - seen.stalled).ratio_to(totals.lasted - startup);
        let expected = payload(Rate::from_kbps(600)) / 800_000.0;
        assert!((played / expected - 1.0).abs() < 0.03, "{rule}: {played} of {expected}");
        assert_eq!((rung(seen), seen.switches), (800_000.0, 0), "{rule}");
    }
}

/// The first segment takes a round trip for the connection, one for the request, slow start, and its size by the
/// link's rate.
#[test]
fn play_begins_when_the_first_segment_is_there() {
    let (_, seen) = run(scenario("4M", "both", ""));
    let transfer = Rate::from_bps_f64(payload(Rate::from_mbps(4))).time_for(Bytes::new(400_000));
    let startup = seen.startup.expect("it has begun");
    let least = transfer + Duration::from_millis(80);
    assert!((least..least + Duration::from_millis(100)).contains(&startup), "{startup} of {least}");
}

/// The player asks for as much as it has room for, and no more.
#[test]
fn a_player_holds_no_more_than_it_may() {
    let (totals, seen) = run(scenario("20M", "throughput", ", holds = \"12s\""));
    let delivered = Rate::from_mbps(5).amount_in(totals.lasted + Duration::from_secs(12));
    assert!(totals.requests > 100 && seen.played <= delivered, "{totals:?}");
    let ahead = totals.lasted - Rate::from_mbps(5).time_for(seen.played);
    assert!(ahead < Duration::from_secs(4), "it plays without a stall: {ahead} are missing");
}

/// One connection fills the path. As behind `proxy`, what brought nothing is closed while the player
/// waits, too.
#[test]
fn behind_auto_a_player_that_nobody_can_help_does_not_keep_all_connections() {
    let text = "[run]\nduration = \"300s\"\n[[node]]\nname = \"viewer\"\n[[node]]\nname = \"server\"\n\
                [[link]]\nfrom = \"server\"\nto = \"viewer\"\nrate = \"2.5M\"\ndelay = \"40ms\"\nqueue = \"64KiB\"\n\
                [[flow]]\nname = \"film\"\nkind = \"media\"\nclient = \"viewer\"\nservers = [\"server\"]\n\
                algorithm = \"auto\"\nconnections_per_server = 6\nladder = { rungs = [\"3M\"] }\n";
    let (totals, seen) = run(model(text).expect("a possible scenario"));
    assert!(seen.stalls > 10, "nobody can hold it: {seen:?}");
    assert!(totals.connections_mean < 4.5, "where growth that brought nothing stays it is 5.9: {totals:?}");
}

/// Each segment begins with slow start, which takes seconds on a long way. That is no rate that is missed, and further
/// connections would only take the path from each other; behind a queue of three products some are opened still.
#[test]
fn behind_auto_a_player_on_a_long_clean_path_fares_hardly_worse_than_alone() {
    let long = |queue: &str, rule: &str, pace: &str, algorithm: &str| {
        let text = format!(
            "[run]\nduration = \"300s\"\n[[node]]\nname = \"viewer\"\n[[node]]\nname = \"server\"\n\
             [[link]]\nfrom = \"server\"\nto = \"viewer\"\nrate = \"10M\"\ndelay = \"150ms\"\nqueue = \"{queue}\"\n\
             [[flow]]\nname = \"film\"\nkind = \"media\"\nclient = \"viewer\"\nservers = [\"server\"]\n\
             connections_per_server = 6\npace = \"{pace}\"\nalgorithm = \"{algorithm}\"\n\
             ladder = {{ rungs = [\"300k\", \"700k\", \"1500k\", \"3M\", \"6M\", \"12M\"], rule = \"{rule}\" }}\n"
        );
        run(model(&text).expect("a possible scenario"))
    };
    for (queue, least) in [("250 packets", 0.9), ("750 packets", 0.7)] {
        for rule in ["buffer", "throughput", "both"] {
            let (_, alone) = long(queue, rule, "max", "fixed");
            let (totals, seen) = long(queue, rule, "media", "auto");
            let part = rung(seen) / rung(alone);
            assert!(part > least, "{queue}, {rule}: {part} {totals:?}");
        }
    }
}

/// Over one connection of a lossy path no more comes than its window and its losses allow; `auto` opens as many as
/// the rung needs.
#[test]
fn behind_as_many_connections_as_a_rung_needs_a_player_gets_a_higher_one() {
    let lossy = |pace: &str, algorithm: &str| {
        let mut text = String::from(
            "[run]\nduration = \"300s\"\n[[node]]\nname = \"viewer\"\n[[node]]\nname = \"server\"\n\
             [[link]]\nfrom = \"server\"\nto = \"viewer\"\nrate = \"20M\"\ndelay = \"75ms\"\nqueue = \"250 packets\"\n\
             loss = 0.01\nreverse = { loss = 0 }\n\
             [[flow]]\nname = \"film\"\nkind = \"media\"\nclient = \"viewer\"\nservers = [\"server\"]\n\
             ladder = { rungs = [\"800k\", \"1600k\", \"3M\", \"5M\"] }\n",
        );
        text.push_str(&format!("pace = \"{pace}\"\nalgorithm = \"{algorithm}\"\n"));
        run(model(&text).expect("a possible scenario"))
    };
    let (alone, seen_alone) = lossy("max", "fixed");
    let (with_auto, seen_with_auto) = lossy("media", "auto");
    assert_eq!(alone.connections_max, 1);
    assert!(rung(seen_alone) < 1_600_000.0, "{seen_alone:?}");
    assert!(rung(seen_with_auto) > 1.5 * rung(seen_alone), "{seen_with_auto:?} {with_auto:?}");
    assert_eq!(seen_with_auto.stalls, 0, "{seen_with_auto:?}");
}

#[test]
fn a_run_is_the_same_each_time() {
    let runs = [(), ()].map(|()| run(scenario("2200k", "both", "")));
    assert_eq!(runs[0], runs[1]);
}

#[test]
fn what_is_no_ladder_is_told() {
    let text = "[run]\nduration = \"1s\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\n\
        rate = \"1M\"\ndelay = \"1ms\"\n[[flow]]\nname = \"film\"\nkind = \"media\"\nclient = \"a\"\nservers = [\"b\"]\n\
        algorithm = \"auto\"\nladder = LADDER\n";
    for (ladder, told) in [
        ("{ rungs = [\"2M\", \"1M\"] }", "rise"),
        ("{ rungs = [] }", "1 to 64 rungs"),
        ("{ rungs = [\"1M\"], holds = \"1s\" }", "at least a segment to play"),
        ("{ rungs = [\"1M\"], segment = \"1ms\" }", "at least"),
        ("{ rungs = [\"1M\"], rule = \"bola\" }", "throughput"),
    ] {
        let error = model(&text.replace("LADDER", ladder)).expect_err("wrong").to_string();
        assert!(error.contains(told), "{ladder}: {error}");
    }
}
