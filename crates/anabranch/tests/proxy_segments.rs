//! `anabranch proxy` before a player of segments: a playlist is one session.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod play_support;

use std::io::Read;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anabranch_testkit::{Answer, Asked, ScriptedServer, film};
use play_support::{LIMIT, Program, get, send};

/// Bytes of a segment.
const SIZE: usize = 400_000;
const SEGMENTS: usize = 20;

fn proxy() -> (Program, SocketAddr) {
    let mut program = Program::start(["proxy", "--listen", "127.0.0.1:0"]);
    let (address, _) = program.endpoint();
    (program, address)
}

/// A ladder of two rungs, `low/N.ts` and `high/N.ts`, whose segments all are the film, and play four seconds.
fn origin(segment: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> ScriptedServer {
    origin_of(4, segment)
}

/// The same with segments of so many seconds.
fn origin_of(seconds: usize, segment: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> ScriptedServer {
    ScriptedServer::of(&film(SIZE), move |asked| {
        let text = match asked.target.as_str() {
            "/all.m3u8" => "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=800000\nlow/list.m3u8\n\
                 #EXT-X-STREAM-INF:BANDWIDTH=1600000\nhigh/list.m3u8\n"
                .to_owned(),
            "/low/list.m3u8" | "/high/list.m3u8" => {
                let segments: String =
                    (0..SEGMENTS).map(|number| format!("#EXTINF:{seconds},\n{number}.ts\n")).collect();
                format!("#EXTM3U\n#EXT-X-TARGETDURATION:{seconds}\n{segments}#EXT-X-ENDLIST\n")
            }
            _ => return segment(asked),
        };
        playlist(&text)
    })
}

fn playlist(text: &str) -> Answer {
    let lines =
        ["Content-Type: application/vnd.apple.mpegurl".to_owned(), format!("Content-Length: {}", text.len())];
    Answer::head("200 OK", &lines).send(text)
}

/// A player that has read the playlists of the ladder.
fn player(origin: &ScriptedServer, proxy: SocketAddr) -> impl Fn(&str) -> Vec<u8> + use<> {
    player_of(origin, proxy, &["all.m3u8", "low/list.m3u8", "high/list.m3u8"])
}

/// A player that has read these playlists.
fn player_of(origin: &ScriptedServer, proxy: SocketAddr, lists: &[&str]) -> impl Fn(&str) -> Vec<u8> + use<> {
    let url = origin.url.clone();
    let get = move |name: &str| {
        let response = get(proxy, &format!("/{url}{name}"), &[]);
        assert_eq!(response.status, 200, "{name}: {}", response.text());
        response.body
    };
    for list in lists {
        get(list);
    }
    get
}

/// Which segments were asked for.
fn asked(origin: &ScriptedServer, rung: &str) -> Vec<usize> {
    let prefix = format!("GET /{rung}/");
    let number = |head: &str| head.strip_prefix(&prefix)?.split('.').next()?.parse().ok();
    let mut numbers: Vec<usize> = origin.heads().iter().filter_map(|head| number(head)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LIMIT, "{what} has not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_next_segments_are_there_before_they_are_asked_for_and_over_the_same_connections() {
    let origin = origin(Asked::good);
    let (_program, address) = proxy();
    let get = player_of(&origin, address, &["low/list.m3u8"]);
    assert!(get("low/0.ts") == film(SIZE));
    // 30 s behind the start of what was asked for.
    wait_until("what is played next", || asked(&origin, "low") == [0, 1, 2, 3, 4, 5, 6, 7]);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(asked(&origin, "low").len(), 8, "and nothing more");
    for number in 1..10 {
        assert!(get(&format!("low/{number}.ts")) == film(SIZE), "{number}");
        wait_until("what is played next", || asked(&origin, "low").last() == Some(&(number + 7)));
    }
    let (requests, connections) = (origin.requests(), origin.connections().len());
    assert!(connections <= 6, "{connections} connections for {requests} requests");
}

/// Six connections bring a segment of four seconds in 2.2: less than half of that, and nothing would be fetched ahead.
#[test]
fn another_rung_ends_the_first_one() {
    let origin = origin(|asked| asked.paced(30_000));
    let (_program, address) = proxy();
    let get = player(&origin, address);
    get("high/0.ts");
    wait_until("what is played next", || asked(&origin, "high").len() == 3);
    get("low/1.ts");
    wait_until("what is played next of the other rung", || asked(&origin, "low").contains(&2));
    assert!(asked(&origin, "high").len() <= 4, "nothing more of the first");
}

/// What is thrown away on its way would have the connections as long as it is open.
#[test]
fn another_rung_comes_over_as_many_connections_as_the_first_one() {
    let origin = origin(|asked| asked.paced(30_000));
    let (_program, address) = proxy();
    let get = player(&origin, address);
    get("high/0.ts");
    wait_until("what is played next", || asked(&origin, "high").len() == 3);
    // The last one has the connections of those before it by then, and needs them for another second.
    std::thread::sleep(Duration::from_secs(1));
    let began = Instant::now();
    assert!(get("low/1.ts") == film(SIZE));
    let took = began.elapsed();
    assert!(took < Duration::from_secs(6), "{took:?}: six bring it in 2.2 s, one in 13");
}

/// Where it would be of another rung as soon as the player finds out how fast it comes. Segments are so long that a busy
/// machine brings one within half of its play time.
#[test]
fn nothing_is_fetched_ahead_of_a_ladder_far_below_what_the_paths_give() {
    let origin = origin_of(60, Asked::good);
    let (_program, address) = proxy();
    let get = player(&origin, address);
    for number in 0..3 {
        let segment = format!("{}/{number}.ts", if number == 0 { "low" } else { "high" });
        assert!(get(&segment) == film(SIZE));
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!((asked(&origin, "low"), asked(&origin, "high")), (vec![0], vec![1, 2]));
    // A busy machine may be slow with the first segment, and a second connection be tried.
    assert!(origin.connections().len() <= 2, "{} connections", origin.connections().len());
}

/// The playlist of another rung is read when its player goes there: that there is one tells the one that lists them.
#[test]
fn nothing_is_fetched_ahead_where_a_player_may_go_to_a_rung_whose_segments_are_not_known() {
    let origin = origin(Asked::good);
    let (_program, address) = proxy();
    let get = player_of(&origin, address, &["all.m3u8", "low/list.m3u8"]);
    // A busy machine may be slow with the first segment, and the second one begin before it is there.
    for number in 0..2 {
        get(&format!("low/{number}.ts"));
        std::thread::sleep(Duration::from_millis(300));
    }
    assert_eq!(asked(&origin, "low"), [0, 1]);
}

/// A player chooses its rung by how fast segments come, those that are there already too.
#[test]
fn what_was_fetched_ahead_is_delivered_as_fast_as_the_paths_bring_it() {
    // Six connections bring a segment of four seconds in 2.2: they hold the rung, and not twice that.
    let origin = origin(|asked| asked.paced(30_000));
    let (_program, address) = proxy();
    let get = player(&origin, address);
    get("low/0.ts");
    wait_until("what is played next", || asked(&origin, "low").contains(&3));
    let began = Instant::now();
    assert!(get("low/1.ts") == film(SIZE));
    let took = began.elapsed();
    // A quarter less is allowed.
    assert!(took >= Duration::from_millis(1600), "it took {took:?}");
}

/// What it takes the paths for does not matter then, and it may wait for the segment.
#[test]
fn what_was_fetched_ahead_of_a_player_that_has_one_rung_is_delivered_at_once() {
    let origin = origin(|asked| asked.paced(SIZE));
    let (_program, address) = proxy();
    let get = player_of(&origin, address, &["low/list.m3u8"]);
    get("low/0.ts");
    wait_until("what is played next", || asked(&origin, "low").contains(&3));
    let began = Instant::now();
    assert!(get("low/1.ts") == film(SIZE));
    let took = began.elapsed();
    assert!(took < Duration::from_millis(500), "it took {took:?}");
}

#[test]
fn at_the_live_edge_bytes_pass_as_they_come_and_nothing_is_asked_for_ahead() {
    const BEGUN: usize = 1000;
    let content = film(SIZE);
    let begun = content[..BEGUN].to_vec();
    let origin = ScriptedServer::of(&content, move |asked| match asked.target.as_str() {
        "/live.m3u8" => playlist(
            "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:7\n#EXTINF:4,\n7.ts\n#EXTINF:4,\n8.ts\n",
        ),
        // The encoder has made no more of it.
        _ => asked.good_head().send(begun.clone()).silence(),
    });
    let (_program, address) = proxy();
    get(address, &format!("/{}live.m3u8", origin.url), &[]);
    let mut player = send(address, "GET", &format!("/{}8.ts", origin.url), &[]);
    player.set_read_timeout(Some(LIMIT)).unwrap();
    let mut got = Vec::new();
    while !got.ends_with(&content[..BEGUN]) {
        let mut piece = [0; 4096];
        let count = player.read(&mut piece).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&got));
        got.extend_from_slice(&piece[..count]);
    }
    assert!(origin.heads().iter().all(|head| !head.contains("7.ts") && !head.contains("9.ts")));
}

/// CTA-5004: what the player says of its next request is fetched first, and what it says goes to the server as
/// it came, in the query or in headers; a query that says something new each time hides no segment.
#[test]
fn what_a_player_says_of_itself_is_used_and_relayed() {
    let origin = origin(Asked::good);
    let (_program, address) = proxy();
    let get = player(&origin, address);
    let query = "CMCD=bl%3D4000%2Cnor%3D%22..%252Fhigh%252F1.ts%22%2Csid%3D%22x%22";
    assert!(get(&format!("low/0.ts?{query}")) == film(SIZE));
    wait_until("what is said to be next", || asked(&origin, "high") == [1]);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(asked(&origin, "low"), [0], "the other rung goes on");
    assert!(origin.heads().iter().any(|head| head.starts_with(&format!("GET /low/0.ts?{query} "))));
    let before = origin.requests();
    assert!(get("high/1.ts?CMCD=bl%3D8000") == film(SIZE));
    let heads = origin.heads();
    let again = heads[before..].iter().filter(|head| head.contains("high/1.ts"));
    assert_eq!(again.count(), 0, "it is there already");
    let said = "CMCD-Request: bl=8000,su";
    let response = play_support::get(address, &format!("/{}low/19.ts", origin.url), &[said]);
    assert!(response.body == film(SIZE));
    let head = origin.heads().into_iter().find(|head| head.starts_with("GET /low/19.ts")).unwrap();
    assert!(head.to_ascii_lowercase().contains("cmcd-request: bl=8000,su\r\n"), "{head}");
}

/// What no playlist lists is a segment where its player says how long it plays.
#[test]
fn what_a_player_says_the_play_time_of_goes_on_over_the_same_connection() {
    let origin = origin(Asked::good);
    let (_program, address) = proxy();
    for number in 0..5 {
        let path = format!("/{}live/{number}.m4s", origin.url);
        let response = get(address, &path, &["CMCD-Object: d=4000,ot=v", "CMCD-Request: bl=9000"]);
        assert!(response.body == film(SIZE), "{number}");
    }
    assert!(origin.connections().len() < 5, "{} connections for 5 segments", origin.connections().len());
}

/// A timeline of DASH tells no numbers that segments keep: they are known again by where they are.
#[test]
fn a_live_description_that_moves_on_is_the_same_session() {
    let read = std::sync::atomic::AtomicUsize::new(0);
    let origin = ScriptedServer::of(&film(SIZE), move |asked| {
        if asked.target != "/live.mpd" {
            return asked.good();
        }
        let first = 4 * read.fetch_add(2, std::sync::atomic::Ordering::SeqCst);
        let text = format!(
            "<MPD type=\"dynamic\"><Period start=\"PT0S\"><AdaptationSet><SegmentTemplate media=\"low/$Time$.m4s\">\
             <SegmentTimeline><S t=\"{first}\" d=\"4\" r=\"5\"/></SegmentTimeline></SegmentTemplate>\
             <Representation id=\"v\"/></AdaptationSet></Period></MPD>"
        );
        let lines =
            ["Content-Type: application/dash+xml".to_owned(), format!("Content-Length: {}", text.len())];
        Answer::head("200 OK", &lines).send(text)
    });
    let (_program, address) = proxy();
    let get = |name: &str| get(address, &format!("/{}{name}", origin.url), &[]);
    assert_eq!(get("live.mpd").status, 200);
    assert!(get("low/12.m4s").body == film(SIZE));
    wait_until("what there is behind it", || asked(&origin, "low") == [12, 16, 20]);
    // The last of them may be asked for in several parts.
    let mut before = 0;
    wait_until("the last part", || {
        std::thread::sleep(Duration::from_millis(300));
        let now = origin.requests();
        std::mem::replace(&mut before, now) == now
    });
    assert_eq!(get("live.mpd").status, 200);
    let before = origin.requests();
    assert!(get("low/16.m4s").body == film(SIZE));
    wait_until("what is new behind it", || asked(&origin, "low") == [12, 16, 20, 24, 28]);
    let again = origin.heads()[before..]
        .iter()
        .filter(|head| head.contains("low/16") || head.contains("low/20"))
        .count();
    assert_eq!(again, 0, "what is there is not asked for again");
}
