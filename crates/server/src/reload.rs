//! Blocking reload of playlists: a player of low-latency HLS asks for a playlist that is yet to come
//! (draft-pantos-hls-rfc8216bis, section 6.2.5.2), and the answer waits until it is there.
//!
//! Whoever writes the playlist tells by `CAN-BLOCK-RELOAD=YES` that players may ask so. However many wait, one task looks
//! at the file.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::files::{self, Found, plain};

/// How often a file is looked at.
const LOOKS: Duration = Duration::from_millis(20);
/// Playlists that are waited for at a time; others are answered as they are.
const MOST_WATCHED: usize = 256;
/// Longer playlists are answered as they are.
const LARGEST: u64 = 1 << 20;
/// An answer waits for so many target durations.
const PATIENCE: u32 = 3;
/// A target duration that is longer counts as this.
const LONGEST_TARGET_SECONDS: u64 = 60;

/// What a request wants to be there: a segment, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    segment: u64,
    part: Option<u64>,
}

impl Wanted {
    /// What the query of a request for a playlist says; `None`: nothing.
    ///
    /// # Errors
    /// It makes no sense.
    pub(super) fn of(path: &str, query: Option<&str>) -> Result<Option<Self>, StatusCode> {
        let is_playlist = Path::new(path).extension().is_some_and(|it| it.eq_ignore_ascii_case("m3u8"));
        let Some(query) = query.filter(|_| is_playlist) else { return Ok(None) };
        let number = |name: &str| {
            let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
            value.map(|value| value.parse::<u64>().map_err(|_| StatusCode::BAD_REQUEST)).transpose()
        };
        match (number("_HLS_msn")?, number("_HLS_part")?) {
            (Some(segment), part) => Ok(Some(Self { segment, part })),
            (None, Some(_)) => Err(StatusCode::BAD_REQUEST),
            (None, None) => Ok(None),
        }
    }
}

/// How far a playlist has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Come {
    /// The number of the segment that is not there yet, and its parts.
    segment: u64,
    parts: u64,
    target: Duration,
    /// Whether nothing is to be waited for: it has ended, or does not say that players may ask so.
    is_final: bool,
}

impl Come {
    fn of(playlist: &str) -> Self {
        let mut come = Self { segment: 0, parts: 0, target: Duration::ZERO, is_final: true };
        let mut can_block = false;
        for line in playlist.lines().map(str::trim_end) {
            if let Some(number) = line.strip_prefix("#EXT-X-MEDIA-SEQUENCE:") {
                come.segment = come.segment.saturating_add(number.parse().unwrap_or(0));
            } else if let Some(seconds) = line.strip_prefix("#EXT-X-TARGETDURATION:") {
                come.target = Duration::from_secs(seconds.parse().unwrap_or(0).min(LONGEST_TARGET_SECONDS));
            } else if line.starts_with("#EXT-X-SERVER-CONTROL:") {
                can_block = line.contains("CAN-BLOCK-RELOAD=YES");
            } else if line.starts_with("#EXT-X-PART:") {
                come.parts += 1;
            } else if line == "#EXT-X-ENDLIST" {
                return come;
            } else if !line.is_empty() && !line.starts_with('#') {
                (come.segment, come.parts) = (come.segment.saturating_add(1), 0);
            }
        }
        come.is_final = !can_block;
        come
    }

    fn has(&self, wanted: Wanted) -> bool {
        let has_part = wanted.part.is_some_and(|part| part < self.parts);
        self.is_final || wanted.segment < self.segment || (wanted.segment == self.segment && has_part)
    }
}

/// How far each playlist has come that somebody waits for.
type Watched = Arc<Mutex<HashMap<String, watch::Receiver<Option<Come>>>>>;

/// The playlists that are waited for.
#[derive(Clone, Default)]
pub(super) struct Reloads {
    watched: Watched,
}

impl Reloads {
    /// Waits until what is wanted is in the playlist at `path` (as it was asked for) below `root`.
    ///
    /// # Errors
    /// It is too far away, or does not come.
    pub(super) async fn wait(&self, root: &Arc<Path>, path: &str, wanted: Wanted) -> Result<(), StatusCode> {
        let Some(mut receiver) = self.watch(root, path) else { return Ok(()) };
        // What is no playlist, or not there, is answered as it is.
        let first = receiver.wait_for(Option::is_some).await.ok().and_then(|come| *come);
        let Some(first) = first else { return Ok(()) };
        if first.has(wanted) {
            return Ok(());
        }
        // One beyond the segment that grows: players may ask for what follows it.
        if wanted.segment > first.segment.saturating_add(1) {
            return Err(StatusCode::BAD_REQUEST);
        }
        let is_there = |come: &Option<Come>| come.is_some_and(|come| come.has(wanted));
        match timeout(first.target * PATIENCE, receiver.wait_for(is_there)).await {
            // The file is gone: the answer says so.
            Ok(_) => Ok(()),
            Err(_) => Err(StatusCode::SERVICE_UNAVAILABLE),
        }
    }

    fn watch(&self, root: &Arc<Path>, path: &str) -> Option<watch::Receiver<Option<Come>>> {
        // However its path is written, a playlist is looked at once.
        let key = plain(path);
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(receiver) = watched.get(&key) {
            return Some(receiver.clone());
        }
        if watched.len() >= MOST_WATCHED {
            return None;
        }
        let (sender, receiver) = watch::channel(None);
        watched.insert(key.clone(), receiver.clone());
        let (all, root, path) = (self.watched.clone(), Arc::clone(root), path.to_owned());
        tokio::spawn(look(all, key, root, path, sender));
        Some(receiver)
    }
}

/// Tells how far a playlist has come for as long as anybody waits.
async fn look(
    watched: Watched,
    key: String,
    root: Arc<Path>,
    path: String,
    sender: watch::Sender<Option<Come>>,
) {
    let mut looks = interval(LOOKS);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = None;
    loop {
        looks.tick().await;
        let (below, asked) = (Arc::clone(&root), path.clone());
        let read = tokio::task::spawn_blocking(move || read(&below, &asked, before.as_ref()));
        let (seen, come) = match read.await {
            Ok(Ok(Some(read))) => read,
            // It is gone, or no playlist.
            _ => break,
        };
        before = seen;
        if let Some(come) = come {
            sender.send_replace(Some(come));
        }
        let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
        // The one in the table is nobody's.
        if sender.receiver_count() <= 1 {
            watched.remove(&key);
            return;
        }
    }
    watched.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
}

/// What tells a playlist from the one before it.
type Seen = Option<(String, PathBuf)>;

/// How far the playlist has come, unless it is still that of `before`. `None`: there is none to wait for.
fn read(
    root: &Path,
    path: &str,
    before: Option<&(String, PathBuf)>,
) -> io::Result<Option<(Seen, Option<Come>)>> {
    let Found::File(opened) = files::find(root, path)? else { return Ok(None) };
    let seen = (opened.validators.etag.clone(), opened.path);
    if before == Some(&seen) {
        return Ok(Some((Some(seen), None)));
    }
    if opened.size > LARGEST {
        return Ok(None);
    }
    let mut text = String::new();
    File::open(&seen.1)?.take(LARGEST).read_to_string(&mut text)?;
    Ok(Some((Some(seen), Some(Come::of(&text)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAYLIST: &str = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=0.9\n\
        #EXT-X-MEDIA-SEQUENCE:7\n#EXT-X-PART:DURATION=0.3,URI=\"a.0\"\n#EXTINF:2,\na\n#EXTINF:2,\nb\n\
        #EXT-X-PART:DURATION=0.3,URI=\"c.0\"\n#EXT-X-PART:DURATION=0.3,URI=\"c.1\"\n";

    #[test]
    fn what_is_there_and_what_is_not() {
        let come = Come::of(PLAYLIST);
        assert_eq!((come.segment, come.parts, come.target), (9, 2, Duration::from_secs(2)));
        let wanted = |segment, part| Wanted { segment, part };
        for (segment, part, is_there) in [
            (8, None, true),
            (8, Some(40), true),
            (9, None, false),
            (9, Some(1), true),
            (9, Some(2), false),
            (10, Some(0), false),
        ] {
            assert_eq!(come.has(wanted(segment, part)), is_there, "{segment} {part:?}");
        }
        assert!(Come::of(&format!("{PLAYLIST}#EXT-X-ENDLIST\n")).has(wanted(99, None)));
        assert!(Come::of(&PLAYLIST.replace("CAN-BLOCK-RELOAD=YES,", "")).has(wanted(99, None)));
    }

    #[test]
    fn queries_are_read() {
        let of = |query| Wanted::of("/live.m3u8", Some(query));
        assert_eq!(of("_HLS_msn=9&_HLS_part=2"), Ok(Some(Wanted { segment: 9, part: Some(2) })));
        assert_eq!(of("a=b&_HLS_msn=9"), Ok(Some(Wanted { segment: 9, part: None })));
        assert_eq!(of("a=b"), Ok(None));
        for wrong in ["_HLS_part=2", "_HLS_msn=x", "_HLS_msn=-1", "_HLS_msn=9&_HLS_part=", "_HLS_msn="] {
            assert_eq!(of(wrong), Err(StatusCode::BAD_REQUEST), "{wrong}");
        }
        assert_eq!(Wanted::of("/film.mp4", Some("_HLS_msn=x")), Ok(None));
    }

    #[tokio::test]
    async fn an_answer_waits_for_the_part() {
        let directory = tempfile::tempdir().unwrap();
        let root: Arc<Path> = directory.path().canonicalize().unwrap().into();
        let file = root.join("live.m3u8");
        std::fs::write(&file, PLAYLIST).unwrap();
        let reloads = Reloads::default();
        let wait = |part| {
            let (reloads, root) = (reloads.clone(), Arc::clone(&root));
            async move { reloads.wait(&root, "/live.m3u8", Wanted { segment: 9, part: Some(part) }).await }
        };
        assert_eq!(wait(1).await, Ok(()));
        let many: Vec<_> = (0..50).map(|_| tokio::spawn(wait(2))).collect();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(many.iter().all(|waits| !waits.is_finished()));
        assert_eq!(reloads.watched.lock().unwrap().len(), 1);
        let next = root.join("next");
        std::fs::write(&next, format!("{PLAYLIST}#EXT-X-PART:DURATION=0.3,URI=\"c.2\"\n")).unwrap();
        std::fs::rename(&next, &file).unwrap();
        for waits in many {
            assert_eq!(waits.await.unwrap(), Ok(()));
        }
        let far = Wanted { segment: 12, part: None };
        assert_eq!(reloads.wait(&root, "/live.m3u8", far).await, Err(StatusCode::BAD_REQUEST));
        assert_eq!(reloads.wait(&root, "/nothing.m3u8", far).await, Ok(()));
        // Nobody waits: nobody looks.
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(reloads.watched.lock().unwrap().is_empty());
    }
}
