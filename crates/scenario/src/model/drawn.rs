//! Whether chance has a part in what becomes of a model.

use super::{Change, Discipline, Flow, Jitter, Kind, Link, LossModel, Model, Pattern, Spread, Tcp, When};

impl Model {
    /// Whether the world that runs it draws anything: losses, drops, delays, starts. What was drawn when the
    /// model was made, such as its network, does not count.
    pub fn draws(&self) -> bool {
        self.links.iter().any(Link::draws) || self.flows.iter().any(Flow::draws)
    }
}

impl Link {
    fn draws(&self) -> bool {
        let early = matches!(self.queue.discipline, Discipline::Red(_) | Discipline::Pie(_));
        let later = |change: &Change| change.loss.as_ref().is_some_and(LossModel::draws);
        let jitter = self.jitter.as_ref().is_some_and(Jitter::draws);
        early || self.loss.draws() || jitter || self.duplicate > 0.0 || self.changes.iter().any(later)
    }
}

impl LossModel {
    fn draws(&self) -> bool {
        match self {
            Self::None | Self::Listed(_) => false,
            Self::Bernoulli(probability) => *probability > 0.0,
            Self::GilbertElliott(states) => states.loss_good > 0.0 || states.to_bad > 0.0,
        }
    }
}

impl Jitter {
    fn draws(&self) -> bool {
        match self.spread {
            Spread::Uniform { most } => !most.is_zero(),
            Spread::Exponential { mean } => !mean.is_zero(),
            Spread::Normal { deviation, .. } => !deviation.is_zero(),
        }
    }
}

impl Flow {
    fn draws(&self) -> bool {
        let delays = |tcp: &Tcp| !tcp.send_jitter.is_zero();
        let by_kind = match &self.kind {
            Kind::Tcp { tcp, .. } => delays(tcp),
            Kind::Media(media) => delays(&media.tcp),
            Kind::Udp { pattern, .. } => {
                matches!(pattern, Pattern::Constant { jitter: true, .. } | Pattern::Exponential { .. })
            }
            Kind::Tfrc { .. } | Kind::Live(_) => false,
        };
        by_kind || matches!(self.start, When::Between(from, to) if from < to)
    }
}
