//! Our controllers in quinn's own state machines, over a simulated path in virtual time: the rates, queues
//! and losses that a real server's connections would see. `-- --nocapture` prints the figures.

mod drivers;
mod group;
mod world;

use anabranch_congestion::algorithm::Algorithm;
use anabranch_units::{Bytes, Duration, Rate, Time};
use world::{Asks, Control, Path, Source, World};

const BBR: Control = Control::Ours(Algorithm::Bbr);
const CUBIC: Control = Control::Ours(Algorithm::Cubic);

/// The rates of flows between two times in seconds, in Mbps, and how long a packet waits in the queue then.
fn run(path: Path, controls: &[Control], from: u64, until: u64) -> (Vec<f64>, Duration) {
    let mut world = World::new(path, controls, 1);
    world.run(from);
    world.mean_wait();
    let rates = world.run(until);
    let wait = world.mean_wait();
    let Path { rate, round_trip, queue, loss, .. } = path;
    println!("{rate}, {round_trip}, {queue} of queue, loss of {loss}: {controls:?}");
    println!("  {rates:.2?} Mbps, {wait} in the queue, {} dropped", world.dropped);
    (rates, wait)
}

#[test]
fn bbr_fills_a_path_and_leaves_its_queue_empty() {
    for (megabits, millis) in [(2, 50), (20, 40)] {
        let (rates, wait) = run(Path::new(megabits, millis, 4.0), &[BBR], 3, 9);
        // One packet of five to six on a slow link.
        assert!(
            rates[0] > 0.9 * megabits as f64 && wait < Duration::from_millis(millis / 2),
            "{rates:?} {wait}"
        );
    }
}

#[test]
fn startup_ends_on_losses_where_the_queue_is_short() {
    let mut world = World::new(Path::new(20, 40, 0.5), &[BBR], 1);
    world.run(3);
    let at_first = world.dropped;
    let rates = world.run(9);
    println!("{at_first} dropped in 3 s, {} afterwards, {rates:.2?} Mbps", world.dropped - at_first);
    // A product is 69 packets.
    assert!(at_first < 400 && rates[0] > 17.0, "{at_first} {rates:?}");
}

#[test]
fn bbr_is_no_slower_for_losses_at_random_and_cubic_is() {
    let path = Path { loss: 0.01, ..Path::new(20, 40, 4.0) };
    let (bbr, _) = run(path, &[BBR], 3, 9);
    let (cubic, _) = run(path, &[CUBIC], 3, 9);
    assert!(bbr[0] > 14.0 && cubic[0] < 7.0, "{bbr:?} {cubic:?}");
}

#[test]
fn bbr_shares_with_itself_with_our_cubic_and_with_another_ones() {
    for other in [BBR, CUBIC, Control::QuinnCubic] {
        let (rates, _) = run(Path::new(10, 40, 1.0), &[BBR, other], 5, 25);
        let ratio = rates[0] / rates[1];
        assert!((0.5..2.0).contains(&ratio), "{other:?}: {rates:?}");
    }
}

#[test]
fn bbr_answers_to_marks_as_to_losses() {
    let path = Path { marks_above: Bytes::new(30_000), ..Path::new(20, 40, 4.0) };
    let (rates, wait) = run(path, &[BBR], 3, 9);
    assert!(rates[0] > 16.0 && wait < Duration::from_millis(5), "{rates:?} {wait}");
    // Marks all the time are a queue that never ends: the window shrinks as far as it may.
    let path = Path { marks_above: Bytes::ZERO, ..path };
    let (less, _) = run(path, &[BBR], 3, 9);
    assert!(less[0] < rates[0], "{less:?}");
}

#[test]
fn what_a_server_has_acknowledged_holds_no_answer_back() {
    const PIECE: Bytes = Bytes::new(16_000);
    const ROUND: u64 = 5;
    let mut misses = Vec::new();
    for control in [BBR, CUBIC, Control::Ours(Algorithm::Reno), Control::Grouped] {
        let path = Path { loss: 0.05, ..Path::new(20, 40, 4.0) };
        let mut world = World::new(path, &[control], 1);
        // One request in each round, which the server acknowledges while it has nothing to say.
        let rate = Rate::from_bps(PIECE.get() * 8 / ROUND);
        world.asks(0, Asks { piece: PIECE, at_once: u64::MAX / 2, rate });
        for round in 0..40 {
            world.source(0, Source::Nothing);
            world.run(ROUND * round + 1);
            let before = world.received()[0];
            // For each one so far.
            world.source(0, Source::Asked(PIECE));
            world.run(ROUND * round + 4);
            if world.received()[0] == before {
                misses.push((control, round));
            }
        }
    }
    assert!(misses.is_empty(), "{misses:?}");
}

#[test]
fn an_application_that_sends_little_leaves_what_is_known_of_the_path() {
    let mut world = World::new(Path::new(20, 40, 4.0), &[BBR], 1);
    let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
    world.run(3);
    world.source(0, Source::Nothing);
    world.run(4);
    world.source(0, Source::Steady(at(4), Rate::from_bps(1_000_000)));
    let steady = world.run(9)[0];
    world.source(0, Source::Endless);
    let again = world.run(10)[0];
    println!("1 Mbps is {steady:.2}, and all of 20 Mbps {again:.2} in the second after");
    assert!((steady - 1.0).abs() < 0.02 && again > 15.0, "{steady} {again}");
}

#[test]
fn losses_at_the_end_of_answers_cost_no_more_than_others() {
    // One answer after the other, so that each ends before the next one begins.
    const ASKS: Asks = Asks { piece: Bytes::new(60_000), at_once: 1, rate: Rate::from_bps(100_000_000) };
    let rate = |control| {
        let of = |seed| {
            let path = Path { loss: 0.01, ..Path::new(20, 80, 1.0) };
            let mut world = World::new(path, &[control], seed);
            world.asks(0, ASKS);
            world.run(60)[0]
        };
        (1..=5).map(of).sum::<f64>() / 5.0
    };
    // That one reduces its window by itself, and not by what is in flight when a loss is noticed.
    let (ours, another) = (rate(CUBIC), rate(Control::QuinnCubic));
    println!("{ours:.2} Mbps, another CUBIC {another:.2}");
    assert!(ours > 0.8 * another, "{ours} {another}");
}
