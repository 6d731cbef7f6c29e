//! One metric of one scenario, here and in ns-2.

/// One metric of one scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Ns2Comparison {
    /// The group of scenarios, such as `R2`.
    pub group: &'static str,
    /// The scenario's settings.
    pub configuration: String,
    /// The metric, a phase before it where the scenario has phases.
    pub metric: String,
    /// ns-2's mean over its seeds.
    pub reference: f64,
    /// How far from it still counts as the same: the larger of 5 % and three times the spread over seeds.
    pub tolerance: f64,
    /// Our mean over seeds, by the RFCs.
    pub measured: f64,
    /// Our mean over seeds, by ns-2's rules.
    pub with_ns2_rules: f64,
    /// Whether phase effects rule here: the reference's own documentation says that it is no target, or the
    /// same comparison agrees with a random delay of sending, which takes the phases away.
    pub is_phase_effect: bool,
}

/// What became of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// Within the tolerance.
    Within,
    /// Outside of it, and within with ns-2's rules: that explains it.
    Ns2Rules,
    /// Outside with both, where the phases of equal links and flows decide who loses packets.
    Phase,
    /// Outside with both.
    Differs,
}

impl Ns2Comparison {
    /// What became of it.
    pub fn finding(&self) -> Finding {
        let is_within = |value: f64| (value - self.reference).abs() <= self.tolerance;
        if is_within(self.measured) {
            Finding::Within
        } else if is_within(self.with_ns2_rules) {
            Finding::Ns2Rules
        } else if self.is_phase_effect {
            Finding::Phase
        } else {
            Finding::Differs
        }
    }
}
