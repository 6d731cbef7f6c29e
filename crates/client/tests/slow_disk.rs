//! A disk that takes its time, as one does that spins up or that others keep busy.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs::File;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anabranch_client::{Event, Film, Medium, Settings, Storage};
use anabranch_protocol::ranges::RangeSet;
use anabranch_server::{Config, Server, Shape};
use anabranch_units::{Bytes, Rate};

const BLOCKED: Duration = Duration::from_secs(5);

/// Blocks once, at the first write from `at` on.
#[derive(Debug)]
struct Blocking {
    file: File,
    at: u64,
    since: Mutex<Option<Instant>>,
}

impl Blocking {
    fn is_blocked(&self) -> bool {
        self.since.lock().unwrap().is_some_and(|since| since.elapsed() < BLOCKED)
    }
}

impl Medium for Blocking {
    fn write(&self, pieces: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        let is_first = offset >= self.at && {
            let mut since = self.since.lock().unwrap();
            let is_first = since.is_none();
            since.get_or_insert_with(Instant::now);
            is_first
        };
        if is_first {
            thread::sleep(BLOCKED);
        }
        self.file.write(pieces, offset)
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read(bytes, offset)
    }
}

/// A film of 9 MB from a server of 8 Mbps, and the disk that it goes to, which blocks after the first
/// megabyte.
async fn film(root: &std::path::Path, memory: Bytes) -> (Film, Arc<Blocking>, Vec<u8>) {
    let content = anabranch_testkit::film(9_000_000);
    std::fs::write(root.join("film.bin"), &content).unwrap();
    let mut config = Config::new(root, SocketAddr::from(([127, 0, 0, 1], 0)));
    config.shape = Some(Shape { rate: Some(Rate::from_mbps(8)), first_byte_delay: Duration::from_millis(5) });
    let server = Server::bind(config).unwrap();
    let mut settings =
        Settings::new(vec![format!("http://{}/film.bin", server.local_addr().unwrap()).parse().unwrap()]);
    settings.memory = memory;
    tokio::spawn(server.run(std::future::pending()));
    let disk =
        Arc::new(Blocking { file: tempfile::tempfile().unwrap(), at: 1_000_000, since: Mutex::default() });
    let storage = Storage::File { file: disk.clone(), have: RangeSet::new(), in_doubt: false };
    (Film::open(settings, storage).await.unwrap(), disk, content)
}

/// What the film has when the disk has been blocked for most of its time.
async fn late_in_the_block(film: &Film, disk: &Blocking) -> (u64, u64) {
    while !disk.is_blocked() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(BLOCKED * 7 / 10).await;
    assert!(disk.is_blocked());
    (film.status().session.totals.received, film.have().total())
}

async fn is_whole(film: &Film, disk: &Blocking, content: &[u8]) {
    film.complete().await.unwrap();
    assert!(!disk.is_blocked());
    let mut written = vec![0; content.len()];
    disk.file.read(&mut written, 0).unwrap();
    assert!(written == content);
}

#[tokio::test]
async fn a_disk_that_blocks_stalls_no_connection_and_no_reader_that_has_its_bytes() {
    let root = tempfile::tempdir().unwrap();
    let (film, disk, content) = film(root.path(), Bytes::mib(64)).await;
    let mut notices = film.notices();
    let mut reader = film.reader(0..u64::MAX);
    let reading = tokio::spawn(async move {
        let mut got = Vec::new();
        while let Some(piece) = reader.next().await.unwrap() {
            got.push((Instant::now(), piece));
        }
        got
    });
    let (received, written) = late_in_the_block(&film, &disk).await;
    // 3.5 seconds at 1 MB/s, with what the machine is slow for.
    assert!(received > written + 2_500_000, "{received} received, {written} written");
    is_whole(&film, &disk, &content).await;
    let got = reading.await.unwrap();
    let longest = got.windows(2).map(|two| two[1].0 - two[0].0).max().unwrap();
    assert!(longest < Duration::from_secs(2), "the reader waited for {longest:?}");
    assert!(got.iter().map(|(_, piece)| &piece[..]).collect::<Vec<_>>().concat() == content);
    while let Ok(notice) = notices.try_recv() {
        assert!(!matches!(notice.event, Event::ConnectionFailed { .. }), "{notice:?}");
    }
}

#[tokio::test]
async fn what_waits_for_a_disk_is_bounded() {
    let root = tempfile::tempdir().unwrap();
    let (film, disk, content) = film(root.path(), Bytes::mib(1)).await;
    let (received, written) = late_in_the_block(&film, &disk).await;
    // Beyond the bound each connection brings one read more.
    assert!(received < written + 1_048_576 + 8 * 262_144, "{received} received, {written} written");
    is_whole(&film, &disk, &content).await;
}
