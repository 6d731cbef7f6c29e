//! What is measured of films.

use anabranch_sim::report::{FlowTotals, LiveTotals, MediaTotals, Seen, Totals};

use super::*;

fn run(films: impl IntoIterator<Item = MediaTotals>) -> Recording {
    let flow = |film| FlowTotals { media: Some(film), ..FlowTotals::default() };
    let flows = films.into_iter().map(flow).collect();
    Recording { totals: Totals { flows, ..Totals::default() }, ..Recording::default() }
}

fn of(quantity: Quantity, flows: Vec<FlowId>, run: &Recording) -> f64 {
    let bound = Bound {
        quantity,
        weights: vec![1.0; flows.len()],
        rates: vec![None; flows.len()],
        flows,
        links: Vec::new(),
        others: Vec::new(),
        each: None,
        bins: None,
        window: None,
        sizes: Vec::new(),
        bottlenecks: Vec::new(),
        delay: 0.0,
        details: Details::default(),
    };
    bound.of(run)
}

#[test]
fn a_film_that_never_begins_stands_still_as_long_as_it_is_there() {
    let film = |startup: Option<u64>, lasted: u64, stalled: u64| MediaTotals {
        lasted: Duration::from_secs(lasted),
        startup: startup.map(Duration::from_secs),
        stalled: Duration::from_secs(stalled),
        ..MediaTotals::default()
    };
    let run = run([film(Some(2), 70, 5), film(None, 30, 0), film(Some(40), 70, 1)]);
    let standing = |flows: Vec<FlowId>| of(Quantity::Standing, flows, &run);
    assert_eq!([standing(vec![0]), standing(vec![1]), standing(vec![0, 1])], [5.0, 30.0, 17.5]);
    assert_eq!(
        standing(vec![2]),
        31.0,
        "who waits a minute for its beginning has not had it without a stall"
    );
}

#[test]
fn what_the_viewer_saw_counts_before_what_the_session_thinks() {
    let seconds = Duration::from_secs;
    let seen = Seen { startup: Some(seconds(3)), stalls: 2, stalled: seconds(7), ..Seen::default() };
    let film = MediaTotals {
        lasted: seconds(60),
        startup: None,
        stalls: 9,
        stalled: seconds(20),
        seen: Some(seen),
        ..MediaTotals::default()
    };
    let run = run([film]);
    let figures = [Quantity::StartUp, Quantity::Stalls, Quantity::Stalled, Quantity::Standing];
    assert_eq!(figures.map(|quantity| of(quantity, vec![0], &run)), [3.0, 2.0, 7.0, 7.0]);
}

#[test]
fn what_is_missing_of_live_streams_is_the_mean_of_their_parts() {
    let stream = |packets, missing, latency_99: Option<u64>| FlowTotals {
        live: Some(LiveTotals {
            latency_asked: Duration::from_millis(600),
            packets,
            missing,
            latency_99: latency_99.map(Duration::from_millis),
            ..LiveTotals::default()
        }),
        ..FlowTotals::default()
    };
    let flows = vec![stream(100, 10, Some(700)), stream(1000, 0, Some(900)), stream(10, 10, None)];
    let run = Recording { totals: Totals { flows, ..Totals::default() }, ..Recording::default() };
    let missing = |flows: Vec<FlowId>| of(Quantity::Missing, flows, &run);
    assert_eq!([missing(vec![0]), missing(vec![0, 1]), missing(vec![2])], [0.1, 0.05, 1.0]);
    let latency = |flows: Vec<FlowId>| of(Quantity::Latency, flows, &run);
    assert!((latency(vec![0, 1]) - 0.8).abs() < 1e-9);
    assert!((of(Quantity::Overrun, vec![0, 1], &run) - 0.2).abs() < 1e-9);
    assert!(latency(vec![0, 2]).is_nan(), "what never comes has no latency");
}

#[test]
fn a_rung_is_that_of_players_that_choose_one_and_have_played() {
    let player = |rung: Option<u64>, switches: u32| MediaTotals {
        seen: Some(Seen { rung: rung.map(Rate::from_bps), switches, ..Seen::default() }),
        ..MediaTotals::default()
    };
    let run =
        run([player(Some(800_000), 1), player(Some(3_000_000), 4), player(None, 0), MediaTotals::default()]);
    let rung = |flows: Vec<FlowId>| of(Quantity::Rung, flows, &run);
    assert_eq!(
        [rung(vec![0]), rung(vec![0, 1]), rung(vec![0, 1, 2, 3])],
        [800_000.0, 1_900_000.0, 1_900_000.0]
    );
    assert!(rung(vec![2, 3]).is_nan(), "nobody has played");
    assert_eq!(of(Quantity::RungSwitches, vec![0, 1], &run), 2.5);
}
