//! Files, ranges, preconditions, and what must stay hidden.

use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;

use crate::client::{Reply, Running, receive, send};

#[tokio::test]
async fn a_file_with_all_that_describes_it() {
    let server = Running::start(|_| {});
    let film = server.put("film.mp4", 300_000);
    let reply = server.get("/film.mp4", "").await;
    assert!(reply.status == 200 && reply.body == film);
    assert_eq!(reply.header("content-type"), Some("video/mp4"));
    assert_eq!(reply.header("accept-ranges"), Some("bytes"));
    assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
    assert!(reply.header("etag").unwrap().starts_with('"'));
    assert!(reply.header("last-modified").unwrap().ends_with("GMT"));
    let head = server.request("HEAD /film.mp4", "").await;
    assert_eq!(head.stable_head(), reply.stable_head());
    let ranged = server.request("HEAD /film.mp4", "Range: bytes=0-9\r\n").await;
    assert_eq!(ranged.stable_head(), reply.stable_head(), "HEAD ignores Range");
}

#[tokio::test]
async fn every_form_of_range() {
    let server = Running::start(|_| {});
    let film = server.put("film.mp4", 1000);
    for (range, status, content_range, bytes) in [
        ("bytes=0-0", 206, Some("bytes 0-0/1000"), &film[..1]),
        ("bytes=100-199", 206, Some("bytes 100-199/1000"), &film[100..200]),
        ("bytes=900-", 206, Some("bytes 900-999/1000"), &film[900..]),
        ("bytes=900-5000", 206, Some("bytes 900-999/1000"), &film[900..]),
        ("bytes=-10", 206, Some("bytes 990-999/1000"), &film[990..]),
        ("bytes=-5000", 206, Some("bytes 0-999/1000"), &film[..]),
        ("bytes=5-4", 200, None, &film[..]),
        ("bytes=0-9,5-15", 200, None, &film[..]),
        ("chapters=1-2", 200, None, &film[..]),
    ] {
        let reply = server.get("/film.mp4", &format!("Range: {range}\r\n")).await;
        assert_eq!((reply.status, reply.header("content-range")), (status, content_range), "{range}");
        assert_eq!(reply.body, bytes, "{range}");
    }
    let reply = server.get("/film.mp4", "Range: bytes=1000-\r\n").await;
    assert_eq!((reply.status, reply.header("content-range")), (416, Some("bytes */1000")));
}

#[tokio::test]
async fn the_end_of_an_answer_leaves_at_once() {
    let server = Running::start(|_| {});
    let film = server.put("film.mp4", 1_500_000);
    // The second kind is hyper's.
    for fields in ["", "Connection: keep-alive, x\r\n"] {
        let mut stream = server.connect().await;
        let began = Instant::now();
        for begin in 0..10 {
            let end = begin + 700_000;
            send(&mut stream, "GET /film.mp4", &format!("Range: bytes={begin}-{}\r\n{fields}", end - 1))
                .await;
            assert!(receive(&mut stream, false).await.body == film[begin..end]);
        }
        // The system holds what is not flushed for 0.2 s.
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn several_ranges_come_as_parts() {
    let server = Running::start(|_| {});
    let film = server.put("film.mp4", 1000);
    let reply = server.get("/film.mp4", "Range: bytes=990-,0-9\r\n").await;
    assert_eq!(reply.status, 206);
    let boundary =
        reply.header("content-type").unwrap().strip_prefix("multipart/byteranges; boundary=").unwrap();
    let mut expected = Vec::new();
    for (range, bytes) in [("990-999", &film[990..]), ("0-9", &film[..10])] {
        expected.extend_from_slice(
            format!(
                "\r\n--{boundary}\r\nContent-Type: video/mp4\r\nContent-Range: bytes {range}/1000\r\n\r\n"
            )
            .as_bytes(),
        );
        expected.extend_from_slice(bytes);
    }
    expected.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    assert_eq!(reply.body, expected);
    assert!(!reply.cut);
}

#[tokio::test]
async fn preconditions_protect_a_changed_file() {
    let server = Running::start(|_| {});
    server.put("film.mp4", 1000);
    let first = server.get("/film.mp4", "").await;
    let (etag, date) = (first.header("etag").unwrap(), first.header("last-modified").unwrap());
    let old = "Sun, 06 Nov 1994 08:49:37 GMT";
    for (fields, status) in [
        (format!("If-None-Match: {etag}\r\n"), 304),
        (format!("If-None-Match: \"x\", W/{etag}\r\n"), 304),
        ("If-None-Match: \"x\"\r\n".into(), 200),
        (format!("If-Modified-Since: {date}\r\n"), 304),
        (format!("If-Modified-Since: {old}\r\n"), 200),
        (format!("If-Match: {etag}\r\n"), 200),
        ("If-Match: \"x\"\r\n".into(), 412),
        (format!("If-Unmodified-Since: {old}\r\n"), 412),
        (format!("Range: bytes=0-9\r\nIf-Range: {etag}\r\n"), 206),
        (format!("Range: bytes=0-9\r\nIf-Range: {date}\r\n"), 206),
        ("Range: bytes=0-9\r\nIf-Range: \"x\"\r\n".into(), 200),
        (format!("Range: bytes=0-9\r\nIf-Range: {old}\r\n"), 200),
        (format!("Range: bytes=0-9\r\nIf-None-Match: {etag}\r\n"), 304),
        ("Range: bytes=5000-\r\nIf-Range: \"x\"\r\n".into(), 200),
    ] {
        let reply = server.get("/film.mp4", &fields).await;
        assert_eq!(reply.status, status, "{fields}");
        if status == 304 {
            assert_eq!((reply.header("etag"), reply.body.len()), (Some(etag), 0));
        }
    }
    std::fs::remove_file(server.root().join("film.mp4")).unwrap();
    server.put("film.mp4", 1000);
    assert_ne!(
        server.get("/film.mp4", "").await.header("etag").unwrap(),
        etag,
        "another file of the same size"
    );
}

#[tokio::test]
async fn nothing_outside_and_nothing_hidden_is_shown() {
    use std::os::unix::fs::symlink;
    let server = Running::start(|_| {});
    let outside = server.directory.path().join("secret");
    std::fs::write(&outside, "secret").unwrap();
    server.put("film.mp4", 10);
    std::fs::write(server.root().join(".hidden"), "secret").unwrap();
    symlink(&outside, server.root().join("out")).unwrap();
    symlink(server.directory.path(), server.root().join("up")).unwrap();
    symlink(".hidden", server.root().join("shown")).unwrap();
    symlink("loop", server.root().join("loop")).unwrap();
    symlink("film.mp4", server.root().join("alias.mp4")).unwrap();
    std::process::Command::new("mkfifo").arg(server.root().join("pipe")).status().unwrap();
    for path in [
        "/../secret",
        "/%2e%2e/secret",
        "/..%2fsecret",
        "/%2e%2e%2fsecret",
        "/x/../../secret",
        "/./film.mp4",
        "//../secret",
        "/out",
        "/up/secret",
        "/up/",
        "/.hidden",
        "/shown",
        "/%2ehidden",
        "/film.mp4%00",
        "/film.mp4/",
        "/missing",
        "/loop",
        "/pipe",
        "/%ff",
        "/film.mp4/x",
    ] {
        let reply = server.get(path, "").await;
        assert_eq!(reply.status, 404, "{path}");
        assert!(!String::from_utf8_lossy(&reply.body).contains("secret"), "{path}");
    }
    assert_eq!(server.get("/alias.mp4", "").await.status, 200, "a link that stays inside");
    assert_eq!(server.get(&format!("/{}", "a".repeat(300)), "").await.status, 404);
    let listing = String::from_utf8(server.get("/", "").await.body).unwrap();
    assert!(listing.contains("film.mp4") && listing.contains("alias.mp4"));
    for hidden in [".hidden", "out", "up", "shown", "pipe", "loop"] {
        assert!(!listing.contains(&format!(">{hidden}")), "{hidden} in {listing}");
    }
}

#[tokio::test]
async fn directories_and_odd_names() {
    let server = Running::start(|_| {});
    std::fs::create_dir(server.root().join("a & b")).unwrap();
    server.put("a & b/<i>\"#?.ts", 10);
    let reply = server.get("/a%20&%20b", "").await;
    assert_eq!((reply.status, reply.header("location")), (301, Some("/a%20%26%20b/")));
    let listing = server.get("/a%20&%20b/", "").await;
    let page = String::from_utf8(listing.body).unwrap();
    assert!(page.contains("<a href=\"./%3Ci%3E%22%23%3F.ts\">&lt;i&gt;&quot;#?.ts</a>"), "{page}");
    let file = server.get("/a%20%26%20b/%3Ci%3E%22%23%3F.ts", "").await;
    assert_eq!((file.status, file.header("content-type")), (200, Some("video/mp2t")));
    assert_eq!(server.get("//evil.example/..", "").await.status, 404);
    std::fs::write(server.root().join("a & b/index.html"), "here").unwrap();
    assert_eq!(server.get("/a%20&%20b/?x=1", "").await.body, b"here");
}

#[tokio::test]
async fn methods_and_pipelined_requests() {
    let server = Running::start(|_| {});
    let film = server.put("film.mp4", 200_000);
    let reply = server.request("DELETE /film.mp4", "").await;
    assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, HEAD, OPTIONS")));
    assert_eq!(server.request("OPTIONS /film.mp4", "").await.status, 204);
    let mut stream = server.connect().await;
    for start in [0, 100_000, 5] {
        send(&mut stream, "GET /film.mp4", &format!("Range: bytes={start}-\r\n")).await;
    }
    for start in [0, 100_000, 5] {
        assert_eq!(receive(&mut stream, false).await.body, &film[start..]);
    }
}

/// A field that means nothing here, and that hyper is to see.
const FOR_HYPER: &str = "Upgrade: other\r\n";

/// The order of fields of different names means nothing.
fn in_order(reply: &Reply) -> Vec<&str> {
    let mut head = reply.stable_head();
    head[1..].sort_unstable();
    head
}

#[tokio::test]
async fn an_answer_is_the_same_whoever_reads_its_request() {
    let server = Running::start(|_| {});
    server.put("film.mp4", 200_000);
    server.put("empty", 0);
    for (line, fields) in [
        ("GET /film.mp4", ""),
        ("HEAD /film.mp4", ""),
        ("GET /film.mp4", "Range: bytes=10-99999\r\n"),
        ("GET /film.mp4", "Range: bytes=200000-\r\n"),
        ("GET /film.mp4", "If-None-Match: *\r\n"),
        ("GET /film.mp4", "If-Match: \"other\"\r\n"),
        ("GET /empty", ""),
        ("GET /none", ""),
        ("GET /", ""),
    ] {
        let read = server.request(line, fields).await;
        let by_hyper = server.request(line, &format!("{fields}{FOR_HYPER}")).await;
        assert_eq!(in_order(&read), in_order(&by_hyper), "{line} {fields}");
        assert!(read.body == by_hyper.body && read.header("date").is_some(), "{line} {fields}");
    }
}

#[tokio::test]
async fn a_connection_goes_on_with_requests_of_all_kinds() {
    let server = Running::start(|_| {});
    let film = server.put("film.mp4", 200_000);
    let mut stream = server.connect().await;
    send(&mut stream, "GET /film.mp4", "").await;
    assert!(receive(&mut stream, false).await.body == film);
    // All at once, the second of them another one's business.
    let all = ["GET /film.mp4", "OPTIONS /film.mp4", "HEAD /film.mp4", "GET /film.mp4"];
    let fields = "HTTP/1.1\r\nHost: test\r\n\r\n";
    let heads: String = all.iter().map(|line| format!("{line} {fields}")).collect();
    stream.write_all(heads.as_bytes()).await.unwrap();
    assert!(receive(&mut stream, false).await.body == film);
    assert_eq!(receive(&mut stream, false).await.status, 204);
    assert_eq!(receive(&mut stream, true).await.status, 200);
    assert!(receive(&mut stream, false).await.body == film);
    // A head in two pieces.
    let mut stream = server.connect().await;
    send(&mut stream, "GET /film.mp4", "").await;
    assert!(receive(&mut stream, false).await.body == film);
    stream.write_all(b"GET /film.mp4 HTTP/1.1\r\nHo").await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    stream.write_all(b"st: test\r\nRange: bytes=5-\r\n\r\n").await.unwrap();
    assert!(receive(&mut stream, false).await.body == film[5..]);
}

#[tokio::test]
async fn an_empty_file() {
    let server = Running::start(|_| {});
    server.put("empty", 0);
    let reply = server.get("/empty", "").await;
    assert_eq!((reply.status, reply.header("content-length")), (200, Some("0")));
    assert_eq!(server.get("/empty", "Range: bytes=0-\r\n").await.status, 416);
}

#[tokio::test]
async fn long_and_short_parts_come_whole_on_one_connection_with_all_requests_sent_at_once() {
    let server = Running::start(|_| {});
    let film = server.put("film.mp4", 3_000_000);
    let mut stream = server.connect().await;
    let ranges = [10..2_900_000, 7..20, 100_000..200_001, 0..3_000_000];
    for range in &ranges {
        let field = format!("Range: bytes={}-{}\r\n", range.start, range.end - 1);
        send(&mut stream, "GET /film.mp4", &field).await;
    }
    send(&mut stream, "GET /film.mp4", "Range: bytes=0-99999,1000000-1999999\r\n").await;
    for range in ranges {
        let reply = receive(&mut stream, false).await;
        assert!(reply.status == 206 && reply.body == film[range.clone()], "{range:?}");
    }
    let body = receive(&mut stream, false).await.body;
    let after = |from: usize| from + body[from..].windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
    let first = after(0);
    assert!(body[first..].starts_with(&film[..100_000]));
    assert!(body[after(first + 100_000)..].starts_with(&film[1_000_000..2_000_000]));
}
