//! What a stream is to be.

use std::ops::Range;

use anabranch_film::auto::Lasting;
use anabranch_film::control::RateController;
use anabranch_film::session::Pace;
use anabranch_film::{auto, content, fixed, mul, multitcp, playback, playlist, rome};
use anabranch_units::{Bytes, Duration, Rate, Ratio, Time};
use url::Url;

use anabranch_http::{ConnectOptions, ExtraHeaders, Pool, Proxies};
use anabranch_sockets::Interface;
use anabranch_sockets::tls::TlsClient;

/// Who decides about connections and windows.
#[derive(Clone, Debug)]
pub enum RateControl {
    /// The smallest number of connections that holds the rate.
    Auto(auto::Parameters),
    /// MultiTCP with a fixed number.
    Basic(multitcp::Parameters),
    /// MultiTCP with a number that follows the congestion.
    Advanced(multitcp::AdvancedParameters),
    /// MUL-TCP: as many connections as MULTFRC's control says.
    Mul(mul::Parameters),
    /// So many connections, as fast as they bring it.
    Fixed(u32),
    /// TCP-ROME's rate coordinator, with segments of this size and its rule for missing ones.
    Rome(rome::Parameters, Bytes),
}

/// How long a request of `auto` lasts where a limit holds back what comes: nobody waits for it, and each
/// request costs both ends.
const LIMITED_SEGMENT: Duration = Duration::from_secs(2);

/// Everything that can be set about a stream.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The replicas.
    pub urls: Vec<Url>,
    /// Headers for every request.
    pub headers: ExtraHeaders,
    /// Whom to trust.
    pub tls: TlsClient,
    /// Through which proxies to go.
    pub proxies: Proxies,
    /// Interfaces to go out over; none: the system's choice.
    pub interfaces: Vec<Interface>,
    /// Who decides.
    pub algorithm: RateControl,
    /// What is to be held.
    pub pace: Pace,
    /// Most connections to one host.
    pub per_host: usize,
    /// A connection has to be set up in this time.
    pub connect_timeout: Duration,
    /// The stream fails when nothing has arrived for so long.
    pub give_up_after: Duration,
    /// A connection that was asked for something and brings nothing for so long is closed.
    pub silent_after: Duration,
    /// Bound on the film's bytes in memory.
    pub memory: Bytes,
    /// When the player starts and stops.
    pub playback: playback::Parameters,
    /// Whether the media is asked for its rate, where the pace does not tell it.
    pub probe_media: bool,
    /// Whether our own server is asked to stripe.
    pub stripe: bool,
    /// Whether HTTP/3 is spoken, and nothing else.
    pub http3: bool,
    /// Connections that go on from one film to the next; `None`: each film has its own.
    pub pool: Option<Pool>,
    /// Which bytes of what is at the URLs are the film, at least one; `None`: all of them.
    pub part: Option<Range<u64>>,
    /// What is known of a film that is one segment of many.
    pub segment: Option<PlaylistSegment>,
}

/// What its playlist tells of a segment.
#[derive(Clone, Debug)]
pub struct PlaylistSegment {
    /// How long it plays.
    pub play_time: Duration,
    /// How much its player has to play before it.
    pub ahead: Duration,
    /// How many connections it may have.
    pub most: usize,
    /// What is known of the path from the segments before it, and when this one was begun by the clock that
    /// counts there; `None`: it is the first one and the last.
    pub control: Option<(Lasting, Time)>,
    /// The size of the last one of its rung; `None`: none has come yet.
    pub last_size: Option<Bytes>,
    /// What the rung above needs, as a multiple of what this one does; `None`: there is none, or nobody knows it.
    pub next_rung: Option<Ratio>,
}

/// The first request for a segment is for what a connection brings in so long, where that is known: the next one leaves
/// when the first byte has come, and the connection has nothing to do until it arrives.
const FIRST_TIME: Duration = Duration::from_millis(250);
/// That at the least and at the most, and at most this part of the segment: nobody else is asked for it, should the
/// connection slow.
const FIRST_BOUNDS: (Bytes, Bytes) = (Bytes::kib(64), Bytes::mib(1));
const FIRST_PART: Ratio = Ratio::new(1, 2);

impl PlaylistSegment {
    /// One of which nothing is known from others: it plays so long, and is wanted in so long.
    pub fn alone(play_time: Duration, ahead: Duration) -> Self {
        let most = playlist::Parameters::default().most;
        Self { play_time, ahead, most, control: None, last_size: None, next_rung: None }
    }

    /// How much is asked for before its size is known; `None`: as of any film.
    fn first_bytes(&self) -> Option<Bytes> {
        let share = self.control.as_ref().and_then(|(lasting, _)| lasting.share())?;
        Some(first_bytes(share, self.last_size))
    }
}

fn first_bytes(share: Rate, last_size: Option<Bytes>) -> Bytes {
    let (least, most) = FIRST_BOUNDS;
    let most = last_size.map_or(most, |size| most.min(size * FIRST_PART));
    share.amount_in(FIRST_TIME).min(most).max(least)
}

impl Settings {
    /// The defaults for these replicas.
    pub fn new(urls: Vec<Url>) -> Self {
        Self {
            urls,
            headers: ExtraHeaders::default(),
            tls: TlsClient::default(),
            proxies: Proxies::default(),
            interfaces: Vec::new(),
            algorithm: RateControl::Auto(auto::Parameters::default()),
            pace: Pace::Max,
            per_host: 16,
            connect_timeout: Duration::from_secs(10),
            give_up_after: Duration::from_secs(30),
            silent_after: Duration::from_secs(8),
            memory: Bytes::mib(32),
            playback: playback::Parameters::default(),
            probe_media: true,
            stripe: true,
            http3: false,
            pool: None,
            part: None,
            segment: None,
        }
    }

    /// Whether a reader gets the first bytes as they come: nobody has to look at them before.
    pub(super) fn streams_at_once(&self) -> bool {
        self.segment.is_some() && self.urls.len() == 1 && !self.probe_media
    }

    /// The rate controller of the algorithm.
    pub(super) fn controller(&self, paths: usize) -> Box<dyn RateController> {
        match &self.algorithm {
            RateControl::Auto(parameters) => {
                // One connection for every replica is there from the probing: they start together, and those
                // that are not needed are given back.
                let Some(PlaylistSegment { most, control, .. }) = &self.segment else {
                    let at_start = parameters.at_start.max(paths).min(3).min(parameters.most);
                    return Box::new(auto::Auto::new(auto::Parameters { at_start, ..*parameters }));
                };
                let most = (*most).min(parameters.most);
                let parameters = auto::Parameters { at_start: 1, most, ..*parameters };
                match control {
                    Some((lasting, began)) => lasting.next_session(parameters, *began),
                    None => Box::new(auto::Auto::new(parameters)),
                }
            }
            RateControl::Basic(parameters) => Box::new(multitcp::Basic::new(*parameters)),
            RateControl::Advanced(parameters) => Box::new(multitcp::Advanced::new(*parameters)),
            RateControl::Mul(parameters) => Box::new(mul::Mul::new(*parameters)),
            RateControl::Fixed(connections) => Box::new(fixed::Fixed::new(*connections, None)),
            RateControl::Rome(parameters, _) => Box::new(rome::Rome::new(*parameters)),
        }
    }

    /// The content coordinator's parameters.
    pub(super) fn policy(&self, in_memory: bool) -> content::Policy {
        let look_ahead = if in_memory { self.memory * Ratio::new(3, 4) } else { Bytes::new(u64::MAX / 4) };
        match &self.algorithm {
            RateControl::Rome(_, segment) => content::Policy::rome(*segment, look_ahead),
            algorithm => {
                let policy = content::Policy::expected(look_ahead);
                // The papers' algorithms ask as they did when they were measured.
                let unhurried_from = match algorithm {
                    RateControl::Auto(parameters) => Some(parameters.buffer.0),
                    _ => None,
                };
                let segment_time = match self.pace {
                    Pace::Limit(_) if unhurried_from.is_some() => LIMITED_SEGMENT,
                    _ => policy.segment_time,
                };
                let largest = if in_memory {
                    (self.memory * Ratio::new(1, 16)).max(Bytes::kib(64))
                } else {
                    Bytes::mib(16)
                };
                let segment_size = (policy.segment_size.0, largest);
                content::Policy { segment_time, segment_size, unhurried_from, ..policy }
            }
        }
    }

    /// How to connect over an interface.
    pub(super) fn connect_options(&self, interface: Option<&Interface>) -> ConnectOptions {
        let usual = ConnectOptions::default();
        let length = self.part.as_ref().map(|part| Bytes::new(part.end.saturating_sub(part.start)));
        let of_segment = self.segment.as_ref().and_then(PlaylistSegment::first_bytes);
        let first_bytes = of_segment.unwrap_or(usual.first_bytes);
        ConnectOptions {
            start: self.part.as_ref().map_or(0, |part| part.start),
            first_bytes: length.map_or(first_bytes, |length| length.min(first_bytes)),
            interface: interface.cloned(),
            receive_buffer: self.receive_buffer(),
            tls: self.tls.clone(),
            proxies: self.proxies.clone(),
            http3: self.http3,
            connect_timeout: self.connect_timeout,
            pool: self.pool.clone(),
            ..usual
        }
    }

    /// A fixed receive buffer where the rate is known and small: it spares the burst until the first window
    /// is set. It also fixes the window scale, so it has room for a second of the rate.
    fn receive_buffer(&self) -> Option<Bytes> {
        if self.pool.is_some() {
            // The next film may need more.
            return None;
        }
        let rate = match self.pace {
            Pace::Limit(rate) | Pace::Media(Some(rate)) => rate,
            _ => return None,
        };
        (rate <= Rate::from_mbps(2)).then(|| rate.amount_in(Duration::from_secs(1)).max(Bytes::kib(64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_request_for_a_segment_is_what_a_connection_brings_until_the_next_one_is_answered() {
        let size = |kib| Some(Bytes::kib(kib));
        let of = |mbps, last_size| first_bytes(Rate::from_mbps(mbps), last_size);
        assert_eq!(of(8, size(2000)), Bytes::new(250_000));
        assert_eq!(of(8, None), Bytes::new(250_000), "of another rung none has come");
        assert_eq!(of(8, size(400)), Bytes::kib(200), "others are left half of it");
        assert_eq!(of(1, size(2000)), Bytes::kib(64), "as of any other film");
        assert_eq!(of(8, size(40)), Bytes::kib(64));
        assert_eq!(of(1000, None), Bytes::mib(1));
    }
}
