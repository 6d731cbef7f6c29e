//! Which rung of a ladder is fetched next: three rules that players of segments have, as their sources have
//! them.
//!
//! - [`Rule::Buffer`]: BBA-0 of Huang et al., *A Buffer-Based Approach to Rate Adaptation* (SIGCOMM 2014,
//!   section 4, algorithm 1): the buffer alone decides, by a line from the lowest rung to the highest.
//! - [`Rule::Throughput`]: dash.js' `ThroughputRule` (version 5): the highest rung within a part of what
//!   segments came at, averaged twice, of which the smaller holds.
//! - [`Rule::Both`]: dash.js' default, DYNAMIC of Spiteri, Sitaraman and Sparacio, *From Theory to Practice*
//!   (MMSys 2018): the throughput rule while the buffer is low, else BOLA of Spiteri, Urgaonkar and Sitaraman
//!   (INFOCOM 2016). Without BOLA's placeholder buffer, which stands for a player that waits although it has
//!   room.
//!
//! Rungs are rates that rise. Nothing here knows where they come from.

mod bola;
mod buffer;
mod choice;
mod estimate;

use anabranch_units::{Bytes, Duration, Rate, Ratio};

pub use choice::Choice;
use estimate::Estimate;

/// What decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The buffer alone.
    Buffer,
    /// How fast segments came.
    Throughput,
    /// How fast segments came while the buffer is low, the buffer else.
    Both,
}

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// What decides.
    pub rule: Rule,
    /// A player with so much to play asks for nothing more: the buffer's parts are parts of this.
    pub holds: Duration,
    /// A rung may take this part of what segments came at (dash.js' `bandwidthSafetyFactor`).
    pub safety: Ratio,
    /// The averages of what segments came at lose half of their weight in so much time of transfer: a fast
    /// one and a slow one (dash.js' `ewma`).
    pub half_lives: (Duration, Duration),
    /// With so much buffer BOLA begins to decide, and with half of it it ceases (dash.js'
    /// `hybridSwitchBufferTime`).
    pub buffer_decides_from: Duration,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            rule: Rule::Both,
            holds: Duration::from_secs(30),
            safety: Ratio::new(9, 10),
            half_lives: (Duration::from_secs(3), Duration::from_secs(8)),
            buffer_decides_from: Duration::from_secs(12),
        }
    }
}

/// What a player knows that chooses.
#[derive(Clone, Debug)]
pub struct Adaptation {
    parameters: Parameters,
    estimate: Estimate,
    /// What was chosen last.
    last: Option<usize>,
    /// Whether the buffer decides, of [`Rule::Both`].
    by_buffer: bool,
}

impl Adaptation {
    /// A player that has seen nothing.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters, estimate: Estimate::default(), last: None, by_buffer: false }
    }

    /// The part of what segments come at that a rung may take.
    pub fn safety(&self) -> Ratio {
        self.parameters.safety
    }

    /// A segment has come, so long after it was asked for.
    pub fn came(&mut self, size: Bytes, took: Duration) {
        self.estimate.sample(Rate::of(size, took), took, self.parameters.half_lives);
    }

    /// What segments came at; `None`: none has come.
    pub fn estimate(&self) -> Option<Rate> {
        self.estimate.get(self.parameters.half_lives)
    }

    /// The rung of the next segment, with so much to play before it. Without rungs it is the first.
    pub fn choose(&mut self, rungs: &[Rate], buffer: Duration) -> Choice {
        let choice = match self.parameters.rule {
            Rule::Buffer => buffer::choose(rungs, buffer, self.parameters.holds, self.last),
            Rule::Throughput => self.by_throughput(rungs),
            Rule::Both => {
                let from = self.parameters.buffer_decides_from;
                self.by_buffer = buffer >= if self.by_buffer { from * Ratio::new(1, 2) } else { from };
                match self.by_buffer {
                    true => bola::choose(rungs, buffer, self.parameters.holds),
                    false => self.by_throughput(rungs),
                }
            }
        };
        self.last = Some(choice.rung);
        choice
    }

    /// The highest rung within a part of the estimate.
    fn by_throughput(&self, rungs: &[Rate]) -> Choice {
        let Some(estimate) = self.estimate() else {
            return Choice { rung: 0, why: "nothing is known of the paths yet" };
        };
        let most = estimate * self.parameters.safety;
        match rungs.iter().rposition(|rung| *rung <= most) {
            Some(rung) => Choice { rung, why: "the highest that what came of late allows" },
            None => Choice { rung: 0, why: "what came of late is slower than every rung" },
        }
    }
}

#[cfg(test)]
mod tests;
