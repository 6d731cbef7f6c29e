//! What is played: `[film]` and `[live]`.

use std::path::PathBuf;

use anabranch_film::playback::{Parameters, StallRule};
use anabranch_scenario::{Fault, Item, playback};
use anabranch_units::{Duration, Rate, Ratio};

/// The media of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Film {
    /// Its constant rate, the container's overhead included; its mean one where it is variable.
    pub rate: Rate,
    /// Whether it is fed without stuffing, as encoders send it that make none: key pictures come at several
    /// times the mean rate. Only live media are.
    pub is_variable: bool,
    /// How long it plays.
    pub duration: Duration,
    /// An existing file at that rate; without it an MPEG transport stream is made with ffmpeg.
    pub file: Option<PathBuf>,
    /// When its player starts and stops.
    pub playback: Parameters,
    /// Play time that the player holds at most: it reads no further from a client's standard output. Without
    /// it, it reads all that comes.
    pub buffer: Option<Duration>,
}

impl Film {
    /// The file of a film of variable rate has so many times its mean rate, with stuffing.
    pub const PEAK: Ratio = Ratio::new(4, 1);

    /// The rate of its file.
    #[must_use]
    pub fn file_rate(&self) -> Rate {
        if self.is_variable { self.rate * Self::PEAK } else { self.rate }
    }

    pub(super) fn read(item: Item<'_>, has_live: bool) -> Result<Self, Fault> {
        let mut table = item.table("the [film]")?;
        let rate = table.need("rate", Item::rate);
        let is_variable = table.get("variable", |item| match item.flag()? {
            true if !has_live => Err(item.fault("only live media may be of variable rate: with [live]")),
            is_variable => Ok(is_variable),
        });
        let duration = table.need("duration", Item::positive_duration);
        let file = table.get("file", Item::text).map(PathBuf::from);
        let playback = table.get("playback", playback).unwrap_or_default();
        let most = match playback.stall {
            StallRule::Rebuffer { resume_at } => playback.prebuffer.max(resume_at),
            StallRule::FixedPause(_) => playback.prebuffer,
        };
        let buffer = table.get("buffer", |item| match item.duration()? {
            buffer if buffer < most => {
                Err(item.fault(format_args!("the buffer must hold what is loaded before playing ({most})")))
            }
            buffer => Ok(buffer),
        });
        table.finish()?;
        Ok(Self {
            rate: rate?,
            is_variable: is_variable.unwrap_or(false),
            duration: duration?,
            file,
            playback,
            buffer,
        })
    }
}

/// Live media: fed to a client's sender at the film's rate, collected from its receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Live {
    /// What a client may take from its sender's input to its receiver's output, beyond the path's own delay:
    /// the `{latency}` of its commands.
    pub latency: Duration,
    /// The film's beginning that is not judged: connections and rates settle.
    pub settle: Duration,
    /// A run is over when more than this share of what should have come out since has not; without it, at the
    /// film's end.
    pub give_up: Option<f64>,
}

impl Live {
    pub(super) fn read(item: Item<'_>) -> Result<Self, Fault> {
        let mut table = item.table("[live]")?;
        let latency = table.need("latency", Item::duration);
        let settle = table.get("settle", Item::duration).unwrap_or(Duration::from_secs(10));
        let give_up = table.get("give_up", |item| {
            item.number(|share| (0.0..=1.0).contains(&share), "from 0 to 1 (a share)")
        });
        table.finish()?;
        Ok(Self { latency: latency?, settle, give_up })
    }
}
