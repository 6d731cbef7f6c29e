use anabranch_units::{Bytes, Rate};

use super::*;
use crate::control::{ConnectionSample, PathSample};

const STEP: Duration = Duration::from_millis(300);
const PARAMETERS: fn() -> Parameters = || Parameters { most: 6, ..Parameters::default() };

/// A path, and a player of segments of four seconds that waits for each.
struct Viewer {
    lasting: Lasting,
    /// What so many connections bring together at a time, and their round trip once there is a queue.
    path: fn(usize, Time) -> (Rate, Duration),
    wanted: Rate,
    next_rung: Option<Rate>,
    loss: f64,
    /// The first round trips, without a queue.
    shortest: Duration,
    now: Time,
    buffer: Duration,
    opened: usize,
    connections: usize,
    /// How many there were of whatever kind: each has a number of its own.
    next: u32,
    /// The session and its connections, where one gets all segments.
    one: Option<(Box<dyn RateController>, Vec<ConnectionId>)>,
    is_one: bool,
}

impl Viewer {
    fn new(wanted: Rate, path: fn(usize, Time) -> (Rate, Duration)) -> Self {
        let (now, buffer) = (Time::ZERO, Duration::ZERO);
        let (lasting, one) = (Lasting::default(), None);
        let next_rung = None;
        Self {
            lasting,
            path,
            wanted,
            next_rung,
            loss: 0.01,
            shortest: Duration::from_millis(80),
            now,
            buffer,
            opened: 0,
            connections: 0,
            next: 0,
            one,
            is_one: false,
        }
    }

    /// Gets a segment, in a session of its own unless one gets them all.
    fn get_segment(&mut self) {
        let size = self.wanted.amount_in(Duration::from_secs(4));
        let (mut session, mut ids, mut opens, began) = match self.one.take() {
            Some((mut session, ids)) => {
                session.next_segment(self.now);
                (session, ids, 0, Time::ZERO)
            }
            None => {
                let mut session = self.lasting.next_session(PARAMETERS(), self.now);
                let opens = session.start().len();
                (session, Vec::new(), opens, self.now)
            }
        };
        let mut come = Bytes::ZERO;
        while come < size {
            let at = |now: Time| Time::ZERO + now.since(began);
            for _ in 0..std::mem::take(&mut opens) {
                let id = ConnectionId(self.next);
                self.next += 1;
                ids.push(id);
                session.connected(id, PathId(0), &self.sample(at(self.now)));
            }
            self.opened += ids.len().saturating_sub(self.connections);
            self.connections = ids.len();
            self.now += STEP;
            let (rate, mut srtt) = (self.path)(ids.len(), self.now);
            if self.now.since(Time::ZERO) <= STEP * 2 {
                srtt = self.shortest;
            }
            let brought = rate.amount_in(STEP);
            come += brought;
            self.buffer = self.buffer - STEP;
            let mut connections = samples(&ids, srtt, brought);
            connections.iter_mut().for_each(|connection| connection.loss = self.loss);
            let is_over = come >= size;
            let (connections, left) = (connections.as_slice(), size - come);
            let sample = Sample { sated: is_over, connections, left, ..self.sample(at(self.now)) };
            for order in session.measure(&sample) {
                match order.what {
                    What::Open(_) => opens += 1,
                    What::Close(id) => ids.retain(|open| *open != id),
                    _ => {}
                }
            }
        }
        self.connections = ids.len();
        self.buffer += Duration::from_secs(4);
        self.one = self.is_one.then_some((session, ids));
    }

    fn sample(&self, now: Time) -> Sample<'static> {
        const PATHS: &[PathSample] =
            &[PathSample { path: PathId(0), connections: 1, may_open: true, failing: false }];
        Sample {
            now,
            elapsed: STEP,
            wanted: Some(self.wanted),
            buffer: Some(self.buffer),
            paths: PATHS,
            next_rung: self.next_rung,
            ..Sample::default()
        }
    }
}

fn samples(ids: &[ConnectionId], srtt: Duration, brought: Bytes) -> Vec<ConnectionSample> {
    let of_one = |id: &ConnectionId| ConnectionSample {
        connection: *id,
        path: PathId(0),
        delivered: Bytes::new(brought.get() / Bytes::of(ids.len()).get()),
        srtt,
        packet_size: Bytes::new(1448),
        silent: Duration::ZERO,
        loss: 0.0,
        network_limited: true,
    };
    ids.iter().map(of_one).collect()
}

#[test]
fn what_one_connection_fills_is_not_tried_with_more_again_and_again() {
    // 2.4 Mbps and a queue, with however many.
    let mut viewer =
        Viewer::new(Rate::from_mbps(3), |_, _| (Rate::from_kbps(2400), Duration::from_millis(300)));
    for _ in 0..18 {
        viewer.get_segment();
    }
    assert!(viewer.now.since(Time::ZERO) > Duration::from_secs(80));
    // The first, and one for each trial: after rests of 2, 4, 8, 16 and 32 s.
    assert!((2..=8).contains(&viewer.opened), "{} were opened", viewer.opened);
    assert_eq!(viewer.connections, 1);
}

#[test]
fn the_number_that_holds_the_rate_is_found_over_several_segments_and_stays() {
    // A megabit each, as where packets are lost, and no queue.
    let mut viewer = Viewer::new(Rate::from_mbps(5), |count, _| {
        (Rate::from_mbps(Bytes::of(count).get()), Duration::from_millis(80))
    });
    for _ in 0..3 {
        viewer.get_segment();
    }
    assert_eq!(viewer.connections, 6, "with an empty buffer more than five");
    let opened = viewer.opened;
    for _ in 0..5 {
        viewer.get_segment();
    }
    assert!(viewer.opened <= opened + 1, "{} more were opened", viewer.opened - opened);
}

/// A player goes up by what it gets.
#[test]
fn what_the_next_rung_needs_is_brought_where_there_is_room() {
    let (low, high) = (Rate::from_kbps(900), Rate::from_kbps(1800));
    let after = |path, next_rung| {
        let mut viewer = Viewer { next_rung, ..Viewer::new(low, path) };
        for _ in 0..20 {
            viewer.get_segment();
        }
        viewer.connections
    };
    let lossy: fn(usize, Time) -> (Rate, Duration) =
        |count, _| (Rate::from_mbps(Bytes::of(count).get()), Duration::from_millis(80));
    assert_eq!(after(lossy, None), 1, "a megabit each");
    let mut clean = Viewer { next_rung: Some(high), loss: 0.0, ..Viewer::new(low, lossy) };
    (0..20).for_each(|_| clean.get_segment());
    assert_eq!(clean.connections, 1, "one has what a path without losses gives");
    assert_eq!(after(lossy, Some(high)), 3, "players go up where they get 2.2 Mbps");
    let full: fn(usize, Time) -> (Rate, Duration) = |_, _| (Rate::from_mbps(1), Duration::from_millis(300));
    assert_eq!(after(full, Some(high)), 1, "others would have less, or the queue be longer");
    // As behind PIE, where each connection takes a part of what others have.
    let crowded: fn(usize, Time) -> (Rate, Duration) =
        |count, _| (Rate::from_mbps(Bytes::of(count).get()), Duration::from_millis(96));
    assert_eq!(after(crowded, Some(high)), 1, "a short queue is one");
}

/// Of a segment of 3.6 s nobody waits for 4 s.
#[test]
fn what_a_player_with_enough_waits_between_segments_is_no_time_and_what_was_seen_before_counts() {
    let lossy: fn(usize, Time) -> (Rate, Duration) =
        |count, _| (Rate::from_mbps(Bytes::of(count).get()), Duration::from_millis(80));
    let next_rung = Some(Rate::from_kbps(1800));
    let mut viewer = Viewer { next_rung, ..Viewer::new(Rate::from_kbps(900), lossy) };
    viewer.buffer = Duration::from_secs(30);
    for _ in 0..12 {
        viewer.get_segment();
        let pause = viewer.buffer - Duration::from_secs(30);
        (viewer.now, viewer.buffer) = (viewer.now + pause, viewer.buffer - pause);
    }
    assert_eq!(viewer.connections, 3);
}

/// Over 160 ms a slow start may take 0.8 s, and 3.6 s without it are less than four.
#[test]
fn what_was_missed_before_a_slow_start_is_missed_after_it() {
    let lossy: fn(usize, Time) -> (Rate, Duration) =
        |count, _| (Rate::from_mbps(Bytes::of(count).get()), Duration::from_millis(160));
    let next_rung = Some(Rate::from_kbps(1800));
    let shortest = Duration::from_millis(160);
    let mut viewer = Viewer { next_rung, shortest, ..Viewer::new(Rate::from_kbps(900), lossy) };
    for _ in 0..8 {
        viewer.buffer = Duration::from_secs(30);
        viewer.get_segment();
    }
    assert_eq!(viewer.connections, 3);
}

#[test]
fn the_newest_session_is_obeyed_alone() {
    let lasting = Lasting::default();
    let mut first = lasting.next_session(PARAMETERS(), Time::ZERO);
    assert_eq!(first.start().len(), 1);
    let mut second = lasting.next_session(PARAMETERS(), Time::ZERO + Duration::from_secs(3));
    assert_eq!(second.start().len(), 1);
    let ids = [ConnectionId(0)];
    let viewer = Viewer::new(Rate::from_mbps(5), |_, _| (Rate::ZERO, Duration::ZERO));
    let connections = samples(&ids, Duration::from_millis(80), Bytes::kib(10));
    for millis in (300..6000).step_by(300) {
        let now = Time::ZERO + Duration::from_millis(millis);
        let sample = Sample { connections: &connections, ..viewer.sample(now) };
        assert_eq!(first.measure(&sample), [], "its rate is missed, and it is not the one that matters");
    }
    assert_eq!(lasting.next_session(PARAMETERS(), Time::ZERO + Duration::from_secs(9)).start().len(), 1);
}

/// 6 Mbps, which others share from 20 s on, more and more of them.
fn crowd(count: usize, now: Time) -> (Rate, Duration) {
    let (own, since) = (Bytes::of(count).as_f64(), now.since(Time::ZERO + Duration::from_secs(20)));
    let others = (since.as_secs_f64() * 2.0).min(15.0);
    (Rate::from_mbps(6) * Ratio::from_f64(own / (own + others)), Duration::from_millis(180))
}

/// A viewer who has got segments over one connection until others come, with so much to play.
fn viewer_before_the_crowd(wanted: Rate, buffer: Duration) -> Viewer {
    let mut viewer = Viewer::new(wanted, crowd);
    while viewer.now.since(Time::ZERO) < Duration::from_secs(17) {
        viewer.get_segment();
    }
    (viewer.now, viewer.buffer) = (Time::ZERO + Duration::from_secs(20), buffer);
    viewer
}

/// The rate may be missed for a while with a buffer of 15 s, but nothing of a segment plays before all of it is there.
#[test]
fn a_segment_that_would_come_too_late_has_more_connections_at_once() {
    let mut viewer = viewer_before_the_crowd(Rate::from_mbps(3), Duration::from_secs(15));
    viewer.now = Time::ZERO + Duration::from_secs(28);
    viewer.get_segment();
    assert!(viewer.buffer > Duration::from_secs(7), "{} with what has come", viewer.buffer);
}

/// What others take more and more of looks as if a connection more brought nothing.
#[test]
fn what_is_added_stays_where_others_have_what_the_path_brought_lately() {
    let mut viewer = viewer_before_the_crowd(Rate::from_mbps(3), Duration::from_secs(15));
    viewer.get_segment();
    assert!(viewer.buffer > Duration::from_secs(8), "{} with what has come", viewer.buffer);
}

#[test]
fn where_packets_are_lost_there_are_at_most_twice_as_many_at_once_as_have_packets_enough() {
    let now = Time::ZERO + Duration::from_secs(10);
    let auto = Auto { is_lasting: true, delay_seen: Some(now), ..Auto::new(PARAMETERS()) };
    let ids = [ConnectionId(0), ConnectionId(1)];
    let mut connections = samples(&ids, Duration::from_millis(200), Bytes::ZERO);
    connections.iter_mut().for_each(|connection| connection.loss = 0.06);
    let sample = Sample { now, connections: &connections, ..Sample::default() };
    // Four packets of each in a round trip are 463 kbps.
    assert_eq!(auto.most_fed(&sample, Rate::from_kbps(600)), Some(4));
    assert_eq!(auto.most_fed(&sample, Rate::from_kbps(400)), Some(1));
}

/// The simulator gets all segments of a player in one session.
#[test]
fn one_session_of_all_segments_decides_as_one_for_each() {
    let lossy: fn(usize, Time) -> (Rate, Duration) =
        |count, _| (Rate::from_mbps(Bytes::of(count).get()), Duration::from_millis(80));
    let full: fn(usize, Time) -> (Rate, Duration) =
        |_, _| (Rate::from_kbps(2400), Duration::from_millis(300));
    for (wanted, path) in [(5, lossy), (3, full), (3, crowd)] {
        let mut each = Viewer::new(Rate::from_mbps(wanted), path);
        let mut one = Viewer { is_one: true, ..Viewer::new(Rate::from_mbps(wanted), path) };
        let mut had = Vec::new();
        for segment in 0..16 {
            each.get_segment();
            one.get_segment();
            assert_eq!((one.connections, one.now), (each.connections, each.now), "after segment {segment}");
            had.push(one.connections);
        }
        assert!(had.iter().any(|count| *count > 1), "{had:?}");
    }
}
