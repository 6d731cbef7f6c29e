//! What can be measured, by name, and in which units it is told.

/// What a number is a number of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dimension {
    Rate,
    Time,
    Size,
    Pure,
}

impl Dimension {
    /// The units in which it can be told, and how much each is in SI units (bits a second, seconds, bytes).
    pub(super) const fn units(self) -> &'static [(&'static str, f64)] {
        match self {
            Self::Rate => &[("bps", 1.0), ("kbps", 1e3), ("Mbps", 1e6)],
            Self::Time => &[("s", 1.0), ("ms", 1e-3)],
            Self::Size => &[("B", 1.0), ("kB", 1e3), ("MB", 1e6)],
            Self::Pure => &[("", 1.0), ("%", 1e-2)],
        }
    }
}

/// Everything that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Goodput,
    Throughput,
    Sent,
    Loss,
    Retransmitted,
    Cwnd,
    Srtt,
    Connections,
    /// Of films: most that were open at a time, and the mean over the whole run.
    MostConnections,
    MeanConnections,
    /// Of films.
    Requests,
    ReceiveWindow,
    VirtualConnections,
    Buffer,
    /// Of films: the play time of what is there without a gap, and the part of the time in which what should
    /// play is not.
    InOrder,
    Late,
    Jain,
    WeightedJain,
    WeightedJainOfThroughput,
    GoodputRatio,
    Carried,
    Wait,
    Queue,
    Dropped,
    /// What packets take to propagate.
    Delay,
    /// The part of the time in which so many connections are open.
    TimeShare,
    /// Packets that are lost in a row.
    LossBurst,
    /// Of a film with parity that a flow's packets carry: how long the picture was frozen, how many packets
    /// were not repaired, and what the player has.
    Frozen,
    Unrepaired,
    ClipBuffer,
    Drops,
    LossEvents,
    Timeouts,
    /// Acknowledgements with which TCP's window can grow.
    Growths,
    RoundTrip,
    Completed,
    StartUp,
    Stalls,
    Stalled,
    Standing,
    /// Of live streams: the part of their packets that never came out, how long 99 of 100 of the others took,
    /// and how much longer that is than what was asked for.
    Missing,
    Latency,
    Overrun,
    /// Of players that choose rungs: the mean rate of what was played, and how often it changed.
    Rung,
    RungSwitches,
    /// Of members of VPS groups: with how many others each shares, the part that share with one behind their
    /// own bottleneck, and the part that do with one behind another.
    Companions,
    Joined,
    WithStrangers,
    /// Of flows: what they get of the rate of their bottleneck.
    OfBottleneck,
}

impl Quantity {
    /// The names in a plan.
    pub(super) const NAMES: [(&'static str, Self); 49] = [
        ("goodput", Self::Goodput),
        ("throughput", Self::Throughput),
        ("sent", Self::Sent),
        ("loss", Self::Loss),
        ("retransmitted", Self::Retransmitted),
        ("cwnd", Self::Cwnd),
        ("srtt", Self::Srtt),
        ("connections", Self::Connections),
        ("most_connections", Self::MostConnections),
        ("mean_connections", Self::MeanConnections),
        ("requests", Self::Requests),
        ("receive_window", Self::ReceiveWindow),
        ("virtual_connections", Self::VirtualConnections),
        ("buffer", Self::Buffer),
        ("in_order", Self::InOrder),
        ("late", Self::Late),
        ("jain_index", Self::Jain),
        ("weighted_jain_index", Self::WeightedJain),
        ("weighted_jain_index_of_throughput", Self::WeightedJainOfThroughput),
        ("goodput_ratio", Self::GoodputRatio),
        ("carried", Self::Carried),
        ("wait", Self::Wait),
        ("queue", Self::Queue),
        ("dropped", Self::Dropped),
        ("delay", Self::Delay),
        ("time_share", Self::TimeShare),
        ("loss_burst", Self::LossBurst),
        ("frozen", Self::Frozen),
        ("unrepaired", Self::Unrepaired),
        ("clip_buffer", Self::ClipBuffer),
        ("drops", Self::Drops),
        ("loss_events", Self::LossEvents),
        ("timeouts", Self::Timeouts),
        ("growths", Self::Growths),
        ("round_trip", Self::RoundTrip),
        ("completed", Self::Completed),
        ("start_up", Self::StartUp),
        ("stalls", Self::Stalls),
        ("stalled", Self::Stalled),
        ("standing", Self::Standing),
        ("missing", Self::Missing),
        ("latency", Self::Latency),
        ("overrun", Self::Overrun),
        ("rung", Self::Rung),
        ("rung_switches", Self::RungSwitches),
        ("companions", Self::Companions),
        ("joined", Self::Joined),
        ("with_strangers", Self::WithStrangers),
        ("of_bottleneck", Self::OfBottleneck),
    ];

    pub(super) const fn dimension(self) -> Dimension {
        match self {
            Self::Goodput | Self::Throughput | Self::Carried | Self::Rung => Dimension::Rate,
            Self::Srtt
            | Self::Buffer
            | Self::InOrder
            | Self::Wait
            | Self::Delay
            | Self::Frozen
            | Self::ClipBuffer
            | Self::RoundTrip
            | Self::Completed
            | Self::StartUp
            | Self::Stalled
            | Self::Standing
            | Self::Latency
            | Self::Overrun => Dimension::Time,
            Self::Cwnd | Self::ReceiveWindow => Dimension::Size,
            _ => Dimension::Pure,
        }
    }

    /// Whether it is one of links, not of flows.
    pub(super) const fn is_of_links(self) -> bool {
        matches!(self, Self::Carried | Self::Wait | Self::Queue | Self::Dropped | Self::Delay)
    }

    /// Whether it goes by the bottlenecks of flows.
    pub(super) const fn is_by_bottleneck(self) -> bool {
        matches!(self, Self::Companions | Self::Joined | Self::WithStrangers | Self::OfBottleneck)
    }

    /// Whether it can be that of the time in which so many connections are open.
    pub(super) const fn is_by_connections(self) -> bool {
        matches!(self, Self::Sent | Self::Loss | Self::Retransmitted | Self::TimeShare | Self::LossBurst)
    }

    /// Whether it is one of packets, each by itself.
    pub(super) const fn is_of_packets(self) -> bool {
        matches!(self, Self::LossBurst) || self.is_of_a_clip()
    }

    /// Whether it is one of a film that packets carry.
    pub(super) const fn is_of_a_clip(self) -> bool {
        matches!(self, Self::Frozen | Self::Unrepaired | Self::ClipBuffer)
    }

    /// Whether it is what a viewer sees.
    pub(super) const fn is_of_a_player(self) -> bool {
        matches!(self, Self::StartUp | Self::Stalls | Self::Stalled | Self::Late)
    }

    /// Whether it is known at the end of a run only.
    pub(super) const fn is_of_the_whole_run(self) -> bool {
        matches!(
            self,
            Self::Drops
                | Self::LossEvents
                | Self::Timeouts
                | Self::Growths
                | Self::RoundTrip
                | Self::Completed
                | Self::Standing
                | Self::Missing
                | Self::Latency
                | Self::Overrun
                | Self::MostConnections
                | Self::MeanConnections
                | Self::Requests
                | Self::StartUp
                | Self::Stalls
                | Self::Stalled
                | Self::Rung
                | Self::RungSwitches
        )
    }
}
