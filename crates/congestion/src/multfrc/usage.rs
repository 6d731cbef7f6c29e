//! What a sender makes of its rate.

use anabranch_units::Rate;

/// What a sender makes of its rate, as a report tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// What the sender was allowed, for all connections that it stands for.
    pub allowed: Rate,
    /// What the equation gives all of them, whatever else bounds the rate; infinite before the first loss.
    pub equation: Rate,
    /// What arrived in the last round trip.
    pub delivered: Rate,
    /// The loss event rate (p).
    pub loss_event_rate: f64,
    /// Whether it had more to send at some time since the last report than it was allowed.
    pub is_limited: bool,
    /// The rate of what there is to send, if it is known.
    pub wanted: Option<Rate>,
    /// Whether other links bring a part of what there is to send.
    pub has_links_beside: bool,
    /// What one connection would get, with the losses as it would see them: those of a round trip are one
    /// event, whatever the virtual connections in which the equation finds them. `None`: the equation's part.
    pub one: Option<Rate>,
}

impl Usage {
    /// The connections that what is to be sent needs, with some to spare, as a part of those there are.
    pub(super) fn need(&self) -> Option<f64> {
        Some(SPARE * self.wanted?.as_f64() / self.equation.as_f64().max(1.0))
    }
}

/// What is allowed as a part of what is wanted: the rate that the equation gives varies by so much.
pub(super) const SPARE: f64 = 1.2;
