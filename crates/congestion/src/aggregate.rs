//! One stream over several connections, or over one that stands for several: which of the two, and how many.
//!
//! A driver keeps [`Aggregate::connections`] connections open, each with a sender that stands for
//! [`Aggregate::flows`] connections ([`crate::tfrc::Sender::set_flows`]), tells [`Aggregate::report`] the
//! round-trip time that every report brings, and adjusts both when that answers with a decision. It closes
//! first what it opened last.

use anabranch_units::{Duration, Time};

use crate::multfrc::{self, Decision, MulTfrc, Usage};

/// How a stream shares out its connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheme {
    /// So many connections, at least one, all the time. TFRC is one.
    Fixed(u32),
    /// MULTFRC: as many connections as the control says.
    Several(multfrc::Parameters),
    /// AIO-TFRC: one connection that sends at n times the rate of one, where n is what the control says and
    /// need not be a whole number. Section IV.C of the paper of [`multfrc`]; M. Chen, A. Zakhor, "AIO-TFRC: a
    /// light-weighted rate control scheme for streaming over wireless" (WirelessCom 2005). How the receiver
    /// finds losses is [`crate::tfrc::Filter`].
    AllInOne(multfrc::Parameters),
}

impl Scheme {
    /// One connection.
    pub const TFRC: Self = Self::Fixed(1);
    /// MULTFRC with the paper's parameters.
    pub const MULTFRC: Self = Self::Several(multfrc::Parameters::PAPER);
    /// AIO-TFRC with the paper's parameters.
    pub const AIO_TFRC: Self = Self::AllInOne(multfrc::Parameters::PAPER);
    /// Ours: AIO-TFRC with another control law. See [`multfrc::Parameters::AUTO`].
    pub const AUTO: Self = Self::AllInOne(multfrc::Parameters::AUTO);
}

/// A scheme at work.
#[derive(Clone, Debug)]
pub struct Aggregate {
    scheme: Scheme,
    controller: Option<MulTfrc>,
}

impl Aggregate {
    /// At the beginning of a stream.
    pub fn new(scheme: Scheme) -> Self {
        let controller = match scheme {
            Scheme::Fixed(_) => None,
            Scheme::Several(parameters) | Scheme::AllInOne(parameters) => Some(MulTfrc::new(parameters)),
        };
        Self { scheme, controller }
    }

    /// How many connections are to be open, at least one.
    pub fn connections(&self) -> u32 {
        match (self.scheme, &self.controller) {
            (Scheme::Fixed(count), _) => count.max(1),
            (Scheme::Several(_), Some(controller)) => controller.connections(),
            _ => 1,
        }
    }

    /// How many connections the sender of each stands for, at least one.
    pub fn flows(&self) -> f64 {
        match (self.scheme, &self.controller) {
            (Scheme::AllInOne(_), Some(controller)) => controller.target(),
            _ => 1.0,
        }
    }

    /// It is known what became of a datagram that left at `sent` ([`MulTfrc::datagram`]).
    pub fn datagram(&mut self, sent: Time, is_lost: bool) {
        if let Some(controller) = &mut self.controller {
            controller.datagram(sent, is_lost);
        }
    }

    /// What is left of what the stream saved, from 0 to 1 ([`MulTfrc::saved`]); 1 where nothing is reckoned.
    pub fn saved(&self) -> f64 {
        match (self.scheme, &self.controller) {
            (Scheme::AllInOne(parameters), Some(controller)) if parameters.startup => controller.saved(),
            _ => 1.0,
        }
    }

    /// A report brought a sender the round-trip time `sample`, and this is what it makes of its rate
    /// ([`crate::tfrc::Sender::usage`]). Answers when the number of connections was decided on anew.
    pub fn report(&mut self, now: Time, sample: Duration, usage: &Usage) -> Option<Decision> {
        let controller = self.controller.as_mut()?;
        match self.scheme {
            // One sender's rate is that of the whole stream.
            Scheme::AllInOne(_) => controller.report(now, sample, usage),
            _ => controller.rtt(now, sample),
        }
    }
}
