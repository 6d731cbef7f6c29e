//! What becomes of a film on its servers while it is got: it may grow, as a recording does that goes on, or
//! change.
//!
//! The film that is got ends where it ended when it was opened. Once an answer says that it is longer now,
//! samples of what has come tell whether it is still the same one. From then on its validators are of no use
//! on that path, as they are others after every write, and the samples are looked at once more in the end.

use std::io;
use std::time::Duration;

use anabranch_film::control::{ConnectionId, PathId};
use anabranch_http::{Connection, Method, Received, RequestHead, ResponseHead, Version};
use anabranch_units::Bytes;
use bytes::BytesMut;

use super::command::{End, Report};
use super::error::{Cure, EngineError};
use super::open::{LARGE_SAMPLE, OpenError, SAMPLE, compare, samples};
use super::shared::Shared;

/// How long samples may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a server has for a last word.
const LAST_WORD: Duration = Duration::from_secs(10);
/// How often a connection that waits for samples says that it lives.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// A connection has found the film to be longer: tells how it ends.
pub(super) async fn look(shared: &Shared, id: ConnectionId, path: PathId, to: u64) -> End {
    let looking = async {
        let growth = &shared.replica(path).growth;
        let _one_at_a_time = growth.looking.lock().await;
        if growth.size().is_some() {
            return End::Grown { to };
        }
        match tokio::time::timeout(PATIENCE, samples_agree(shared, path, SAMPLE)).await {
            Ok(Ok(())) => {
                growth.note(to);
                End::Grown { to }
            }
            Ok(Err(OpenError::AnotherFilm(how))) => {
                let size = shared.whole.unwrap_or(0);
                End::changed(&format!("it had {size} bytes and has {to} now, and {how}"))
            }
            Ok(Err(error)) => End::Failed(error.to_string()),
            Err(_) => End::Failed("samples of the film, which has grown, do not come in time".into()),
        }
    };
    tokio::pin!(looking);
    loop {
        tokio::select! {
            end = &mut looking => return end,
            () = tokio::time::sleep(SIGN_OF_LIFE) => shared.report(Report::Alive { id }).await,
        }
    }
}

/// Compares samples of what has come with what the server has now.
async fn samples_agree(shared: &Shared, path: PathId, length: u64) -> Result<(), OpenError> {
    let ours = held(shared, length).await;
    let ours = ours.map_err(|error| OpenError::Storage(format!("cannot read what was written: {error}")))?;
    if ours.is_empty() {
        return Err(OpenError::AnotherFilm("nothing is left of it to compare".into()));
    }
    let options = shared.settings.connect_options(shared.interface(path));
    compare(shared.replica(path), &mut None, &ours, &options).await
}

/// Samples of what is there, by where they are in what the servers have.
async fn held(shared: &Shared, length: u64) -> io::Result<Vec<(u64, Vec<u8>)>> {
    let ranges = samples(&shared.store.have(), length);
    let mut held = Vec::with_capacity(ranges.len());
    for range in ranges {
        held.push((shared.start + range.start, shared.read(range).await?));
    }
    Ok(held)
}

/// As [`super::Film::check`].
pub(super) async fn check(shared: &Shared) -> Result<Option<u64>, EngineError> {
    let mut grown = None;
    let status = super::status::of(shared);
    let came_with_the_opening = shared.published.figures().first_bytes;
    if status.session.totals.received <= came_with_the_opening {
        // In one answer, which has one version.
        return Ok(None);
    }
    for (path, replica) in (0..).map(PathId).zip(&status.replicas) {
        if replica.bytes == 0 {
            continue;
        }
        let checked =
            if shared.ranges { check_ranges(shared, path).await } else { check_whole(shared, path).await };
        let size = checked.map_err(|how| {
            let said = format!("{}: the film changed on the server while it was got: {how}", replica.url);
            EngineError::new(said, Cure::StartOver)
        })?;
        grown = grown.max(size);
    }
    Ok(grown)
}

/// The size of the film now where it has grown; an error: how it has changed.
async fn check_ranges(shared: &Shared, path: PathId) -> Result<Option<u64>, String> {
    let growth = &shared.replica(path).growth;
    let Some((_, head)) = last_word(shared, path, Method::Get).await else { return Ok(growth.size()) };
    let now = match head.status {
        // An answer to a request for the first byte.
        416 => Some(head.unsatisfied_total.unwrap_or(0)),
        200 | 206 => head.size_of_film(),
        _ => return Ok(growth.size()),
    };
    let then = growth.size().or(shared.whole);
    if let (Some(then), Some(now)) = (then, now) {
        if now < then {
            return Err(resized(then, now));
        }
        if now > then {
            growth.note(now);
        }
    }
    let Some(size) = growth.size() else {
        return shared.replica(path).version.difference(&Version::of(&head)).map_or(Ok(None), Err);
    };
    match tokio::time::timeout(PATIENCE, samples_agree(shared, path, LARGE_SAMPLE)).await {
        Ok(Err(OpenError::AnotherFilm(how))) => Err(how),
        _ => Ok(Some(size)),
    }
}

/// The same of a server without ranges. What it says to `HEAD` is believed where it says that nothing has
/// changed: not all know it.
async fn check_whole(shared: &Shared, path: PathId) -> Result<Option<u64>, String> {
    if shared.size.is_none() && shared.replica(path).version == Version::default() {
        // It told nothing that could be another now.
        return Ok(None);
    }
    for method in [Method::Head, Method::Get] {
        let Some((mut connection, head)) = last_word(shared, path, method).await else { continue };
        if head.status != 200 || head.encoding().is_some() {
            continue;
        }
        let sizes = shared.size.zip(head.size_of_film());
        let difference = sizes
            .filter(|(then, now)| then != now)
            .map(|(then, now)| resized(then, now))
            .or_else(|| shared.replica(path).version.difference(&Version::of(&head)));
        let Some(how) = difference else { return Ok(None) };
        if method == Method::Head {
            continue;
        }
        let longer = sizes.filter(|(then, now)| now > then).map(|(_, now)| now);
        if longer.is_some() && begins_as_what_came(shared, &mut connection).await {
            return Ok(longer);
        }
        return Err(how);
    }
    Ok(None)
}

/// Whether the body that is under way on a connection begins as what has come. Nobody can ask such a
/// server for more of it than that.
async fn begins_as_what_came(shared: &Shared, connection: &mut Connection) -> bool {
    let wanted = LARGE_SAMPLE.min(shared.size.unwrap_or(0));
    let end = shared.store.have().gaps(0..wanted).next().map_or(wanted, |gap| gap.start);
    let Ok(ours) = shared.read(0..end).await else { return false };
    if ours.is_empty() || Bytes::of(ours.len()).get() < wanted {
        return false;
    }
    let mut theirs = BytesMut::new();
    let receiving = async {
        while theirs.len() < ours.len() {
            match connection.receive(&mut theirs).await {
                Ok(Received::Data(_)) => {}
                _ => return,
            }
        }
    };
    let in_time = tokio::time::timeout(LAST_WORD, receiving).await.is_ok();
    in_time && theirs.get(..ours.len()) == Some(&ours[..])
}

/// Asks a server once more; `None`: it says nothing.
async fn last_word(shared: &Shared, path: PathId, method: Method) -> Option<(Connection, ResponseHead)> {
    let replica = shared.replica(path);
    let options = shared.settings.connect_options(shared.interface(path));
    let asking = async {
        let mut connection = Connection::connect(replica.target.origin(), &options).await.ok()?;
        let mut request = RequestHead::new(method, &replica.target, &replica.jar.headers());
        if shared.ranges {
            request = request.range(0, Some(0));
        }
        connection.send(&request).ok()?;
        match connection.receive(&mut BytesMut::new()).await.ok()? {
            Received::Head(head) => Some((connection, *head)),
            _ => None,
        }
    };
    tokio::time::timeout(LAST_WORD, asking).await.ok().flatten()
}

fn resized(then: u64, now: u64) -> String {
    format!("it had {then} bytes and has {now} now")
}
