//! Who plays, where that is not whoever takes everything at once.

use anabranch_congestion::need::Told;
use anabranch_film::content::ReaderId;
use anabranch_film::session::Session;
use anabranch_units::{Rate, Time};

use super::ladder::LadderPlayer;
use super::player::Player;
use crate::model::Media;
use crate::report::Seen;

/// A player.
#[derive(Debug)]
pub(super) enum Viewer {
    /// One with a buffer of its own.
    Buffered(Box<Player>),
    /// One that asks for segments and chooses their rungs.
    Ladder(Box<LadderPlayer>),
}

impl Viewer {
    /// The player of a stream, if it has one.
    pub(super) fn new(media: &Media, size: u64, reader: ReaderId, now: Time) -> Option<Self> {
        if let Some(ladder) = &media.ladder {
            let player = LadderPlayer::new(ladder.clone(), media.playback, reader, now);
            return Some(Self::Ladder(Box::new(player)));
        }
        let model = media.reader.clone()?;
        let player = Player::new(model, media.rate, media.playback, size, reader, now);
        Some(Self::Buffered(Box::new(player)))
    }

    /// The time has come to `now`.
    pub(super) fn step(&mut self, session: &mut Session, now: Time) {
        match self {
            Self::Buffered(player) => player.step(session, now),
            Self::Ladder(player) => player.step(session, now),
        }
    }

    /// When it looks next.
    pub(super) fn next(&self) -> Option<Time> {
        match self {
            Self::Buffered(player) => player.next(),
            Self::Ladder(player) => Some(player.next()),
        }
    }

    /// What was seen so far.
    pub(super) fn seen(&self) -> Seen {
        match self {
            Self::Buffered(player) => player.seen(),
            Self::Ladder(player) => player.seen(),
        }
    }

    /// What it tells with a request; one that reads a file says nothing.
    pub(super) fn told(&self) -> Told {
        match self {
            Self::Buffered(_) => Told::default(),
            Self::Ladder(player) => player.told(),
        }
    }

    /// Which rungs it chose since the last call, and why.
    pub(super) fn take_chosen(&mut self) -> Vec<(Rate, &'static str)> {
        match self {
            Self::Buffered(_) => Vec::new(),
            Self::Ladder(player) => player.take_chosen(),
        }
    }
}
