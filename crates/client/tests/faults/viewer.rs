//! The engine as a test uses it, with short times and a bound on all of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_client::{EngineError, Event, Film, Notice, Reader, Settings, Storage};
use anabranch_protocol::ranges::RangeSet;
use anabranch_testkit::ScriptedServer;
use tempfile::TempDir;
use tokio::sync::broadcast;

/// Everything ends in this time, with much to spare.
const AT_MOST: Duration = Duration::from_secs(25);

pub fn millis(millis: u64) -> anabranch_units::Duration {
    anabranch_units::Duration::from_millis(millis)
}

/// Settings for tests: nothing waits for long.
pub fn settings(urls: &[String]) -> Settings {
    let mut settings = Settings::new(urls.iter().map(|url| url.parse().unwrap()).collect());
    settings.connect_timeout = millis(2000);
    settings.give_up_after = millis(8000);
    settings.silent_after = millis(1000);
    settings.stripe = false;
    settings.probe_media = false;
    settings
}

/// Fails a test that takes too long.
pub async fn in_time<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(AT_MOST, what).await.expect("it ends in time")
}

/// Opens a film that is read from memory.
pub async fn open(settings: Settings) -> Film {
    in_time(Film::open(settings, Storage::Memory)).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Why a film cannot be opened.
pub async fn refused(settings: Settings) -> String {
    match in_time(Film::open(settings, Storage::Memory)).await {
        Ok(_) => panic!("it opens"),
        Err(error) => error.to_string(),
    }
}

/// Reads to the end.
pub async fn read(reader: &mut Reader) -> Result<Vec<u8>, EngineError> {
    let mut all = Vec::new();
    in_time(async {
        while let Some(piece) = reader.next().await? {
            assert!(!piece.is_empty());
            all.extend_from_slice(&piece);
        }
        Ok(all)
    })
    .await
}

/// Reads a film through, from memory.
pub async fn watch(settings: Settings) -> Result<Vec<u8>, EngineError> {
    let film = open(settings).await;
    read(&mut film.reader(0..u64::MAX)).await
}

/// Asserts that a film comes as it is.
pub async fn comes_right(settings: Settings, content: &[u8]) {
    let got = watch(settings).await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(got.len(), content.len());
    assert!(got == content, "wrong bytes");
}

/// A film on its way into a file.
pub struct Fetch {
    pub film: Film,
    pub path: PathBuf,
    _folder: TempDir,
}

impl Fetch {
    pub async fn begin(settings: Settings) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("out");
        let file = std::fs::File::options().create_new(true).read(true).write(true).open(&path).unwrap();
        let storage = Storage::File { file: Arc::new(file), have: RangeSet::new(), in_doubt: false };
        let film = in_time(Film::open(settings, storage)).await.unwrap_or_else(|error| panic!("{error}"));
        Self { film, path, _folder: folder }
    }

    pub async fn comes_right(&self, content: &[u8]) {
        in_time(self.film.complete()).await.unwrap_or_else(|error| panic!("{error}"));
        assert!(std::fs::read(&self.path).unwrap() == content, "wrong bytes");
    }

    pub async fn fails(&self) -> String {
        in_time(self.film.complete()).await.expect_err("it fails").to_string()
    }
}

/// What was told so far.
pub fn events(notices: &mut broadcast::Receiver<Notice>) -> Vec<Event> {
    let mut events = Vec::new();
    while let Ok(notice) = notices.try_recv() {
        events.push(notice.event);
    }
    events
}

/// Waits for a notice.
pub async fn notice(notices: &mut broadcast::Receiver<Notice>, wanted: impl Fn(&Event) -> bool) -> Event {
    in_time(async {
        loop {
            match notices.recv().await {
                Ok(notice) if wanted(&notice.event) => return notice.event,
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => panic!("the film is gone"),
            }
        }
    })
    .await
}

/// Waits until no connection of a server is open.
pub async fn is_left(server: &ScriptedServer) {
    let begin = Instant::now();
    while server.open() > 0 {
        assert!(begin.elapsed() < Duration::from_secs(3), "{} connections stay open", server.open());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
