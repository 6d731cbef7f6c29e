//! What the owner of a film lets others know.

use std::sync::{Mutex, MutexGuard, PoisonError};

use anabranch_film::session;
use anabranch_protocol::ranges::RangeSet;
use tokio::sync::watch;

use super::error::EngineError;

/// What those wait for who take bytes, or want the film as a whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    /// Size of the film, if known.
    pub(super) size: Option<u64>,
    /// All of it is there.
    pub(super) is_complete: bool,
    /// Others have connections of it, as nothing is left to ask for.
    pub(super) lends: bool,
    /// Some reader wants bytes that are not there.
    pub(super) wants: bool,
    /// Why nothing more comes.
    pub(super) failed: Option<EngineError>,
}

/// Figures for those who only look.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    pub(super) session: session::Status,
    pub(super) have: RangeSet,
    /// New bytes that came with the probing, before the session began.
    pub(super) first_bytes: u64,
}

/// The owner writes here, and everybody reads.
#[derive(Debug)]
pub(super) struct Published {
    standing: watch::Sender<Standing>,
    /// For readers: bytes have come, or something else has changed.
    news: watch::Sender<()>,
    figures: Mutex<Figures>,
}

impl Published {
    pub(super) fn new(figures: Figures) -> Self {
        Self {
            standing: watch::Sender::default(),
            news: watch::Sender::default(),
            figures: Mutex::new(figures),
        }
    }

    pub(super) fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    pub(super) fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    pub(super) fn figures(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes those who wait where something has changed, and readers as well when bytes have come.
    pub(super) fn stand(&self, now: Standing, have_come: bool) {
        let is_other = self.standing.send_if_modified(|before| {
            let is_other = before.size != now.size
                || before.is_complete != now.is_complete
                || before.lends != now.lends
                || before.wants != now.wants
                || before.failed.is_some() != now.failed.is_some();
            *before = now;
            is_other
        });
        if is_other || have_come {
            self.news.send_replace(());
        }
    }

    /// Nothing more comes, if not for another reason already.
    pub(super) fn fail(&self, error: EngineError) {
        self.standing.send_if_modified(|standing| {
            let is_new = standing.failed.is_none();
            standing.failed.get_or_insert(error);
            is_new
        });
        self.news.send_replace(());
    }

    pub(super) fn set_figures(&self, figures: Figures) {
        *self.figures() = figures;
    }
}
