//! The rate coordinator on a path without packets.

use anabranch_units::Bytes;
use proptest::prelude::*;

use super::*;
use crate::control::What;
use crate::path_model::{Path, Run};

const FILM: Rate = Rate::from_mbps(3);

fn run(model: Model, wanted: Option<Rate>) -> Run<Rome> {
    Run::new(Rome::new(Parameters { model, ..Parameters::default() }), Path::default(), wanted)
}

fn packets(sizes: [u64; 3]) -> [Option<Packets>; 3] {
    sizes.map(|size| Some(Packets::new(size)))
}

/// Three connections on 6 Mbps beside so many flows in turn: (rate in kbps, windows) at the end of each phase.
fn phases<const N: usize>(parameters: Parameters, cross_flows: [u64; N]) -> Vec<(u64, Vec<Option<u64>>)> {
    let mut run = Run::new(Rome::new(parameters), Path::default(), Some(FILM));
    cross_flows
        .map(|cross_flows| {
            run.path.cross_flows = cross_flows;
            run.intervals(10);
            let windows = run.windows().into_iter().map(|window| window.map(Packets::get)).collect();
            (run.rate().as_bps() / 1000, windows)
        })
        .to_vec()
}

/// Cross traffic comes, grows and goes.
fn trace(model: Model) -> Vec<(u64, Vec<Option<u64>>)> {
    phases(Parameters { model, ..Parameters::default() }, [0, 3, 9, 0])
}

#[test]
fn golden_trace_of_compensation() {
    // Held at what they had, 2 Mbps each; 3 flows leave just the wanted rate, nothing changes; 9 leave
    // half of it: each gets the window of a third of the wanted rate, 1 Mbps. Then the shares add up to
    // R_v.
    let (held, shared) = (vec![Some(20); 3], vec![Some(10); 3]);
    let expected = [(6000, held.clone()), (3000, held), (1500, shared.clone()), (3000, shared)];
    assert_eq!(trace(Model::Compensation), expected);
}

#[test]
fn golden_trace_of_strict_fairness() {
    let (held, open) = (vec![Some(20); 3], vec![None; 3]);
    let expected = [(6000, held.clone()), (3000, held.clone()), (1500, open), (6000, held)];
    assert_eq!(trace(Model::StrictFairness), expected);
}

#[test]
fn above_r_plus_the_bound_of_section_iii_d_takes_back_what_is_too_much() {
    let shared = vec![Some(10); 3];
    let expected = [(3000, shared.clone()), (1500, shared.clone()), (3000, shared)];
    assert_eq!(phases(Parameters { above: Above::Share, ..Parameters::default() }, [0, 9, 0]), expected);
}

#[test]
fn a_window_is_held_again_where_it_delivers_less() {
    let run = |above| {
        let model = Model::StrictFairness;
        let mut run = run(model, Some(FILM));
        run.controller.parameters.above = above;
        // 6 Mbps, then 4.5 for a while: still above R+.
        run.intervals(10);
        run.path.cross_flows = 1;
        run.intervals(10);
        let held = run.windows();
        // In the band nothing is above R+.
        run.path.cross_flows = 3;
        run.intervals(10);
        (held, run.windows())
    };
    assert_eq!(run(Above::Keep), (packets([20; 3]).to_vec(), packets([20; 3]).to_vec()));
    assert_eq!(run(Above::KeepAgain), (packets([15; 3]).to_vec(), packets([15; 3]).to_vec()));
    assert_eq!(run(Above::KeepWhile), (packets([15; 3]).to_vec(), vec![None; 3]));
}

#[test]
fn nothing_is_shared_out_where_the_connections_cannot_make_up() {
    let mut run = run(Model::CompensationWhereEnough, Some(FILM));
    run.intervals(10);
    run.path.cross_flows = 9;
    run.path.loss = 0.2;
    run.intervals(10);
    assert_eq!(run.windows(), [None; 3], "a fifth is lost: three connections are no 3 Mbps");
}

#[test]
fn windows_stay_open_until_the_wanted_rate_was_reached() {
    let mut run = run(Model::Compensation, Some(FILM));
    run.path.cross_flows = 9;
    run.intervals(50);
    assert_eq!(run.windows(), [None; 3]);
}

#[test]
fn a_change_has_its_time() {
    let mut run = run(Model::Compensation, Some(FILM));
    run.intervals(1);
    assert_eq!(run.windows(), packets([20; 3]));
    // varphi = 5/4 (RTT + phi) = 2.5 intervals: the third interval after a change is the first that may
    // change something.
    run.path.cross_flows = 9;
    run.intervals(2);
    assert_eq!(run.windows(), packets([20; 3]));
    run.intervals(1);
    assert_eq!(run.windows(), packets([10; 3]));
}

#[test]
fn an_unknown_rate_goes_by_the_buffer() {
    let mut run = run(Model::Compensation, None);
    let mut windows_at = |seconds: Option<u64>| {
        run.buffer = seconds.map(Duration::from_secs);
        run.intervals(5);
        run.windows()
    };
    assert_eq!(windows_at(None), [None; 3]);
    assert_eq!(windows_at(Some(10)), [None; 3]);
    assert_eq!(windows_at(Some(16)), packets([20; 3]));
    assert_eq!(windows_at(Some(10)), packets([20; 3]));
    assert_eq!(windows_at(Some(4)), [None; 3]);
}

#[test]
fn a_broken_connection_is_opened_again() {
    let mut run = run(Model::Compensation, Some(FILM));
    run.intervals(10);
    run.break_one();
    run.intervals(10);
    assert_eq!(run.windows().len(), 3);
}

/// A connection of a sample: payload in the interval of 100 ms, RTT, loss.
fn connection(id: u32, delivered: u64, rtt: u64, loss: f64) -> ConnectionSample {
    ConnectionSample {
        connection: ConnectionId(id),
        path: PathId(0),
        delivered: Bytes::new(delivered),
        srtt: Duration::from_millis(rtt),
        packet_size: Bytes::new(1000),
        silent: Duration::ZERO,
        loss,
        network_limited: true,
    }
}

proptest! {
    #[test]
    fn windows_of_compensation_add_up_to_the_wanted_rate(
        paths in prop::collection::vec((0u64..2000, 1u64..500, 0.0f64..1.0), 1..12),
    ) {
        let ids = 0u32..;
        let connections: Vec<_> = ids
            .zip(&paths)
            .map(|(id, (delivered, rtt, loss))| connection(id, *delivered, *rtt, *loss))
            .collect();
        let mut rome = Rome::new(Parameters::default());
        for one in &connections {
            rome.connected(one.connection, one.path, &Sample::default());
        }
        rome.started_up = true;
        let elapsed = Duration::from_millis(100);
        let sample = Sample { elapsed, wanted: Some(FILM), connections: &connections, ..Sample::default() };
        // In floats: whole bits per second, times a window, would be hundreds off.
        let packet = |one: &ConnectionSample| one.packet_size.as_f64() * 8.0 / one.srtt.as_secs_f64();
        let mut sum = 0.0;
        for order in rome.measure(&sample) {
            if let What::SetWindow(id, Window::Packets(window)) = order.what {
                let one = connections.iter().find(|one| one.connection == id).unwrap();
                sum += window.as_f64() * packet(one);
                prop_assert!(window.get() >= 1);
            }
        }
        // Rounded to the next whole packet, at least one: up to a packet a round trip more, half of one
        // less.
        let rounding: f64 = connections.iter().map(packet).sum();
        prop_assert!(sum >= FILM.as_f64() - rounding / 2.0 - 100.0 && sum <= FILM.as_f64() + rounding, "{sum}");
    }

    #[test]
    fn no_sequence_ends_in_a_window_of_nothing(
        phases in prop::collection::vec((0u64..40, 2usize..12, 0.0f64..1.0, 20u64..300, any::<bool>()), 1..15),
    ) {
        let mut run = run(Model::Compensation, Some(FILM));
        for (cross_flows, intervals, loss, rtt, breaks) in phases {
            run.path = Path { cross_flows, loss, rtt: Duration::from_millis(rtt), ..run.path };
            run.intervals(intervals);
            prop_assert!(run.windows().iter().flatten().all(|window| window.get() >= 1));
            prop_assert_eq!(run.windows().len(), 3);
            if breaks {
                run.break_one();
            }
        }
    }
}
