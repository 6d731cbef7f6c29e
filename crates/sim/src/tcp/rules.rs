//! Which rules a flow keeps: the RFCs' or ns-2's. Here alone it is known that there are two, and chosen when
//! a flow begins; a [`Sender`](super::Sender) works by whichever it has.

use super::flow::{Acknowledgement, Flow};
use super::grants::Grants;
use super::ns2::{self, Ns2};
use super::recovery::{Event, LossRecovery};
use super::rto::RoundTrip;
use super::sack::Sack;
use super::window::Window;
use crate::model::{Recovery, Tcp};

/// The rules of a sender, in its own memory.
#[derive(Debug)]
pub(super) enum Rules {
    Sack(Sack),
    Ns2(Ns2),
}

impl Rules {
    /// Of a flow that begins, with its window and its clock of round trips; `seed`: of its controller's
    /// random numbers.
    pub(super) fn of(tcp: &Tcp, seed: u64) -> (Self, Window, RoundTrip) {
        match tcp.recovery {
            Recovery::Sack => (Self::Sack(Sack::new(tcp)), Window::new(tcp, seed), RoundTrip::new(&tcp.rto)),
            Recovery::Ns2Sack1 => (Self::Ns2(Ns2::new(tcp)), ns2::window(tcp), RoundTrip::in_ticks(&tcp.rto)),
        }
    }

    /// In a group: the rules, and what it grants. ns-2 knows no groups.
    pub(super) fn in_group(&self) -> Option<(&Sack, &Grants)> {
        let Self::Sack(rules) = self else { return None };
        Some((rules, rules.grants()?))
    }

    /// What the group grants, to change it.
    pub(super) fn grants_mut(&mut self) -> Option<&mut Grants> {
        let Self::Sack(rules) = self else { return None };
        rules.grants_mut()
    }
}

/// Each is asked for every packet: without a table of functions they become part of their callers.
macro_rules! each {
    ($rules:expr, $inner:ident => $result:expr) => {
        match $rules {
            Rules::Sack($inner) => $result,
            Rules::Ns2($inner) => $result,
        }
    };
}

impl LossRecovery for Rules {
    #[inline]
    fn acknowledgement(&mut self, flow: &mut Flow, ack: &Acknowledgement, now: u64) -> Option<Event> {
        each!(self, rules => rules.acknowledgement(flow, ack, now))
    }

    fn time_out(&mut self, flow: &mut Flow, now: u64) {
        each!(self, rules => rules.time_out(flow, now));
    }

    #[inline]
    fn next_segment(&mut self, flow: &mut Flow, now: u64) -> Option<(u64, u64)> {
        each!(self, rules => rules.next_segment(flow, now))
    }

    #[inline]
    fn has_room(&self, flow: &Flow) -> bool {
        each!(self, rules => rules.has_room(flow))
    }

    fn give_up(&mut self) {
        each!(self, rules => rules.give_up());
    }

    #[inline]
    fn touch(&self) {
        each!(self, rules => rules.touch());
    }
}
