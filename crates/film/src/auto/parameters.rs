//! What can be chosen of the controller.

use anabranch_units::{Duration, Packets, Ratio};

/// Parameters of [`Auto`](super::Auto).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Most connections.
    pub most: usize,
    /// Connections at the start, spread over the paths.
    pub at_start: usize,
    /// Thresholds B- and B+ on the buffer.
    pub buffer: (Duration, Duration),
    /// The rate allowed below B+ with more than one connection to a server, as a multiple of the wanted one.
    pub boost: Ratio,
    /// The same where every path has room.
    pub boost_with_room: Ratio,
    /// The needed rate is the wanted one plus this part of it.
    pub margin: Ratio,
    /// A receive window is so many times share x rate x RTT.
    pub window_headroom: Ratio,
    /// When the rate is missed, a window may grow to so many times rate x RTT over the number of connections.
    pub window_spread: Ratio,
    /// An addition is kept when it brings this part of the proportional gain.
    pub least_gain: Ratio,
    /// Where packets are lost, no connection is added with which each would have fewer in flight.
    pub least_share: Packets,
    /// First rest after an addition that brought nothing, and after a connection that was missed.
    pub first_rest: Duration,
    /// The longest such rest.
    pub longest_rest: Duration,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            most: 16,
            at_start: 1,
            buffer: (Duration::from_secs(5), Duration::from_secs(20)),
            boost: Ratio::new(13, 10),
            boost_with_room: Ratio::new(3, 1),
            margin: Ratio::new(1, 20),
            window_headroom: Ratio::new(3, 2),
            window_spread: Ratio::new(6, 1),
            least_gain: Ratio::new(1, 4),
            least_share: Packets::new(4),
            first_rest: Duration::from_secs(8),
            longest_rest: Duration::from_secs(120),
        }
    }
}
