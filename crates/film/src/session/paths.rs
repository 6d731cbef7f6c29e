//! The ways to the media: which are up, how many connections each may have, and when to try again.

use std::collections::BTreeMap;

use anabranch_units::{Bytes, Duration, Time};

use super::connection::Connection;
use super::spacing::Spacing;
use crate::control::{ConnectionId, PathId, PathSample};

/// How a server refused a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It asks for fewer or later requests (429, 503). 403 on one of several connections is meant like that
    /// as well.
    TooMany {
        /// How long it wants to be left alone, if it says so.
        after: Option<Duration>,
        /// What it says.
        said: String,
    },
    /// It has a problem of its own that may pass (5xx, a broken response).
    Trouble(String),
    /// It does not have the media, or not for us, or has another one.
    Gone(String),
}

/// State of one path.
#[derive(Clone, Debug)]
struct Path {
    cap: usize,
    wanted_cap: usize,
    /// Failures since something new arrived.
    failures: u32,
    retry: Time,
    /// The server wants to be left alone until then, whatever else of it goes well.
    left_alone: Time,
    /// When the cap may rise by one again.
    cap_rises: Time,
    gone: Option<String>,
    last_error: String,
    delivered: u64,
    errors: u64,
    spacing: Spacing,
}

/// All paths.
#[derive(Debug)]
pub(super) struct Paths(Vec<Path>);

const FIRST_RETRY: Duration = Duration::from_millis(500);
const LONGEST_RETRY: Duration = Duration::from_secs(15);
/// A connection that failed after less is not replaced at once.
const OF_USE: Bytes = Bytes::kib(64);
const LONGEST_REFUSAL: Duration = Duration::from_secs(300);
/// A cap that a server's refusal lowered rises by one after so long without another.
const CAP_RISES_AFTER: Duration = Duration::from_secs(60);

impl Path {
    fn is_open(&self, now: Time) -> bool {
        self.gone.is_none() && now >= self.retry.max(self.left_alone)
    }
}

impl Paths {
    pub(super) fn new(caps: &[usize]) -> Self {
        let path = |cap: &usize| Path {
            cap: (*cap).max(1),
            wanted_cap: (*cap).max(1),
            failures: 0,
            retry: Time::ZERO,
            left_alone: Time::ZERO,
            cap_rises: Time::NEVER,
            gone: None,
            last_error: String::new(),
            delivered: 0,
            errors: 0,
            spacing: Spacing::default(),
        };
        Self(caps.iter().map(path).collect())
    }

    fn get(&mut self, id: PathId) -> Option<&mut Path> {
        self.0.get_mut(usize::from(id.0))
    }

    fn ids(&self) -> impl Iterator<Item = (PathId, &Path)> {
        (0u16..).map(PathId).zip(&self.0)
    }

    /// The server is asked for a range.
    pub(super) fn asked(&mut self, id: PathId, now: Time) {
        if let Some(path) = self.get(id) {
            path.spacing.asked(now);
        }
    }

    /// Whether some server takes requests only so often.
    pub(super) fn are_spaced(&self) -> bool {
        self.0.iter().any(|path| !path.spacing.least().is_zero())
    }

    /// How often a server takes requests.
    pub(super) fn spacing(&self, id: PathId) -> Option<&Spacing> {
        self.0.get(usize::from(id.0)).map(|path| &path.spacing)
    }

    /// Delivered bytes and errors of every path.
    pub(super) fn totals(&self) -> Vec<(u64, u64)> {
        self.0.iter().map(|path| (path.delivered, path.errors)).collect()
    }

    /// The server answers.
    pub(super) fn answered(&mut self, id: PathId) {
        if let Some(path) = self.get(id) {
            path.retry = Time::ZERO;
        }
    }

    pub(super) fn delivered(&mut self, id: PathId, bytes: u64, new: u64) {
        if let Some(path) = self.get(id) {
            if new > 0 {
                path.failures = 0;
            }
            path.delivered += bytes;
        }
    }

    /// A connection ended in good order: the next one may be opened at once, unless nothing comes of it.
    pub(super) fn ended(&mut self, id: PathId, now: Time) {
        if let Some(path) = self.get(id) {
            if path.failures > 0 {
                path.retry = now + FIRST_RETRY;
                path.last_error = "the server closes its connections without an answer".into();
            }
            path.failures = path.failures.saturating_add(1);
        }
    }

    /// A connection failed that had brought so much that was new: later again, each time twice as late. Those
    /// that fail together count once, and one that was of use is replaced at once.
    pub(super) fn failed(&mut self, id: PathId, error: &str, brought: Bytes, now: Time) {
        if let Some(path) = self.get(id) {
            if brought < OF_USE && now >= path.retry {
                let wait = FIRST_RETRY * (1 << path.failures.min(5));
                path.retry = now + wait.min(LONGEST_RETRY);
                path.failures = path.failures.saturating_add(1);
            }
            path.errors += 1;
            error.clone_into(&mut path.last_error);
        }
    }

    /// A connection was given up for what it did not deliver.
    pub(super) fn missed(&mut self, id: PathId, why: &str, now: Time) {
        if let Some(path) = self.get(id) {
            path.retry = path.retry.max(now + FIRST_RETRY);
            path.errors += 1;
            why.clone_into(&mut path.last_error);
        }
    }

    pub(super) fn refused(&mut self, id: PathId, refusal: &Refusal, now: Time) {
        match refusal {
            Refusal::TooMany { after, said } => {
                if let Some(path) = self.get(id) {
                    // Those that are refused together count once.
                    if now >= path.left_alone {
                        path.spacing.refused();
                    }
                    let own = Duration::from_secs(1) * (1 << path.failures.min(6));
                    path.left_alone = path.left_alone.max(now + after.unwrap_or(own).min(LONGEST_REFUSAL));
                    path.failures = path.failures.saturating_add(1);
                    path.cap = (path.cap / 2).max(1);
                    path.cap_rises = now + CAP_RISES_AFTER;
                    path.errors += 1;
                    path.last_error.clone_from(said);
                }
            }
            Refusal::Trouble(error) => self.failed(id, error, Bytes::ZERO, now),
            Refusal::Gone(error) => {
                if let Some(path) = self.get(id) {
                    path.gone = Some(error.clone());
                    path.errors += 1;
                    path.last_error.clone_from(error);
                }
            }
        }
    }

    /// Whether a path could take a connection now, not counting those it has.
    pub(super) fn any_open(&self, now: Time) -> bool {
        self.0.iter().any(|path| path.is_open(now))
    }

    /// Why no path will ever do, if that is so.
    pub(super) fn hopeless(&self) -> Option<String> {
        let gone: Option<Vec<_>> = self.0.iter().map(|path| path.gone.clone()).collect();
        gone.map(|mut errors| {
            errors.dedup();
            errors.join("; ")
        })
    }

    /// What went wrong last on the paths that are not up.
    pub(super) fn last_error(&self) -> String {
        let mut errors: Vec<_> =
            self.0.iter().map(|path| path.last_error.clone()).filter(|error| !error.is_empty()).collect();
        errors.dedup();
        errors.join("; ")
    }

    /// The paths as a rate controller sees them. A server without ranges gets one connection in all.
    pub(super) fn samples(
        &self,
        connections: &BTreeMap<ConnectionId, Connection>,
        ranges: bool,
        now: Time,
    ) -> Vec<PathSample> {
        let alone = !ranges && !connections.is_empty();
        let sample = |(id, path): (PathId, &Path)| {
            let there = connections.values().filter(|connection| connection.path == id).count();
            let raised = usize::from(now >= path.cap_rises);
            let cap = (path.cap + raised).min(path.wanted_cap);
            let may_open = path.is_open(now) && there < cap && !alone;
            PathSample { path: id, connections: there, may_open, failing: path.failures > 0 }
        };
        self.ids().map(sample).collect()
    }

    /// Where to open a connection: there if it may be, else where there are fewest.
    pub(super) fn choose(
        &mut self,
        wanted: Option<PathId>,
        connections: &BTreeMap<ConnectionId, Connection>,
        ranges: bool,
        now: Time,
    ) -> Option<PathId> {
        let samples = self.samples(connections, ranges, now);
        let open =
            samples.iter().filter(|path| path.may_open && wanted.is_none_or(|wanted| path.path == wanted));
        let choice = open.min_by_key(|path| (path.failing, path.connections, path.path))?.path;
        if let Some(path) = self.get(choice)
            && now >= path.cap_rises
        {
            path.cap = (path.cap + 1).min(path.wanted_cap);
            path.cap_rises = if path.cap < path.wanted_cap { now + CAP_RISES_AFTER } else { Time::NEVER };
        }
        Some(choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: PathId = PathId(0);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_server_is_left_alone_as_long_as_it_says_whatever_else_goes_well() {
        let mut paths = Paths::new(&[8]);
        let too_many = Refusal::TooMany { after: Some(Duration::from_secs(5)), said: "503".into() };
        paths.refused(PATH, &too_many, at(0));
        paths.answered(PATH);
        paths.delivered(PATH, 100_000, 100_000);
        paths.failed(PATH, "reset", Bytes::mib(1), at(100));
        assert!(!paths.any_open(at(4999)));
        assert!(paths.any_open(at(5000)));
    }

    #[test]
    fn connections_that_fail_together_count_once() {
        let mut paths = Paths::new(&[16]);
        for connection in 0..16 {
            paths.failed(PATH, "reset", Bytes::ZERO, at(connection));
        }
        assert!(!paths.any_open(at(499)) && paths.any_open(at(500)));
        paths.failed(PATH, "refused", Bytes::ZERO, at(600));
        assert!(!paths.any_open(at(1599)) && paths.any_open(at(1600)));
        assert_eq!(paths.totals(), [(0, 17)]);
    }

    #[test]
    fn a_connection_that_was_of_use_is_replaced_at_once() {
        let mut paths = Paths::new(&[8]);
        paths.failed(PATH, "reset", OF_USE, at(100));
        assert!(paths.any_open(at(100)));
        paths.failed(PATH, "reset", OF_USE - Bytes::new(1), at(200));
        assert!(!paths.any_open(at(201)));
    }
}
