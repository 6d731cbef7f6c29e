//! One direction of a TCP connection.

use std::hint::black_box;

use crate::counted::FlowCounted;
use crate::model::{FlowId, Tcp};
use crate::tcp::{NO_LIMIT, Receiver, Sender};

/// A half connection's place among those of its network.
pub(crate) type HalfId = u32;

/// Which of a connection's ends a half's data comes from, and what set it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The sender opens the connection.
    Opener,
    /// The receiver opens the connection; its own half is this one.
    Answerer(HalfId),
}

/// Counted since the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub sent: u64,
    pub dropped: u64,
    pub lost: u64,
    pub marked: u64,
    pub retransmitted: u64,
    pub loss_events: u64,
    pub timeouts: u64,
    pub arrived_wire: u64,
    /// Data packets that arrived, and those of them that came beyond a gap.
    pub arrived: u64,
    pub out_of_order: u64,
}

/// Data of a connection in one direction: a sender at one end, a receiver at the other.
#[derive(Debug)]
pub(crate) struct Half {
    pub flow: FlowId,
    pub connection: u32,
    pub is_opener: bool,
    pub sender: Sender,
    pub receiver: Receiver,
    pub counters: Counters,
    pub header: u32,
    /// The half of the other direction that is set up together with this one.
    pub(in crate::network) other: Option<HalfId>,
    pub(in crate::network) segment: u64,
    pub(in crate::network) data_path: u32,
    pub(in crate::network) ack_path: u32,
    /// Where the receiver stopped listening.
    pub(in crate::network) is_closed: bool,
    /// Whether the set-up and arrivals are told to the user.
    pub tells: bool,
    pub(in crate::network) set_up_sent: u64,
    pub(in crate::network) set_up_tries: u32,
    /// When the retransmission timer's event comes; [`u64::MAX`]: there is none. The deadline may be later by
    /// then.
    pub(in crate::network) timer_at: u64,
    /// When the delayed acknowledgement's event comes, and when it is due: events are put off like those of
    /// the timer.
    pub(in crate::network) delayed_ack_at: u64,
    pub(in crate::network) delayed_ack_due: u64,
    /// When the event comes at which a paced segment may leave; [`u64::MAX`]: there is none.
    pub(in crate::network) departure_at: u64,
    pub(in crate::network) jitter: u64,
    pub(in crate::network) jitter_is_pending: bool,
}

impl Half {
    /// One that is not set up yet. `paths`: of its data, and of the acknowledgements; `seed`: of its sender's
    /// random numbers.
    pub(in crate::network) fn new(
        flow: FlowId,
        connection: u32,
        tcp: &Tcp,
        role: Role,
        paths: (u32, u32),
        written: u64,
        seed: u64,
    ) -> Self {
        Self {
            flow,
            connection,
            is_opener: role == Role::Opener,
            sender: Sender::new(tcp, written.min(NO_LIMIT), seed),
            receiver: Receiver::new(tcp),
            counters: Counters::default(),
            header: tcp.header.get() as u32,
            other: match role {
                Role::Opener => None,
                Role::Answerer(opener) => Some(opener),
            },
            segment: tcp.segment.get(),
            data_path: paths.0,
            ack_path: paths.1,
            is_closed: false,
            tells: false,
            set_up_sent: 0,
            set_up_tries: 0,
            timer_at: u64::MAX,
            delayed_ack_at: u64::MAX,
            delayed_ack_due: u64::MAX,
            departure_at: u64::MAX,
            jitter: tcp.send_jitter.as_nanos(),
            jitter_is_pending: false,
        }
    }

    /// What is counted of it.
    pub(crate) fn counted(&self) -> FlowCounted {
        let counters = &self.counters;
        FlowCounted {
            delivered: self.receiver.next(),
            arrived_wire: counters.arrived_wire,
            sent: counters.sent,
            dropped: counters.dropped,
            lost: counters.lost,
            marked: counters.marked,
            retransmitted: counters.retransmitted,
            loss_events: counters.loss_events,
            timeouts: counters.timeouts,
            growths: self.sender.growths(),
            rtt: self.sender.measured(),
        }
    }

    /// Payload of a full segment.
    pub(crate) fn segment(&self) -> u64 {
        self.segment
    }

    /// Reads of what an arriving acknowledgement needs.
    #[inline]
    pub(in crate::network) fn touch_sender(&self) {
        self.sender.touch();
        black_box((self.counters.sent, self.timer_at));
    }

    /// Reads of what an arriving segment needs.
    #[inline]
    pub(in crate::network) fn touch_receiver(&self) {
        self.receiver.touch();
        black_box((self.counters.arrived, self.timer_at));
    }

    /// The path of the sender's packets, or that of the receiver's.
    pub(in crate::network) fn path(&self, is_from_sender: bool) -> u32 {
        if is_from_sender { self.data_path } else { self.ack_path }
    }
}
