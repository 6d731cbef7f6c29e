//! The decoder by itself: what came, in pieces of any size.

use proptest::prelude::*;

use super::*;

/// What a connection gave, without the sizes of its pieces.
#[derive(Debug, PartialEq)]
enum Seen {
    Response { status: u16, body: Vec<u8>, keep_alive: bool },
    Cut { missing: Option<u64> },
    Broken(Malformed),
    Closed,
}

/// Feeds `wire` in `pieces` (used over and over), then ends the stream; reads with `room` bytes of buffer.
fn decode(requests: &[Method], wire: &[u8], pieces: &[usize], room: usize) -> Vec<Seen> {
    let mut decoder = Decoder::new();
    for method in requests {
        decoder.expect(*method, false).unwrap();
    }
    let (mut wire, mut pieces) = (wire, pieces.iter().cycle());
    let (mut seen, mut status, mut body) = (Vec::new(), 0, Vec::new());
    loop {
        let mut buffer = BytesMut::with_capacity(room);
        let step = decoder.step(&mut buffer).and_then(|step| {
            let (limit, deliver) = match step {
                Step::Got(received) => return Ok(Some(received)),
                Step::Fill => (usize::MAX, false),
                Step::Deliver(limit) => (limit, true),
            };
            let count = wire.len().min(limit).min(*pieces.next().unwrap());
            if count == 0 {
                return decoder.end_of_stream(true).map(Some);
            }
            let (now, later) = wire.split_at(count);
            wire = later;
            if deliver {
                buffer.extend_from_slice(now);
                decoder.delivered(count);
                Ok(Some(Received::Data(count)))
            } else {
                decoder.input.extend_from_slice(now);
                Ok(None)
            }
        });
        assert!(buffer.capacity() <= room.max(8), "the caller's buffer grew");
        match step {
            Ok(None) => {}
            Ok(Some(Received::Head(head))) => status = head.status,
            Ok(Some(Received::Data(count))) => {
                assert!(count > 0 && count == buffer.len());
                body.extend_from_slice(&buffer);
            }
            Ok(Some(Received::End { keep_alive })) => {
                seen.push(Seen::Response { status, body: std::mem::take(&mut body), keep_alive });
            }
            Ok(Some(Received::Closed)) => {
                seen.push(Seen::Closed);
                return seen;
            }
            Err(Error::Truncated { missing }) => {
                seen.push(Seen::Cut { missing: missing.map(Bytes::get) });
                return seen;
            }
            Err(Error::Malformed(why)) => {
                seen.push(Seen::Broken(why));
                return seen;
            }
            Err(other) => panic!("{other}"),
        }
    }
}

fn whole(requests: &[Method], wire: &str) -> Vec<Seen> {
    decode(requests, wire.as_bytes(), &[usize::MAX], 1 << 16)
}

fn response(status: u16, body: &str, keep_alive: bool) -> Seen {
    Seen::Response { status, body: body.into(), keep_alive }
}

const GET: Method = Method::Get;

/// Every framing there is, on one connection, the last until the end.
const ALL_FRAMINGS: &str = "HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\n\r\nfirst\
    HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n\
    HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nsec\r\n3;x=y\r\nond\r\n0\r\nTrailer: x\r\n\r\n\
    HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n\
    HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\n\r\n\
    HTTP/1.1 200 OK\nContent-Length: 0\n\n\
    HTTP/1.1 200 OK\r\n\r\nuntil the end";

const ALL_REQUESTS: [Method; 6] = [GET, GET, Method::Head, GET, GET, GET];

fn all_responses() -> Vec<Seen> {
    vec![
        response(206, "first", true),
        response(200, "second", true),
        response(200, "", true),
        response(304, "", true),
        response(200, "", true),
        response(200, "until the end", false),
        Seen::Closed,
    ]
}

#[test]
fn every_framing() {
    assert_eq!(whole(&ALL_REQUESTS, ALL_FRAMINGS), all_responses());
}

#[test]
fn a_connection_that_is_to_close_gives_no_further_response() {
    let wire = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\n";
    assert_eq!(whole(&[GET, GET], wire), [response(200, "a", false), Seen::Closed]);
}

#[test]
fn what_is_cut_off_is_told() {
    let cut = |missing| vec![Seen::Cut { missing }];
    assert_eq!(whole(&[GET], "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"), cut(Some(7)));
    assert_eq!(whole(&[GET], "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc"), cut(None));
    assert_eq!(whole(&[GET], "HTTP/1.1 200 OK\r\nContent-Len"), cut(None));
    assert_eq!(whole(&[GET], ""), [Seen::Closed]);
}

#[test]
fn an_end_that_an_attacker_could_make_is_not_an_end() {
    let mut decoder = Decoder::new();
    decoder.expect(GET, false).unwrap();
    decoder.input.extend_from_slice(b"HTTP/1.1 200 OK\r\n\r\nabc");
    let mut buffer = BytesMut::with_capacity(100);
    assert!(matches!(decoder.step(&mut buffer), Ok(Step::Got(Received::Head(_)))));
    assert!(matches!(decoder.step(&mut buffer), Ok(Step::Got(Received::Data(3)))));
    assert!(matches!(decoder.end_of_stream(false), Err(Error::CutOff)));
}

#[test]
fn nonsense_is_refused() {
    let broken = |requests: &[Method], wire: &str| {
        let seen = whole(requests, wire);
        assert!(matches!(seen.last(), Some(Seen::Broken(_))), "{wire:.40}: {seen:?}");
    };
    broken(&[], "HTTP/1.1 200 OK\r\n\r\n");
    broken(&[GET], "SSH-2.0-OpenSSH\r\n");
    broken(&[GET], "HTTP/2 200\r\n\r\n");
    broken(&[GET], "HTTP/1.1 101 Switching Protocols\r\n\r\n");
    broken(&[GET], &"HTTP/1.1 100 Continue\r\n\r\n".repeat(MOST_INTERIM + 1));
    broken(&[GET], &format!("HTTP/1.1 200 OK\r\n{}", "X: y\r\n".repeat(1 << 14)));
    // More than the server said.
    broken(&[GET, GET], "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc");
    broken(&[GET], "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc");
}

#[test]
fn a_server_that_stops_waiting_for_requests_has_closed() {
    assert_eq!(whole(&[], "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"), [Seen::Closed]);
}

#[test]
fn requests_are_bounded_and_end_with_the_connection() {
    let mut decoder = Decoder::new();
    for _ in 0..MOST_IN_FLIGHT {
        decoder.expect(GET, false).unwrap();
    }
    assert!(matches!(decoder.expect(GET, false), Err(Error::TooManyInFlight)));
    assert_eq!(decoder.in_flight(), MOST_IN_FLIGHT);
    decoder.close();
    assert!(matches!(decoder.expect(GET, false), Err(Error::Closed)));
    assert_eq!(decoder.in_flight(), 0);
}

#[test]
fn another_protocol_takes_over_where_the_head_ends() {
    let mut decoder = Decoder::new();
    decoder.expect(GET, true).unwrap();
    decoder.input.extend_from_slice(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nrest");
    let mut buffer = BytesMut::with_capacity(10);
    assert!(matches!(decoder.step(&mut buffer), Ok(Step::Got(Received::Head(head))) if head.status == 101));
    assert!(decoder.is_upgraded() && !decoder.is_open());
    assert_eq!(&decoder.input[..], b"rest");
    assert!(matches!(decoder.step(&mut buffer), Ok(Step::Got(Received::Closed))));
}

proptest! {
    #[test]
    fn pieces_make_no_difference(pieces in prop::collection::vec(1usize..40, 1..8), room in 1usize..20) {
        prop_assert_eq!(decode(&ALL_REQUESTS, ALL_FRAMINGS.as_bytes(), &pieces, room), all_responses());
    }

    #[test]
    fn cut_anywhere_nothing_false_is_told(cut in 0..ALL_FRAMINGS.len(), piece in 1usize..40) {
        let seen = decode(&ALL_REQUESTS, &ALL_FRAMINGS.as_bytes()[..cut], &[piece], 64);
        // All but the last, which has no other end than that of the connection, are whole or told as cut.
        let responses = all_responses();
        for (got, expected) in seen.iter().zip(&responses).take(5) {
            let told = matches!(got, Seen::Cut { .. } | Seen::Closed);
            prop_assert!(told || got == expected, "{got:?}");
        }
    }

    #[test]
    fn any_bytes_end_somehow(
        start in prop::sample::select(vec!["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: \
            chunked\r\n\r\n"]),
        rest in prop::collection::vec(any::<u8>(), 0..300),
        piece in 1usize..50,
    ) {
        let wire = [start.as_bytes(), &rest].concat();
        let seen = decode(&[GET, GET], &wire, &[piece], 32);
        prop_assert!(!seen.is_empty());
    }
}
