//! Players with a buffer of their own before the session of `stream`: what their viewers do, what they see,
//! and what the session makes of it.

use anabranch_film::session::Pace;
use anabranch_sim::Simulation;
use anabranch_sim::model::{
    Act, Change, Flow, Kind, Link, Media, Model, Node, RateControl, Reader, Run, Tcp, When,
};
use anabranch_sim::report::{FlowSample, MediaTotals, Observer};
use anabranch_units::{Bytes, Duration, Rate, Ratio, Time};

const RATE: Rate = Rate::from_mbps(4);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A film of ten minutes over one perfect path of 100 Mbps and 40 ms.
fn model(pace: Pace, acts: &[(u64, Act)]) -> Model {
    let link = |from, to| Link::drop_tail(from, to, Rate::from_mbps(100), Duration::from_millis(20), 1000);
    let media = Media {
        client: 0,
        servers: vec![1],
        tcp: Tcp::DEPLOYED,
        rate: RATE,
        size: Some(RATE.amount_in(seconds(600))),
        pace,
        algorithm: RateControl::Auto(anabranch_film::auto::Parameters::default()),
        playback: anabranch_film::playback::Parameters::default(),
        reader: Some(Reader {
            buffer: Bytes::mib(2),
            takes: None,
            acts: acts.iter().map(|(at, act)| (seconds(*at), *act)).collect(),
            scenes: Vec::new(),
        }),
        ladder: None,
        policy: anabranch_film::content::Policy::expected(Bytes::mib(24)),
        largest_window: None,
        connect_timeout: None,
        connections_per_server: 16,
    };
    Model {
        nodes: ["viewer", "server"].map(Node::new).into(),
        links: vec![link(0, 1), link(1, 0)],
        flows: vec![Flow {
            name: "film".to_owned(),
            start: When::At(Time::ZERO),
            stop: None,
            kind: Kind::Media(Box::new(media)),
        }],
        run: Run { duration: seconds(180), seed: 1, sampling: seconds(1), warm_up: Duration::ZERO },
    }
}

/// What arrived and how many connections there were in each second.
#[derive(Default)]
struct Seconds(Vec<(Bytes, u32)>);

impl Observer for Seconds {
    fn flow(&mut self, sample: &FlowSample) {
        self.0.push((sample.delivered, sample.connections));
    }
}

fn run(model: Model) -> (MediaTotals, Seconds) {
    let mut simulation = Simulation::new(model).expect("a possible model");
    let mut observed = Seconds::default();
    simulation.run_until(simulation.end(), &mut observed);
    (simulation.totals().flows[0].media.expect("a stream"), observed)
}

fn known() -> Pace {
    Pace::Media(Some(RATE))
}

#[test]
fn a_pause_is_no_stall_and_opens_no_connections() {
    let (totals, observed) = run(model(known(), &[(20, Act::Pause(true)), (110, Act::Pause(false))]));
    let seen = totals.seen.unwrap();
    assert_eq!((seen.stalls, totals.stalls), (0, 0), "{totals:?}");
    // At the start the buffer may be filled over two.
    assert!(totals.connections_max <= 2, "{totals:?}");
    // While it is paused no more is fetched than the memory holds.
    let while_paused: Bytes = observed.0[20..110].iter().map(|(delivered, _)| *delivered).sum();
    assert!(while_paused < Bytes::mib(25), "{while_paused}");
    let played = RATE.time_for(seen.played);
    assert!((seconds(85)..=seconds(90)).contains(&played), "{played}");
}

#[test]
fn a_player_at_double_speed_never_waits_on_a_perfect_path() {
    let acts = [(30, Act::Speed(2.0)), (90, Act::Speed(1.0))];
    let (totals, observed) = run(model(known(), &acts));
    let seen = totals.seen.unwrap();
    assert_eq!((seen.stalls, totals.stalls), (0, 0), "{totals:?}");
    // At the start the buffer may be filled over two.
    assert!(totals.connections_max <= 2, "{totals:?}");
    // At the end it takes what the film needs again.
    let at_the_end: Bytes = observed.0[140..].iter().map(|(delivered, _)| *delivered).sum();
    let needed = RATE.amount_in(seconds(40));
    // A request of 2 MiB may come just before or behind these seconds.
    let (least, most) =
        (needed * Ratio::new(9, 10) - Bytes::mib(2), needed * Ratio::new(6, 5) + Bytes::mib(2));
    assert!((least..most).contains(&at_the_end), "{at_the_end} of {needed}");
    // Every byte is asked for, in parts of at most 2 MiB.
    let played = seen.played.as_f64() / Bytes::mib(2).as_f64();
    assert!((played..1000.0).contains(&(totals.requests as f64)), "{totals:?}");
}

/// A player that takes all that comes, and is never full.
fn with_endless_buffer(mut model: Model) -> Model {
    if let Kind::Media(media) = &mut model.flows[0].kind
        && let Some(reader) = &mut media.reader
    {
        reader.buffer = Bytes::mib(1000);
    }
    model
}

#[test]
fn a_player_that_holds_all_it_gets_never_waits_at_double_speed() {
    let (totals, _) = run(with_endless_buffer(model(known(), &[(5, Act::Speed(2.0))])));
    let seen = totals.seen.unwrap();
    assert_eq!(seen.stalls, 0, "{totals:?}");
    assert!(totals.connections_max <= 2, "{totals:?}");
    assert!(RATE.time_for(seen.played) > seconds(340), "{seen:?}");
}

#[test]
fn a_player_that_holds_all_it_gets_leaves_room_where_it_makes_a_queue() {
    let mut model = with_endless_buffer(model(known(), &[]));
    for link in &mut model.links {
        link.rate = Rate::from_mbps(6);
    }
    let (totals, observed) = run(model);
    let seen = totals.seen.unwrap();
    assert_eq!((seen.stalls, totals.stalls), (0, 0), "{totals:?}");
    let late: Bytes = observed.0[60..].iter().map(|(delivered, _)| *delivered).sum();
    let rate = Rate::of(late, seconds(120));
    assert!((0.9..1.2).contains(&rate.ratio_to(RATE)), "{rate}");
}

#[test]
fn a_rate_that_nobody_told_does_not_ratchet_down() {
    let (totals, observed) = run(model(Pace::Media(None), &[]));
    let seen = totals.seen.unwrap();
    assert_eq!((seen.stalls, totals.stalls), (0, 0), "{totals:?}");
    let played = RATE.time_for(seen.played);
    assert!(played > seconds(175), "{played}");
    let late: Bytes = observed.0[120..].iter().map(|(delivered, _)| *delivered).sum();
    let rate = Rate::of(late, seconds(60));
    assert!((0.9..1.2).contains(&rate.ratio_to(RATE)), "{rate}");
}

#[test]
fn a_rate_that_nobody_told_goes_up_with_the_player() {
    let (totals, _) = run(model(Pace::Media(None), &[(60, Act::Speed(2.0))]));
    let seen = totals.seen.unwrap();
    assert_eq!((seen.stalls, totals.stalls), (0, 0), "{totals:?}");
    let played = RATE.time_for(seen.played);
    assert!(played > seconds(290), "{played}");
}

#[test]
fn a_stall_is_counted_as_the_viewer_saw_it() {
    let mut model = model(known(), &[]);
    let at =
        |at: u64, rate| Change { at: Time::ZERO + seconds(at), rate: Some(rate), delay: None, loss: None };
    for link in &mut model.links {
        link.changes = vec![at(40, Rate::ZERO), at(90, link.rate)];
    }
    let (totals, _) = run(model);
    let seen = totals.seen.unwrap();
    assert_eq!((seen.stalls, totals.stalls), (1, 1), "{totals:?}");
    let difference = seen.stalled.max(totals.stalled) - seen.stalled.min(totals.stalled);
    assert!(seen.stalled > seconds(20) && difference < seconds(3), "{totals:?}");
}

#[test]
fn a_seek_is_no_stall() {
    let (totals, _) = run(model(known(), &[(30, Act::Seek(seconds(400))), (60, Act::Seek(seconds(5)))]));
    let seen = totals.seen.unwrap();
    assert_eq!((seen.stalls, totals.stalls), (0, 0), "{totals:?}");
    // At the start the buffer may be filled over two.
    assert!(totals.connections_max <= 2, "{totals:?}");
    assert!(RATE.time_for(seen.played) > seconds(170), "{seen:?}");
}

#[test]
fn nothing_is_fetched_for_a_viewer_who_has_left() {
    let (totals, observed) = run(model(known(), &[(30, Act::Leave)]));
    let afterwards: Bytes = observed.0[35..].iter().map(|(delivered, _)| *delivered).sum();
    assert!(afterwards < Bytes::mib(1), "{afterwards}");
    assert_eq!((totals.stalls, observed.0[179].1), (0, 1), "{totals:?}");
}

#[test]
fn a_stream_lasts_from_its_start_to_its_stop_or_the_end() {
    for (stop, lasted) in [(None, 170), (Some(50), 40)] {
        let mut model = model(known(), &[]);
        model.flows[0].start = When::At(Time::ZERO + seconds(10));
        model.flows[0].stop = stop.map(|stop| Time::ZERO + seconds(stop));
        assert_eq!(run(model).0.lasted, seconds(lasted), "{stop:?}");
    }
}

#[test]
fn a_film_of_variable_rate_plays_as_fast_as_its_scenes_need() {
    let mut model = model(known(), &[]);
    let scenes = vec![(seconds(20), Rate::from_mbps(12)), (seconds(50), Rate::from_mbps(2))];
    if let Kind::Media(media) = &mut model.flows[0].kind
        && let Some(reader) = &mut media.reader
    {
        reader.scenes = scenes;
    }
    let (totals, _) = run(model);
    let seen = totals.seen.unwrap();
    assert_eq!(seen.stalls, 0, "{totals:?}");
    // 20 s of 4 Mbps, 30 s of 12 Mbps, and up to 130 s of 2 Mbps.
    let most = RATE.amount_in(seconds(20 + 90 + 65));
    assert!((most - RATE.amount_in(seconds(2))..=most).contains(&seen.played), "{seen:?}");
}
